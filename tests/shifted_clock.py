"""The program at another time, to the millisecond, by Debian's `faketime`."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from system_parts import require_program


def clock_at(time: str) -> dict[str, str]:
    """Variables under which a program sees this time of UTC, `2026-01-31 00:44:59.999`, for as long as it runs. What it measures (how
    long it has waited, say) goes on as ever. Commands in its sandbox see the true time."""
    whole, _, milliseconds = time.partition(".")
    # Half a millisecond more: faketime computes the fraction in floating point, and what is .004 could become .003.
    moment = f"{whole}.{milliseconds or '000'}5"
    return {
        "LD_PRELOAD": _library(),
        "FAKETIME": moment,
        "FAKETIME_NO_CACHE": "1",  # the variable is read again in a process that is forked off another
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # with its remedy for old C libraries, threads that wait for each other keep a core busy
        "TZ": "UTC",
    }


@cache
def _library() -> str:
    """The library that `faketime` puts before all others of a program."""
    if sys.platform != "linux":
        pytest.skip("the library is put before others in another way here")
    # Not asked of the program: it leaves a semaphore named after its process id behind, and fails where an earlier one left the same.
    installed = Path(require_program("faketime")).resolve().parent.parent
    found = sorted(path for folder in ("lib*/faketime", "lib*/*/faketime") for path in installed.glob(f"{folder}/libfaketime.so.1"))
    assert found, f"faketime is here, but not its library below {installed}"
    return str(found[0])
