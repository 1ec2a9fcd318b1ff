"""Lets the user edit a text: in $VISUAL or $EDITOR, or on one line of the terminal."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Mapping, Sequence

from dragoman.base.found_files import read_found
from dragoman.base.private import make_temporary_folder
from dragoman.tools.child_environment import find_program
from dragoman.words import say

STOP_S = 0.5
_MOST_BYTES = 20_000_000
# -I: neither PYTHONPATH nor the current folder may shadow a module of the standard library.
_LINE_EDITOR = (sys.executable, "-I", os.path.join(os.path.dirname(__file__), "line_editor.py"))


class EditorFailed(Exception):
    """The editor could not be started; the message says why."""


def editor_of(environment: Mapping[str, str]) -> str:
    """The command that the user has set; empty: none."""
    return environment.get("VISUAL", "").strip() or environment.get("EDITOR", "").strip()


async def edit(text: str, name: str, terminal: int, within_reach: Sequence[str]) -> str | None:
    """The edited text, or None if the user gave up. The terminal must be in its usual mode. Raises EditorFailed.

    Both ways run in another process, so that cancelling can end it. `within_reach`: the folders that commands may write to. Neither the
    editor is taken from there, nor does the file lie there: what is edited may be a call that runs next.
    """
    import shlex
    import shutil

    chosen = editor_of(os.environ)
    try:
        command = shlex.split(chosen) if chosen else _LINE_EDITOR
    except ValueError as error:
        raise EditorFailed(say("editor_failed", command=chosen, reason=error)) from error
    program = command[0] if os.path.dirname(command[0]) else find_program(command[0], within_reach)
    if not program:
        raise EditorFailed(say("editor_failed", command=command[0], reason=os.strerror(errno.ENOENT)))
    try:
        folder = make_temporary_folder("dragoman-", within_reach)
    except OSError as error:
        raise EditorFailed(say("editor_failed", command=command[0], reason=error)) from error
    try:
        path = os.path.join(folder, name)
        _write(path, text)
        if not await _run_editor([program, *command[1:], path], terminal):
            return None
        edited = _read(path)
    except OSError:
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return edited if text.endswith("\n") else edited.removesuffix("\n")  # most editors add a final newline


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _read(path: str) -> str:
    return read_found(path, _MOST_BYTES).decode("utf-8", "replace")


async def _run_editor(command: list[str], terminal: int) -> bool:
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
