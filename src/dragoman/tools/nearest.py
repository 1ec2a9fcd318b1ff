"""What to say of a file that is not there: the names nearest to it."""

from __future__ import annotations

import os
from itertools import islice

from dragoman.base.text import closest
from dragoman.tools.names import clipped
from dragoman.tools.workspace import PathRefused, Refused, Workspace

MAX_NAMES = 2_000
"""How many names of a directory are compared."""


def missing(workspace: Workspace, path: str) -> PathRefused:
    """The refusal for a resolved path where nothing is."""
    shown = clipped(workspace.shown(path))
    near = [workspace.shown(each) for each in _nearest_paths(workspace, path)]
    hint = f"; similar: {', '.join(map(clipped, near))}" if near else ": find it with glob or list_directory"
    return PathRefused(f"{shown} does not exist{hint}", "not_found")


def _nearest_paths(workspace: Workspace, path: str) -> list[str]:
    """Up to three paths beside the first part of `path` that does not exist."""
    parent, name = os.path.split(path)
    while not os.path.isdir(parent) and parent != os.path.dirname(parent):
        parent, name = os.path.split(parent)
    try:
        with workspace.directory(parent) as directory, directory.scan() as entries:
            names = [entry.name for entry in islice(entries, MAX_NAMES)]
    except (OSError, Refused):
        return []
    return [os.path.join(parent, each) for each in closest(name, sorted(names), 3)]
