"""An extract of older messages, for when no model can be had that sums them up: each step in a line, the newest that fit. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.base import jsontext
from dragoman.context.compress import CHARS_PER_TOKEN, SUMMARY_BEGINS, clip
from dragoman.context.shown import Item
from dragoman.context.tokens import text_tokens
from dragoman.values.messages import Message, ToolCall, ToolResult
from dragoman.values.parts import text_of

SAID_CHARS = 300
ARGUMENT_CHARS = 80
FAILURE_CHARS = 160
_SNAPSHOT = re.compile(r"<snapshot>\n(.*?)\n</snapshot>", re.DOTALL)
_BLANKS = re.compile(r"\s+")


def extract_text(items: Sequence[Item], max_tokens: float) -> str:
    """Return what the model said and which tools it used, of at most about this many raw tokens. An earlier summary takes up to half of
    them. What a person said is not in it: every summary keeps that verbatim (see `verbatim_through`)."""
    earlier, steps = "", list[str]()
    results = {result.call_id: result for item in items for result in item.message.results}
    for item in items:
        if _is_summary(item.message):
            earlier, steps = _snapshot_in(item.message), list[str]()
        elif item.message.role == "assistant":
            steps += _steps_of(item.message, results)
    pieces = [clip(earlier, max(int(max_tokens * CHARS_PER_TOKEN / 2), SAID_CHARS))] if earlier else []
    left = max_tokens - sum(map(text_tokens, pieces))
    first = len(steps)
    while first > 0 and (left := left - text_tokens(steps[first - 1]) - 1) >= 0:
        first -= 1
    note = [f"({first:,} older steps are left out here)"] if first else []
    return "\n".join([*pieces, *note, *steps[first:]])


def _is_summary(message: Message) -> bool:
    return message.role == "user" and message.text.startswith(SUMMARY_BEGINS)


def _snapshot_in(message: Message) -> str:
    found = _SNAPSHOT.search(message.text)
    return found[1].strip() if found is not None else ""


def _steps_of(message: Message, results: dict[str, ToolResult]) -> list[str]:
    text = message.text.strip()
    said = [f"- The model said: {_in_one_line(text, SAID_CHARS)}"] if text else []
    return said + [f"- It used {_call(call)}{_failure(results.get(call.id))}" for call in message.calls]


def _call(call: ToolCall) -> str:
    args = call.args
    if args is None:
        return f"{call.name} {_in_one_line(call.arguments, ARGUMENT_CHARS)}"
    values = (
        f"{name}: {_in_one_line(value if isinstance(value, str) else jsontext.dumps(value), ARGUMENT_CHARS)}"
        for name, value in args.items()
    )
    return f"{call.name} ({', '.join(values)})"


def _failure(result: ToolResult | None) -> str:
    if result is None or not result.is_error:
        return ""
    return f", which failed: {_in_one_line(text_of(result.content), FAILURE_CHARS)}"


def _in_one_line(text: str, max_chars: int) -> str:
    line = _BLANKS.sub(" ", text).strip()
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"
