"""seccomp: system calls that no command needs and that reach around the other boundaries, as a filter in the kernel's own byte code."""

from __future__ import annotations

import ctypes
import errno
import struct

from dragoman.policy.sandbox.launcher.calls import MACHINE, PR_SET_NO_NEW_PRIVS, prctl

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000

# name: (x86_64, aarch64)
_DENIED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89), "vhangup": (153, 58), "syslog": (103, 116),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "iopl": (172, None), "ioperm": (173, None), "lookup_dcookie": (212, 18),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "move_pages": (279, 239),
}  # fmt: skip
_OWNERS_AND_ATTRIBUTES = {
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
}  # fmt: skip
"""Where nothing else keeps files outside from being changed so. Few commands need it, and those go on without."""
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_SOCKET = (41, 198)
_SOCKETPAIR = (53, 199)
_IOCTL = (16, 29)
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_OPENAT2 = (437, 437)
_GIVES_MODE = (((90, None), 1), ((91, 52), 1), ((268, 53), 2), ((452, 452), 2), ((85, None), 1), ((133, None), 1), ((259, 33), 2))
"""chmod, fchmod, fchmodat, fchmodat2, creat, mknod, mknodat, and which argument is the mode."""
_OPENS = (((2, None), 1), ((257, 56), 2))
"""open, openat, and which argument has the flags; the mode is the next one, if a file is made."""
_O_CREAT_OR_TMPFILE = 0x400040
_S_ISUID = 0o4000

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_STREAM, _DGRAM, _SEQPACKET = 1, 2, 5
_TYPE_MASK = 0xF
_MPTCP = 262
_NETLINK_ROUTE = 0

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""


_built: dict[tuple[bool, bool], bytes] = {}
_described: dict[bytes, tuple[ctypes.Array[ctypes.c_char], ...]] = {}


def build_filter(*, internet: bool, unix_sockets: bool) -> bytes:
    """For this machine; built once."""
    key = (internet, unix_sockets)
    if key not in _built:
        _built[key] = build_filter_for(MACHINE, internet=internet, unix_sockets=unix_sockets)
    return _built[key]


def build_filter_for(machine: str, *, internet: bool, unix_sockets: bool) -> bytes:
    """`internet`: TCP and UDP sockets, which are harmless in a network namespace of one's own. Without one there are no mounts either, and
    Landlock has no rule for a file's owner and attributes: no such call is allowed. Raises OSError for another machine."""
    column = {"x86_64": 0, "aarch64": 1}.get(machine)
    if column is None:
        raise OSError(errno.ENOSYS, f"no seccomp filter for {machine}")
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURE[machine]),
        _deny(errno.EPERM),  # 32-bit programs count their calls differently
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        program += [(_JUMP_AT_LEAST, 0, 1, _X32), _deny(errno.ENOSYS)]
    program += _when(_CLONE3[column], [_deny(errno.ENOSYS)])  # its flags cannot be read from here; libraries then use clone
    program += _when(_CLONE[column], [_argument(0), (_JUMP_ANY_BIT, 0, 1, _NEW_NAMESPACES), _deny(errno.EPERM), _allow()])
    program += _when(_IOCTL[column], [_argument(1), *_deny_if(_TIOCSTI), *_deny_if(_TIOCLINUX), _allow()])
    program += _when(_SOCKET[column], _socket_rules(internet, unix_sockets))
    program += _when(_SOCKETPAIR[column], _pair_rules(unix_sockets))
    program += _owner_rules(column)
    for numbers in _DENIED.values():
        if (number := numbers[column]) is not None:
            program += _when(number, [_deny(errno.EPERM)])
    for name, numbers in (_OWNERS_AND_ATTRIBUTES if not internet else {}).items():
        if (number := numbers[column]) is not None:
            program += _when(number, [_deny(errno.EPERM if "chown" in name else errno.EOPNOTSUPP)])
    program.append(_allow())
    return b"".join(struct.pack("=HBBI", *each) for each in program)


