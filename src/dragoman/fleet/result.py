"""How an attempt ended: one result for each, written once."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.base.private import write_whole
from dragoman.fleet import files
from dragoman.fleet.limiter import HolderSpending

RESULT_FILE = "result.json"
SPENT_FILE = "spent.jsonl"
LATE = "late-"
LOST = "WorkerLost"
"""The class of error of a worker that left no result; the signal follows."""
PLACE_LOST = "MachineLost"
INTERRUPTED = "Interrupted"
"""The supervisor was killed: no failure of the attempt."""
TASK_FILE = "task.json"
MOST_RESULT_BYTES = 64_000_000
MOST_SPENT_BYTES = 100_000
"""From the end of `spent.jsonl`, whose last line counts."""
Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0, le=1e12)]

Outcome = Literal["passed", "failed", "agent limit", "infrastructure", "refused input", "cancelled"]
"""`failed`: by the check, or the model refused. `agent limit`: of turns, seconds, tokens, dollars, repetition. `infrastructure`: neither
the model nor its work was at fault. `cancelled`: it was ended from outside, and may be run again."""
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "agent limit", "infrastructure", "refused input", "cancelled")
State = Outcome | Literal["running", "waiting"]
"""How an attempt stands while a supervisor is at work: without a result it is not `cancelled`, but `running` or `waiting`."""
STATES: tuple[State, ...] = (*OUTCOMES, "running", "waiting")


class UsedTokens(msgspec.Struct, frozen=True):
    """What was used, as far as the service told."""

    input: Count = 0
    cache_read: Count = 0
    output: Count = 0


class Checked(msgspec.Struct, frozen=True):
    """How the check went."""

    exit_code: Annotated[int, Meta(ge=-(2**31), le=2**31)]
    output: str = ""
    """Its end, if it is long."""
    timed_out: bool = False
    seconds: Amount = 0.0


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one start of an attempt ended, and what it took. Its identity is (task hash, attempt, epoch)."""

    task: str
    task_hash: str = ""
    attempt: Count = 1
    epoch: Count = 1
    """The how manieth start of this attempt it was."""
    outcome: Outcome
    reason: str = ""
    error_type: str = ""
    """The class of the error that ended it."""
    request_hash: str = ""
    """Of the last request that was sent; equal requests of two starts have the same."""
    retryable: bool = False
    """Whether another start may end differently."""
    model: str = ""
    session_id: str | None = None
    requests: Count = 0
    turns: Count = 0
    tool_calls: Count = 0
    tokens: UsedTokens = UsedTokens()
    cost_usd: Amount | None = 0.0
    """None where prices are not known."""
    estimated_usd: Amount = 0.0
    """The part of it that no service has told: our estimate of requests that were sent and cut off."""
    is_cost_least: bool = False
    """Whether it may have cost more: an answer was cut off before the service had told everything."""
    seconds: Amount = 0.0
    """Of work, waiting for the service's limits not counted."""
    waited_s: Amount = 0.0
    answer: str = ""
    check: Checked | None = None
    diff: str = ""
    """What changed in the workspace, as git writes it."""
    is_diff_cut: bool = False

    @property
    def is_final(self) -> bool:
        """Whether it may be accepted; what was cancelled is run again by a resume."""
        return self.outcome != "cancelled"

    @property
    def is_stand_in(self) -> bool:
        """Whether a supervisor has written it in the place of a worker that left none."""
        return self.error_type.startswith((LOST, PLACE_LOST, INTERRUPTED))


def write_result(folder: str, result: AttemptResult) -> bool:
    """Link the result into place, whole and on disk. Returns False where another one was first: it stays, and this one lies beside it."""
    data = msgspec.json.format(msgspec.json.encode(result, enc_hook=str), indent=1) + b"\n"
    for name in (RESULT_FILE, f"{LATE}{os.urandom(4).hex()}.json"):
        try:
            with files.write_aside(os.path.join(folder, name), over=False) as descriptor:
                write_whole(descriptor, data)
            return name == RESULT_FILE
        except FileExistsError:
            continue
    return False


def read_result(folder: str) -> AttemptResult | None:
    """The result in a folder; None if there is none that can be read."""
    return _read(os.path.join(folder, RESULT_FILE))


def _read(path: str) -> AttemptResult | None:
    try:
        return files.decode(files.read_file(path, MOST_RESULT_BYTES), AttemptResult)
    except (OSError, msgspec.MsgspecError):
        return None


def read_late_results(folder: str) -> list[AttemptResult]:
    """Results that came when there was one already."""
    names = [name for name, _ in files.list_folder(folder) if name.startswith(LATE)]
    found = [_read(os.path.join(folder, name)) for name in names]
    return [each for each in found if each is not None]


class AttemptSpending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt has spent by now: a line of `spent.jsonl`, which is there whatever happens to the worker."""

    requests: Count = 0
    input: Count = 0
    cache_read: Count = 0
    output: Count = 0
    usd: Amount | None = 0.0
    """Of everything that was sent: as the service told it, and estimated where it has not. None where prices are not known."""
    estimated_usd: Amount = 0.0
    """The part of it that is estimated."""
    in_flight_usd: Amount = 0.0
    """The part of it that is for requests under way."""
    under_way: Count = 0
    """Requests that were sent and not answered."""
    is_least: bool = False
    """Whether it may have cost more."""
    request_hash: str = ""
    step: Count = 0
    """The how manieth line this is."""

    @property
    def as_spending(self) -> HolderSpending:
        """As a limiter is told it."""
        return HolderSpending(self.usd or 0.0, self.in_flight_usd, self.step)


def read_spent(folder: str) -> AttemptSpending:
    """The last whole line of it."""
    try:
        lines = files.read_tail(os.path.join(folder, SPENT_FILE), MOST_SPENT_BYTES).split(b"\n")
    except OSError:
        return AttemptSpending()
    for line in reversed(lines):
        try:
            return files.decode(line, AttemptSpending)
        except msgspec.MsgspecError:
            continue
    return AttemptSpending()
