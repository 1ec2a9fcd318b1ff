"""Ctrl-C while the program starts, at any import: it ends quietly with the code for an interrupt, and never with a traceback."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from program import Place

HOOK = """
import os, signal, sys

class Interrupt:
    seen, begun = 0, False

    def find_spec(self, name, path=None, target=None):
        if name == "dragoman.cli.main":
            Interrupt.begun = True  # before that nothing of the program has run yet
        elif Interrupt.begun:
            Interrupt.seen += 1
            if Interrupt.seen == int(os.environ["AT_IMPORT"]):
                if os.environ["BY"] == "signal":
                    os.kill(os.getpid(), signal.SIGINT)
                else:
                    raise KeyboardInterrupt
        return None

sys.meta_path.insert(0, Interrupt())
"""
COUNTED = "import atexit, os; atexit.register(lambda: os.write(2, b'imports: %d' % Interrupt.seen))\n"


@pytest.fixture
def hooked(place: Place, tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "sitecustomize.py").write_text(HOOK + COUNTED)
    place.more_env = {"PYTHONPATH": str(tmp_path), "AT_IMPORT": "0", "BY": "signal"}
    yield place
    place.close()


def run(place: Place, arguments: tuple[str, ...], **env: str) -> tuple[int, str]:
    process = place.start(*arguments, env=env)
    _, err = process.communicate(timeout=60)
    return process.returncode, err.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("arguments", [("models",), ("-p", "hi"), ("--help",)], ids=" ".join)
@pytest.mark.parametrize("by", ["signal", "exception"])
def test_at_any_import_it_ends_without_a_traceback(hooked: Place, arguments: tuple[str, ...], by: str) -> None:
    _, err = run(hooked, arguments)
    imports = int(err.rpartition("imports: ")[2])
    assert imports > 3
    for at in sorted({1, 2, 3, 4, 5, 6, *range(7, imports, max(imports // 8, 1))}):
        if at > imports:
            continue
        code, err = run(hooked, arguments, AT_IMPORT=str(at), BY=by)
        assert code in (130, -signal.SIGINT), (at, err)
        assert "Traceback" not in err, (at, err)
        assert "KeyboardInterrupt" not in err, (at, err)
