"""The live table in a real terminal: it stands there once, however low or narrow the terminal is or becomes."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable

import pytest

from dragoman.testing.script import Script
from fleet.fleets import MODEL, task, write_tasks
from program import Place, Service
from terminals import tmux

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed: make system-parts")

REDRAWN = 3
WORDS = {"en": (r"\$(0\.\d+) spent", "and 4 more", "cancelled"), "zh": (r"已花费 \$(0\.\d+)", "另有 4 个", "已取消")}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_table_fits_a_low_terminal_and_one_that_is_made_narrower(place: Place, serve: Callable[..., Service], language: str) -> None:
    spent, more, cancelled = WORDS[language]
    service = serve(lambda request: Script.parse("wait: 600\ntext: late").answers[0])
    write_tasks(place, [task(f"t{number}") for number in range(6)])
    words = ("fleet", "run", "tasks.jsonl", "--model", MODEL, "--workers", "6", "--lang", language)
    with tmux(place, *words, model="", size=(7, 90)) as pane:
        service.expect(6)
        shown = pane.expect(more)
        for columns in (90, 40, 120):
            pane.resize(columns, 7)
            for _ in range(REDRAWN):  # what was left behind by a redrawing would stand above it
                before = shown
                until = time.monotonic() + 60
                while (shown := pane.screen()) == before and time.monotonic() < until:
                    time.sleep(0.05)
            assert shown.count("0/6") == 1, shown
            [usd] = re.findall(spent, shown)
            assert float(usd) > 0, "what was sent counts, before anybody has answered"
            assert "t0 " in shown
        pane.keys("C-c")
        pane.expect("exit code 130")
        assert pane.screen().count(f"{cancelled}  ") == 6


def test_a_long_name_pushes_no_cost_out_of_the_table(place: Place, serve: Callable[..., Service]) -> None:
    service = serve(lambda request: Script.parse("wait: 600\ntext: late").answers[0])
    write_tasks(place, [task("t0"), task("t1" + "-long" * 20)])
    with tmux(place, "fleet", "run", "tasks.jsonl", "--model", MODEL, model="", size=(12, 60)) as pane:
        service.expect(2)
        shown = pane.expect("t1-long")
        assert len([line for line in shown.splitlines() if re.search(r"^  t.*  \$0\.\d{4}$", line)]) == 2
        pane.keys("C-c")
        pane.expect("exit code 130")
