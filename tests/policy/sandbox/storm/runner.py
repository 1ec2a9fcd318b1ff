"""Outside the cage: starts workers in it, gives them sequences, ends those that hang, and makes a sequence that found something shorter."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from policy.sandbox.storm.sequences import Sequence
from reachable import TESTS, Reachable

_PROGRAMS = Path("policy", "sandbox", "storm")
STEP_S = 60.0
"""How long a step may take before it counts as hanging."""
_PLACES = ("/srv", "/mnt", "/media", "/opt", "/home")
_SHRINKING_TRIES = 60


class NoCage(Exception):
    """The place in which nothing but decoys can be written cannot be made here."""


class Found(NamedTuple):
    """What a sequence did that it must not."""

    sequence: Sequence
    findings: tuple[str, ...]

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(each.partition(":")[0] for each in self.findings)


class Worker:
    """One process in a cage, started anew when it hangs or dies."""

    def __init__(self, level: int, prefix: Iterable[str], reachable: Reachable, *, step_s: float = STEP_S) -> None:
        """`prefix`: what changes the user. `reachable`: what that user may run and read, in the cage too."""
        self._decoys = decoys_for([*needed_by(reachable), sys.prefix, sys.base_prefix])
        places = [os.path.expanduser("~"), os.getcwd(), os.path.dirname(tempfile.gettempdir()), *needed_by(reachable)[1:]]
        inner = [reachable.python, "-B", program_in(reachable, "worker.py"), self._decoys, str(level), str(step_s)]
        self._argv = [*prefix, *cage_argv(reachable, self._decoys, places, inner)]
        self._env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": reachable.all_modules, "LC_ALL": "C.UTF-8"}
        self._step_s = step_s
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._errors: BinaryIO | None = None
        self.seconds = 0.0
        """How long sequences took, without starting workers."""
        self.refused = 0
        """How many sequences did not begin, because no boundary could be drawn."""
        self.happened = Counter[str]()
        """How often what is tried really took place."""
        self.heard: list[str] = []
        """What the model was told in the last sequence that found something."""

    def run(self, sequence: Sequence) -> tuple[str, ...]:
        """The findings. Raises NoCage."""
        process = self.start()
        assert process.stdin is not None
        process.stdin.write(f"{sequence}\n".encode())
        process.stdin.flush()
        step = "the start"
        while True:
            line = self._read_line(process)
            if line is None:
                lines = [line.strip() for line in self._said().splitlines() if "/dragoman/" in line]
                self.close()
                return (f"hangs: {step}: {' < '.join(lines[:8])}",)
            if not line:
                code, said = process.wait(), self._said()
                self.close()
                return (f"died: at {step} with {code}: {said[-1500:]}",)
            data = json.loads(line)
            if "step" in data:
                step = f"step {data['step']}" if isinstance(data["step"], int) else data["step"]
            else:
                self.seconds += data["seconds"]
                self.refused += data["refused"]
                self.happened.update(data["happened"])
                self.heard = data["heard"]
                return tuple(data["findings"])

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, unless it runs, and wait until it is ready. Raises NoCage where the place, or the level in it, cannot be had."""
        if self._process is not None:
            return self._process
        self._unread = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        process = self._process = subprocess.Popen(
            self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=self._env, cwd="/", bufsize=-1
        )
        line = self._read_line(process)
        if line != b"{}":
            reason = json.loads(line)["level"] if line else self._said()
            self.close()
            raise NoCage(reason)
        return process

    def _read_line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """Empty: it has ended. None: nothing came for too long."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(self._step_s):
                    return None
                if not (data := os.read(process.stdout.fileno(), 65536)):
                    return b""
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _said(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()  # it ends process 1 of the cage, and with that everything in it
        process.communicate()
        if self._errors is not None:
            self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def needed_by(reachable: Reachable) -> list[str]:
    """Where the interpreter and all that it reads lie."""
    return [reachable.python, *reachable.modules, str(reachable.tests), str(TESTS)]


def program_in(reachable: Reachable, name: str) -> str:
    return str(reachable.tests / _PROGRAMS / name)


def cage_argv(reachable: Reachable, decoys: str, witnesses: Iterable[str], program: Iterable[str]) -> list[str]:
    return [reachable.python, "-I", "-B", program_in(reachable, "cage.py"), decoys, *dict.fromkeys(witnesses), "--", *program]


def decoys_for(needed: Iterable[str]) -> str:
    """A folder to make the decoys in, over whatever is there: one that holds nothing that the worker needs."""
    real = [os.path.realpath(path) for path in needed]
    for folder in _PLACES:
        is_needed = any(path == folder or path.startswith(f"{folder}/") for path in real)
        if os.path.isdir(folder) and not os.path.islink(folder) and not is_needed:
            return folder
    raise NoCage(f"every one of {', '.join(_PLACES)} is needed")


def storm(worker: Worker, sequences: Iterable[Sequence], stop: Callable[[Found], bool] = lambda found: False) -> Iterator[Found]:
    """Run one after the other, and give those that found something."""
    for sequence in sequences:
        if findings := worker.run(sequence):
            found = Found(sequence, findings)
            yield found
            if stop(found):
                return


def shrink(worker: Worker, found: Found) -> Found:
    """Drop steps, calls and traits as long as something of the same kind is still found."""
    kind = min(found.kinds)
    best, tries = found, 0
    is_shorter = True
    while is_shorter and tries < _SHRINKING_TRIES:
        is_shorter = False
        for shorter in _shorter(best.sequence):
            tries += 1
            again = Found(shorter, worker.run(shorter))
            if kind in again.kinds:
                best, is_shorter = again, True
                break
            if tries >= _SHRINKING_TRIES:
                break
    return best


def _shorter(sequence: Sequence) -> Iterator[Sequence]:
    steps = sequence.steps
    if len(steps) > 3:
        yield sequence._replace(steps=steps[: len(steps) // 2])
        yield sequence._replace(steps=steps[len(steps) // 2 :])
    for at in reversed(range(len(steps))):
        if len(steps) > 1:
            yield sequence._replace(steps=(*steps[:at], *steps[at + 1 :]))
    for at, step in enumerate(steps):
        if len(step.calls) > 1:
            for call in range(len(step.calls)):
                fewer = step._replace(calls=(*step.calls[:call], *step.calls[call + 1 :]))
                yield sequence._replace(steps=(*steps[:at], fewer, *steps[at + 1 :]))
    for trait in sequence.world.traits:
        rest = tuple(each for each in sequence.world.traits if each != trait)
        yield sequence._replace(world=sequence.world._replace(traits=rest))
    if sequence.world.way != "auto":
        yield sequence._replace(world=sequence.world._replace(way="auto"))
    if sequence.world.form != "plain":
        yield sequence._replace(world=sequence.world._replace(form="plain"))
    if sequence.world.place != "in home":
        yield sequence._replace(world=sequence.world._replace(place="in home"))


def describe(found: Found, where: str) -> str:
    """Say what one reads, and can paste. `where`: `level 1, nobody`."""
    world = found.sequence.world
    lines = [f"{where}: the workspace {world.place}; .git: {world.form}; mode: {world.way}"]
    if world.traits:
        lines.append(f"  with {', '.join(world.traits)}")
    for step in found.sequence.steps:
        lines += [f"  {name} {json.dumps(arguments)}" for name, arguments in step.calls] or [f"  {step.other}"]
    lines += [f"  → {each}" for each in found.findings[:8]]
    if len(found.findings) > 8:
        lines.append(f"  → and {len(found.findings) - 8} more")
    quoted = "'" + str(found.sequence).replace("'", "'\\''") + "'"
    level, _, user = where.removeprefix("level ").partition(", ")
    lines.append(f"  again: PYTHONPATH=tests python -m policy.sandbox.storm --level {level} --user {user} --sequence {quoted}")
    return "\n".join(lines)
