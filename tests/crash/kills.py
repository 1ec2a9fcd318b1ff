"""Kills a session's writer at random moments, over and over, and looks at what is left: `python kills.py FOLDER KILLS [SEED [KIND]]`.

Each round forks a child that opens the log (or makes it) and appends entries of very different sizes, synced after every few; after
each sync it tells its parent the last number that is safe. It is killed without warning: by its parent, whatever it is doing, or by a
thread of its own a few microseconds after it has gone into a write or a sync. The parent reads the log, and goes on with the next child
in the same log. One line of JSON at the end says what happened.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from crash.logs import LOGS, SYNCING, WRITING, Log
from dragoman.sessions.journal import SharedSync
from dragoman.values.record import Entry
from sessions.entries import entry, started

IDLE, OPENING = range(2)
ANYWHERE = IDLE
DOING = ("idle", "opening", "writing", "syncing")
LOG_LASTS_KILLS = 10
"""Then another is begun, so that reading it back stays quick and making one is struck too."""
LARGE = 1_000_000


def main(folder: str, kills: int, seed: int, kind: str = "files") -> dict[str, int]:
    chance = random.Random(seed)
    seen = {"kills": 0, "lost": 0, "wrong": 0, "refused": 0, "acknowledged": 0, "torn": 0, "logs": 0, **dict.fromkeys(DOING, 0)}
    doing = mmap.mmap(-1, 1)
    log: Log | None = None
    safe = 0
    while seen["kills"] < kills:
        if log is None or seen["kills"] % LOG_LASTS_KILLS == 0:
            if log is not None:
                log.remove()
            log, safe = LOGS[kind](Path(folder) / f"log-{seen['logs']}"), 0
            seen["logs"] += 1
        doing[0] = OPENING
        aim = chance.choice((ANYWHERE, SYNCING, WRITING, WRITING, WRITING, WRITING))
        told, tell = os.pipe()
        child = os.fork()
        if not child:
            live(log, tell, doing, aim, random.Random(chance.random()))
        os.close(tell)
        if aim == ANYWHERE:
            time.sleep(chance.uniform(0, 0.06))
            os.kill(child, signal.SIGKILL)
        chance.random()  # the child's, so that the next one's differ
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            seen["refused"] += 1  # it ended by itself: it could not open the log, or append to it
        seen["kills"] += 1
        seen[DOING[doing[0]]] += 1
        with os.fdopen(told, "rb") as pipe:
            numbers = pipe.read().split(b"\n")[:-1]
        seen["acknowledged"] += len(numbers)
        safe = max(safe, *map(int, numbers)) if numbers else safe
        look(log, safe, seen)
    return seen


def look(log: Log, safe: int, seen: dict[str, int]) -> None:
    loaded = log.read()
    if loaded is None:
        seen["lost"] += safe
        return
    seen["torn"] += bool(loaded.torn)
    seen["lost"] += max(0, safe - len(loaded.entries))
    seen["wrong"] += bool(loaded.damage) + sum(each != expected(number) for number, each in enumerate(loaded.entries, 1))


def expected(seq: int) -> Entry:
    if seq == 1:
        return started()
    size = (10, 200, 200, 200, 5000, 5000, 70_000, LARGE)[seq * 7919 % 31 % 8]
    return entry(seq, f"{seq} " * (size // (len(str(seq)) + 1)))


class Trap:
    """Kills this process a moment after it has been sprung, wherever the rest of it is by then."""

    def __init__(self, doing: mmap.mmap, aim: int, chance: random.Random) -> None:
        self.doing = doing
        self.aim = aim
        self.calls_left = chance.randint(1, 6)
        # A short write is over before anything can happen in it, so most of those that are struck are long ones.
        self.least_bytes = 50_000 if aim == WRITING and chance.random() < 0.8 else 0
        self.delay_s = chance.uniform(0, 0.0002) if aim == SYNCING or self.least_bytes else 0
        self.sprung = threading.Event()
        if aim != ANYWHERE:
            threading.Thread(target=self.wait, daemon=True).start()

    def wait(self) -> None:
        self.sprung.wait()
        until = time.perf_counter() + self.delay_s
        while time.perf_counter() < until:
            pass
        os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def within(self, what: int, size: int = 0) -> Iterator[None]:
        self.doing[0] = what
        if what == self.aim and size >= self.least_bytes:
            self.calls_left -= 1
            if not self.calls_left:
                self.sprung.set()
        yield
        self.doing[0] = IDLE


def live(log: Log, tell: int, doing: mmap.mmap, aim: int, chance: random.Random) -> NoReturn:
    """The child. It ends by being killed; if it ends otherwise, something is wrong."""
    trap = Trap(doing, aim, chance)
    log.watch(trap.within)

    async def append_for_ever(journal: SharedSync, seq: int) -> None:
        while True:
            for _ in range(chance.randint(1, 3)):
                seq += 1
                journal.append(expected(seq))
            await journal.sync()
            if not journal.is_saved:
                os._exit(3)
            os.write(tell, b"%d\n" % seq)

    try:
        journal, loaded = log.open_or_create()
        asyncio.run(append_for_ever(journal, len(loaded.entries)))
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    os._exit(2)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0, *sys.argv[4:5])))
