"""Looks around once when a session starts: date, system, folders. What the model is told of it is context/environment.py's business."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from dragoman import jsontext
from dragoman.context.environment import Surroundings

MAX_ENTRIES = 100
"""Names shown of each folder. The model lists more when it needs to."""


def look_around(directories: Sequence[str], memory: Sequence[tuple[str, str]] = ()) -> Surroundings:
    return Surroundings(
        date=time.strftime("%A, %d %B %Y"),
        system=sys.platform,
        directories=tuple(jsontext.valid_unicode(directory) for directory in directories),
        temporary=temporary_directory(),
        tree="\n\n".join(filter(None, map(_listing, directories))),
        memory=tuple(memory),
    )


def temporary_directory() -> str:
    """Without importing tempfile, which costs more than it tells."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        if os.path.isdir(found := os.environ.get(name, "")):
            return found
    return "/tmp" if os.path.isdir("/tmp") else os.getcwd()


def _listing(directory: str) -> str:
    """The names in a folder, folders first; hidden ones left out."""
    try:
        with os.scandir(directory) as entries:
            found = [(not entry.is_dir(follow_symlinks=False), entry.name) for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return ""
    shown = [name + ("" if is_file else "/") for is_file, name in sorted(found)[:MAX_ENTRIES]]
    if len(found) > MAX_ENTRIES:
        shown.append(f"… and {len(found) - MAX_ENTRIES} more")
    safe = [name.replace("\n", "\\n") for name in map(jsontext.valid_unicode, shown)]
    return f"{jsontext.valid_unicode(directory)} holds:\n" + "\n".join(f"  {name}" for name in safe) if safe else ""
