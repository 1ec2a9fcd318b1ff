"""Hostile and clumsy commands, our own file tools, undo and rewind, for real, in every awkward place: nothing outside ever changes.

Servers in the background, opened ports, second runs, calls that are let out of the sandbox, killed holders and launchers, and another
session whose agent is killed: no command reaches a server of the host or of the other, and nothing that the model wrote runs outside.

At every level, as root and as another user. 300 sequences; DRAGOMAN_LONG=1 runs 20,000, DRAGOMAN_STORM=N as many as it says. One that
finds something is made shorter and printed so that it can be run again: `python -m policy.sandbox.storm --help`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import islice

import pytest

from policy.sandbox.storm.cage import REFUSED
from policy.sandbox.storm.known import KNOWN
from policy.sandbox.storm.runner import Found, NoCage, Worker, cage_argv, decoys_for, describe, needed_by, shrink, storm
from policy.sandbox.storm.sequences import generate, parse
from policy.sandbox.storm.users import USERS, prefix_for, reachable_for, worker_as
from reachable import TESTS
from system_parts import IS_BUILD_MACHINE, require_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

LEVELS = (1, 2, 3)
COUNT = int(os.environ.get("DRAGOMAN_STORM") or (20_000 if os.environ.get("DRAGOMAN_LONG") else 300))
EACH = COUNT // (len(LEVELS) * len(USERS))
_SHOWN = 3


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_nothing_outside_changes_whatever_is_done(level: int, user: str) -> None:
    first = (level * len(USERS) + USERS.index(user)) * 1_000_000
    with open_worker(user, level) as worker:
        found = list(islice(storm(worker, map(generate, range(first, first + EACH))), _SHOWN))
        shown = [describe(shrink(worker, each), f"level {level}, {user}") for each in found]
        assert not shown, "\n\n".join(["", *shown])
        assert worker.refused < EACH // 2, "most must really run"
        require_happened(worker, "ran outside", *(("read-only",) if level != 3 else ()))


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_what_once_did_harm_does_none(level: int, user: str) -> None:
    with open_worker(user, level) as worker:
        found = {name: Found(sequence, findings) for name, sequence in KNOWN.items() if (findings := worker.run(sequence))}
        shown = [f"{name}: {describe(each, f'level {level}, {user}')}" for name, each in found.items()]
        assert not shown, "\n\n".join(["", *shown])
        require_happened(worker, "ran outside", *(("answered", "ran again") if level != 3 else ()))


@pytest.mark.parametrize("user", USERS)
def test_in_the_cage_nothing_but_decoys_can_be_written(user: str) -> None:
    reachable = reachable_for(user)
    tried = [os.path.expanduser("~"), str(TESTS), str(reachable.tests), "/", "/etc", "/usr/bin", "/var/cache"]
    program = f"""
import os, sys
for folder in {tried!r}:
    try:
        open(os.path.join(folder, ".storm"), "w")
    except OSError as error:
        print(error.errno != 0, end=" ")
for folder in (sys.argv[1], "/tmp", "/var/tmp", "/dev/shm"):
    print(os.listdir(folder), end=" ")
    open(os.path.join(folder, ".storm"), "w").close()
print(sorted(name for name in os.listdir("/proc") if name.isdigit()))
"""
    with tempfile.NamedTemporaryFile(dir="/tmp"):  # not seen in there
        done = cage(user, [str(TESTS)], reachable.python, "-c", program, decoys_for(needed_by(reachable)))
    assert done.stdout == "True " * len(tried) + "[] [] [] [] ['1', '2']\n", done.stderr
    assert not os.path.exists("/tmp/.storm")


@pytest.mark.parametrize("user", USERS)
def test_where_something_else_could_be_written_nothing_is_started(user: str) -> None:
    for open_place in (decoys_for(needed_by(reachable_for(user))), "/tmp"):
        done = cage(user, [open_place], "/bin/echo", "started")
        assert (done.returncode, done.stdout) == (REFUSED, ""), done.stderr
        assert f"a file could be made in {open_place}" in done.stderr


def test_a_sequence_is_the_same_for_its_seed_and_can_be_pasted() -> None:
    for seed in range(200):
        assert parse(str(generate(seed))) == generate(seed)
    assert len({str(generate(seed)) for seed in range(200)}) == 200


def cage(user: str, witnesses: list[str], *program: str) -> subprocess.CompletedProcess[str]:
    reachable = reachable_for(user)
    argv = [*prefix_for(user), *cage_argv(reachable, decoys_for(needed_by(reachable)), witnesses, program)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == REFUSED and "could be made" not in done.stderr:
        give_up(done.stderr)
    return done


def require_happened(worker: Worker, *names: str) -> None:
    """Else nothing was shown."""
    assert all(worker.happened[name] for name in names), worker.happened


def open_worker(user: str, level: int) -> Worker:
    """A worker that has shown that it is held, and that this level works there. Else the test is skipped; on a build machine it fails."""
    if level == 2:
        require_program("bwrap")
    worker = worker_as(user, level)
    try:
        worker.start()
    except NoCage as error:
        worker.close()
        give_up(str(error))
    return worker


def give_up(reason: str) -> None:
    reason = f"{reason.strip()}: make system-parts, and user namespaces for ordinary programs"
    pytest.fail(reason) if IS_BUILD_MACHINE else pytest.skip(reason)
