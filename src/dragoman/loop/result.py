"""How a run ended, and what it took."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic

import msgspec

from dragoman.base import late_types
from dragoman.loop.history import History
from dragoman.loop.model import Models
from dragoman.values.errors import DragomanError, ProviderError
from dragoman.values.events import ErrorRaised
from dragoman.values.messages import FinishReason, Response, Source
from dragoman.values.record import Configured, Entry, ModelChanged, Rewound, Spent, ToolFinished, paid_usage, sum_usage
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from dragoman.values.calls import PendingCall, ToolOutput

    T = TypeVar("T", default=str)
else:  # a default came with Python 3.13: type checkers know it before
    from typing import TypeVar

    T = TypeVar("T")
    PendingCall, ToolOutput = late_types("dragoman.values.calls", "PendingCall", "ToolOutput")


class Result(msgspec.Struct, Generic[T], frozen=True):
    """How a run ended, and what it took."""

    text: str = ""
    """The answer: what the model said last."""
    output: T = ""  # type: ignore[assignment]
    """The value that was asked for with `output=`; where nothing was, the text. None of a run with `output=` that has not come so far,
    or that failed: awaiting it raises the reason."""
    cited: str = ""
    """The answer with its numbered markers, where the service named its sources."""
    sources: tuple[Source, ...] = ()
    """The pages it rests on, each once: first those that the numbers in `cited` stand for, from 1, then what its searches found besides.
    Each has a title, an address and the passages cited; `str()` of one is `Title (address)`."""
    unchecked: str = ""
    """Why the answer is not to be relied on, where a model too small to be trusted says of files what no call has returned; else empty."""
    finish: FinishReason | None = None
    usage: Usage = Usage()
    """Where `usage.incomplete` is not 0, an answer ended before the service had told everything: the counts are the least there can be."""
    cost_usd: float | None = None
    """None where the model's prices or all of its usage are not known. With an incomplete usage, the least it can have cost."""
    turns: int = 0
    requests: int = 0
    """How often a model was asked, attempts that failed included."""
    tool_calls: int = 0
    tool_failures: int = 0
    changed: tuple[str, ...] = ()
    """Files that were written: absolute paths, in the order of the first write."""
    error: str = ""
    error_type: str = ""
    exit_code: int = 0
    duration_ms: int = 0
    agent: str = ""
    """The name of the agent that has the conversation: another one where a tool handed it over."""
    pending: tuple[PendingCall, ...] = ()
    """The calls that wait for a decision or a result: `agent.resume` goes on with them."""

    @property
    def is_pending(self) -> bool:
        """The run ended because calls wait; it has not failed."""
        return bool(self.pending)


def event_of(error: Exception) -> ErrorRaised:
    """How a run that failed tells why."""
    name = type(error).__name__
    if not isinstance(error, DragomanError):
        return ErrorRaised(f"internal error: {name}: {error}", name)
    return ErrorRaised(str(error), name, isinstance(error, ProviderError) and error.retryable, error.exit_code)


def with_answer(result: Result[Any], answer: Response | None) -> Result[Any]:
    """A copy with the model's last answer."""
    if answer is None:
        return result
    from dragoman.loop.citing import citations_of, each_once

    cited, sources = citations_of(answer)
    text = answer.message.text
    sources = each_once([*sources, *result.sources], numbered=len(sources))
    return msgspec.structs.replace(result, text=text, output=text, cited=cited, sources=sources, finish=answer.finish)


def with_error(result: Result[Any], error: BaseException | None) -> Result[Any]:
    if error is None:
        return result
    exit_code = error.exit_code if isinstance(error, DragomanError) else 1
    return msgspec.structs.replace(result, error=str(error), error_type=type(error).__name__, exit_code=exit_code)


class Bill:
    """What answers cost, each at the prices of the model and the service that gave it: a conversation may have had several."""

    def __init__(self, history: History, models: Models) -> None:
        self._history = history
        self._models = models
        self._served: list[tuple[int, str]] = []
        """From which entry on which deployment was used."""
        self._read = 0

    def result_of(
        self,
        agent: str,
        entries: Sequence[Entry],
        *,
        turns: int,
        requests: int,
        outputs: Sequence[ToolOutput],
        duration_ms: int,
        pending: tuple[PendingCall, ...] = (),
        unchecked: str = "",
    ) -> Result:
        """What a run took that wrote these entries. `outputs` are those of its calls."""
        from dragoman.loop.citing import each_once

        finished = [entry.result for entry in entries if isinstance(entry, ToolFinished)]
        return Result(
            sources=each_once(source for output in outputs for source in output.sources),
            usage=sum_usage(entries),
            cost_usd=self.cost_usd(entries),
            turns=turns,
            requests=requests,
            tool_calls=len(finished),
            tool_failures=sum(result.is_error for result in finished),
            changed=tuple(dict.fromkeys(path for output in outputs for path in output.changed)),
            duration_ms=duration_ms,
            agent=agent,
            pending=pending,
            unchecked=unchecked,
        )

    def cost_usd(self, entries: Iterable[Entry]) -> float | None:
        """What the answers and summaries among these cost, or None where the prices are not known, or nothing of what was used."""
        entries = tuple(entries)
        if sum_usage(entries).is_unknown:
            return None
        total_usd = 0.0
        for deployment, model, usage in self.paid(entries):
            prices = self._models.profile_of(deployment, model).prices
            if prices is None:
                return None
            total_usd += prices.cost_usd(usage)
        return total_usd

    def paid(self, entries: Iterable[Entry]) -> Iterator[tuple[str, str, Usage]]:
        """The deployment, model and usage of each paid request among these."""
        for entry in entries:
            for model, usage in paid_usage((entry,)):
                yield (entry.deployment if isinstance(entry, Spent) else "") or self._deployment_at(entry.seq), model, usage

    def _deployment_at(self, seq: int) -> str:
        """The deployment in use at an entry; empty where nothing says so."""
        entries = self._history.entries
        for entry in entries[self._read :]:
            if isinstance(entry, Rewound):
                self._served.append((entry.seq, self._find(entry.to_seq)))
            elif isinstance(entry, Configured | ModelChanged) and entry.deployment:
                self._served.append((entry.seq, entry.deployment))
        self._read = len(entries)
        return self._find(seq)

    def _find(self, seq: int) -> str:
        place = bisect_right(self._served, seq, key=lambda each: each[0])
        return self._served[place - 1][1] if place else ""
