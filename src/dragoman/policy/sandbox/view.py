"""What a command with the reach `read-only` sees: the system, toolchains and the workspace. Other homes and projects look empty.

Each folder at the top that is not the system's is covered by a copy of its shape, which holds nothing but the ways to what is shown, and
that is mounted over its place in there. The copies are made once and not for each command.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.base.beneath import is_inside, outermost
from dragoman.policy.sandbox.toolchains import known_homes

_SYSTEM = frozenset({"usr", "bin", "sbin", "etc", "opt", "nix", "gnu", "snap", "var", "proc", "dev", "sys", "run", "tmp"})
"""In `/`, with all whose names begin with `lib`."""
_NOT_SYSTEM = (
    "/var/www", "/var/home", "/var/mail", "/var/backups", "/var/git", "/var/ftp", "/var/lib/docker", "/var/lib/containers",
    "/var/lib/machines", "/var/lib/jenkins", "/usr/home", "/usr/local/www",
)  # fmt: skip
"""In those: what people keep there."""
_PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev")
_HOMES_OF_SYSTEM = ("/proc", "/sys", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local", "/usr/share", "/var/lib", "/var/empty", "/var/run")
"""Where somebody's home is a part of the system."""


class FileView(NamedTuple):
    """What is mounted so that no more is seen."""

    emptied: tuple[tuple[str, str], ...] = ()
    """Where, and which copy of its shape is seen there."""
    shown: tuple[str, ...] = ()
    """What is visible in those, by its real path."""
    linked: tuple[tuple[str, str], ...] = ()
    """Where a link lies that is not visible, and the real path of what is named through it."""

    empty: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """What needs no cover because there is nothing in it, and how that looked."""

    @property
    def is_current(self) -> bool:
        """Whether what was empty is so still."""
        return all(_state_of(path) == state for path, state in self.empty)

    def sees(self, path: str) -> bool:
        return any(is_inside(path, each) for each in self.shown) or not any(is_inside(path, place) for place, _ in self.emptied)

    def places_of(self, path: str) -> list[str]:
        """Under which names something is seen."""
        through = [place + path[len(real) :] for place, real in self.linked if is_inside(path, real)]
        return [*([path] if self.sees(path) else []), *through]


def make_view(folder: str, covers: str, show: Iterable[str], ways: Iterable[str] = (), *, top: str = "/") -> FileView:
    """`folder`: where the copies are made: a new one. `covers`: has an empty `folder` and an empty `file`. `show`: what exists and is to
    be seen, by whatever name. `ways`: real paths to which there is a way, because something else is mounted there. Raises OSError."""
    _make_way(folder, "")
    named = list(dict.fromkeys(map(os.path.normpath, show)))
    shown = [path for path in outermost(map(os.path.realpath, named)) if not _is_gone(path)]
    others = [path for path in _not_system(top) if not any(is_inside(path, each) for each in shown)]
    empty = [(path, _state_of(path)) for path in others if _is_empty(path)]
    emptied = sorted({*others} - {path for path, _ in empty})
    covered = [*emptied, *_PRIVATE]
    linked = _find_linked(named, shown, covered)
    places = [*(path for path in shown if any(is_inside(path, each) for each in covered)), *linked]
    to_reach = [*places, *ways]
    made = tuple((place, _make_shape(folder, number, place, to_reach, covers)) for number, place in enumerate(emptied))
    return FileView(made, tuple(path for path in places if path not in linked), tuple(linked.items()), tuple(empty))


def find_covered(show: Iterable[str]) -> FileView:
    """What must be put back where private folders cover it, as a virtual environment in /tmp."""
    named = list(dict.fromkeys(map(os.path.normpath, show)))
    shown = [path for path in outermost(map(os.path.realpath, named)) if _is_kept_private(path)]
    return FileView((), tuple(shown), tuple(_find_linked(named, shown, _PRIVATE).items()))


def _is_kept_private(path: str) -> bool:
    return any(is_inside(path, each) for each in _PRIVATE) and not _is_gone(path)


def _is_gone(path: str) -> bool:
    """Whether it lies where a new folder has taken its place before anything else is mounted."""
    return is_inside(path, "/run") or is_inside(path, "/dev")


def _not_system(top: str) -> list[str]:
    """Files and folders that are not the system's; links are left as they are."""
    with os.scandir(top) as entries:
        others = [each for each in entries if each.name not in _SYSTEM and not each.name.startswith("lib") and not each.is_symlink()]
    found = [each.path for each in others if each.is_dir(follow_symlinks=False) or each.is_file(follow_symlinks=False)]
    homes = [path for path in map(os.path.realpath, known_homes()) if path.count("/") > 1 and path not in _HOMES_OF_SYSTEM]
    inner = [path for path in (*_NOT_SYSTEM, *homes) if os.path.isdir(path) and not os.path.islink(path)]
    return sorted(outermost((*found, *inner)))


def _is_empty(path: str) -> bool:
    """Whether there is nothing in it, or nothing that we could see."""
    try:
        if not os.path.isdir(path):
            return os.stat(path).st_size == 0
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except PermissionError:
        return not os.access(path, os.X_OK)
    except OSError:
        return False


def _state_of(path: str) -> tuple[int, ...]:
    """Another one if something is mounted there, or put there."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _find_linked(named: Iterable[str], shown: Sequence[str], covered: Sequence[str]) -> dict[str, str]:
    """By place: what must be put there, because a link on the way is not visible."""
    places = ((_hidden_place(path, shown, covered), os.path.realpath(path)) for path in named)
    return {place: real for place, real in places if place and not _is_gone(real)}


def _hidden_place(path: str, shown: Sequence[str], covered: Sequence[str]) -> str:
    """Where something must be put so that its name leads to it; empty if all links on the way are visible."""
    done, left = "/", [part for part in path.split("/") if part]
    for _ in range(40 * len(left)):
        if not left:
            break
        step = os.path.join(done, left.pop(0))
        if not os.path.islink(step):
            done = step
        elif any(is_inside(step, each) for each in covered) and not any(is_inside(step, each) for each in shown):
            return os.path.join(step, *left)
        else:
            target = os.path.normpath(os.path.join(done, os.readlink(step)))
            done, left = "/", [*(part for part in target.split("/") if part), *left]
    return ""


def _make_shape(folder: str, number: int, place: str, places: Iterable[str], covers: str) -> str:
    """A copy of a folder with nothing in it but the ways to these places."""
    if not os.path.isdir(place):
        return os.path.join(covers, "file")
    inner = [path for path in places if is_inside(path, place)]
    if not inner:
        return os.path.join(covers, "folder")
    shape = os.path.join(folder, str(number))
    _make_way(shape, "")
    for path in sorted(inner):
        way = path[len(place) + 1 :]
        if os.path.isdir(path):
            _make_way(shape, way)
        elif not os.path.lexists(os.path.join(shape, way)):
            _make_way(shape, os.path.dirname(way))
            os.close(os.open(os.path.join(shape, way), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
    return shape


def _make_way(shape: str, way: str) -> None:
    """Whoever commands run as goes through these folders, whatever our umask is."""
    for part in ("", *way.split("/")) if way else ("",):
        shape = os.path.join(shape, part) if part else shape
        if not os.path.isdir(shape):
            os.mkdir(shape)
            os.chmod(shape, 0o755)
