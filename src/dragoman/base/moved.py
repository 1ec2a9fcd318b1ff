"""Modules that were moved: for one version more their names are had at the old place too, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any


def passing_on(old: str, new: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module at its old place."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        found = getattr(import_module(new), name)
        warnings.warn(f"{old} is {new} from version 0.2 on; the old name goes with 0.3", DeprecationWarning, stacklevel=2)
        return found

    return find
