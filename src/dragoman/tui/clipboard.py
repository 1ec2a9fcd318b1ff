"""Ctrl-V: an image from the clipboard, which no terminal hands over. The programs of the desktop are asked for it."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress

from dragoman.base.private import create_file, write_whole

_ANSWER_S = 3.0
_MAC_BEGINNING, _MAC_END = "«data PNGf".encode(), "»".encode()


class NoClipboard(Exception):
    """There is no program here that could be asked."""


def commands(environment: Mapping[str, str], platform: str) -> Sequence[Sequence[str]]:
    """What prints the clipboard's image, the most likely first."""
    if platform == "darwin":
        return [("osascript", "-e", "the clipboard as «class PNGf»")]
    found = [("wl-paste", "--no-newline", "--type", "image/png")] if environment.get("WAYLAND_DISPLAY") else []
    return [*found, ("xclip", "-selection", "clipboard", "-t", "image/png", "-o")] if environment.get("DISPLAY") else found


async def read_image() -> bytes:
    """Empty: there is none in the clipboard. Raises NoClipboard."""
    was_asked = False
    for command in commands(os.environ, sys.platform):
        try:
            printed = await _output_of(command)
        except OSError:  # it is not installed
            continue
        was_asked = True
        if printed:
            return _from_mac(printed) if printed.startswith(_MAC_BEGINNING) else printed
    if not was_asked:
        raise NoClipboard
    return b""


async def _output_of(command: Sequence[str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(_ANSWER_S):
            return (await process.communicate())[0]
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _from_mac(printed: bytes) -> bytes:
    try:
        return bytes.fromhex(printed.strip().removeprefix(_MAC_BEGINNING).removesuffix(_MAC_END).decode("ascii"))
    except ValueError:
        return b""


class PastedImages:
    """Files for the images of this conversation, readable for the user alone. `close` takes them away."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def keep(self, data: bytes) -> str:
        """Its path."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="dragoman-images-", ignore_cleanup_errors=True)
        self._count += 1
        path = os.path.join(self._folder.name, f"clipboard-{self._count}.png")
        descriptor = create_file(path)
        try:
            write_whole(descriptor, data)
        finally:
            os.close(descriptor)
        return path

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
