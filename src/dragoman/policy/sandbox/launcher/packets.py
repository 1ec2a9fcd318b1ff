"""What goes over the launcher's sockets: a word or two, and descriptors."""

from __future__ import annotations

import os
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET, socket
from array import array

DESCRIPTORS = 4
"""Of a call: its own socket, and the command's standard streams."""
_MOST_BYTES = 4096


def receive(channel: socket) -> tuple[str, list[int]] | None:
    """The words of the next packet, and its descriptors; None when there are no more."""
    try:
        data, ancillary, _, _ = channel.recvmsg(_MOST_BYTES, CMSG_SPACE(4 * DESCRIPTORS), MSG_CMSG_CLOEXEC)
    except OSError:  # ECONNRESET: the other side died with something unread
        return None
    received = array("i")
    for _, _, bytes_of in ancillary:
        received.frombytes(bytes_of[: len(bytes_of) // 4 * 4])
    return (data.decode(), received.tolist()) if data else None


def pass_on(channel: socket, words: bytes, descriptors: list[int]) -> None:
    """Raises OSError if nobody is there any more."""
    channel.sendmsg([words], [(SOL_SOCKET, SCM_RIGHTS, array("i", descriptors))])


def tell_failure(control: int, error: OSError) -> None:
    speaker = socket(fileno=os.dup(control))
    try:
        speaker.send(f"failed {error.errno or 1} {error.strerror or error}".encode())
    except OSError:
        pass
    speaker.close()
