"""What a person is asked while a run is going: whether a call may run, and what the model itself wants to know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.visible import visible
from dragoman.base.words import say
from dragoman.cli.editor import EditorFailed
from dragoman.cli.keys import ESCAPE, Keyboard
from dragoman.cli.screen import Screen, Style, wrapped
from dragoman.cli.terminal_report import TerminalReport
from dragoman.values.contracts import Allow, Deny, Intent, Tool
from dragoman.values.messages import ToolCall

# What the model is told: in English, whatever the program's language.
SAID_NO = "the user said no"
REFUSED = "the user refused it and said: {reason}"

Edit = Callable[[str, str], Awaitable[str | None]]
"""Puts a text before the user, to be changed; a file's name tells what kind it is. None: they gave up. Raises EditorFailed."""


class Dialog:
    """The ways to get an answer out of a person: by a key, by a line, by editing a text. `stop` cancels the run."""

    def __init__(self, screen: Screen, keyboard: Keyboard, *, edit: Edit, stop: Callable[[], None]) -> None:
        self.screen = screen
        self._keyboard = keyboard
        self._edit = edit
        self._stop = stop

    async def key(self, prompt: str) -> str:
        await self._put(f"{wrapped(prompt, self.screen.columns - 10)} ")
        return await self._keyboard.press()

    async def line(self, prompt: str) -> str | None:
        """None: they closed it with Ctrl-D."""
        with self._keyboard.lent():
            await self._put(prompt)
            answer = await self._keyboard.line()
        if answer is not None:
            self.screen.enter_was_echoed()
        return answer

    async def edited(self, text: str, name: str) -> str | None:
        self.screen.to_line_start()
        await self.screen.shown()
        with self._keyboard.lent():
            return await self._edit(text, name)

    async def stopped(self) -> Deny:
        """Cancel the run, and wait for that to reach us. It never returns."""
        self._stop()
        return await asyncio.get_running_loop().create_future()

    async def _put(self, prompt: str) -> None:
        """What is typed before all that is asked about stands on the screen is no answer."""
        self.screen.to_line_start()
        await self.screen.shown()
        self._keyboard.forget()
        self.screen.text(prompt, "bold")
        await self.screen.shown()


class Questions:
    """`ask` and `ask_user` of an agent, in the terminal. One question stands at a time; `find` knows the tools."""

    def __init__(self, dialog: Dialog, report: TerminalReport, find: Callable[[str], Tool | None]) -> None:
        self._dialog = dialog
        self._report = report
        self._find = find
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, call: ToolCall, intent: Intent) -> Allow | Deny:
        """A contracts.Ask."""
        async with self._one_at_a_time:
            await _let_events_be_told()
            with self._report.held():
                return await _Approval(self._dialog, self._find(call.name), call, intent).decided()

    async def ask_user(self, question: str, choices: Sequence[str]) -> str:
        """A contracts.AskUser. Nothing is no answer."""
        async with self._one_at_a_time:
            await _let_events_be_told()
            with self._report.held():
                answer = await self._asked(question, choices)
        if answer.isascii() and answer.isdecimal() and len(answer) < 4 and 1 <= int(answer) <= len(choices):
            return choices[int(answer) - 1]
        return answer

    async def _asked(self, question: str, choices: Sequence[str]) -> str:
        screen = self._dialog.screen
        screen.line(visible(question), "bold")
        for number, choice in enumerate(choices, 1):
            screen.line(f"  {number}. {visible(choice, one_line=True)}")
        return (await self._dialog.line(say("choice_prompt" if choices else "answer_prompt")) or "").strip()


