"""Tool calls as lines: at work with the end of their output, folded to what matters when they are done, or opened whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.base.text import one_line
from dragoman.conversation.call_lines import in_words, result_text, shown_of
from dragoman.conversation.command_result import clean_output, read_command_result
from dragoman.conversation.deciding import REFUSED, SAID_NO
from dragoman.conversation.telling_lines import choose_telling, last_telling
from dragoman.tui import diff
from dragoman.tui.highlight import highlight
from dragoman.tui.line import EMPTY, INDENT, Line, Span, columns_of, line, visible
from dragoman.tui.wrap import CODE_MARK, beside, fit, wrap, wrap_code
from dragoman.values.events import ToolCallFinished
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.parts import call_in_words
from dragoman.values.record import CommandOutput
from dragoman.words import say

_TELLING_ROWS = 2
"""How many rows a telling line of a failed command may take."""
TAIL_LINES = 5
"""How much of a running command's output is shown."""
FOLDED_DIFF_ROWS = 12
"""How much of a diff stays when an edit is done."""
READS = frozenset({"read_file", "read_many_files", "list_directory", "glob", "grep", "search"})
EDITS = frozenset({"edit", "write_file"})
_NOT_RUN = "not run: "
_NEW_FILE = "\n--- /dev/null\n"
_TITLE_CHARS = 300
_STATE_COLUMNS = 30
"""What the state of a call beside others needs at least: `⠼ 12 s of 120 s · 214 lines`."""
_TAIL_CHARS = 20_000
_GOES_ON = re.compile(r"(bg[0-9]+): running\b")
_STATE_SIGNS = {"failed": ("✗ ", "bad"), "refused": ("✗ ", "warn"), "cancelled": ("✗ ", "warn"), "waiting": ("○ ", "dim")}

State = Literal["waiting", "running", "done", "failed", "refused", "cancelled"]
Answer = Literal["", "yes", "session", "folder", "edited", "no"]


class CallCell(msgspec.Struct, frozen=True):
    """A call and what is known of it."""

    call: ToolCall
    state: State = "waiting"
    output: str = ""
    """What it has put out so far, or the end of that."""
    line_count: int = 0
    """How many lines that were in all."""
    display: str = ""
    """When it is done: what a user is shown of it. For an edit its diff."""
    seconds: float = 0.0
    limit_s: float = 0.0
    """How long it may run; 0: no limit is known."""
    progress: str = ""
    exit_code: int | None = None
    notes: tuple[str, ...] = ()
    """Of a command: what stopped it."""
    answer: Answer = ""
    """What the user said when they were asked about it."""
    inner: str = ""
    """Of a subagent: how much it has done."""
    outside: bool = False
    """Its command ran outside the sandbox."""
    is_marked: bool = False
    """The one of several that a key is meant for."""
    folder: str = ""
    """The workspace: paths inside it are written as from there."""


def finish(cell: CallCell, event: ToolCallFinished, seconds: float) -> CallCell:
    """The call when it is over."""
    outcomes: dict[str, State] = {"finished": "done", "refused": "refused", "cancelled": "cancelled"}
    is_error = bool(event.error) or any(isinstance(part, ToolResult) and part.is_error for part in event.parts)
    state: State = "failed" if is_error and event.outcome == "finished" else outcomes.get(event.outcome, "failed")
    output, code, notes = _result_of(event)
    display = shown_of(event) if state != "done" else event.display
    if state == "refused" and (said := _refusal(display)):
        cell, display = msgspec.structs.replace(cell, answer="no"), said
    changed = msgspec.structs.replace(
        cell,
        call=event.as_run(cell.call),
        state=state,
        display=display,
        seconds=seconds,
        exit_code=code,
        notes=notes,
        progress="",
        outside=event.outside,
    )
    if not output and code is None:
        return changed
    return msgspec.structs.replace(changed, output=output, line_count=_count(output))  # of two runs, the last one's


def recall(
    call: ToolCall, state: State, display: str, result: str, *, command: CommandOutput | None = None, outside: bool = False
) -> CallCell:
    """A call from before, as its record tells it."""
    output, code, notes = _split_result(call.name, command, result)
    return CallCell(call, state, display=display, output=output, line_count=_count(output), exit_code=code, notes=notes, outside=outside)


