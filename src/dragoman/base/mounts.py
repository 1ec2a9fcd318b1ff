"""Whether a path lies in a folder, under whatever name: behind links, in other letters, or through a bind mount."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from dragoman.base.beneath import is_inside

_TABLE = "/proc/self/mountinfo"
_Place = tuple[str, str]
"""The device, and the path from its root."""


def lies_in_any(path: str, folders: Sequence[str]) -> bool:
    """Whether an absolute path is one of the folders or beneath it. Links in all of them are resolved; the path need not exist.

    A folder above the path is compared by its inode, which knows other spellings and bind mounts of the folder itself. Bind mounts of
    something beneath the folder are known by the system's table of mounts, where there is one (Linux).
    """
    real, roots = os.path.realpath(path), [os.path.realpath(folder) for folder in folders]
    if any(is_inside(real, root) for root in roots):
        return True
    known = {identity for root in roots if (identity := _identity(root))}
    if any(_identity(each) in known for each in _with_parents(real)):
        return True
    mounts = _read_mounts()
    device, at = _place_of(real, mounts)
    reached = [_place_of(root, mounts) for root in roots] + [
        place for point, place in mounts if any(is_inside(point, root) for root in roots)
    ]
    return any(device == other and is_inside(at, beneath) for other, beneath in reached if other)


def nearest_existing(path: str) -> str:
    """The path itself, or the first folder above it that is there."""
    return next(each for each in _with_parents(path) if os.path.lexists(each) or each == os.path.dirname(each))


def _with_parents(path: str) -> Iterator[str]:
    yield path
    while (above := os.path.dirname(path)) != path:
        yield (path := above)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None


def _read_mounts() -> list[tuple[str, _Place]]:
    """Each mount point and what is mounted there, the later over the earlier; empty where the system does not say."""
    try:
        with open(_TABLE, encoding="utf-8", errors="surrogateescape") as table:
            rows = [line.split(" ", 5) for line in table]
    except OSError:
        return []
    # 36 35 98:0 /folder/of/the/device /mount/point rw,noatime …
    return [(_unescape(row[4]), (row[2], _unescape(row[3]))) for row in rows if len(row) == 6]


def _place_of(path: str, mounts: Sequence[tuple[str, _Place]]) -> _Place:
    """Where a path lies on its device; with an empty device if that is not known."""
    around = [(point, place) for point, place in mounts if is_inside(path, point)]
    if not around:
        return "", path
    longest = max(len(point) for point, _ in around)
    point, (device, root) = [each for each in around if len(each[0]) == longest][-1]
    return device, os.path.normpath(os.path.join(root, path[len(point) :].lstrip(os.sep)))


def _unescape(field: str) -> str:
    """As the table writes a path: blanks and the like in octal."""
    head, *rest = field.split("\\")
    return head + "".join(chr(int(part[:3], 8)) + part[3:] if part[:3].isdigit() else f"\\{part}" for part in rest)
