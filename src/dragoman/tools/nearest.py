"""The refusal for a missing file, with similar names."""

from __future__ import annotations

import os
from itertools import islice

from dragoman.base.text import closest
from dragoman.tools.names import truncate_path
from dragoman.tools.workspace import PathRefusal, ToolRefusal, Workspace

MAX_NAMES = 2_000
"""Limit of names compared in a directory."""


def missing_refusal(workspace: Workspace, path: str) -> PathRefusal:
    """The refusal for a resolved path that does not exist."""
    shown = truncate_path(workspace.display_path(path))
    near = [workspace.display_path(each) for each in _nearest_paths(workspace, path)]
    hint = f"; similar: {', '.join(map(truncate_path, near))}" if near else ": find it with glob or list_directory"
    return PathRefusal(f"{shown} does not exist{hint}", "not_found")


def _nearest_paths(workspace: Workspace, path: str) -> list[str]:
    """Up to three paths beside the first part of `path` that does not exist."""
    parent, name = os.path.split(path)
    while not os.path.isdir(parent) and parent != os.path.dirname(parent):
        parent, name = os.path.split(parent)
    try:
        with workspace.directory(parent) as directory, directory.scan() as entries:
            names = [entry.name for entry in islice(entries, MAX_NAMES)]
    except (OSError, ToolRefusal):
        return []
    return [os.path.join(parent, each) for each in closest(name, sorted(names), 3)]
