"""A terminal for one command: made where the command will be, so that it finds it by its name; our end of it is passed out."""

from __future__ import annotations

import os
import struct

from dragoman.policy.sandbox.launcher.packets import pass_on

try:
    import fcntl
except ImportError:  # Windows, where no launcher runs
    pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

_TIOCGPTN = 0x80045430
_TIOCSPTLCK = 0x40045431
_TIOCSWINSZ = 0x5414


def make(size: tuple[int, int], control: socket) -> str:
    """The path of the command's end. Raises OSError."""
    ours = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(ours, _TIOCSPTLCK, struct.pack("i", 0))
        fcntl.ioctl(ours, _TIOCSWINSZ, struct.pack("4H", *size, 0, 0))
        number: int = struct.unpack("i", fcntl.ioctl(ours, _TIOCGPTN, struct.pack("i", 0)))[0]
        pass_on(control, b"terminal", [ours])
    finally:
        os.close(ours)
    return f"/dev/pts/{number}"
