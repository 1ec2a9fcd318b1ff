"""Workers for the test suite: tests are collected once, then this process forks, and each worker runs what it is handed.

pytest-xdist has every worker collect everything, which on a small machine is a quarter of the time. A fork has it already. What a worker
is handed is a run of consecutive tests of one file, the longest runs first, by the times that were measured before (kept in pytest's
cache) or, without any, by the fixtures that a test asks for.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count as count_up
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pytest

MEASURED = "dragoman/seconds"
"""Where pytest's cache has the seconds of each test."""
GUESSES = {"terminal": 2.0, "tmux": 2.0, "browser": 1.5, "page": 1.0, "place": 0.3, "serve": 0.3}
"""Seconds that a test with this fixture is taken for, before it was measured."""
LONG = {name: float(seconds) for seconds, name in map(str.split, Path(__file__).with_name("long_tests.txt").read_text().splitlines())}
"""Seconds of the longest tests by the names of their functions, wherever those lie, as once measured: they come first in a fresh clone."""
GUESS = 0.02
LONG_RUN = 4.0
"""Seconds after which the tests of one file are handed out as another run: its module's fixtures are made once more there."""


@dataclass
class Worker:
    pid: int
    line: Connection
    running: int | None = None
    """The index of the test under way."""
    handed: list[int] = field(default_factory=list)
    """What it was handed and has not finished."""


class Workers:
    """The plugin of the process that collects."""

    def __init__(self, config: pytest.Config, count: int) -> None:
        self.config = config
        self.count = count
        self.workers: dict[Connection, Worker] = {}
        self.numbers = count_up()
        self.measured = measured_before(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # the usual loop says so
        if session.config.option.collectonly or len(session.items) < 2:
            return None
        runs = plan_runs(session.items, self.measured)
        self._waiting = list(reversed(runs))
        try:
            for _ in runs[: self.count]:
                self._start(session)
            while self.workers:
                for line in wait(list(self.workers)):
                    assert isinstance(line, Connection)
                    self._take(session, line)
                    if session.shouldfail:
                        raise session.Failed(session.shouldfail)
                    if session.shouldstop:
                        raise session.Interrupted(session.shouldstop)
        finally:
            self._end_all()
            if cache := getattr(self.config, "cache", None):
                cache.set(MEASURED, self.measured)
        return True

    def _start(self, session: pytest.Session) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        base = session.config._tmp_path_factory.getbasetemp() / f"w{next(self.numbers)}"  # type: ignore[attr-defined]
        if not (pid := os.fork()):
            ours.close()
            for line in self.workers:
                line.close()
            _become_worker(session, theirs, base)
        theirs.close()
        self.workers[ours] = Worker(pid, ours)

    def _take(self, session: pytest.Session, line: Connection) -> None:
        worker = self.workers[line]
        kind, said = _receive(line)
        hook = self.config.hook
        if kind == "gone":
            self._replace(session, worker)
        elif kind == "next":
            run = self._waiting.pop() if self._waiting else []
            worker.handed += run
            line.send(run)
        elif kind == "start":
            worker.running = said
            item = session.items[said]
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        elif kind == "finish":
            index, seconds = said
            worker.running = None
            worker.handed.remove(index)
            item = session.items[index]
            self.measured[item.nodeid] = round(seconds, 3)
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        elif kind == "report":
            hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=self.config, data=said))
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=said)

    def _replace(self, session: pytest.Session, worker: Worker) -> None:
        """See why a worker is gone: after its last test, or in the middle of one, which then failed. Another one takes the rest."""
        del self.workers[worker.line]
        worker.line.close()
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.handed and not status:
            return
        if worker.running is not None:
            item = session.items[worker.running]
            worker.handed.remove(worker.running)
            how = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with exit code {status}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", f"the worker that ran this test ended {how}", "call")
            self.config.hook.pytest_runtest_logreport(report=report)
        elif not worker.handed:
            pytest.exit(f"a worker ended with {status} after its last test", returncode=pytest.ExitCode.INTERNAL_ERROR)
        if worker.handed:
            self._waiting.append(worker.handed)
        if self._waiting:
            self._start(session)

    def _end_all(self) -> None:
        for worker in self.workers.values():
            worker.line.close()
            os.kill(worker.pid, signal.SIGTERM)
        for worker in self.workers.values():
            os.waitpid(worker.pid, 0)
        self.workers.clear()


