"""Modules that are loaded when a test first uses them. Every worker collects all tests, and runs few of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Lazily:
    """Stands for a module of that name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "pytestmark":  # pytest looks through all that stands in a module
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
