"""A text put before the user to be changed: in the editor of their choice, or on a line of the terminal."""

from __future__ import annotations

import asyncio
import os
import sys

from dragoman.base.words import say

STOP_S = 0.5
# Isolated: neither PYTHONPATH nor the folder we are in may supply what passes for a module of the library.
_LINE_EDITOR = (sys.executable, "-I", os.path.join(os.path.dirname(__file__), "line_editor.py"))


class EditorFailed(Exception):
    """Why the text could not be put before the user."""


async def edit(text: str, name: str, terminal: int) -> str | None:
    """The text as they left it; None where they gave up. The terminal must be in its usual mode. Raises EditorFailed.

    It is another process either way, so that cancelling ends it.
    """
    import shlex
    import tempfile

    chosen = os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip()
    try:
        command = shlex.split(chosen) if chosen else _LINE_EDITOR
    except ValueError as error:
        raise EditorFailed(say("editor_failed", command=chosen, reason=error)) from error
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        path = os.path.join(folder, name)
        _write(path, text)
        if not await _ran([*command, path], terminal):
            return None
        try:
            edited = _read(path)
        except OSError:
            return None
    return edited if text.endswith("\n") else edited.removesuffix("\n")  # most editors end the last line


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return file.read()


async def _ran(command: list[str], terminal: int) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=0, stdout=terminal, stderr=terminal)
    except (OSError, ValueError) as error:
        raise EditorFailed(say("editor_failed", command=command[0], reason=error)) from error
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
