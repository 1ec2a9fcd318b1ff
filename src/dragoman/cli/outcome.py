"""The outcome of a headless run: the object of `json`, and of the last line of `stream-json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.values.errors import DragomanError
from dragoman.values.usage import Usage
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.result import Result
    from dragoman.values.messages import Source

EXIT_BROKEN = 1
"""Exit code of an unexpected error."""


class Failure(msgspec.Struct, frozen=True):
    """Why a run failed."""

    message: str
    type: str
    exit_code: int


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a run, including one that failed before it started."""

    response: str = ""
    sources: tuple[Source, ...] = ()
    """The pages it rests on: what the numbers in the response stand for, then what searches found besides."""
    is_numbered: bool = False
    """Whether the response refers to its sources by number."""
    unchecked: str = ""
    """Why the response is not to be relied on: see `Result.unchecked`."""
    failure: Failure | None = None
    session_id: str | None = None
    not_saved: str = ""
    """Why the session is not completely on disk; empty if it is."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    requests: int = 0
    turns: int = 0
    tool_calls: int = 0
    tool_failures: int = 0
    refused: int = 0
    changed: tuple[str, ...] = ()
    duration_ms: int = 0

    @property
    def exit_code(self) -> int:
        return self.failure.exit_code if self.failure else 0

    @property
    def status(self) -> Literal["success", "error", "cancelled"]:
        if self.failure is None:
            return "success"
        return "cancelled" if self.failure.type == "Cancelled" else "error"

    def stats(self) -> dict[str, Any]:
        usage = self.usage
        return {
            "requests": self.requests,
            "turns": self.turns,
            "tokens": {
                "input": usage.told(usage.input_tokens),
                "fresh": usage.told(usage.fresh_tokens),
                "cache_read": usage.told(usage.cache_read_tokens),
                "cache_write": usage.told(usage.cache_write_tokens),
                "output": usage.told(usage.output_tokens),
                "thought": usage.told(usage.thought_tokens),
            },
            "complete": not usage.incomplete,
            "cost_usd": self.cost_usd,
            "tools": {"calls": self.tool_calls, "failures": self.tool_failures, "refused": self.refused},
            "files_changed": list(self.changed),
            "duration_ms": self.duration_ms,
        }

    def to_json(self) -> dict[str, Any]:
        """The object of `--output-format json`."""
        data: dict[str, Any] = {"session_id": self.session_id, "response": self.response, "stats": self.stats()}
        if self.sources:
            data["sources"] = sources_data(self.sources)
        if self.unchecked:
            data["unchecked"] = self.unchecked
        if self.not_saved:
            data["not_saved"] = self.not_saved
        if self.failure is not None:
            data["error"] = {"message": self.failure.message, "type": self.failure.type, "exit_code": self.failure.exit_code}
        return data


def sources_data(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """The sources as JSON has them, each with its number."""
    return [
        {"number": number, "uri": each.uri, "title": each.title, "cited_text": list(each.cited_text)}
        for number, each in enumerate(sources, 1)
    ]


def failed_outcome(error: BaseException) -> Outcome:
    """The outcome of a run that failed before it started."""
    return Outcome(failure=failure_of(error))


def failure_of(error: BaseException) -> Failure:
    if isinstance(error, DragomanError):
        return Failure(str(error), type(error).__name__, error.exit_code)
    return Failure(say("internal_error", what=f"{type(error).__name__}: {error}"), type(error).__name__, EXIT_BROKEN)


def outcome_of(result: Result, session_id: str, response: str, *, not_saved: str = "", refused: int = 0, interrupted: int = 0) -> Outcome:
    """`interrupted` is the exit code of the signal that ended the run, or 0."""
    failure = None
    if result.exit_code == EXIT_BROKEN:
        failure = Failure(say("internal_error", what=f"{result.error_type}: {result.error}"), result.error_type, EXIT_BROKEN)
    elif result.error_type == "Cancelled":
        failure = Failure(say("cancelled"), result.error_type, interrupted or result.exit_code)
    elif result.exit_code:
        failure = Failure(result.error, result.error_type, result.exit_code)
    return Outcome(
        response=result.cited or response,
        sources=result.sources,
        is_numbered=bool(result.cited),
        unchecked=result.unchecked,
        failure=failure,
        session_id=session_id,
        not_saved=not_saved,
        usage=result.usage,
        cost_usd=result.cost_usd,
        requests=result.requests,
        turns=result.turns,
        tool_calls=result.tool_calls,
        tool_failures=result.tool_failures,
        refused=refused,
        changed=result.changed,
        duration_ms=result.duration_ms,
    )
