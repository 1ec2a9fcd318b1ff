"""Hooks that other packages bring: by entry point (`dragoman.hooks`) or `module:name`, where the user's configuration names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.app.setup import Setup
from dragoman.base.plugins import PluginNotFound, load_plugin
from dragoman.values.errors import ConfigError
from dragoman.values.hooks import Hooks
from dragoman.words import say

GROUP = "dragoman.hooks"


def load_hooks(setup: Setup) -> list[Hooks]:
    """In the order in which they are named. Raises ConfigError."""
    return [hooks for name in setup.config.plugins.hooks for hooks in _load(setup, name)]


def _load(setup: Setup, name: str) -> Sequence[Hooks]:
    source = setup.loaded.source("plugins.hooks").name
    try:
        found: Any = load_plugin(name, GROUP)
    except PluginNotFound as error:
        raise ConfigError(say("skills.hooks_not_loaded", source=source, reason=str(error))) from error
    if callable(found):  # a function that makes them
        found = found()
    several = list(found) if isinstance(found, Sequence) else [found]
    if not all(isinstance(each, Hooks) for each in several):
        raise ConfigError(say("skills.not_hooks", source=source, name=name, kind=type(found).__name__))
    return several
