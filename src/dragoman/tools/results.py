"""Tool outputs for the model: errors, refusals and cancellations as outputs, and preparing every output for sending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from traceback import format_exception

import msgspec

from dragoman.base import jsontext
from dragoman.tools.output import Outputs
from dragoman.values.calls import Ledger, ToolOutput
from dragoman.values.messages import Blob, FileRef, Text, ToolResult
from dragoman.values.notes import EDITED_BEGINS, REPAIRED_BEGINS
from dragoman.values.parts import NO_OUTPUT
from dragoman.values.record import CommandOutput, ToolOutcome

MAX_NOTE_CHARS = 4_000
MAX_ERROR_CHARS = 2_000
_LONG_CHARS = 1_000_000
"""Longer text is written to disk in a thread, so that it does not block the loop."""

Content = tuple[Text | Blob | FileRef, ...]


def error_output(text: str, error_type: str, extras: str = "") -> ToolOutput:
    return ToolOutput((Text(jsontext.valid_unicode(text)),), extras=extras, is_error=True, error_type=error_type)


def exception_output(error: BaseException, name: str) -> ToolOutput:
    """A tool that raised instead of returning. The model gets the message; the extras have the traceback for debugging."""
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    extras = jsontext.dumps({"exception": type(error).__name__, "traceback": "".join(format_exception(error))[-20_000:]})
    return error_output(f"{name} failed: {truncate(what, MAX_ERROR_CHARS)}", "exception", extras)


def reworded(output: ToolOutput, reword: Callable[[str], str]) -> ToolOutput:
    """The output with its texts said otherwise."""
    content = tuple(Text(reword(part.text)) if isinstance(part, Text) else part for part in output.content)
    return msgspec.structs.replace(output, content=content)


def unknown_tool_output(name: str, near: list[str], names: tuple[str, ...]) -> ToolOutput:
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    else:
        hint = f"The tools are: {', '.join(names)}." if names else "There are no tools: answer without."
    return error_output(f"There is no tool called {truncate(name, 80)!r}. {hint}", "unknown_tool")


def denied_output(reason: str, extras: str = "") -> ToolOutput:
    return error_output(f"not run: {reason or 'the user refused'}", "denied", extras)


def stopped_output(why: str, *, began: bool, read_only: bool, abandoned: bool, returned: ToolOutput | None = None) -> ToolOutput:
    """A call that was stopped: says what it may have done by then, and keeps what it returned nevertheless."""
    words = [why]
    if not began:
        words.append("It had not started.")
    elif not read_only:
        words.append("It had started and may have taken effect in part: check before you rely on it.")
    if abandoned and began:
        words.append("It did not stop when told to, and may still be running.")
    output = error_output(" ".join(words), "cancelled")
    if returned is None:
        return output
    content = _merge_texts((*output.content, Text("\n\nBefore it stopped it returned:\n"), *returned.content))
    return msgspec.structs.replace(returned, content=tuple(content), is_error=True, error_type="cancelled")


def add_repair_note(output: ToolOutput, repairs: tuple[str, ...]) -> ToolOutput:
    """The model must know how its call was read, and which names to use."""
    told = truncate(jsontext.valid_unicode("; ".join(repairs)), MAX_NOTE_CHARS)
    wanted = "use the names and types that the tool declares" if any("→" in each for each in repairs) else "send valid JSON"
    note = f"{REPAIRED_BEGINS}{told}: {wanted}]\n"
    return msgspec.structs.replace(output, content=tuple(_merge_texts((Text(note), *output.content))))


def add_edit_note(output: ToolOutput, arguments: str) -> ToolOutput:
    """The model must know that the arguments were changed, by a person or a hook."""
    note = f"{EDITED_BEGINS}{truncate(jsontext.valid_unicode(arguments), MAX_NOTE_CHARS)}\n\n"
    return msgspec.structs.replace(output, content=tuple(_merge_texts((Text(note), *output.content))))


async def prepare_to_send(output: object, name: str, outputs: Outputs | None) -> ToolOutput:
    """Make an output valid Unicode, capped and never empty. Anything but a ToolOutput is reported as an error of the tool."""
    if not isinstance(output, ToolOutput) or not all(isinstance(part, Text | Blob | FileRef) for part in output.content):
        return error_output(f"{name} failed: it returned {type(output).__name__} where a ToolOutput was due", "exception")
    content, file = list[Text | Blob | FileRef](), output.output_file
    hide = outputs.hide if outputs is not None else str
    for part in _merge_texts(output.content):
        if isinstance(part, Text):
            part = Text(hide(part.text))
        if isinstance(part, Text) and outputs is not None and len(part.text) > outputs.max_chars + outputs.note_chars:
            capped = await _cap(part.text, name, outputs)
            part, file = Text(capped[0]), file or capped[1]
        content.append(part)
    if all(isinstance(part, Text) and not part.text.strip() for part in content):
        content = [Text(NO_OUTPUT)]
    return msgspec.structs.replace(
        output,
        content=tuple(content),
        display=hide(jsontext.valid_unicode(output.display)),
        extras=hide(jsontext.valid_unicode(output.extras)),
        output_file=file,
        command=_without_keys(output.command, hide) if output.command is not None else None,
    )


def finish_in(ledger: Ledger, result: ToolResult, outcome: ToolOutcome, output: ToolOutput, repairs: tuple[str, ...]) -> None:
    """Record the end of a call."""
    ledger.finish_tool(
        result,
        outcome,
        output.display,
        output.extras,
        saw=output.saw,
        wrote=output.wrote,
        repairs=repairs,
        command=output.command,
        files=output.files,
    )


def truncate(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]}… ({len(text):,} characters)"


def _without_keys(command: CommandOutput, hide: Callable[[str], str]) -> CommandOutput:
    stdout, stderr = hide(jsontext.valid_unicode(command.stdout)), hide(jsontext.valid_unicode(command.stderr))
    return msgspec.structs.replace(command, stdout=stdout, stderr=stderr)


def _merge_texts(content: Content) -> list[Text | Blob | FileRef]:
    """Merge neighbouring texts, so that many small ones are capped like a long one."""
    joined: list[Text | Blob | FileRef] = []
    for part in content:
        if not isinstance(part, Text):
            joined.append(part)
        elif joined and isinstance(last := joined[-1], Text):
            joined[-1] = Text(last.text + jsontext.valid_unicode(part.text))
        else:
            joined.append(Text(jsontext.valid_unicode(part.text)))
    return joined


async def _cap(text: str, label: str, outputs: Outputs) -> tuple[str, str]:
    if len(text) <= _LONG_CHARS:
        capped = outputs.cap(text, label)
    else:
        capped = await asyncio.to_thread(outputs.cap, text, label)
    return capped.text, capped.output_file
