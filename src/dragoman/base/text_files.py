"""Reads a small UTF-8 text file of the user's, up to a size limit. Errors say in words why it cannot be read."""

from __future__ import annotations

from dragoman.base.found_files import read_found_text


class FileProblem(Exception):
    """Why a file cannot be read, as the end of a sentence."""


def read_text(path: str, max_bytes: int) -> str:
    """The whole of a regular file. FIFOs and devices are refused: reading them could block for ever."""
    try:
        return read_found_text(path, max_bytes)
    except OSError as error:
        raise FileProblem(error.strerror or str(error)) from error
