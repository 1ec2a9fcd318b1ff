"""Reading a small text file of the user's: bounded, UTF-8, and with a reason in words where it cannot be had."""

from __future__ import annotations

import os
import stat

from dragoman.base.words import say


class FileProblem(Exception):
    """Why a file cannot be read, as the end of a sentence."""


def read_text(path: str, max_bytes: int) -> str:
    """The whole of a regular file. FIFOs and devices are not opened for long: they could keep us waiting for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise FileProblem(error.strerror or str(error)) from error
    except ValueError as error:  # a NUL in the name
        raise FileProblem(str(error)) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise FileProblem(say("is_a_directory"))
        if not stat.S_ISREG(mode):
            raise FileProblem(say("is_no_file"))
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise FileProblem(error.strerror or str(error)) from error
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise FileProblem(say("is_too_long", most=f"{max_bytes:,}"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileProblem(say("is_not_utf8", position=error.start)) from error
