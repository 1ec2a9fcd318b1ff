"""System calls that Python does not offer, by ctypes. Numbers for x86_64 and aarch64."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

MACHINE = os.uname().machine if hasattr(os, "uname") else ""

# The kernel gives new calls the same number everywhere; older ones differ.
_CLONE = {"x86_64": 56, "aarch64": 220}.get(MACHINE, -1)
_CAPSET = {"x86_64": 126, "aarch64": 91}.get(MACHINE, -1)
_SETNS = {"x86_64": 308, "aarch64": 268}.get(MACHINE, -1)
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442

_SIGCHLD = 17
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, 0o2000000
_MOVE_MOUNT_F_EMPTY_PATH = 4
_RESOLVE_NO_SYMLINKS = 4
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4

PR_SET_DUMPABLE, PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 4, 24, 28
_ROOT_IS_NOBODY_SPECIAL = 0b101111
"""NOROOT, NO_SETUID_FIXUP and KEEP_CAPS off, all locked."""
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 12, 13, 19, 21, 38, 39
SPYING = (CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF)
"""With these, root reads the memory and the environment of any process."""

# PyDLL keeps the interpreter's lock: the calls are short, and after `clone` nobody could give it back.
if MACHINE:
    _libc = ctypes.PyDLL(None, use_errno=True)
    _libc.syscall.restype = ctypes.c_long


def syscall(what: str, number: int, *arguments: object) -> int:
    """Raises OSError, naming `what` failed."""
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = _libc.syscall(ctypes.c_long(number), *passed)
    if result == -1:
        raise failure(what)
    return result


def failure(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{os.strerror(number)} ({what})")


def prctl(option: int, value: int, third: int | object = 0, *, ignore: bool = False) -> None:
    third = ctypes.c_ulong(third) if isinstance(third, int) else third
    if _libc.prctl(option, ctypes.c_ulong(value), third, ctypes.c_ulong(0), ctypes.c_ulong(0)) == -1 and not ignore:
        raise failure(f"prctl {option}")


def clone(flags: int) -> int:
    """Like fork, into new namespaces. Only for a process with one thread: Python's own hooks for fork are not run."""
    return syscall("clone", _CLONE, flags | _SIGCHLD, 0, 0, 0, 0)


def set_namespace(descriptor: int) -> None:
    """Move this process, which has one thread, into the namespace behind a descriptor."""
    syscall("setns", _SETNS, descriptor, 0)


# --- mounts ---------------------------------------------------------------------------------------------------------------


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    if _libc.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()) == -1:
        raise failure(f"mount {kind or 'flags'} {target}")


def open_tree(path: str, *, follow: bool = True) -> int:
    """A copy of what is mounted at a path, not attached anywhere yet. Mount it with `attach`. Without `follow`, a link anywhere on the way
    raises NotADirectoryError."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    if follow:
        return syscall(f"open_tree {path}", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    try:
        named = syscall(f"openat2 {path}", _OPENAT2, _AT_FDCWD, os.fsencode(path), how, len(how))
    except OSError as error:
        raise NotADirectoryError(errno.ENOTDIR, str(error)) if error.errno == errno.ELOOP else error from error
    try:
        return syscall(f"open_tree {path}", _OPEN_TREE, named, b"", flags | _AT_EMPTY_PATH)
    finally:
        os.close(named)


def attach(tree: int, path: str) -> None:
    syscall(f"move_mount {path}", _MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(path), _MOVE_MOUNT_F_EMPTY_PATH)
    os.close(tree)


def set_mount_flags(target: str | int, flags: int, *, clear: int = 0, recursive: bool = True) -> None:
    """Add and clear flags of a mount, and of all beneath it: a path, or a tree that is not attached."""
    attributes = struct.pack("=QQQQ", flags, clear, 0, 0)
    where, path = (target, b"") if isinstance(target, int) else (_AT_FDCWD, os.fsencode(target))
    how = (_AT_RECURSIVE if recursive else 0) | (_AT_EMPTY_PATH if isinstance(target, int) else 0)
    syscall(f"mount_setattr {target}", _MOUNT_SETATTR, where, path, how, attributes, len(attributes))


# --- what a process may do ------------------------------------------------------------------------------------------------


def drop_capabilities() -> None:
    """Drop all capabilities permanently: a program started as root does not get them back, nor from file capabilities."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(_PR_SET_SECUREBITS, _ROOT_IS_NOBODY_SPECIAL, ignore=True)  # only with the right to; without new privileges none are gained anyway
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, ignore=True)
    syscall("capset", _CAPSET, struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def drop_spying() -> None:
    """As root without a sandbox: drop the capabilities that allow reading other processes, keep the rest."""
    for number in SPYING:
        prctl(PR_CAPBSET_DROP, number, ignore=True)
