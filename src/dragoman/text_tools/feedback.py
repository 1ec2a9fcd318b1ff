"""Feedback to the model on a call that could not be read: the reason, the tool's schema, and the call as it should be written.

It is sent as user text, and the answer stays unchanged, so the conversation is valid whether or not the service supports tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip, closest
from dragoman.text_tools.align import AlignedCall, UnknownTool, align
from dragoman.text_tools.calls import Call, Parsed, Rejected
from dragoman.text_tools.ledger import MENTIONED
from dragoman.text_tools.openers import OPENERS
from dragoman.text_tools.parser import parse
from dragoman.text_tools.render import render_calls
from dragoman.text_tools.toolset import Toolset
from dragoman.values.notes import FEEDBACK_BEGINS

NOT_RUN = "so it was not run."
OTHERS_RAN = "so it was not run; the others of that answer were."
BEGAN = "It began: {text}"
MISTAKE = "{what}, where <HERE> stands: {around}"
MORE = "- {count} more could not be read either."
WRITE_IT = "Write it again, exactly like this:"
WRITE_LIKE = "Write it like this, with your own values:"
SCHEMA = "The arguments of {name} must fit this JSON Schema: {schema}"
ONE_OF = "The tools are: {names}."
MEANT = "Did you mean {names}?"
UNFIT_ANSWER = "the answer holds neither words nor a call of a tool that there is"
BENIGN_REASONS = frozenset(
    (
        "it was written while thinking",
        "it is the example of the prompt",
        "it stands behind a tool result that the model made up",
        "it is written in another dialect, within a line",
        "text follows it",
        MENTIONED,
    )
)
"""Reasons for rejecting something that was not intended as a call; the model gets no feedback on these."""

_OPENERS = tuple(sorted(OPENERS, key=len, reverse=True))
_DECORATION = " \t\r\n\"'`[-*•"
_NAMED = re.compile(r"[\s\"'`\[\-*•]*(?:`{3,}[\w+#.\-]*\s*)?[^\W\d](?:\\?[\w.\-])*\s?\(")
"""An answer that begins with a call without a marker meant it."""
_FENCE = re.compile(r"`{3,}[\w-]*$")
_NAME_FIELD = re.compile(r'"name"\s*:\s*"([\w.\-]{1,64})"')
"""The tool's name in a call that is not JSON."""
_WRAPPED = re.compile(r"(?:`{3,}[\w-]*\s*)?\{\s*[\"']tool_calls?[\"']\s*:")
MAX_REPORTED = 3
"""Rejected calls described at once."""
MAX_SCHEMA_CHARS = 4_000
MAX_NAMES = 40
MAX_REASON_CHARS = 300
SHOWN_CHARS = 160
"""How much of what the model wrote is quoted to it."""


def unreadable_calls(parsed: Parsed) -> tuple[Rejected, ...]:
    """What was intended as a call but could not be read, each with its text. Text that only mentions a marker is left out."""
    meant = [each for each in parsed.rejected if each.reason not in BENIGN_REASONS and _is_intended(parsed, *each.span)]
    return tuple(msgspec.structs.replace(each, text=parsed.original_text[each.span[0] : each.span[1]]) for each in meant)


def is_cut(parsed: Parsed, rejected: Iterable[Rejected]) -> bool:
    """Whether the answer was truncated within one of these."""
    end = len(parsed.original_text.rstrip())
    return any(each.span[1] >= end for each in rejected)


def _is_intended(parsed: Parsed, start: int, end: int) -> bool:
    """Whether it begins like a call on a line of its own, or is in a block with good calls."""
    if any(piece.kind == "call" and piece.start <= start < piece.end for piece in parsed.pieces):
        return True
    text = parsed.original_text
    if not text[:start].strip(_DECORATION) and _NAMED.match(text, start):
        return True
    opening = _opening(text, start)
    line = text[text.rfind("\n", 0, opening) + 1 : opening]
    head = text[opening : min(end, opening + 200)]
    return (not line.strip() or _follows_call(parsed, opening)) and (head.startswith(_OPENERS) or _WRAPPED.match(head) is not None)


def _opening(text: str, start: int) -> int:
    """Where the markers before a position begin."""
    for _ in range(3):  # a fence or a run of calls, and the call itself
        before = text[max(start - 200, 0) : start].rstrip().rstrip("[").rstrip()
        marker = next((marker for marker in _OPENERS if before.endswith(marker)), "") or _fence(before)
        if not marker:
            break
        start = max(start - 200, 0) + len(before) - len(marker)
    return start