def _refusal(told: str) -> str:
    """What the user said, from the result that the model gets; empty if it was not the user who ended the call."""
    told = told.removeprefix(_NOT_RUN)
    if told == SAID_NO:
        return say("tui.said_no")
    before = REFUSED.partition("{")[0]
    return say("tui.said_no_because", reason=told.removeprefix(before)) if told.startswith(before) else ""


# --- at work


def running_lines(cell: CallCell, columns: int, sign: str = "") -> list[Line]:
    """Its title with the time, and the last lines of what it put out. `sign` moves: it shows that the program is alive."""
    rows = [beside(_title(cell, columns), (*_time(cell), *_inner(cell)), columns)]
    if cell.progress:
        rows.append(fit(line(f"  {visible(one_line(cell.progress, _TITLE_CHARS))}", "dim"), columns))
    tail = _tail(cell, columns)
    count = max(cell.line_count, _count(cell.output))
    if count > len(tail):
        rows.append(fit(line(f"  {say('tui.lines_so_far', count=count)}", "dim"), columns))
    rows += tail
    if sign and tail:
        rows[-1] = fit((*fit(rows[-1], columns - 2), Span(f" {sign}", "accent")), columns)
    return rows


def running_group(cells: Sequence[CallCell], columns: int, sign: str = "") -> list[Line]:
    """Calls side by side: one line for each, and the tail of the one that is writing."""
    if len(cells) == 1:
        return running_lines(cells[0], columns, sign)
    titles = [_title(cell, columns) for cell in cells]
    states = [_state(cell, sign) for cell in cells]
    room = max(columns // 2, columns - max(_STATE_COLUMNS, *(columns_of(state) + 3 for state in states)))
    titles = [fit(title, room) for title in titles]
    width = max(map(columns_of, titles))
    rows: list[Line] = []
    writing = next((cell for cell in reversed(cells) if cell.state == "running" and cell.output.strip()), None)
    for cell, title, state in zip(cells, titles, states, strict=True):
        rows.append(fit((*title, Span(" " * (width - columns_of(title) + 3)), *state), columns))
        if cell.progress:
            rows.append(fit(line(f"    {visible(one_line(cell.progress, _TITLE_CHARS))}", "dim"), columns))
        if cell is writing:
            rows += [fit((Span("  "), *row), columns) for row in _tail(cell, columns - 2)]
    return rows


# --- done


def folded_lines(cell: CallCell, columns: int) -> list[Line]:
    """One or two lines; of an edit what it changed."""
    changes = diff.find_diff(cell.display) if cell.call.name in EDITS and cell.state == "done" else None
    if changes is not None:
        created = f" {say('results.created')}" if _NEW_FILE in cell.display else ""
        title = (*_title(cell, columns), Span(f" {changes.size}{created}", "dim"))
        return [beside(title, _answer(cell), columns), *diff.lay_out(diff.only_changes(changes), columns, FOLDED_DIFF_ROWS)]
    right = _ending(cell, columns)
    title = _title(cell, columns)
    last = _last_line(cell)
    if cell.call.name == "run_shell":
        rows = [beside(title, right, columns)]
        if cell.exit_code:
            return [*rows, *_failed_lines(cell, columns)]
        count = max(cell.line_count, _count(cell.output))
        if count > 1:
            rows.append(fit((Span(f"  {say('tui.folded', count=count)}", "dim"), *_after_dot(last, cell)), columns))
        elif last:
            rows.append(fit(line(f"  {last}", _style(cell)), columns))
        return [*rows, *_note_lines(cell, columns)]
    if cell.call.name == "ask_user" and cell.state == "done":  # the question stands above
        return wrap(line(visible(in_words(cell.display.strip()))), columns, (Span("  └ ", "dim"),))
    if cell.inner and cell.state == "done":
        return [beside(title, right, columns), *([fit(line(f"  {last}", "dim"), columns)] if last else [])]
    shown = (*title, Span("  "), Span(last, _style(cell))) if last else title
    return [beside(shown, right, columns)] if cell.state == "done" else wrap(shown, columns, rest=INDENT)


def _failed_lines(cell: CallCell, columns: int) -> list[Line]:
    """What a command that failed says of it: the lines that tell most, what stopped it, and how much there is to open."""
    output = clean_output(cell.output)
    told = choose_telling(output)
    rows: list[Line] = []
    for each in told:
        wrapped = wrap(line(visible(one_line(each, 4 * columns)), "dim"), columns, INDENT, INDENT)
        rows += wrapped[: _TELLING_ROWS - 1]
        rows += (
            [fit((*wrapped[_TELLING_ROWS - 1], Span("…", "dim")), columns)]
            if len(wrapped) > _TELLING_ROWS
            else wrapped[_TELLING_ROWS - 1 :]
        )
    rows += _note_lines(cell, columns)
    count = max(cell.line_count, _count(output.strip("\n")))
    if count > len(told):
        rows.append(fit(line(f"  {say('tui.folded_open', count=count)}", "dim"), columns))
    return rows


def _note_lines(cell: CallCell, columns: int) -> list[Line]:
    return [row for note in cell.notes for row in wrap(line(visible(note), "warn"), columns, INDENT, INDENT)]


def folded_group(cells: Sequence[CallCell], columns: int) -> list[Line]:
    """Calls of one answer that are done: those that only looked at something stand on one line."""
    reads = [cell for cell in cells if cell.call.name in READS and cell.state == "done"]
    others = [cell for cell in cells if cell not in reads]
    rows: list[Line] = []
    if len(reads) > 1:
        rows += wrap(_looks(reads), columns, (Span("● ", "tool"),))
    else:
        others = list(cells)
    for cell in others:
        rows += folded_lines(cell, columns)
    return rows


def _looks(reads: Sequence[CallCell]) -> Line:
    """`read_file a.py, b.py · grep def 6 matches in 2 files`: those of one tool together, what it found where it stands alone."""
    by_name: dict[str, list[CallCell]] = {}
    for cell in reads:
        by_name.setdefault(cell.call.name, []).append(cell)
    spans: list[Span] = []
    for name, cells in by_name.items():
        spans += [Span(" · ", "dim")] if spans else []
        objects = [visible(one_line(call_in_words(cell.call, cell.folder), _TITLE_CHARS)).removeprefix(name).strip() for cell in cells]
        counted = {each: objects.count(each) for each in objects if each}
        shown = ", ".join(each if count == 1 else f"{each} ×{count}" for each, count in counted.items())
        spans.append(Span(f"{name} {shown}".strip()))
        if len(cells) == 1 and (last := _last_line(cells[0])):
            spans.append(Span(f" {last}", "dim"))
    return tuple(spans)


# --- opened


def opened_lines(cell: CallCell, columns: int) -> list[Line]:
    """Everything: the whole command, and all it put out."""
    rows = wrap_code(_whole_title(cell), columns, (_sign(cell),), (Span(CODE_MARK, "dim"),))
    if ending := _ending(cell, columns):
        rows += [fit((Span("  "), *ending), columns)]
    rows += _note_lines(cell, columns)
    if (changes := diff.find_diff(cell.display)) is not None:
        return [*rows, *diff.lay_out(changes, columns)]
    text = clean_output(cell.output or cell.display).rstrip("\n")
    for row in text.split("\n") if text else []:
        rows += wrap_code(line(visible(row)), columns, INDENT, (Span(CODE_MARK, "dim"),))
    return rows


# --- their parts


def _tail(cell: CallCell, columns: int) -> list[Line]:
    shown = [row for row in clean_output(cell.output[-_TAIL_CHARS:]).rstrip("\n").split("\n") if row.strip()][-TAIL_LINES:]
    return [fit(line(f"  {visible(row)}", "dim"), columns) for row in shown]


def _sign(cell: CallCell) -> Span:
    if cell.is_marked:
        return Span("▸ ", "accent")
    text, style = _STATE_SIGNS.get(cell.state, ("● ", "tool"))
    if cell.exit_code:
        style = "warn"
    return Span(text, style)


def _title(cell: CallCell, columns: int) -> Line:
    words = visible(one_line(call_in_words(cell.call, cell.folder), max(_TITLE_CHARS, columns)))
    command, _ = highlight(words, "shell" if words.startswith("$ ") else "")
    return (_sign(cell), *command)


def _whole_title(cell: CallCell) -> Line:
    return line(visible(" ↵ ".join(call_in_words(cell.call, cell.folder).strip().split("\n"))), "strong")


def _time(cell: CallCell) -> Line:
    if cell.state != "running":
        return EMPTY
    if cell.limit_s:
        return line(say("tui.seconds_of", seconds=int(cell.seconds), limit=int(cell.limit_s)), "dim")
    return line(say("tui.seconds", seconds=int(cell.seconds)), "dim")


def _inner(cell: CallCell) -> Line:
    return line(f" · {cell.inner}", "dim") if cell.inner else EMPTY


def _state(cell: CallCell, sign: str) -> Line:
    if cell.state == "running":
        count = max(cell.line_count, _count(cell.output))
        spans = [Span(f"{sign} " if sign else "", "accent"), *_time(cell)]
        return (*spans, Span(f" · {say('tui.lines', count=count)}", "dim")) if count else (*spans, *_inner(cell))
    if cell.state == "waiting":
        return line(say("tui.state_waiting"), "dim")
    return line(_last_line(cell), _style(cell))


def _ending(cell: CallCell, columns: int) -> Line:
    """How it ended, for the right edge: time and exit code of a command, what the user had said where half of a row holds it."""
    if cell.answer == "no":
        return EMPTY
    if cell.state in ("refused", "cancelled"):
        return line(say(f"tui.state_{cell.state}"), "warn")
    parts: list[Span] = []
    if cell.call.name == "run_shell" and cell.seconds:  # how long it took is not known of a call from before
        parts.append(Span(say("tui.took", seconds=f"{cell.seconds:.1f}"), "dim"))
    if cell.exit_code is not None and cell.call.name == "run_shell":
        gap = "  " if parts else ""
        parts.append(Span(f"{gap}{say('tui.exit_code', code=str(cell.exit_code))}", "warn" if cell.exit_code else "dim"))
    if cell.inner:
        parts.append(Span(f"{cell.inner} · {say('tui.took', seconds=f'{cell.seconds:.1f}')}", "dim"))
    if cell.outside:
        parts.insert(0, Span(f"{say('tui.ran_outside')}{'  ' if parts else ''}", "warn"))
    said = _answer(cell)
    whole = (*parts, Span("  "), *said) if parts and said else tuple(parts) or said
    return whole if columns_of(whole) + 2 <= columns // 2 else tuple(parts)


def _answer(cell: CallCell) -> Line:
    return line(say(f"tui.said_{cell.answer}"), "dim") if cell.answer else EMPTY


def _style(cell: CallCell) -> str:
    return {"failed": "bad", "refused": "warn", "cancelled": "warn"}.get(cell.state, "dim")


def _after_dot(last: str, cell: CallCell) -> Line:
    return (Span(" · ", "dim"), Span(last, _style(cell))) if last else EMPTY


def _last_line(cell: CallCell) -> str:
    """The line that says most: of a command its last, of everything else its first."""
    if cell.call.name == "run_shell" and (goes_on := _GOES_ON.match(cell.display)):
        return say("tui.in_background", id=goes_on[1])
    if cell.call.name == "run_shell" and cell.state in ("done", "cancelled"):  # that it was stopped stands beside it
        shown = cell.output or (cell.display if cell.state == "done" else "")
        lines = [row for row in clean_output(shown).split("\n") if not re.fullmatch(r"\s*\(exit code \d+\)\s*", row)]
        return visible(one_line(in_words(last_telling("\n".join(lines))), _TITLE_CHARS))
    lines = cell.display.strip().splitlines()
    if cell.call.name == "todo" and cell.state == "done":
        done, now = sum(row.startswith("[x]") for row in lines), next((row[3:] for row in lines if row.startswith("[>]")), "")
        return visible(" · ".join(filter(None, (say("conversation.todo_done", done=done, count=len(lines)), now.strip()))))
    first = in_words(lines[0]) if lines else ""
    if first.endswith((":", "：")) and len(lines) > 1:  # it says what follows
        first = f"{first} {lines[1].strip().removeprefix('- ')}"
    return visible(one_line(first, _TITLE_CHARS))


def _count(output: str) -> int:
    return output.count("\n") + (not output.endswith("\n")) if output else 0


def _result_of(event: ToolCallFinished) -> tuple[str, int | None, tuple[str, ...]]:
    """What a command put out, its exit code, and what stopped it."""
    return _split_result(event.name, event.command, result_text(event))


def _split_result(name: str, command: CommandOutput | None, text: str) -> tuple[str, int | None, tuple[str, ...]]:
    if name != "run_shell" and (command is None or command.background) and not text.startswith('{"stdout":'):
        return text, None, ()
    result = read_command_result(command, text)
    return result.output, result.exit_code, result.notes
