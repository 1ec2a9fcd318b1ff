"""Storms by hand: `PYTHONPATH=tests python -m policy.sandbox.storm --level 1 --user nobody --count 2000`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from policy.sandbox.storm.known import KNOWN
from policy.sandbox.storm.runner import STEP_S, Found, Worker, describe, shrink
from policy.sandbox.storm.sequences import Sequence, generate, parse
from policy.sandbox.storm.users import USERS, worker_as


def main() -> None:
    parser = argparse.ArgumentParser(description="Run sequences of hostile and clumsy steps in a cage of decoys.")
    parser.add_argument("--level", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--user", nargs="+", default=list(USERS), choices=USERS)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="how many seeds for each level and user")
    parser.add_argument("--known", action="store_true", help="run those that once did harm")
    parser.add_argument("--sequence", help="run this one, as it was printed")
    parser.add_argument("--step-s", type=float, default=STEP_S, help="when a step counts as hanging")
    parser.add_argument("--shrink", type=int, default=5, help="how many of those that found something are made shorter and printed")
    parser.add_argument("--verbose", action="store_true", help="print findings as they come")
    told = parser.parse_args()
    has_found = False
    for level in told.level:
        for user in told.user:
            with worker_as(user, level, step_s=told.step_s) as worker:
                has_found |= run(worker, chosen(told), told, f"level {level}, {user}")
    sys.exit(has_found)


def chosen(told: argparse.Namespace) -> Iterator[tuple[str, Sequence]]:
    if told.known:
        yield from KNOWN.items()
    elif told.sequence:
        yield "the given", parse(told.sequence)
    else:
        yield from ((f"seed {seed}", generate(seed)) for seed in range(told.first, told.first + told.count))


def run(worker: Worker, sequences: Iterable[tuple[str, Sequence]], told: argparse.Namespace, where: str) -> bool:
    """Print what was found, how often, and how fast it went. Returns whether anything was."""
    worker.start()
    count, found, kinds, began_s = 0, list[tuple[str, Found]](), Counter[str](), time.monotonic()
    for name, sequence in sequences:
        count += 1
        if findings := worker.run(sequence):
            found.append((name, Found(sequence, findings)))
            kinds.update(found[-1][1].kinds)
            if told.verbose:
                print(f"{name}: {findings}", *(worker.heard if told.sequence else ()), sep="\n  ", flush=True)
    rate = f"{count / (time.monotonic() - began_s):.1f} a second, {worker.refused} refused"
    print(f"{where}: {len(found)} of {count} found something, {rate}", dict(kinds), dict(worker.happened), flush=True)
    for name, each in found[: told.shrink]:
        shown = each if told.sequence or told.known else shrink(worker, each)
        print(f"{name}: {describe(shown, where)}", flush=True)
    return bool(found)


if __name__ == "__main__":
    main()
