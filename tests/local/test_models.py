"""The table: what it says must fit together, for nobody looks at it again once it is pulled from."""

from __future__ import annotations

import re

import pytest

from dragoman.local.weights import MODELS, LocalModel, get_model
from dragoman.values.errors import InputError


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_parts_cover_the_file_without_gap_or_overlap(model: LocalModel) -> None:
    at = 0
    for number, part in enumerate(model.parts, 1):
        assert (part.number, part.offset) == (number, at)
        assert part.bytes > 0
        at += part.bytes
    assert at == model.bytes


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_everything_is_pinned(model: LocalModel) -> None:
    digests = [part.sha256 for part in model.parts]
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in [*digests, model.sha256])
    assert len(set(digests)) == len(digests)
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", part.package) for part in model.parts)
    assert model.licence
    assert "://" not in model.hub


def test_names_are_found_as_people_write_them() -> None:
    assert get_model("smollm2") is get_model("local/smollm2") is get_model(" SmolLM2.gguf ") is MODELS["smollm2"]


@pytest.mark.parametrize(
    ("wrong", "meant"), [("smolm2", "smollm2"), ("qwen2.5-coder-0.5", "qwen2.5-coder-0.5b"), ("qwen", "qwen2.5-coder")]
)
def test_a_name_nobody_knows_is_told_with_the_nearest(wrong: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"did you mean {meant}"):
        get_model(wrong)


def test_what_is_near_to_nothing_gets_the_list() -> None:
    with pytest.raises(InputError, match=r"no weights are known for 'zzz'; choose one of smollm2, ") as caught:
        get_model("zzz")
    assert "did you mean" not in str(caught.value)
    with pytest.raises(InputError):
        get_model("")
