"""Signals during start-up: the program exits at once, without a traceback.

By default Python raises an exception in the middle of an import. That shows a traceback, and an extension module that is interrupted
during its initialisation may crash. This module imports almost nothing, so that its handlers are installed before anything else is loaded.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from types import FrameType

_FAILURE = '"error":{"message":"cancelled","type":"Cancelled","exit_code":CODE}'
_RESULT_FIELDS = (
    '"session_id":null,"response":"","stats":{"requests":0,"turns":0,"tokens":{"input":0,"fresh":0,"cache_read":0,"cache_write":0,'
    '"output":0,"thought":0},"complete":true,"cost_usd":null,"tools":{"calls":0,"failures":0,"refused":0},"files_changed":[],"duration_ms":0},'
    + _FAILURE
)
CANCELLED_OUTPUT = {
    "json": "{" + _RESULT_FIELDS + "}\n",
    "stream-json": '{"type":"error","severity":"error","error_type":"Cancelled","message":"cancelled","exit_code":CODE,"at_ms":TIME}\n'
    '{"type":"result","status":"cancelled","exit_code":CODE,' + _RESULT_FIELDS + ',"at_ms":TIME}\n',
}
"""The output of a run cancelled during start-up. The same as outcome.py and stream_json.py make, which may not be loaded yet."""

_result_is_written = False


def end_quietly_on_signals(argv: Sequence[str]) -> None:
    """Install the handlers. app/signals.py replaces them during a run and restores them afterwards."""
    output = CANCELLED_OUTPUT.get(_output_format(argv), "")

    def end(number: int, frame: FrameType | None) -> None:
        try:
            if not _result_is_written:
                os.write(1, output.replace("CODE", str(128 + number)).replace("TIME", str(time.time_ns() // 1_000_000)).encode())
        except OSError:
            pass
        os._exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end)


def hold_standard_descriptors() -> None:
    """Where standard streams are closed, /dev/null takes their numbers: else the session's log could get one of them, and whatever
    writes to "standard error" (a library in C, a signal's handler) would write into it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def mark_result_written() -> None:
    """The result is written, or about to be: a signal from now on writes no second one."""
    global _result_is_written
    _result_is_written = True


def _output_format(argv: Sequence[str]) -> str:
    """A guess, because the arguments are not parsed yet."""
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