def _receive(line: Connection) -> tuple[str, Any]:
    try:
        kind, said = line.recv()
    except (EOFError, ConnectionResetError, pickle.UnpicklingError):
        return "gone", None
    return kind, said


def plan_runs(items: Sequence[pytest.Item], measured: Mapping[str, float]) -> list[list[int]]:
    """Consecutive tests of one file, cut where they take long together; those that take longest come first."""
    runs: list[tuple[float, list[int]]] = []
    seconds = [seconds_of(item, measured) for item in items]
    for _, indexes in groupby(range(len(items)), lambda index: items[index].path):
        runs += _cut_runs(indexes, seconds)
    runs.sort(key=lambda run: -run[0])
    return [run for _, run in runs]


def _cut_runs(indexes: Iterator[int], seconds: Sequence[float]) -> Iterator[tuple[float, list[int]]]:
    run: list[int] = []
    total = 0.0
    for index in indexes:
        if run and total + seconds[index] > LONG_RUN:
            yield total, run
            run, total = [], 0.0
        run.append(index)
        total += seconds[index]
    yield total, run


def measured_before(config: pytest.Config) -> dict[str, float]:
    """Return the seconds of each test that has run here before."""
    cache = getattr(config, "cache", None)
    return dict(cache.get(MEASURED, {})) if cache else {}


def seconds_of(item: pytest.Item, measured: Mapping[str, float]) -> float:
    """Return what the test took last time, or a guess."""
    if (seconds := measured.get(item.nodeid)) is not None:
        return seconds
    if (seconds := LONG.get(getattr(item, "originalname", ""))) is not None:
        return seconds
    return max((GUESSES.get(name, GUESS) for name in getattr(item, "fixturenames", ())), default=GUESS)


# --- in a worker --------------------------------------------------------------------------------------------------------------------


class Sender:
    """The plugin of a worker: what happens is sent to the process that collected."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self.config = config
        self.line = line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.line.send(("report", self.config.hook.pytest_report_to_serializable(config=self.config, report=report)))

    def pytest_warning_recorded(self, warning_message: Any, when: Any, nodeid: Any, location: Any) -> None:
        warning_message.source = None  # an object of the test's own, which cannot be sent
        self.line.send(("warning", {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}))


def _become_worker(session: pytest.Session, line: Connection, base: Path) -> None:
    """Run what is handed out until there is no more, and end this process."""
    status = 70
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        random.seed()
        config = session.config
        _separate(config, base)
        config.pluginmanager.register(Sender(config, line), "sender")
        _run_all(session, line)
        config._ensure_unconfigure()
        status = 0
    except EOFError:
        pass  # the process that collected is gone, or wants no more
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _separate(config: pytest.Config, base: Path) -> None:
    """What one process has for itself: captured output, a temporary folder, no terminal."""
    plugins = config.pluginmanager
    for name in ("terminalreporter", "workers", "progress", "cacheprovider", "lfplugin", "nfplugin"):
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    if capture := plugins.get_plugin("capturemanager"):
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    base.mkdir(mode=0o700, exist_ok=True)
    config._tmp_path_factory._basetemp = base  # type: ignore[attr-defined]


def _run_all(session: pytest.Session, line: Connection) -> None:
    run = _ask_for_run(line)
    while run:
        for place, index in enumerate(run):
            is_last = place + 1 == len(run)
            following = _ask_for_run(line) if is_last else run
            after = following[0] if is_last and following else run[place + 1] if not is_last else None
            item = session.items[index]
            line.send(("start", index))
            before = os.times().elapsed
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=None if after is None else session.items[after])
            line.send(("finish", (index, os.times().elapsed - before)))
        run = following


def _ask_for_run(line: Connection) -> list[int]:
    line.send(("next", None))
    run: list[int] = line.recv()
    return run
