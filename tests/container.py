"""Runs a program as in a container: `python container.py FOLDER PROGRAM …`. It has another root, can make no namespaces and no mounts, and
Landlock is refused. For root alone, who may change the root."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

_MACHINE = {"x86_64": 0, "aarch64": 1}
_ARCHITECTURE = (0xC000003E, 0xC00000B7)
_REFUSED = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}  # fmt: skip
_CLONE, _CLONE3 = (56, 220), (435, 435)
_NEW_NAMESPACES = 0x7E020000
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def can_be_made() -> bool:
    return sys.platform == "linux" and os.getuid() == 0 and os.uname().machine in _MACHINE


def command(folder: str, *program: str) -> list[str]:
    """The command line that runs a program in a container with its root mounted at an empty folder."""
    return [sys.executable, __file__, folder, *program]


def main() -> None:
    _, folder, *program = sys.argv
    libc, here = ctypes.CDLL(None, use_errno=True), os.getcwd()
    _call(libc.unshare, _CLONE_NEWNS)
    _call(libc.mount, b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
    _call(libc.mount, b"/", os.fsencode(folder), None, ctypes.c_ulong(_MS_BIND | _MS_REC), None)
    os.chroot(folder)
    os.chdir(here)
    _load_filter(libc, _filter(_MACHINE[os.uname().machine]))
    os.execvp(program[0], program)


def _filter(machine: int) -> bytes:
    rows = [(_LOAD, 0, 0, 4), (_IF_EQUAL, 1, 0, _ARCHITECTURE[machine]), (_RETURN, 0, 0, _ERRNO | errno.EPERM), (_LOAD, 0, 0, 0)]
    rows += [(_IF_EQUAL, 0, 1, _CLONE3[machine]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    for numbers in _REFUSED.values():
        rows += [(_IF_EQUAL, 0, 1, numbers[machine]), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    rows += [(_IF_EQUAL, 0, 3, _CLONE[machine]), (_LOAD, 0, 0, 16), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES)]
    rows += [(_RETURN, 0, 0, _ERRNO | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *row) for row in rows)


def _load_filter(libc: ctypes.CDLL, rows: bytes) -> None:
    held = ctypes.create_string_buffer(rows, len(rows))
    program = struct.pack("@HP", len(rows) // 8, ctypes.addressof(held))
    _call(libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call(libc.prctl, _PR_SET_SECCOMP, _MODE_FILTER, ctypes.create_string_buffer(program, len(program)), 0, 0)


def _call(function: ctypes._NamedFuncPointer, *arguments: object) -> None:
    if function(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} ({function.__name__})")


if __name__ == "__main__":
    main()
