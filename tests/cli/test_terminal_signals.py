"""The second Ctrl-C, while the first is still being heeded: the program leaves at once, and gives the terminal back."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial

import pytest

from program import heed_signals

PROGRAM = """
import asyncio, os, signal, sys
from dragoman.plain.terminal_signals import Signals

class Keyboard:
    def close(self): sys.stdout.write("given back\\n"); sys.stdout.flush()
    def resume(self): sys.stdout.write("resumed\\n"); sys.stdout.flush()

cancels = []
signals = Signals(Keyboard())

async def work():
    signals.attach(asyncio.get_running_loop(), lambda: cancels.append(1))
    for name in sys.argv[1:]:
        os.kill(os.getpid(), getattr(signal, name))
        await asyncio.sleep(0.15)
    signals.detach()
    print("cancelled", len(cancels), "code", signals.code, flush=True)

with signals:
    asyncio.run(work())
"""


def played(*names: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        preexec_fn=heed_signals,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


MISSED = """
import os, select, signal
from contextlib import suppress
from dragoman.plain.terminal_signals import Signals
from dragoman.app.signals import Interrupted

signals = Signals(None)
with signals, suppress(Interrupted):
    for _ in range(3):
        signals._arrivals_writer.send(bytes([signal.SIGINT]))  # what is left of a signal that arrived and was not handled
        try:
            select.select([], [], [], 10)  # as the line editor waits
            print("missed")
        except Interrupted:
            print("heard")
    os.kill(os.getpid(), signal.SIGINT)  # and one that is heeded at once is not taken for the echo of those
    print("missed")
"""


def test_a_signal_nobody_heeded_is_sent_again() -> None:
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    done = subprocess.run([sys.executable, "-c", MISSED], capture_output=True, text=True, timeout=60, check=False, preexec_fn=heed)
    assert (done.stdout, done.stderr) == ("heard\n" * 3, "")


@pytest.mark.parametrize(
    ("names", "code", "shown"),
    [
        (["SIGINT"], 0, "cancelled 1 code 130\n"),
        (["SIGINT", "SIGINT"], 130, "given back\n"),
        (["SIGTERM", "SIGINT"], 143, "given back\n"),
        (["SIGQUIT"], 131, "given back\n"),
        (["SIGCONT"], 0, "resumed\ncancelled 0 code 0\n"),
    ],
)
def test_signals_during_a_run(names: list[str], code: int, shown: str) -> None:
    assert played(*names) == (code, shown)