def load_filter(program: bytes) -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_void_p(ctypes.addressof(describe_filter(program)[0])))


def describe_filter(program: bytes) -> tuple[ctypes.Array[ctypes.c_char], ...]:
    """As the kernel takes it, and the program it points at; made once."""
    if program not in _described:
        buffer = ctypes.create_string_buffer(program, len(program))
        described = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
        _described[program] = (ctypes.create_string_buffer(described, len(described)), buffer)
    return _described[program]


def _socket_rules(internet: bool, unix_sockets: bool) -> list[Instruction]:
    rules: list[Instruction] = [_argument(0)]
    if unix_sockets:
        rules += [(_JUMP_EQUAL, 0, 1, _AF_UNIX), _allow()]
    else:
        rules += [(_JUMP_EQUAL, 0, 1, _AF_UNIX), _deny(errno.EACCES)]
    rules += _when(_AF_NETLINK, [_argument(2), (_JUMP_EQUAL, 0, 1, _NETLINK_ROUTE), _allow(), _deny(errno.EACCES)])
    if not internet:
        for family in (_AF_INET, _AF_INET6):
            rules += _when(family, [_deny(errno.EACCES)])
        return [*rules, _deny(errno.EAFNOSUPPORT)]
    # Any family but these two is refused; of these, TCP and UDP are allowed.
    rules += [(_JUMP_EQUAL, 2, 0, _AF_INET), (_JUMP_EQUAL, 1, 0, _AF_INET6), _deny(errno.EAFNOSUPPORT)]
    rules += _when_argument(2, _MPTCP, [_deny(errno.EPROTONOSUPPORT)])
    rules += [_argument(1), (_AND, 0, 0, _TYPE_MASK)]
    rules += [(_JUMP_EQUAL, 1, 0, _STREAM), (_JUMP_EQUAL, 0, 1, _DGRAM), _allow(), _deny(errno.EACCES)]
    return rules


def _owner_rules(column: int) -> list[Instruction]:
    """No program that runs as whoever owns it: it would wait in the workspace for another user of this machine."""
    rules = _when(_OPENAT2[column], [_deny(errno.ENOSYS)])  # its mode cannot be read from here; libraries then use openat
    for numbers, at in _GIVES_MODE:
        if (number := numbers[column]) is not None:
            rules += _when(number, [_argument(at), *_deny_setuid()])
    for numbers, at in _OPENS:
        if (number := numbers[column]) is not None:
            made = [_argument(at + 1), *_deny_setuid()]
            rules += _when(number, [_argument(at), (_JUMP_ANY_BIT, 0, len(made), _O_CREAT_OR_TMPFILE), *made, _allow()])
    return rules


def _deny_setuid() -> list[Instruction]:
    return [(_JUMP_ANY_BIT, 0, 1, _S_ISUID), _deny(errno.EPERM), _allow()]


def _pair_rules(unix_sockets: bool) -> list[Instruction]:
    """A pair of datagram sockets could be pointed at any path socket later; a pair of streams stays connected."""
    if unix_sockets:
        return [_allow()]
    return [_argument(1), (_AND, 0, 0, _TYPE_MASK), (_JUMP_EQUAL, 1, 0, _STREAM), (_JUMP_EQUAL, 0, 1, _SEQPACKET), _allow(),
            _deny(errno.EACCES)]  # fmt: skip


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * index)  # the lower half, on machines that store it first


def _when(value: int, then: list[Instruction]) -> list[Instruction]:
    """`then` must end with a return: what follows still has the compared value loaded."""
    return [(_JUMP_EQUAL, 0, len(then), value), *then]


def _when_argument(index: int, value: int, then: list[Instruction]) -> list[Instruction]:
    return [_argument(index), *_when(value, then)]


def _deny_if(value: int) -> list[Instruction]:
    return _when(value, [_deny(errno.EPERM)])


def _deny(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)
