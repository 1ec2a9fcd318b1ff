"""Slash commands of a conversation without a screen of its own: what they show is a page."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dragoman.conversation.slash import SlashCommands
from dragoman.conversation.style import Style
from dragoman.conversation.subcommand import Subcommand, run_beside_others
from dragoman.conversation.types import CommandPage
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.setup import Setup
    from dragoman.app.slash_commands import Invocation
    from dragoman.loop.agent import Agent
    from dragoman.sessions.store import FileStore
    from dragoman.values.usage import Usage

T = TypeVar("T")


class HeldCommands(SlashCommands):
    """Those of the plain conversation. Nothing is asked on the terminal of the process."""

    def do_models(self, rest: str) -> None:
        if rest.split()[:1] == ["pull"]:
            raise InputError(say("conversation.pull_in_terminal", words=rest))
        super().do_models(rest)

    def do_resume(self, rest: str) -> None:
        if rest:
            return super().do_resume(rest)
        self._call_shared("sessions", "list")
        self._conversation.start(self._say_usage(say("conversation.resume_usage")))

    async def _say_usage(self, text: str) -> None:
        """Below what was listed."""
        self._say(text, "dim")

    def _run_subcommand(self, title: str, subcommand: Subcommand) -> None:
        self._conversation.start(self._show_beside_others(title, subcommand))

    async def _show_beside_others(self, title: str, subcommand: Subcommand) -> None:
        self._show_printed(title, await run_beside_others(subcommand))

    def _try(self, act: Callable[[], T]) -> T:
        """What is raised is the page: it failed."""
        return act()


class CommandHost(Protocol):
    """The conversation that a command is about."""

    may_retry: bool
    agent: Agent
    setup: Setup
    store: FileStore
    runs: int

    @property
    def usage(self) -> Usage: ...

    @property
    def cost_usd(self) -> float | None: ...

    @property
    def cost_is_whole(self) -> bool: ...

    @property
    def model(self) -> str: ...

    def change_model(self, name: str) -> None: ...

    async def open_session(self, setup: Setup) -> None: ...


class HeldTalk:
    """Implements Talk for one command."""

    def __init__(self, conversation: CommandHost, line: str) -> None:
        self._conversation = conversation
        self._line = line
        self._work: list[Coroutine[Any, Any, None]] = []
        self._failed = False
        self.screen = PageScreen()
        self.may_retry = conversation.may_retry
        self.begins = False
        """Whether it begins a run: with this prompt or invocation, or without one, again from where the last one failed."""
        self.prompt: str | None = None
        self.invocation: Invocation | None = None

    async def carry_out(self, commands: HeldCommands) -> CommandPage:
        try:
            commands.run(self._line)
            while self._work:
                await self._work.pop(0)
        except DragomanError as error:
            self.screen.message(str(error))
            self._failed = True
        finally:
            self._conversation.may_retry = self.may_retry
            for left in self._work:
                left.close()
        return CommandPage(self._line, self.screen.text, tuple(self.screen.notices), self._failed or self.screen.has_failed)

    @property
    def agent(self) -> Agent:
        return self._conversation.agent

    @property
    def setup(self) -> Setup:
        return self._conversation.setup

    @property
    def store(self) -> FileStore:
        return self._conversation.store

    @property
    def runs(self) -> int:
        return self._conversation.runs

    @property
    def model(self) -> str:
        return self._conversation.model

    @property
    def usage(self) -> Usage:
        return self._conversation.usage

    @property
    def cost_usd(self) -> float | None:
        return self._conversation.cost_usd

    @property
    def cost_is_whole(self) -> bool:
        return self._conversation.cost_is_whole

    def ask(self, prompt: str | None, invocation: Invocation | None = None) -> None:
        self.begins, self.prompt, self.invocation = True, prompt, invocation

    def change_model(self, name: str) -> None:
        self._conversation.change_model(name)
        self.screen.message(say("model_is_now", model=self._conversation.model))

    def leave(self, code: int) -> None:
        raise InputError(say("conversation.session_held"))

    async def open_session(self, setup: Setup) -> None:
        await self._conversation.open_session(setup)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work.append(work)

    def show_progress(self, text: str) -> None:
        """What it comes to is on the page."""


class PageScreen:
    """Collects what a command shows."""

    columns = 100

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.notices: list[str] = []
        self.has_failed = False

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def message(self, text: str, style: Style = "") -> None:
        self.has_failed = self.has_failed or style == "red"
        self._lines.append(str(text))

    def page(self, text: str) -> None:
        self._lines.append(text.rstrip("\n"))

    def line(self, text: str, style: Style = "") -> None:
        self._lines.append(str(text))
