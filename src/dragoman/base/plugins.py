"""Things other packages bring: by `module:name`, or by the name of an entry point."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any


class PluginNotFound(LookupError):
    """No such entry point, module or attribute. The message says which."""


def is_module_name(text: str) -> bool:
    """Whether a text has the form `package.module:name`."""
    module, colon, name = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


def has_plugin(name: str, group: str) -> bool:
    """Whether there may be one: what `module:name` names is not looked for."""
    if is_module_name(name):
        return True
    from importlib.metadata import entry_points

    return name in entry_points(group=group).names


def load_plugin(name: str, group: str) -> Any:
    """What `module:name` names, or the entry point of that name in a group. Raises PluginNotFound.

    The current directory is never searched: a file that happens to lie there must not run because it has the right name.
    """
    if not is_module_name(name):
        return _load_entry_point(name, group)
    module, _, attributes = name.partition(":")
    try:
        found: Any = _import_installed(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise PluginNotFound(f"{name}: {error}") from error
    return found


def _load_entry_point(name: str, group: str) -> Any:
    from importlib.metadata import entry_points

    found = entry_points(group=group)
    if name not in found.names:
        known = ", ".join(sorted(found.names))
        raise PluginNotFound(f"no installed package has an entry point {name!r} in {group}" + (f"; there are {known}" if known else ""))
    try:
        return found[name].load()
    except (ImportError, AttributeError) as error:
        raise PluginNotFound(f"{name}: {error}") from error


def _import_installed(module: str) -> Any:
    here = {"", os.curdir, os.getcwd()}
    path = sys.path[:]
    sys.path[:] = [each for each in path if each not in here]
    try:
        return import_module(module)
    finally:
        sys.path[:] = path
