"""The filter's byte code, carried out here: for machines we are not on, and for every call that is allowed as well."""

from __future__ import annotations

import errno
import struct
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.policy.sandbox.launcher.seccomp import build_filter_for

ALLOW = 0x7FFF0000
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
SOCKET, SOCKETPAIR, CLONE, CLONE3, IOCTL = (41, 198), (53, 199), (56, 220), (435, 435), (16, 29)
EVERYDAY = {"read": (0, 63), "write": (1, 64), "openat": (257, 56), "execve": (59, 221), "exit_group": (231, 94), "mmap": (9, 222),
            "futex": (202, 98), "connect": (42, 203), "bind": (49, 200), "kill": (62, 129), "fchmodat": (268, 53)}  # fmt: skip
FORBIDDEN = {"ptrace": (101, 117), "mount": (165, 40), "io_uring_setup": (425, 425), "bpf": (321, 280), "keyctl": (250, 219),
             "process_vm_readv": (310, 270), "pidfd_getfd": (438, 438), "unshare": (272, 97), "setns": (308, 268),
             "perf_event_open": (298, 241), "move_mount": (429, 429), "open_by_handle_at": (304, 265)}  # fmt: skip


class Call(NamedTuple):
    number: int
    arguments: tuple[int, ...] = ()
    architecture: int = 0


def judge(program: bytes, call: Call) -> int:
    """What the kernel would return for a call: 0 if it is allowed, else the error."""
    data = struct.pack("=IIQ6Q", call.number, call.architecture, 0, *(*call.arguments, *(0,) * (6 - len(call.arguments))))
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    value = at = 0
    while True:
        operation, if_true, if_false, operand = code[at]
        at += 1
        match operation:
            case 0x20:
                [value] = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x06:
                return 0 if operand == ALLOW else operand & 0xFFFF
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[operation]
                at += if_true if holds else if_false
            case _:
                raise AssertionError(hex(operation))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("internet", [True, False])
@pytest.mark.parametrize("unix", [True, False])
class TestFilter:
    def ask(self, machine: str, internet: bool, unix: bool, numbers: tuple[int, int], *arguments: int) -> int:
        architecture, column = MACHINES[machine]
        program = build_filter_for(machine, internet=internet, unix_sockets=unix)
        return judge(program, Call(numbers[column], arguments, architecture))

    def test_everyday_calls_pass_and_the_others_do_not(self, machine: str, internet: bool, unix: bool) -> None:
        for numbers in EVERYDAY.values():
            assert self.ask(machine, internet, unix, numbers) == 0
        for numbers in FORBIDDEN.values():
            assert self.ask(machine, internet, unix, numbers) == errno.EPERM

    def test_threads_and_forks_pass_and_namespaces_do_not(self, machine: str, internet: bool, unix: bool) -> None:
        assert self.ask(machine, internet, unix, CLONE, 0x3D0F00) == 0
        assert self.ask(machine, internet, unix, CLONE, 17) == 0
        for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
            assert self.ask(machine, internet, unix, CLONE, flag | 17) == errno.EPERM
        assert self.ask(machine, internet, unix, CLONE3) == errno.ENOSYS
        assert self.ask(machine, internet, unix, IOCTL, 0, 0x5412) == errno.EPERM
        assert self.ask(machine, internet, unix, IOCTL, 0, 0x5413) == 0

    def test_sockets(self, machine: str, internet: bool, unix: bool) -> None:
        def ask(*arguments: int) -> int:
            return self.ask(machine, internet, unix, SOCKET, *arguments)

        cloexec = 0o2000000
        for family in (2, 10):
            for kind in (1, 2, 1 | cloexec):
                assert (ask(family, kind, 0) == 0) == internet
            assert ask(family, 3, 1) != 0
            assert ask(family, 1, 262) != 0
        assert (ask(1, 1, 0) == 0) == unix
        assert ask(16, 3, 0) == 0
        assert ask(16, 3, 9) != 0
        for family in (17, 38, 40, 31):
            assert ask(family, 1, 0) == errno.EAFNOSUPPORT
        assert self.ask(machine, internet, unix, SOCKETPAIR, 1, 1 | cloexec, 0) == 0
        assert (self.ask(machine, internet, unix, SOCKETPAIR, 1, 2, 0) == 0) == unix


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**64 - 1), max_size=6), st.sampled_from([*MACHINES]))
def test_the_filter_always_comes_to_an_end(number: int, arguments: list[int], machine: str) -> None:
    program = build_filter_for(machine, internet=True, unix_sockets=False)
    assert len(program) // 8 < 4096
    for architecture in (MACHINES[machine][0], 0x40000003):
        verdict = judge(program, Call(number, tuple(arguments), architecture))
        assert architecture != 0x40000003 or verdict == errno.EPERM
        assert machine != "x86_64" or number < 0x40000000 or verdict != 0


def test_another_machine_has_no_filter() -> None:
    with pytest.raises(OSError, match="riscv64"):
        build_filter_for("riscv64", internet=True, unix_sockets=False)