class _Approval:
    """One call before a person, until they have decided."""

    def __init__(self, dialog: Dialog, tool: Tool | None, call: ToolCall, intent: Intent) -> None:
        self._dialog = dialog
        self._screen = dialog.screen
        self._tool = tool
        self._kind = tool.spec.kind if tool is not None else "other"
        self._call = call
        self._intent = intent
        self._arguments = ""
        """What the user made of the arguments, where they did."""

    async def decided(self) -> Allow | Deny:
        self._show()
        while True:
            key = await self._dialog.key(self._choices())
            answer = await self._answered(key)
            if answer is not None:
                return answer

    async def _answered(self, key: str) -> Allow | Deny | None:
        """None where it was no answer: then they are asked again."""
        match key.lower():
            case "y":
                self._echo("answered_yes")
                return Allow(self._arguments)
            case "a":
                self._echo("answered_always")
                return Allow(self._arguments, remember="session")
            case "s":
                self._echo("answered_save")
                return Allow(self._arguments, remember="saved")
            case "n":
                self._echo("answered_no")
                return Deny(SAID_NO)
            case "r":
                self._echo("answered_reason")
                reason = await self._dialog.line(say("reason_prompt"))
                if reason is None:
                    return None
                return Deny(REFUSED.format(reason=reason.strip()) if reason.strip() else SAID_NO)
            case "e":
                self._echo("answered_edit")
                try:
                    await self._edit()
                except EditorFailed as error:
                    self._screen.message(str(error), "red")
            case _ if key == ESCAPE:
                self._echo("answered_stop")
                return await self._dialog.stopped()
            case _:
                wrong = say("many_keys") if len(key) > 1 else say("wrong_key", key=visible(key, one_line=True))
                self._screen.text(f"{wrong}\n", "yellow")
        return None

    # --- what is asked

    def _show(self) -> None:
        screen, intent = self._screen, self._intent
        screen.line(say("asks_for", title=visible(intent.title or self._call.name, one_line=True)), "bold")
        preview = visible(intent.preview or self._arguments or self._call.arguments).removesuffix("\n")
        for line in preview.split("\n"):
            if self._kind == "edit":
                screen.line(line, _diff_style(line))
            else:  # it may be any text: the bar tells where it ends, so that none of it passes for something we say
                screen.line(f"│ {line}")
        self._show_reading()
        if intent.problem:
            screen.message(say("will_fail", problem=intent.problem), "red")

    def _show_reading(self) -> None:
        """What was changed to read a call out of text, and where else it stands."""
        if self._call.opaque is None:
            return
        from dragoman.text_tools.call_note import note_on

        note = note_on(self._call)
        if note is not None and note.repairs:
            self._screen.message(say("repaired", repairs=visible("; ".join(note.repairs), one_line=True)), "yellow")
        if note is not None and note.echo_of:
            self._screen.message(say("echoes", tool=visible(note.echo_of, one_line=True)), "red")

    def _choices(self) -> str:
        """What `always` covers is said: an edit allows all edits, a command only itself."""
        names = {"edit": say("covers_edits"), "execute": say("covers_command")}
        scope = visible(self._intent.scope, one_line=True)
        covers = names.get(self._kind) or say("covers_tool", name=f"{self._call.name} {scope}".rstrip())
        return say("run_it", covers=covers)

    def _echo(self, key: str) -> None:
        self._screen.text(f"{say(key)}\n")

    # --- editing

    async def _edit(self) -> None:
        """Then it is another thing that they are asked about, or a line says why not."""
        args = jsontext.decode_object(self._arguments or self._call.arguments or "{}") or {}
        command = args.get("command")
        if self._call.name == "run_shell" and isinstance(command, str):
            text = await self._dialog.edited(command, "command.sh")
            changed = args if text is None else {**args, "command": text}
        else:
            text = await self._dialog.edited(msgspec.json.format(jsontext.dumps(args)), "arguments.json")
            changed = args if text is None else jsontext.decode_object(text)
        if changed is None:
            self._screen.message(say("edit_not_json"), "red")
        elif changed == args:
            self._screen.message(say("edit_nothing"), "yellow")
        else:
            self._take(changed)

    def _take(self, args: dict[str, Any]) -> None:
        from dragoman.values.schema import problems

        if self._tool is None:
            return
        if found := problems(self._tool.spec.schema, args):
            self._screen.message(say("edit_misfit", problems="; ".join(found)), "red")
            return
        self._arguments = jsontext.dumps(args)
        self._intent = self._tool.intend(args)
        self._show()


def _diff_style(line: str) -> Style:
    if line.startswith(("+++ ", "--- ", "diff ")):
        return "bold"
    styles: dict[str, Style] = {"+": "green", "-": "red", "@": "cyan"}
    return styles.get(line[:1], "")


async def _let_events_be_told() -> None:
    """Events sent before the question must be on the screen before it. Their reader, once it is its turn, takes all there are."""
    for _ in range(2):
        await asyncio.sleep(0)
