"""What a call comes to, in words for the model: failures, refusals and cancels as outputs, and every output made fit to be sent."""

from __future__ import annotations

import msgspec

from dragoman.base import jsontext
from dragoman.tools.output import Outputs
from dragoman.values.contracts import ToolOutput
from dragoman.values.messages import Blob, FileRef, Text
from dragoman.values.parts import NO_OUTPUT

MAX_NOTE_CHARS = 4_000
MAX_ERROR_CHARS = 2_000
_LONG_CHARS = 1_000_000
"""Text longer than this is not written to disk while others wait."""

Content = tuple[Text | Blob | FileRef, ...]


def failed(text: str, error_type: str, extras: str = "") -> ToolOutput:
    return ToolOutput((Text(jsontext.valid_unicode(text)),), extras=extras, is_error=True, error_type=error_type)


def raised(error: BaseException, name: str) -> ToolOutput:
    """A tool that raised instead of returning. The model is told what, whoever debugs it also where."""
    from traceback import format_exception

    what = f"{type(error).__name__}: {error}".rstrip(": ")
    extras = jsontext.dumps({"traceback": "".join(format_exception(error))[-20_000:]})
    return failed(f"{name} failed: {clipped(what, MAX_ERROR_CHARS)}", "exception", extras)


def unknown_tool(name: str, near: list[str], names: tuple[str, ...]) -> ToolOutput:
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    else:
        hint = f"The tools are: {', '.join(names)}." if names else "There are no tools: answer without."
    return failed(f"There is no tool called {clipped(name, 80)!r}. {hint}", "unknown_tool")


def denied(reason: str, extras: str = "") -> ToolOutput:
    return failed(f"not run: {reason or 'the user refused'}", "denied", extras)


def stopped(why: str, *, began: bool, read_only: bool, abandoned: bool, returned: ToolOutput | None = None) -> ToolOutput:
    """A call that was ended. What it may have done by then is said; what it returned in spite of that is kept."""
    words = [why]
    if not began:
        words.append("It had not started.")
    elif not read_only:
        words.append("It had started and may have taken effect in part: check before you rely on it.")
    if abandoned and began:
        words.append("It did not stop when told to, and may still be running.")
    output = failed(" ".join(words), "cancelled")
    if returned is None:
        return output
    content = _joined((*output.content, Text("\n\nBefore it stopped it returned:\n"), *returned.content))
    return msgspec.structs.replace(returned, content=tuple(content), is_error=True, error_type="cancelled")


def with_edit_told(output: ToolOutput, arguments: str) -> ToolOutput:
    """The model must know that what ran is not what it asked for."""
    note = f"The user changed the arguments of this call to {clipped(jsontext.valid_unicode(arguments), MAX_NOTE_CHARS)}\n\n"
    return msgspec.structs.replace(output, content=tuple(_joined((Text(note), *output.content))))


async def fit_to_send(output: object, name: str, outputs: Outputs | None) -> ToolOutput:
    """Valid Unicode, no longer than outputs may be, and never nothing at all. What is no ToolOutput is a fault of the tool's."""
    if not isinstance(output, ToolOutput) or not all(isinstance(part, Text | Blob | FileRef) for part in output.content):
        return failed(f"{name} failed: it returned {type(output).__name__} where a ToolOutput was due", "exception")
    content, file = list[Text | Blob | FileRef](), output.output_file
    for part in _joined(output.content):
        if isinstance(part, Text) and outputs is not None and len(part.text) > outputs.max_chars + outputs.note_chars:
            capped = await _capped(part.text, name, outputs)
            part, file = Text(capped[0]), file or capped[1]
        content.append(part)
    if all(isinstance(part, Text) and not part.text.strip() for part in content):
        content = [Text(NO_OUTPUT)]
    return msgspec.structs.replace(
        output,
        content=tuple(content),
        display=jsontext.valid_unicode(output.display),
        extras=jsontext.valid_unicode(output.extras),
        output_file=file,
    )


def clipped(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]}… ({len(text):,} characters)"


def _joined(content: Content) -> list[Text | Blob | FileRef]:
    """Neighbouring texts as one, so that many small ones are bounded like a long one."""
    joined: list[Text | Blob | FileRef] = []
    for part in content:
        if not isinstance(part, Text):
            joined.append(part)
        elif joined and isinstance(last := joined[-1], Text):
            joined[-1] = Text(last.text + jsontext.valid_unicode(part.text))
        else:
            joined.append(Text(jsontext.valid_unicode(part.text)))
    return joined


async def _capped(text: str, label: str, outputs: Outputs) -> tuple[str, str]:
    if len(text) <= _LONG_CHARS:
        capped = outputs.cap(text, label)
    else:
        import asyncio

        capped = await asyncio.to_thread(outputs.cap, text, label)
    return capped.text, capped.output_file
