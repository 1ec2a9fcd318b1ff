"""Questions to the user during a run: approval of tool calls, and what the model asks through `ask_user`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from dragoman.base import jsontext
from dragoman.base.graphemes import fit
from dragoman.base.visible import escape_hidden
from dragoman.conversation.deciding import SAID_NO, can_let_write, decide
from dragoman.conversation.editor import EditorFailed
from dragoman.conversation.preview import MAX_BLANKS, break_line, longest_blank
from dragoman.conversation.style import Style
from dragoman.policy.rules import NETWORK as GATE
from dragoman.values.calls import Allow, Deny, Intent, Only, Tool
from dragoman.values.messages import ToolCall
from dragoman.values.schema import problems
from dragoman.words import say

ESCAPE = "\x1b"
"""What the key Escape answers."""
MAX_DIFF_LINES = 60
"""A longer diff is shown folded, and whole on request. Anything other than a diff is never folded."""
_HEAD_LINES, _TAIL_LINES = 40, 15
_CANCEL_S = 2.0

_ECHOES = {
    "y": "answered_yes",
    "w": "answered_write",
    "a": "answered_always",
    "b": "answered_always",
    "s": "answered_save",
    "f": "answered_save",
    "n": "answered_no",
    "r": "answered_reason",
    "e": "answered_edit",
}
"""What stands behind the question once a key was pressed."""

Intend = Callable[[Tool, Mapping[str, Any]], Intent]
"""What a call with these arguments would do, as `Approvals.intend` says it."""
Edit = Callable[[str, str], Awaitable[str | None]]
"""Lets the user edit a text; the file name gives its type. None: they gave up. Raises EditorFailed."""


class QuestionScreen(Protocol):
    """Where a question is shown."""

    @property
    def columns(self) -> int: ...

    def line(self, text: str, style: Style = "") -> None: ...

    def message(self, text: str, style: Style = "") -> None: ...

    def text(self, text: str, style: Style = "") -> None: ...


class Asking(Protocol):
    """The ways to ask the user, in any kind of conversation."""

    @property
    def screen(self) -> QuestionScreen: ...

    async def ask_key(self, prompt: str, keys: Collection[str]) -> str:
        """One of the keys, in lower case, or ESCAPE. Whatever else is typed goes to the prompt (app/answers.py)."""
        ...

    async def ask_line(self, prompt: str, *, at_once: bool = False) -> str | None:
        """None: the user gave up. What is typed before there was a pause goes to the prompt; `at_once`: the user has just asked for the
        line, and may write on."""
        ...

    def keep(self, text: str) -> None:
        """Put into the prompt what was no answer."""
        ...

    async def edit(self, text: str, name: str) -> str | None: ...

    async def stop_run(self) -> Deny:
        """Cancel the run and wait to be cancelled with it. Returns only if the question is none of the run's."""
        ...


class Holding(Protocol):
    """A screen that can be held while a question is open."""

    def hold(self) -> AbstractContextManager[None]:
        """While it is open, nothing else is shown."""
        ...


async def wait_for_cancel() -> Deny:
    """Wait to be cancelled with the run that was stopped. A question about a command that goes on without the run is not: that is a no."""
    await asyncio.sleep(_CANCEL_S)
    return Deny(SAID_NO)


class Questions:
    """`ask` and `ask_user` of an agent, in the terminal. One question at a time. `find` looks up a tool by name."""

    def __init__(
        self,
        dialog: Asking,
        report: Holding,
        find: Callable[[str], Tool | None],
        intend: Intend,
        approve: Callable[[Tool | None, ToolCall, Intent, Intend], CallApproval] | None = None,
    ) -> None:
        """`approve`: how a call is asked about, where that is otherwise than line by line."""
        self._approve = approve or (lambda tool, call, intent, intend: CallApproval(dialog, tool, call, intent, intend))
        self._dialog = dialog
        self._report = report
        self._find = find
        self._intend = intend
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, call: ToolCall, intent: Intent) -> Allow | Deny:
        """Implements calls.Ask."""
        async with self._one_at_a_time:
            await _let_events_be_shown()
            with self._report.hold():
                return await self._approve(self._find(call.name), call, intent, self._intend).decide()

    async def ask_user(self, question: str, choices: Sequence[str]) -> str:
        """Implements calls.AskUser. An empty string: the user did not answer."""
        async with self._one_at_a_time:
            await _let_events_be_shown()
            with self._report.hold():
                return await self._ask_question(question, choices)

    async def _ask_question(self, question: str, choices: Sequence[str]) -> str:
        screen = self._dialog.screen
        screen.line(escape_hidden(question), "bold")
        for number, choice in enumerate(choices, 1):
            screen.line(f"  {number}. {escape_hidden(choice, one_line=True)}")
        is_closed = isinstance(choices, Only)
        prompt = say("number_prompt" if is_closed else "choice_prompt" if choices else "answer_prompt")
        while True:
            answer = (await self._dialog.ask_line(prompt) or "").strip()
            if answer.isascii() and answer.isdecimal() and len(answer) < 4 and 1 <= int(answer) <= len(choices):
                return choices[int(answer) - 1]
            if not is_closed or not answer or answer in choices:
                return answer
            self._dialog.keep(answer)
            screen.message(say("kept_no_number"), "yellow")