def _fence(before: str) -> str:
    match = _FENCE.search(before)
    return match.group() if match else ""


def _follows_call(parsed: Parsed, start: int) -> bool:
    before = [piece for piece in parsed.pieces if piece.end <= start and parsed.original_text[piece.start : piece.end].strip()]
    return bool(before) and before[-1].kind in ("call", "marker")


def render_feedback(rejected: Sequence[Rejected], tools: Toolset, dialect: str, *, others_ran: bool = False) -> str:
    """The feedback for the model; empty if nothing was rejected. `others_ran`: other calls of the same answer could be read."""
    if not rejected:
        return ""
    described = [_describe(each, tools, dialect) for each in rejected[:MAX_REPORTED]]
    if len(rejected) > MAX_REPORTED:
        described.append(MORE.format(count=len(rejected) - MAX_REPORTED))
    return "\n\n".join([f"{FEEDBACK_BEGINS}, {OTHERS_RAN if others_ran else NOT_RUN}", *described])


def _describe(rejected: Rejected, tools: Toolset, dialect: str) -> str:
    name, call = _find_intended_call(rejected, tools)
    lines = [f"- {_sentence(rejected.reason)}"]
    if call is None and (written := rejected.text.strip()):
        lines.append(_find_mistake(written) or BEGAN.format(text=clip(written, SHOWN_CHARS)))
    if not name:
        near = rejected.suggestions or tuple(closest(rejected.name, tools.names, 3))
        lines.append(MEANT.format(names=" or ".join(near)) if near else ONE_OF.format(names=", ".join(tools.names[:MAX_NAMES])))
        return "\n".join(lines)
    schema = tools.schema(name)
    if schema is not None:
        lines.append(SCHEMA.format(name=name, schema=_clip(jsontext.dumps(schema))))
    example = call or Call(name, _example_arguments(schema))
    return "\n".join([*lines, WRITE_IT if call else WRITE_LIKE, render_calls([example], dialect)])


def _find_mistake(written: str) -> str:
    """What a strict JSON parser finds wrong first, and where; empty if the text has no object, or a valid one."""
    start = written.find("{")
    if start < 0:
        return ""
    try:
        json.JSONDecoder().raw_decode(written, start)
    except json.JSONDecodeError as error:
        at = error.pos
        around = f"{written[max(at - SHOWN_CHARS // 2, 0) : at]} <HERE> {written[at : at + SHOWN_CHARS // 4]}"
        return MISTAKE.format(what=error.msg.removesuffix(" starting at"), around=around)
    except (ValueError, RecursionError):
        pass
    return ""


def _find_intended_call(rejected: Rejected, tools: Toolset) -> tuple[str, Call | None]:
    """The tool that was intended, and the call if it can be read with any tool name."""
    read = parse(rejected.text, None) if rejected.text else None
    found = read.calls[0] if read is not None and len(read.calls) == 1 else None
    named = _NAME_FIELD.search(rejected.text) if found is None else None
    written = rejected.name or (found.name if found else named[1] if named else "")
    if not written:
        return "", None
    names = [written, *rejected.suggestions[:1]]
    for name in names:
        aligned = align(name, found.args if found else {}, tools)
        match aligned:
            case AlignedCall(name=tool, args=args, problems=problems):
                return tool, Call(tool, args) if found and not problems else None
            case UnknownTool():
                continue
    return "", None


def _example_arguments(schema: Any) -> dict[str, Any]:
    """Example arguments: the required ones, each with a value of its type."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return {}
    names: Iterable[Any] = required if isinstance(required, list) else ()
    return {name: _example_value(properties.get(name)) for name in names if isinstance(name, str)}


def _example_value(schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    choices = schema.get("enum") if isinstance(schema, dict) else None
    if isinstance(choices, list) and choices:
        return choices[0]
    kinds: dict[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "object": {}, "array": [], "null": None}
    return kinds.get(kind, "...") if isinstance(kind, str) else "..."


def _sentence(reason: str) -> str:
    text = reason.strip()[:MAX_REASON_CHARS].rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _clip(text: str) -> str:
    return text if len(text) <= MAX_SCHEMA_CHARS else text[:MAX_SCHEMA_CHARS] + " …"
