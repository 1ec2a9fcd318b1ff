"""A conversation in the terminal: prompts, runs and slash commands in turn. The event loop does not run while the user types."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from dragoman import __version__
from dragoman.app.asking import LineQuestions
from dragoman.app.connecting import connect_model
from dragoman.app.console import Messages
from dragoman.app.opening import close_agent, end_tasks, new_loop, open_agent, tidy_sessions
from dragoman.app.output import Output
from dragoman.app.prompts import expand_prompt, names_something
from dragoman.app.setup import Setup
from dragoman.app.signals import Interrupted
from dragoman.base.places import shorten_home
from dragoman.conversation.questions import Questions
from dragoman.conversation.spent_words import WithAgent, was_broken_off, words_on_resume
from dragoman.conversation.talk import close_in_time
from dragoman.loop.run import Run
from dragoman.plain.dialog import Dialog
from dragoman.plain.line_keys import make_keyboard
from dragoman.plain.line_prompt import LinePrompt
from dragoman.plain.report import TerminalReport
from dragoman.plain.screen import Screen
from dragoman.plain.terminal_signals import EXIT_INTERRUPTED, Signals
from dragoman.policy.approvals import Ruling
from dragoman.sessions.store import FileStore
from dragoman.values.calls import Intent
from dragoman.values.errors import DragomanError
from dragoman.values.messages import ToolCall
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.slash_commands import Invocation

EXIT_HUNG_UP = 129
RECALLED_LINES = 60
"""How many lines of a resumed conversation are shown."""


class PlainConversation(WithAgent):
    """One agent, one terminal. `run` returns the exit code once the user has left. `by_line` asks outside runs."""

    def __init__(self, setup: Setup, by_line: LineQuestions, screen: Screen, copy: Output | None = None) -> None:
        self.screen = screen
        self.runs = 0
        self.may_retry = False
        self.setup = setup
        self._copy = copy
        self._by_line = by_line
        self.store = FileStore(setup.places.sessions)
        self._keyboard = make_keyboard()
        self._signals = Signals(self._keyboard)
        self._report = TerminalReport(screen, copy)
        self._report.folder = os.path.realpath(setup.workspace)
        dialog = Dialog(screen, self._keyboard, edit=self._edit, stop=self._stop)
        self._questions = Questions(
            dialog, self._report, lambda name: self.agent.tools.get(name), lambda tool, args: self.agent.approvals.view(tool, args)
        )
        self._loop = new_loop()
        self._loop.run_until_complete(self._open_agent(setup))
        self._prompt = LinePrompt(screen, self._keyboard.read_prompt)
        self._run: Run | None = None
        self._starting: asyncio.Future[Run] | None = None
        self._is_stopping = False
        self._exit_code: int | None = None

    def run(self) -> int:
        with self._signals:
            try:
                self._greet()
                return self._talk()
            except Interrupted as interrupt:  # no run is active, so nothing is lost
                return interrupt.code
            finally:
                self._keyboard.close()
                self._close()

    async def _open_agent(self, setup: Setup) -> None:
        opened = await open_agent(setup, ask=self._questions.ask, ask_user=self._questions.ask_user, opens_ports=True, takes_another=True)
        self.agent, self._notices, self.setup = opened.agent, opened.notices, setup
        self.agent.approvals.on_ruling = self._take_ruling

    async def open_session(self, setup: Setup) -> None:
        """Go on with another session, or a new one. Raises DragomanError, and then this one goes on."""
        before = self.agent
        await self._open_agent(setup)
        await close_agent(before)
        self.runs, self.may_retry = 0, False
        self._greet()

    # --- the user's turn

    def _greet(self) -> None:
        mode = self.agent.approvals.mode
        self.screen.message(
            say("banner", version=__version__, model=self.model, workspace=shorten_home(self.setup.workspace), mode=mode), "bold"
        )
        table = self.setup.config.sandbox
        if mode == "auto" or table.run_unasked or table.level == "external":  # elsewhere it is not known before the first command
            self.screen.message(say("sandbox_is", words=self.agent.approvals.sandbox), "dim")
        self.screen.message(say("banner_hint"), "dim")
        for notice in self._notices:
            self.screen.message(say("banner_notice", text=notice), "yellow")
        if self.setup.options.resume is not None:
            self._show_earlier()

    def _show_earlier(self) -> None:
        """Show the resumed conversation, or the end of a long one."""
        from dragoman.conversation.events import read_events
        from dragoman.conversation.pages.session_show import as_lines

        blocks = read_events(self.agent.history.entries)
        self.runs = sum(block.kind == "prompt" for block in blocks)
        lines = as_lines(blocks)
        if len(lines) > RECALLED_LINES:
            self.screen.message(
                say("recalled_end", count=len(lines) - RECALLED_LINES, id=self.store.short_id(self.agent.session_id)), "dim"
            )
        for line in lines[-RECALLED_LINES:]:
            self.screen.line(line)
        self.may_retry = was_broken_off(self.agent)
        if words := words_on_resume(self.agent, may_retry=self.may_retry):
            self.screen.message(words, "yellow")

    def _talk(self) -> int:
        interrupted = False
        if self.setup.options.question:
            self._handle_input(self.setup.options.question)
        while self._exit_code is None and not self.screen.gone:
            try:
                text = self._prompt.read(self._take_typed_ahead())
                interrupted = False
                self._handle_input(text)
            except EOFError:
                self.screen.write("\n")
                return 0
            except UnicodeError:
                self.screen.message(say("prompt_not_text", encoding=sys.stdin.encoding), "red")
            except KeyboardInterrupt as interrupt:
                self.screen.drop_queued()
                self.screen.write("\n")
                if isinstance(interrupt, Interrupted) and interrupt.code != EXIT_INTERRUPTED:
                    return interrupt.code
                if interrupted:
                    return 0
                interrupted = True
                self.screen.message(say("again_leaves"), "dim")
        return EXIT_HUNG_UP if self._exit_code is None else self._exit_code

    def _handle_input(self, text: str) -> None:
        if not text.strip():
            return
        if text.startswith("//"):
            self.ask(text[1:])
        elif not text.startswith("/") or not self._run_command(text):
            self.ask(text)

    def _run_command(self, line: str) -> bool:
        """False if it is not a command but begins with a path, such as that of a file dropped on the terminal."""
        from dragoman.conversation.slash import SlashCommands, begins_with_path

        commands = SlashCommands(self)
        if not commands.knows(line):
            if (invocation := commands.find_in_files(line)) is not None:
                self.ask(line, invocation)
                return True
            if begins_with_path(line):
                return False
        commands.run(line)
        return True

    def leave(self, code: int) -> None:
        self._exit_code = code

    def _take_typed_ahead(self) -> str:
        """Text typed during a run or at a question is put into the next prompt, where the user sees it before sending it."""
        return " ".join(f"{self._by_line.take_draft()} {self._keyboard.take_typed()}".split())

    # --- the model's turn

    def ask(self, prompt: str | None, invocation: Invocation | None = None) -> None:
        """One run. Without a prompt: retry from where the last one failed. With an invocation: what that stands for."""
        try:
            self._loop.run_until_complete(self._run_prompt(prompt, invocation))
        except DragomanError as error:
            self.screen.message(say("run_failed", message=error), "red")
        self.screen.finish()
        if self._copy is not None:
            self._copy.finish()
        code, self._signals.code = self._signals.code, 0
        if code not in (0, EXIT_INTERRUPTED):
            self.leave(code)

    async def _run_prompt(self, prompt: str | None, invocation: Invocation | None) -> None:
        loop = asyncio.get_running_loop()
        self._run = None
        self._is_stopping = False
        self._report.begin(loop)
        for page in filter(None, (self.screen, self._copy)):
            page.attach(loop)
        self.screen.on_gone = self._keyboard.on_escape = self._keyboard.on_gone = self._stop
        self._keyboard.open(loop)
        self._signals.attach(loop, self._stop)
        try:
            run = await self._begin(prompt, invocation)
            if run is None:
                return
            async with run:
                async for event in run:
                    self._report.take(event)
        finally:
            self._keyboard.close()
            self._signals.detach()
            if invocation is not None:
                invocation.finish(self.agent)
        self._count_usage(run)

    async def _begin(self, prompt: str | None, invocation: Invocation | None) -> Run | None:
        """A run with the prompt and what it names, or with what a command in a file stands for. None: the user stopped it before there
        was one."""
        if invocation is None and (prompt is None or not names_something(self.agent, prompt)):
            self._run = self.agent.run(prompt)
            return self._run
        if invocation is not None:
            starting = invocation.start(self.agent, lambda text: self.screen.message(text, "dim"))
        else:
            assert prompt is not None
            starting = self._run_expanded(prompt)
        self._starting = asyncio.ensure_future(starting)
        try:
            self._run = await self._starting
        except asyncio.CancelledError:
            return None
        finally:
            self._starting = None
        return self._run

    async def _run_expanded(self, prompt: str) -> Run:
        told = await expand_prompt(
            self.agent, prompt, lambda text: self.screen.message(text, "yellow"), on_attached=lambda text: self.screen.message(text, "dim")
        )
        return self.agent.run(told)

    def _count_usage(self, run: Run) -> None:
        result = run.result
        self._report.end(result)
        self.runs += 1
        self.may_retry = result.exit_code != 0

    def _take_ruling(self, ruling: Ruling, call: ToolCall, intent: Intent, reason: str) -> None:
        """Implements approvals.OnRuling. What was refused or ran is shown with its call."""
        if ruling == "not_saved":
            self.screen.message(say("grant_not_saved", reason=reason), "yellow")

    def _stop(self) -> None:
        """Cancels only once: a second cancel would interrupt the cleanup after the first."""
        if self._starting is not None:
            self._starting.cancel()
        if self._run is not None and not self._is_stopping:
            self._is_stopping = True
            self.screen.drop_queued()
            self._run.cancel()

    def change_model(self, name: str) -> None:
        from dragoman.app.first_use import require_weights

        before = self.agent.provider
        try:
            require_weights(self.setup, name, self._by_line)
            self.agent.change_model(connect_model(self.setup, self.agent.blobs, name))
        except DragomanError as error:
            self.screen.message(say("run_failed", message=error), "red")
            return
        self._loop.run_until_complete(close_in_time(before.aclose()))
        self.screen.message(say("model_is_now", model=self.model))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Nothing else goes on meanwhile; Ctrl-C ends it."""
        task = self._loop.create_task(work)

        def cancel() -> None:
            task.cancel()

        self._signals.attach(self._loop, cancel)
        try:
            self._loop.run_until_complete(task)
        except asyncio.CancelledError:
            self.screen.message(say("conversation.stopped"), "yellow")
        except DragomanError as error:
            self.screen.message(say("run_failed", message=error), "red")
        finally:
            self._signals.detach()
        code, self._signals.code = self._signals.code, 0
        if code not in (0, EXIT_INTERRUPTED):
            self.leave(code)

    def show_progress(self, text: str) -> None:
        self.screen.message(text, "dim")

    async def _edit(self, text: str, name: str) -> str | None:
        from dragoman.conversation.editor import edit

        with self._signals.leave_to_editor():
            return await edit(text, name, self.screen.descriptor, self.agent.directories)

    # --- the end

    def _close(self) -> None:
        loop = self._loop
        loop.run_until_complete(close_agent(self.agent))
        end_tasks(loop)
        self._say_how_to_come_back()
        self.screen.close()
        loop.close()
        for notice in tidy_sessions(self.setup):
            Messages().line(say("notice", text=notice))

    def _say_how_to_come_back(self) -> None:
        """Where there is something to come back to: a session that was never written, or was deleted meanwhile, is not offered."""
        session_id = self.agent.session_id
        if session_id in self.store.ids() and not self.screen.gone:
            self.screen.message(say("come_back", id=self.store.short_id(session_id)), "dim")