class CallApproval:
    """Asks about one call until the user has decided."""

    def __init__(self, dialog: Asking, tool: Tool | None, call: ToolCall, intent: Intent, intend: Intend) -> None:
        self._dialog = dialog
        self._screen = dialog.screen
        self._tool = tool
        self._kind = tool.spec.kind if tool is not None else "other"
        self._call = call
        self._intent = intent
        self._intend = intend
        self._arguments = ""
        """The arguments as edited by the user; empty if they were not edited."""

    async def decide(self) -> Allow | Deny:
        self._show()
        while True:
            key = await self._dialog.ask_key(self._choices(), self._keys())
            answer = await self._handle_key(key)
            if answer is not None:
                return answer

    async def _handle_key(self, key: str) -> Allow | Deny | None:
        """None if the key does not decide: then the user is asked again."""
        if key == ESCAPE:
            self._echo("answered_stop")
            return await self._dialog.stop_run()
        if key not in self._keys() or key == "?":
            return self._explain()
        if key in _ECHOES:
            self._echo(_ECHOES[key])
        match key:
            case "r":
                reason = await self._dialog.ask_line(say("reason_prompt"), at_once=True)
                return None if reason is None else decide("r", self._intent, reason=reason)
            case "v":
                self._end_mark()
                self._show_preview(whole=True)
            case "e":
                try:
                    await self._edit()
                except EditorFailed as error:
                    self._screen.message(str(error), "red")
            case _:
                return decide(key, self._intent, self._arguments)
        return None

    def _keys(self) -> str:
        """The keys that this question has. `?` explains them."""
        if self._intent.writing == "refused":
            return "ywnr?"
        always = "" if self._intent.guarded else "asbf" if self._intent.prefix else "as"
        if self._intent.outside and self._intent.prefix:
            always = "b"
        if is_about_host(self._call):
            return f"y{always}nr?"
        return f"y{always}{'w' if can_let_write(self._intent) else ''}nre{'v' if self._kind == 'edit' else ''}?"

    def _explain(self) -> None:
        is_refused = self._intent.writing == "refused"
        always = "" if self._intent.guarded or is_refused else say("approval_why_always")
        if self._intent.outside:
            always = say("approval_why_outside")
        if is_about_host(self._call):
            self._end_mark()
            for line in (say("approval_why_host"), say("approval_why_keys")):
                self._screen.message(line)
            return
        writes = say("approval_why_write") if can_let_write(self._intent) else ""
        self._end_mark()
        for line in filter(None, (say("approval_why_again" if is_refused else "approval_why"), always, writes, say("approval_why_keys"))):
            self._screen.message(line)

    def _end_mark(self) -> None:
        """A new line behind the question, where it is asked on one."""
        self._screen.text("\n")

    # --- what is asked

    def _show(self) -> None:
        screen, intent = self._screen, self._intent
        title = say("asks_for", title=escape_hidden(intent.title or self._call.name, one_line=True))
        screen.line(fit(title, screen.columns - 1), "bold")  # its beginning: the whole is below
        if intent.asker:
            screen.message(say("subagents.asks", agent=escape_hidden(intent.asker, one_line=True)), "cyan")
        if intent.outside:
            screen.message(say("outside_means"), "yellow")
            screen.message(say("outside_reason", reason=escape_hidden(intent.outside, one_line=True)))
        self._show_preview(whole=False)
        self._show_reading()
        if why := told_why(self._call, intent):
            screen.message(say("asked_because", why=escape_hidden(why, one_line=True)), "yellow")
        if intent.guarded and not intent.outside:
            screen.message(say(f"guarded_{intent.guarded}"), "yellow")
        if intent.problem:
            screen.message(say("will_fail", problem=intent.problem), "red")

    def _show_preview(self, *, whole: bool) -> None:
        """Every character, none of them folded away: long lines are broken, with a mark on what continues one. Any text may come: the bar
        marks it, so that no part of it can look like our own output."""
        text = escape_hidden(self._intent.preview or self._arguments or self._call.arguments).removesuffix("\n")
        lines = text.split("\n")
        is_diff = self._kind == "edit"
        is_folded = is_diff and not whole and len(lines) > MAX_DIFF_LINES
        shown = [*lines[:_HEAD_LINES], *lines[-_TAIL_LINES:]] if is_folded else lines
        for number, line in enumerate(shown):
            if is_folded and number == _HEAD_LINES:
                self._screen.message(say("diff_folded", hidden=len(lines) - len(shown), count=len(lines)), "yellow")
            rows = break_line(line, self._screen.columns, "" if is_diff else "│ ")
            self._screen.line("\n".join(rows), _diff_style(line) if is_diff else "")
        if not is_diff and (blanks := longest_blank(text)) > MAX_BLANKS:
            self._screen.message(say("padded", count=blanks), "yellow")

    def _show_reading(self) -> None:
        """For a call parsed from text: what was repaired in it, and which tool result it repeats."""
        if self._call.opaque is None:
            return
        from dragoman.text_tools.call_note import read_note

        note = read_note(self._call)
        if note is not None and note.repairs:
            self._screen.message(say("repaired", repairs=escape_hidden("; ".join(note.repairs), one_line=True)), "yellow")
        if note is not None and note.echo_of:
            self._screen.message(say("echoes", tool=escape_hidden(note.echo_of, one_line=True)), "red")

    def _choices(self) -> str:
        """Says what `always` covers: for an edit all edits, for a command only itself. What is guarded it never covers."""
        if self._intent.writing == "refused":
            return say("write_it")
        if self._intent.outside:
            prefix = escape_hidden(self._intent.prefix, one_line=True)
            return say("run_it_outside", begins=say("outside_beginning", prefix=prefix) if prefix else "")
        if self._intent.guarded:
            return say("run_it_once")
        scope = escape_hidden(self._intent.scope, one_line=True)
        if is_about_host(self._call):
            return say("reach_it", host=scope)
        name = self._call.name
        covers = say("covers_scope", name=name, scope=scope) if scope else say("covers_tool", name=name)
        covers = {"edit": say("covers_edits"), "execute": say("covers_command")}.get(self._kind, covers)
        begins = say("or_beginning", prefix=escape_hidden(self._intent.prefix, one_line=True)) if self._intent.prefix else ""
        begins += say("or_write") if can_let_write(self._intent) else ""
        return say("run_it", covers=covers, begins=begins)

    def _echo(self, key: str) -> None:
        self._screen.text(f"{say(key)}\n")

    # --- editing

    async def _edit(self) -> None:
        """Let the user edit the call. They are then asked about the edited call, or a line says why it was not changed."""
        args = jsontext.decode_object(self._arguments or self._call.arguments or "{}") or {}
        command = args.get("command")
        if self._call.name == "run_shell" and isinstance(command, str):
            text = await self._dialog.edit(command, "command.sh")
            changed = args if text is None else {**args, "command": text}
        else:
            text = await self._dialog.edit(msgspec.json.format(jsontext.dumps(args)), "arguments.json")
            changed = args if text is None else jsontext.decode_object(text)
        if changed is None:
            self._screen.message(say("edit_not_json"), "red")
        elif changed == args:
            self._screen.message(say("edit_nothing"), "yellow")
        else:
            self._apply_edit(changed)

    def _apply_edit(self, args: dict[str, Any]) -> None:
        if self._tool is None:
            return
        if found := problems(self._tool.spec.schema, args):
            self._screen.message(say("edit_misfit", problems="; ".join(found)), "red")
            return
        self._arguments = jsontext.dumps(args)
        self._intent = self._intend(self._tool, args)
        self._show()


def is_about_host(call: ToolCall) -> bool:
    """Whether the gate asks for a command in the sandbox, which wants to reach a host."""
    return call.name == GATE


def told_why(call: ToolCall, intent: Intent) -> str:
    """Why it is asked, if the question itself does not say it: of a host nobody has to be told that it is not on the list."""
    is_plain = is_about_host(call) and intent.why == say("policy.host_unknown", host=intent.scope)
    return "" if is_plain else intent.why


def _diff_style(line: str) -> Style:
    if line.startswith(("+++ ", "--- ", "diff ")):
        return "bold"
    styles: dict[str, Style] = {"+": "green", "-": "red", "@": "cyan"}
    return styles.get(line[:1], "")


async def _let_events_be_shown() -> None:
    """Events sent before the question must be on the screen before it. Yielding lets their reader take all of them."""
    for _ in range(2):
        await asyncio.sleep(0)
