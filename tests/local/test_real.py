"""The smallest model through the real installer and the real index (see real_weights.py)."""

from __future__ import annotations

import hashlib

import pytest

from dragoman.local.weights import MODELS, LocalModel, find
from real_weights import NAME, kept_models, pulled


def test_the_smallest_model_can_be_pulled() -> None:
    path = pulled()
    assert path == find(NAME, kept_models())
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == MODELS[NAME].sha256


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_the_table_fits_the_files_that_are_here(model: LocalModel) -> None:
    """Each part's SHA-256, and with the whole's the publisher's own."""
    path = find(model.name, kept_models())
    if path is None:
        pytest.skip(f"{model.name} is not here; dragoman models pull {model.name} brings it")
    whole = hashlib.sha256()
    with path.open("rb") as file:
        for part in model.parts:
            data = file.read(part.bytes)
            whole.update(data)
            assert hashlib.sha256(data).hexdigest() == part.sha256, part.number
    assert whole.hexdigest() == model.sha256
