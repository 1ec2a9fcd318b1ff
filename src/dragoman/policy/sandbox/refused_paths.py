"""Which of the paths that a failed command names the sandbox keeps from it: compared with the boundary, and with what the user may do."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.policy.real_paths import real_path

_QUOTED = re.compile(r"""['"‘`]([^'"’`\n]{1,400})['"’`]""")
_PLAIN = re.compile(r"""(?:^|[\s:(='"])((?:/|~/|\./|\.\./|\.git/)[^\s'"’`:,;()]{1,400})""")
_NEVER_BLAMED = ("/proc", "/sys", "/dev")
_MOST_PATHS = 20


class PathLimits(msgspec.Struct, frozen=True):
    """What a boundary lets commands do, as far as paths are concerned. All are real paths."""

    writable: tuple[str, ...]
    read_only: tuple[str, ...]
    hidden: tuple[str, ...]
    temporary: tuple[str, ...]
    """Folders of the sandbox's own, whatever lies there outside."""
    user: int
    """Who commands run as."""
    unreadable: tuple[str, ...] = ()
    """Where they may read nothing but what is in `readable`, `writable` and `temporary`: at level 3, which shows names all the same."""
    readable: tuple[str, ...] = ()

    def keeps_from_writing(self, path: str) -> bool:
        """Whether it is the sandbox that keeps commands from writing there."""
        if any(is_inside(path, place) for place in (*self.temporary, *_NEVER_BLAMED)):
            return False
        is_fixed = any(is_inside(path, place) for place in self.read_only)
        return is_fixed or not any(is_inside(path, place) for place in self.writable)

    def is_hidden(self, path: str) -> bool:
        """Whether the sandbox hides a file that a command could not read."""
        return any(is_inside(path, place) for place in self.hidden) and os.path.lexists(path)

    def keeps_from_reading(self, path: str) -> bool:
        """Whether it is the sandbox, and not the permissions of a file, that keeps commands from reading it or running it."""
        if not any(is_inside(path, place) for place in self.unreadable):
            return False
        allowed = (*self.writable, *self.temporary, *self.readable, *_NEVER_BLAMED)
        if any(is_inside(path, place) for place in allowed):
            return False
        try:
            return _may(os.stat(path), self.user, stat.S_IRUSR)
        except (OSError, ValueError):
            return False

    def is_not_seen(self, path: str) -> bool:
        """Whether a file that a command did not find is there all the same, where commands do not make files."""
        return not any(is_inside(path, place) for place in self.writable) and os.path.lexists(path)

    def could_write(self, path: str) -> bool:
        """Whether the user of the commands may write there outside, as the permissions of what exists say."""
        while not os.path.lexists(path) and path != os.path.dirname(path):
            path = os.path.dirname(path)
        try:
            if os.statvfs(path).f_flag & os.ST_RDONLY:
                return False
            return _may(os.stat(path), self.user, stat.S_IWUSR)
        except (OSError, ValueError):
            return False


def _may(status: os.stat_result, user: int, right: int) -> bool:
    """`right`: as it is written for the owner."""
    if user == 0:
        return True
    if status.st_uid == user:
        return bool(status.st_mode & right)
    groups = os.getgroups() if user == os.getuid() else ()
    return bool(status.st_mode & (right >> 3 if status.st_gid in groups else right >> 6))


def paths_in(lines: Sequence[str], directory: str) -> list[str]:
    """The real paths that lines name, relative ones from `directory`. A command prints what it likes: none of them need exist, and what
    `/proc/1/exe` is for it, it is not for us."""
    within = directory or os.sep
    return list(dict.fromkeys(real_path(os.path.join(within, os.path.expanduser(path))) for path in _named(lines)))


def _named(lines: Sequence[str]) -> Iterator[str]:
    left = _MOST_PATHS
    for whole in lines:
        line = _without_program(whole[:2_000])
        for found in (*_QUOTED.finditer(line), *_PLAIN.finditer(line)):
            if not left:
                return
            left -= 1
            yield found[1].rstrip(".")


def _without_program(line: str) -> str:
    """A message without the program that gives it: `/bin/bash: line 1: …`."""
    program, colon, rest = line.partition(": ")
    return rest if colon and program.startswith("/") and os.path.isfile(program) and os.access(program, os.X_OK) else line
