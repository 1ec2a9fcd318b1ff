"""Why an answer cannot be used."""

from __future__ import annotations

import msgspec

from dragoman.values.messages import FinishReason, Response, ToolCall
from dragoman.values.parts import says_something
from dragoman.words import say

MAX_ARGUMENT_CHARS = 2_000_000
"""Several times the longest answer any model gives."""


def fault_of(response: Response, *, after_results: bool) -> str:
    """Why an answer must be requested again, or nothing. A call whose arguments cannot be read is no fault of the answer: that call gets
    an error as its result, and the others run."""
    if response.finish is FinishReason.MALFORMED_TOOL_CALL:
        detail = f" ({response.detail})" if response.detail else ""
        return say("loop.unreadable_call", detail=detail)
    if too_long := oversized_call(response):
        return say("loop.oversized_call", detail=too_long)
    if says_something(response.message):
        return ""
    return say("loop.empty_after_results" if after_results else "loop.empty_answer")


def oversized_call(response: Response) -> str:
    """Arguments no model can have meant: with them in view, no request would fit any more."""
    for call in response.message.calls:
        if len(call.arguments) > MAX_ARGUMENT_CHARS:
            return f"the arguments of {call.name} have {len(call.arguments):,} characters, and {MAX_ARGUMENT_CHARS:,} are the most"
    return ""


def refusal_of(response: Response) -> str:
    word = response.raw_finish or response.finish.value
    why = f": {response.detail}" if response.detail else ""
    return say("loop.refused", word=word, why=why)


def with_true_finish(response: Response, max_output_tokens: int) -> Response:
    """The same answer, ended by the output limit where that is what happened: some servers say `tool_calls` all the same, and a call that
    breaks off there must be neither run nor completed."""
    if response.finish not in (FinishReason.TOOL_CALLS, FinishReason.STOP) or not 0 < max_output_tokens <= response.usage.output_tokens:
        return response
    if all(map(_is_whole, response.message.calls)):
        return response
    return msgspec.structs.replace(response, finish=FinishReason.LENGTH)


def _is_whole(call: ToolCall) -> bool:
    return call.args is not None
