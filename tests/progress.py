"""What a run of the suite prints: a bar with the time left, each failure at once, and at the end what was skipped and what brings it.

A failure is shown on one screen; the whole of it is written to a file.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

from workers import measured_before, seconds_of

SHOWN = 5
"""Failures whose output is shown; of the others the names."""
LINES = 24
"""Of a failure, this many lines are shown, and half as many of each thing that was printed."""
WIDTH = 160


class Progress:
    def __init__(self, config: pytest.Config, reporter: TerminalReporter) -> None:
        self.config = config
        self.terminal = reporter
        self.redraws = reporter.isatty
        reporter.showfspath = False
        self.skips: Counter[str] = Counter()
        self.failures = 0
        self.seconds: dict[str, float] = {}
        self.all_seconds = 0.0
        self.done_seconds = 0.0
        self.done = 0
        self.shown_tenths = 0
        self.began = time.monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        measured = measured_before(self.config)
        self.seconds = {item.nodeid: seconds_of(item, measured) for item in session.items}
        self.all_seconds = sum(self.seconds.values())
        self.began = time.monotonic()
        self.terminal.write_line(f"{len(session.items):,} tests with {self.config.getoption('workers')} workers")

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
        """Take the letter for each test away: the bar takes its place."""
        if report.when == "call" or not report.passed:
            outcome = "error" if report.failed and report.when != "call" else report.outcome
            return outcome, "", ""
        return "", "", ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skips[report.longrepr[2].removeprefix("Skipped: ")] += 1
        if report.failed:
            self.failures += 1
            self._clear()
            kept = keep_whole(report, Path(self.config.rootpath))
            shorten(report, kept)
            self.terminal.write_line(f"FAILED {report.nodeid}", red=True)
            if self.failures > SHOWN:
                report.longrepr, report.sections = f"(see {kept})", []

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.done += 1
        self.done_seconds += self.seconds.get(nodeid, 0.0)
        self._draw()

    def _draw(self) -> None:
        share = self.done_seconds / self.all_seconds if self.all_seconds else 1.0
        spent = time.monotonic() - self.began
        left = f"{in_minutes(spent / share - spent)} left" if share > 0.02 else "…"
        failed = f", {self.failures} failed" if self.failures else ""
        said = f"{self.done:,} of {len(self.seconds):,}{failed}, {in_minutes(spent)}, {left}"
        if self.redraws:
            width = max(10, min(40, shutil.get_terminal_size().columns - len(said) - 4))
            filled = round(width * share)
            self.terminal.rewrite(f"{'█' * filled}{'░' * (width - filled)} {said}", erase=True)
        elif int(share * 10) > self.shown_tenths:
            self.shown_tenths = int(share * 10)
            self.terminal.write_line(f"{self.shown_tenths * 10:3} %  {said}")

    def _clear(self) -> None:
        if self.redraws:
            self.terminal.rewrite("", erase=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self) -> None:
        self._clear()
        for reason, count in sorted(self.skips.items(), key=lambda skip: (-skip[1], skip[0])):
            self.terminal.write_line(f"Skipped {count}: {reason}")


def in_minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def keep_whole(report: pytest.TestReport, root: Path) -> Path:
    """Write all that a failed test said to a file in the checkout's cache folder."""
    folder = root / ".pytest_cache" / "failures"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (re.sub(r"[^\w.-]+", "_", report.nodeid)[-120:] + ".txt")
    parts = [report.longreprtext, *(f"--- {title} ---\n{content}" for title, content in report.sections)]
    file.write_text("\n\n".join(parts), encoding="utf-8", errors="backslashreplace")
    return file


def shorten(report: pytest.TestReport, whole: Path) -> None:
    """Leave of what a failed test said what fits a screen, and the name of the file that has all."""
    text = report.longreprtext
    shown = middle_left_out(text, LINES)
    sections = [(title, middle_left_out(content, LINES // 2)) for title, content in report.sections]
    if (shown, sections) != (text, report.sections):
        report.longrepr = f"{shown}\n(the whole: {whole})"
        report.sections = sections


def middle_left_out(text: str, most: int) -> str:
    """Return the first third and the last two thirds of the lines where there are too many, and cut those that are long."""
    lines = [line if len(line) <= WIDTH else line[:WIDTH] + "…" for line in text.splitlines()]
    if len(lines) > most:
        first = most // 3
        lines = [*lines[:first], f"… {len(lines) - most} lines …", *lines[len(lines) - most + first :]]
    return "\n".join(lines)
