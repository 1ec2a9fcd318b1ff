"""Reads a small UTF-8 text file of the user's, up to a size limit. Errors say in words why it cannot be read."""

from __future__ import annotations

from dragoman.base.private import NotRegularFile, open_named_file
from dragoman.base.words import say


class FileProblem(Exception):
    """Why a file cannot be read, as the end of a sentence."""


def read_text(path: str, max_bytes: int) -> str:
    """The whole of a regular file. FIFOs and devices are refused: reading them could block for ever."""
    try:
        with open(open_named_file(path), "rb") as file:
            data = file.read(max_bytes + 1)
    except IsADirectoryError as error:
        raise FileProblem(say("is_a_directory")) from error
    except NotRegularFile as error:
        raise FileProblem(say("is_no_file")) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise FileProblem(getattr(error, "strerror", "") or str(error)) from error
    if len(data) > max_bytes:
        raise FileProblem(say("is_too_long", most=f"{max_bytes:,}"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileProblem(say("is_not_utf8", position=error.start)) from error
