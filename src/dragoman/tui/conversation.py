"""The conversation with a live region: keys and events in, frames out. One loop runs from the greeting to the end."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.app.connecting import connect_model
from dragoman.app.console import Messages
from dragoman.app.opening import close_agent, end_tasks, new_loop, open_agent, tidy_sessions
from dragoman.app.setup import Setup
from dragoman.base.graphemes import width
from dragoman.conversation.command_pages import menu_rows
from dragoman.conversation.questions import Intend, Questions
from dragoman.conversation.spent_words import WithAgent, was_broken_off, words_on_resume
from dragoman.loop.run import Run
from dragoman.policy.approvals import Ruling
from dragoman.sessions.store import FileStore
from dragoman.tui.acting import KeyActions
from dragoman.tui.approving import LiveApproval
from dragoman.tui.asking import LiveDialog, Printer
from dragoman.tui.bindings import bind_keys
from dragoman.tui.calls import Folded
from dragoman.tui.canvas import Canvas
from dragoman.tui.commands import LiveCommands
from dragoman.tui.completion import FileIndex
from dragoman.tui.diff import find_diff
from dragoman.tui.elsewhere import FromElsewhere
from dragoman.tui.facts import StatusFacts
from dragoman.tui.file_commands import FileCommandIndex
from dragoman.tui.first import FirstFrame, hand_over
from dragoman.tui.greeting import greet
from dragoman.tui.history import PromptHistory
from dragoman.tui.layout import lay_out, most_rows, question_rows
from dragoman.tui.line import Line, Span, line
from dragoman.tui.listening import Listening
from dragoman.tui.live import Frame
from dragoman.tui.notice import LONG_S, notice_bytes
from dragoman.tui.overlay import Viewer
from dragoman.tui.prompt import PromptInput, image_word
from dragoman.tui.report import RunView
from dragoman.tui.sending import Sending
from dragoman.tui.status import status_line, waiting_lines
from dragoman.tui.theme import choose_theme
from dragoman.tui.todo_panel import items_of, panel_lines
from dragoman.tui.turns import Turns
from dragoman.tui.vim import VimKeys
from dragoman.tui.work_keys import RetryWait, WorkKeys
from dragoman.values.calls import Intent, Tool
from dragoman.values.errors import DragomanError
from dragoman.values.messages import ToolCall
from dragoman.values.record import Titled
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.slash_commands import Invocation


_DRAFT_ROWS = 3
"""Of what is written in the prompt, while a question is open."""


class LiveConversation(WithAgent):
    """One agent, one terminal. `run` returns the exit code once the user has left. Implements tui.talk.LiveTalk."""

    def __init__(self, setup: Setup, first: FirstFrame, *, is_to_pick: bool = False) -> None:
        self.setup = setup
        self.runs = 0
        self.may_retry = False
        self._beside: set[asyncio.Task[None]] = set()
        self._facts = StatusFacts()
        self._first = first
        self._is_to_pick = is_to_pick
        """Whether the user picks a session first."""
        self.canvas = Canvas(first, self._compose)
        if setup.config.color != "never":
            self.canvas.theme = choose_theme(os.environ, setup.config.ui.theme)
        self.screen = Printer(self.canvas)
        self._view = RunView(self.canvas.commit, lambda: self.canvas.columns)
        self._view.on_steered = lambda text: self._sending.show(text, within=True)
        self.canvas.before_frame = self._view.catch_up
        self._view.attempts = setup.config.retry.attempts
        self._view.calls.folder = os.path.realpath(setup.workspace)
        self._view.calls.find_tool = lambda name: self.agent.tools.get(name)
        self.store = FileStore(setup.places.sessions)
        self._in_files = FileCommandIndex()
        files = FileIndex(setup.workspace)
        files.on_listed = self._refresh_menu
        history = PromptHistory(setup.places.prompt_history if setup.config.sessions.keep else "")
        self._prompt = PromptInput(first.composer, history, files, self._command_help)
        self._prompt.as_image = lambda pasted: image_word(pasted, setup.workspace)
        table, self._wrong_keys = bind_keys(setup.config.ui.keys)
        self._dialog = LiveDialog(
            self.canvas,
            edit=self.edit,
            stop=lambda: self._turns.stop(),
            write=lambda event: self._keys.write(event),
            has_draft=lambda: not self._prompt.composer.is_empty,
            on_asked=lambda: self._notify(say("conversation.asks")),
        )
        self._questions = Questions(
            self._dialog,
            self._view,
            lambda name: self.agent.tools.get(name),
            lambda tool, args: self.agent.approvals.intend(tool, args),
            self._approval,
        )
        self.loop = new_loop()
        self._turns = Turns(self.loop, self.canvas, self._view, self._count, self._go_on)
        self._sending = Sending(self, self._prompt, self._turns)
        self._notices: tuple[str, ...] = ()
        self._pause = RetryWait()
        self.loop.run_until_complete(self._open_agent(setup))
        self._vim = VimKeys(first.composer) if setup.config.ui.vim else None
        work = WorkKeys(self, first.composer, self._turns, self._view, self._pause)
        self._keys = KeyActions(self, self._prompt, self._dialog, self._turns, lambda: self._listening, table, work, self._vim)
        self._listening = Listening(self.loop, first.reader, self._keys.press, self.canvas, self.leave)
        self._left: asyncio.Future[int] | None = None
        self._elsewhere = FromElsewhere(self._prompt, self.edit, self.screen, self._hint, lambda: self.agent.directories)

    @property
    def last_answer(self) -> str:
        return self._view.last_answer

    def show_title(self) -> None:
        if self.setup.config.ui.title:
            title = next((entry.title for entry in reversed(self.agent.history.entries) if isinstance(entry, Titled)), "")
            self.canvas.terminal.set_title(" · ".join(filter(None, (title, os.path.basename(self.setup.workspace), "dragoman"))))

    def note_context(self) -> None:
        self._facts.look(self.agent)

    def write_prompt(self, text: str) -> None:
        """Into the composer, to be edited and sent."""
        self._prompt.composer.set(text)

    @property
    def is_busy(self) -> bool:
        return self._turns.is_busy

    async def _open_agent(self, setup: Setup) -> None:
        setup = msgspec.structs.replace(setup, pause=self._pause.sleep)
        opened = await open_agent(
            setup, ask=self._questions.ask, ask_user=self._questions.ask_user, waits=False, opens_ports=True, takes_another=True
        )
        self.agent, self._notices = opened.agent, opened.notices
        if (servers := self.agent.beside.get("mcp")) is not None:
            servers.on_notice = self._note_of_servers
        self.agent.approvals.on_ruling = self._take_ruling
        self.setup = setup

    def _note_of_servers(self, text: str) -> None:
        self.screen.message(text, "dim")

    # --- from beginning to end

    def run(self) -> int:
        hand_over()
        try:
            return self.loop.run_until_complete(self._talk())
        finally:
            self._close()

    async def _talk(self) -> int:
        self._left = self.loop.create_future()
        self.canvas.attach(self.loop)
        self._listening.start()
        self._greet()
        if self._is_to_pick:
            self.run_command("/resume")
        if self.setup.options.question:
            self._sending.submit(self.setup.options.question)
        self._prompt.refresh()  # a key that waited may be for the menu of what was typed before it
        for event in self._first.waiting:
            self._keys.press(event)
        self._refresh_menu()
        try:
            return await self._left
        finally:
            self._listening.stop()
            await self._turns.end()

    def _greet(self) -> None:
        self.may_retry = False
        before = greet(self, self._notices)
        self.runs = before.runs
        if self.setup.options.resume is not None:
            self.may_retry = was_broken_off(self.agent)
            if words := words_on_resume(self.agent, may_retry=self.may_retry):
                self.screen.message(words, "yellow")
                self.canvas.part()
        self._view.calls.folded[:] = before.folded
        self._view.last_answer = before.last_answer
        self._facts.look(self.agent)
        self.show_title()
        for words in self._wrong_keys:
            self.screen.message(words, "yellow")
        if self._wrong_keys:
            self.canvas.part()
            self._wrong_keys.clear()  # said once

    def _close(self) -> None:
        self.give_terminal_back()
        loop = self.loop
        loop.run_until_complete(close_agent(self.agent))
        end_tasks(loop)
        loop.close()
        self._elsewhere.close()
        for notice in tidy_sessions(self.setup):
            Messages().line(say("notice", text=notice))

    def give_terminal_back(self) -> None:
        """As it was, with a line that says how to come back."""
        try:
            session_id = self.agent.session_id
            if not self.canvas.terminal.gone and session_id in self.store.ids():
                self.screen.message(say("come_back", id=self.store.short_id(session_id)), "dim")
        finally:
            self.canvas.close()  # whatever goes wrong

    def leave(self, code: int) -> None:
        if self._left is not None and not self._left.done():
            self._left.set_result(code)

    # --- the frame

    def _compose(self, size: tuple[int, int]) -> Frame:
        columns = size[0] - 1
        asking = self._dialog.is_open
        above = [*self._dialog.lines()] if asking else self._turns.live_lines(columns, most_rows(size[1]) - 2 - self._turns.waiting)
        if self.is_busy and not asking and (items := items_of(self.agent)):
            panel = panel_lines(items, columns, 1 if size[1] < 36 else 5)
            above = [*above[: -1 or None], *panel, *above[-1:]] if len(above) > 1 else [*panel, *above]
        above += waiting_lines(self._turns.unsaid, self._turns.queued, columns)
        answering = self._dialog.composer
        is_hidden = asking and answering is None and self._prompt.composer.is_empty
        composer = None if is_hidden else answering or self._prompt.composer
        typed_rows = 0 if composer is None else min(len(composer.layout(columns - 3)[0]), _DRAFT_ROWS)
        return lay_out(
            composer,
            self.canvas.theme,
            size,
            above=above,
            menu=[] if asking else self._prompt.menu_lines(columns, most_rows(size[1]) - 2),
            menu_caret=None if asking else self._prompt.menu_caret,
            status=self._status(columns),
            most=question_rows(size[1], len(above) + 1 + typed_rows) if asking else 0,
            placeholder="" if answering else say(self._turns.placeholder),
        )

    def _status(self, columns: int) -> Line:
        if self._keys.hint:
            return line(self._keys.hint, "warn")
        if (waiting := self.canvas.waiting_lines) and self._turns.is_stopping:
            return line(say("tui.stopped_waiting", count=waiting), "warn")
        if self._vim is not None and self._vim.is_normal:
            mark = Span(say("conversation.vim_normal"), "accent")
            return (mark, Span("  "), *status_line(self._facts.now(self), columns - width(mark.text) - 2))
        return self._facts.line(self, columns)

    # --- what is written

    def open_folded(self) -> None:
        """What is folded, the last first; before it, a paste in the composer, and before that the edit that is asked about."""
        pastes = [Folded(say("conversation.paste_title", number=number), text) for number, text in self._prompt.composer.folded_pastes()]
        asked = [self._dialog.subject] if self._dialog.subject is not None else []
        texts = [*self._view.calls.folded, *pastes, *asked]
        if texts:
            self.canvas.open(Viewer(texts))
        else:
            self._keys.hint = say("conversation.nothing_folded")

    def show_diffs(self) -> None:
        """What edits of this conversation changed, the last first."""
        texts = [each for each in self._view.calls.folded if each.call is not None and find_diff(each.call.display) is not None]
        if texts:
            self.canvas.open(Viewer(texts))
        else:
            self._keys.hint = say("conversation.nothing_changed")

    def _refresh_menu(self) -> None:
        self._prompt.refresh()
        self.canvas.request()

    def _command_help(self) -> Mapping[str, str]:
        if not self._prompt.composer.text.startswith("/"):
            return {}
        return {**menu_rows("live"), **self._in_files.rows(self.setup, LiveCommands(self).names)}

    # --- what is sent

    def send(self, *, queued: bool) -> None:
        self._sending.send(queued=queued)

    def run_command(self, text: str) -> bool:
        return self._sending.run_command(text)

    def ask(self, prompt: str | None, invocation: Invocation | None = None) -> None:
        self._sending.ask(prompt, invocation)

    # --- the model's turn

    @property
    def at_work(self) -> list[tuple[str, str, str]]:
        return self._view.calls.at_work()

    def stop_call(self, call_id: str) -> bool:
        return self._turns.stop_call(call_id)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._turns.start(self._then_look(work))

    async def _then_look(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._facts.look(self.agent)

    def start_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._beside.add(task)

        def end(task: asyncio.Task[None]) -> None:
            self._beside.discard(task)
            self.canvas.request()

        task.add_done_callback(end)

    def show_progress(self, text: str) -> None:
        self._turns.progress = text
        self.canvas.request()

    def _go_on(self, was_stopped: bool, waiting: list[str]) -> None:
        """What waited is next. After a stop or a failure it comes back into the composer."""
        if self._left is None or self._left.done():
            return
        composer = self._prompt.composer
        if was_stopped or self.may_retry:
            composer.set("\n".join([*waiting, *([] if composer.is_empty else [composer.whole_text()])]))
            return
        for text in waiting:
            if self.is_busy:
                self._turns.queue(text)
            else:
                self._sending.submit(text)

    def _count(self, run: Run) -> None:
        result = run.result
        self._view.end(result)
        self.runs += 1
        self.may_retry = result.exit_code != 0
        self._facts.look(self.agent)
        if result.duration_ms > LONG_S * 1000:
            self._notify(say("conversation.done"))

    def _take_ruling(self, ruling: Ruling, call: ToolCall, intent: Intent, reason: str) -> None:
        """Implements approvals.OnRuling."""
        if ruling == "not_saved":
            self.screen.message(say("grant_not_saved", reason=reason), "yellow")

    def _approval(self, tool: Tool | None, call: ToolCall, intent: Intent, intend: Intend) -> LiveApproval:
        def view(title: str, text: str) -> None:
            self.canvas.open(Viewer([Folded(title, text)]))

        calls = self._view.calls
        return LiveApproval(self._dialog, tool, call, intent, intend, calls=calls, view=view, workspace=self.setup.workspace)

    def _notify(self, text: str) -> None:
        if time.monotonic() - self._keys.pressed_s < LONG_S:  # whoever typed just now is looking
            return
        if written := notice_bytes(os.environ, self.setup.config.ui.notify, text):
            self.canvas.terminal.write(written)

    # --- other programs, other sessions

    async def edit(self, text: str, name: str) -> str | None:
        from dragoman.conversation.editor import edit

        with self._listening.lend():
            return await edit(text, name, 1, self.agent.directories)

    def edit_prompt(self) -> None:
        """What is written, in the user's editor; also while a run works."""
        self._editing = self.loop.create_task(self._elsewhere.edit())

    def paste_image(self) -> None:
        """The image in the clipboard, as a word for it."""
        self._pasting = self.loop.create_task(self._elsewhere.paste_image())

    def _hint(self, text: str) -> None:
        self._keys.hint = text
        self._refresh_menu()

    async def open_session(self, setup: Setup) -> None:
        """Go on with another session, or a new one. Raises DragomanError, and then this one goes on."""
        before = self.agent
        await self._open_agent(setup)
        await close_agent(before)
        self._greet()

    def change_model(self, name: str) -> None:
        from dragoman.app.first_use import needs_weights

        before = self.agent.provider
        try:
            if needs_weights(self.setup, name):
                self.screen.message(say("conversation.pull_first", name=name, weights=name.rpartition("/")[2]), "yellow")
                return
            self.agent.change_model(connect_model(self.setup, self.agent.blobs, name))
        except DragomanError as error:
            self.screen.message(say("run_failed", message=error), "red")
            return
        self._facts.look(self.agent)
        self.loop.create_task(before.aclose())
        self.screen.message(say("model_is_now", model=self.model))
