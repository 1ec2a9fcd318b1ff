"""Reads the prompt: from `-p`, from standard input, or from both."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import Any

from dragoman.values.errors import InputError
from dragoman.words import say

MAX_STDIN_BYTES = 10_000_000
PATIENCE_S = 2.0
"""How long standard input may be silent before a notice says that we are waiting for it."""


def stdin_is_terminal() -> bool:
    return sys.stdin is not None and _is_terminal(0)


def read_prompt(given: str | None, notice: Callable[[str], None], *, empty: str = "empty_prompt", media: list[Any] | None = None) -> str:
    """The prompt for the model. With both, standard input comes first, fenced, and the question about it comes last. Raises InputError;
    `empty` is the sentence for none. An image or another medium that a question is about goes into `media`."""
    prompt = _require_utf8(given) if given is not None else ""
    data = b"" if sys.stdin is None or stdin_is_terminal() else _read_stdin(notice)
    if media is not None and data and prompt.strip() and not prompt.startswith("/"):
        from dragoman.app.prompt_media import media_in

        media += media_in(data)
    context = "" if media else _decode(data)
    if not context.strip():
        if not prompt.strip():
            raise InputError(say(empty))
        return prompt
    return f"{_fence(context)}\n\n{prompt}" if prompt.strip() else context.rstrip("\n")


def _require_utf8(prompt: str) -> str:
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise InputError(say("prompt_not_utf8", position=error.start + 1)) from error
    return prompt


def _fence(text: str) -> str:
    """The fence is longer than any run of backticks in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{say('stdin_heading')}\n{fence}\n{text.rstrip()}\n{fence}"


def _read_stdin(notice: Callable[[str], None]) -> bytes:
    pieces: list[bytes] = []
    size = 0
    if not _has_input(PATIENCE_S):
        notice(say("waiting_for_stdin"))
    while True:
        try:
            piece = os.read(0, 1 << 16)
        except OSError as error:
            raise InputError(say("stdin_unreadable", reason=error.strerror or error)) from error
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
        if size > MAX_STDIN_BYTES:
            raise InputError(say("stdin_too_long", most=f"{MAX_STDIN_BYTES:,}"))
    return b"".join(pieces)


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(say("stdin_not_text", position=f"{error.start + 1:,}")) from error
    if "\0" in text:
        raise InputError(say("stdin_not_text", position=f"{text.index(chr(0)) + 1:,}"))
    return text


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _has_input(timeout_s: float) -> bool:
    """Whether there is input or end of file within the time."""
    if sys.platform == "win32":
        return True

    poll = select.poll()
    poll.register(0, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
