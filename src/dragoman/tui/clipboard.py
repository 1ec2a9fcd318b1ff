"""The clipboard, through programs of the desktop: Ctrl-V takes an image from it, which no terminal hands over; `/copy` gives it a text also
where the terminal does not pass that on.

`within_reach` are the folders that commands may write to: no program is taken from there, though PATH may name it, and no file lies there.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from weakref import finalize

from dragoman.base.private import create_file, make_temporary_folder, write_whole
from dragoman.tools.child_environment import find_program

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


async def read_image(within_reach: Sequence[str]) -> bytes:
    """Empty: there is none in the clipboard. Raises NoClipboard."""
    was_asked = False
    for command in commands(os.environ, sys.platform):
        try:
            printed = await _output_of(command, within_reach)
        except OSError:  # it is not installed
            continue
        was_asked = True
        if printed:
            return _from_mac(printed) if printed.startswith(_MAC_BEGINNING) else printed
    if not was_asked:
        raise NoClipboard
    return b""


def copying_commands(environment: Mapping[str, str], platform: str) -> Sequence[Sequence[str]]:
    """What takes a text for the clipboard. tmux, as it comes, ignores what programs send the terminal for it."""
    found: list[Sequence[str]] = [("tmux", "load-buffer", "-w", "-")] if environment.get("TMUX") else []
    if platform == "darwin":
        return [*found, ("pbcopy",)]
    found += [("wl-copy",)] if environment.get("WAYLAND_DISPLAY") else []
    return [*found, ("xclip", "-selection", "clipboard")] if environment.get("DISPLAY") else found


def copy_text(text: str, within_reach: Sequence[str]) -> None:
    """Hand it to those programs, in the background: whatever becomes of that, the terminal has it too."""
    task = asyncio.get_running_loop().create_task(_hand_over(text.encode(), within_reach))
    _copying.add(task)
    task.add_done_callback(_copying.discard)


_copying: set[asyncio.Task[None]] = set()


async def _hand_over(data: bytes, within_reach: Sequence[str]) -> None:
    for command in copying_commands(os.environ, sys.platform):
        with suppress(OSError):  # it is not installed, or does not read on
            await _output_of(command, within_reach, data)


async def _output_of(command: Sequence[str], within_reach: Sequence[str], given: bytes | None = None) -> bytes:
    """What it prints; of one that is given something, nothing: it may hold its output open for as long as the text can be pasted."""
    program = find_program(command[0], within_reach)
    if not program:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    discard = asyncio.subprocess.DEVNULL
    ends = (discard, asyncio.subprocess.PIPE) if given is None else (asyncio.subprocess.PIPE, discard)
    process = await asyncio.create_subprocess_exec(program, *command[1:], stdin=ends[0], stdout=ends[1], stderr=discard)
    try:
        async with asyncio.timeout(_ANSWER_S):
            return (await process.communicate(given))[0] or b""
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

    def __init__(self, within_reach: Sequence[str]) -> None:
        self._within_reach = within_reach
        self._folder = ""
        self._count = 0

    def keep(self, data: bytes) -> str:
        """Its path."""
        if not self._folder:
            self._folder = make_temporary_folder("dragoman-images-", self._within_reach)
            self._remove = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)  # at the latest when the program ends
        self._count += 1
        path = os.path.join(self._folder, f"clipboard-{self._count}.png")
        descriptor = create_file(path)
        try:
            write_whole(descriptor, data)
        finally:
            os.close(descriptor)
        return path

    def close(self) -> None:
        if self._folder:
            self._remove()
            self._folder = ""
