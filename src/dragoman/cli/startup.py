"""Signals that come while the program is being loaded: it ends at once, and quietly.

Python's own way, an exception in the middle of an import, would show a traceback, or worse: an extension module that is interrupted
while it is being set up may crash. This module imports next to nothing, so that it is in place before anything else is.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType

_FAILURE = '"error":{"message":"cancelled","type":"Cancelled","exit_code":CODE}'
_TOLD = (
    '"session_id":null,"response":"","stats":{"requests":0,"turns":0,"tokens":{"input":0,"fresh":0,"cache_read":0,"cache_write":0,'
    '"output":0,"thought":0},"cost_usd":null,"tools":{"calls":0,"failures":0,"refused":0},"files_changed":[],"duration_ms":0},' + _FAILURE
)
LAST_WORDS = {
    "json": "{" + _TOLD + "}\n",
    "stream-json": '{"type":"error","severity":"error","error_type":"Cancelled","message":"cancelled","exit_code":CODE}\n'
    '{"type":"result","status":"cancelled","exit_code":CODE,' + _TOLD + "}\n",
}
"""What outcome.py and stream_json.py would make of it, written out because they may not be there yet."""

_is_told = False


def end_quietly_on_signals(argv: Sequence[str]) -> None:
    """From now until signals.py takes over, and after it has let go."""
    words = LAST_WORDS.get(_output_format(argv), "")

    def end(number: int, frame: FrameType | None) -> None:
        try:
            if not _is_told:
                os.write(1, words.replace("CODE", str(128 + number)).encode())
        except OSError:
            pass
        os._exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end)


def all_is_told() -> None:
    """The result is out, or about to be: a signal that comes now adds nothing to it."""
    global _is_told
    _is_told = True


def _output_format(argv: Sequence[str]) -> str:
    """As good a guess as can be had before the arguments are parsed."""
    found = ""
    before = ""
    for word in argv:
        if before in ("-p", "--prompt"):
            before = ""
            continue
        if before == "--output-format":
            found = word
        elif word.startswith("--output-format="):
            found = word.partition("=")[2]
        before = word
    return found
