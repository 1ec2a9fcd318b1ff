"""Landlock: which files a process may reach, whatever its namespaces. It holds for the process and all it starts, for good."""

from __future__ import annotations

import ctypes
import os
import stat
import struct

from dragoman.policy.sandbox.launcher.calls import PR_SET_NO_NEW_PRIVS, prctl, syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
READING = EXECUTE | READ_FILE | READ_DIR
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS_COUNT = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights each version of the interface knows; later versions know as many as version 5."""
_TCP = 0b11
_SCOPES = 0b11
"""Abstract UNIX sockets, and signals."""


def version() -> int:
    """The version of the interface; 0 if the kernel has none, or it is turned off."""
    try:
        return syscall("landlock", _CREATE_RULESET, ctypes.c_void_p(None), 0, _VERSION_FLAG)
    except OSError:
        return 0


class Ruleset:
    """Rules that do not hold yet: more can be added until the process restricts itself."""

    def __init__(self, *, without_tcp: bool) -> None:
        """Raises OSError."""
        abi = version()
        self._everything = (1 << _RIGHTS_COUNT.get(abi, 16)) - 1
        attributes = struct.pack("=QQQ", self._everything, _TCP if without_tcp and abi >= 4 else 0, _SCOPES if abi >= 6 else 0)
        size = 24 if abi >= 6 else 16 if abi >= 4 else 8
        self._descriptor = syscall("landlock_create_ruleset", _CREATE_RULESET, attributes, size, 0)

    def let_read(self, paths: Iterable[str]) -> None:
        """These and what is beneath them. Paths that are not there are left out."""
        for path in paths:
            _allow(self._descriptor, path, READING)

    def let_write(self, paths: Iterable[str]) -> None:
        """Whatever can be done with these and what is beneath them."""
        for path in paths:
            _allow(self._descriptor, path, self._everything)

    def restrict(self) -> None:
        """From now on this process reaches nothing else, nor does what it starts."""
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        syscall("landlock_restrict_self", _RESTRICT_SELF, self._descriptor, 0)
        os.close(self._descriptor)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _OF_FILES
        syscall(f"landlock_add_rule {path}", _ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)
