"""How a run ended, and what it took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from dragoman.values.errors import DragomanError
from dragoman.values.messages import Citation, FinishReason, Response
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from dragoman.tools.citations import Source


class Result(msgspec.Struct, frozen=True):
    """How a run ended, and what it took."""

    text: str = ""
    """The answer: what the model said last."""
    cited: str = ""
    """The answer with its numbered markers, where the service named its sources."""
    sources: tuple[Source, ...] = ()
    """What the numbers stand for, from 1: title, address and the passages cited. `str()` of one is `Title (address)`."""
    finish: FinishReason | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None where the model's prices are not known."""
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


def with_answer(result: Result, answer: Response | None) -> Result:
    """With what the model said last."""
    if answer is None:
        return result
    cited, sources = _citations(answer)
    return msgspec.structs.replace(result, text=answer.message.text, cited=cited, sources=sources, finish=answer.finish)


def with_error(result: Result, error: BaseException | None) -> Result:
    if error is None:
        return result
    exit_code = error.exit_code if isinstance(error, DragomanError) else 1
    return msgspec.structs.replace(result, error=str(error), error_type=type(error).__name__, exit_code=exit_code)


def total(usages: Iterable[Usage]) -> Usage:
    return sum(usages, Usage())


def _citations(answer: Response) -> tuple[str, tuple[Source, ...]]:
    if not any(isinstance(part, Citation) for part in answer.message.parts):
        return "", ()
    from dragoman.tools.grounding import cite_message

    cited = cite_message(answer.message)
    return (cited.text, cited.sources) if cited.sources else ("", ())
