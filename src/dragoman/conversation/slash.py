"""Slash commands of the conversation, as the rows of `commands.py` have them."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, ClassVar, TypeVar

from dragoman.base.text import did_you_mean
from dragoman.conversation.commands import Command, Place, commands_of, find_command, function_of
from dragoman.conversation.subcommand import Subcommand, parse_words, run_subcommand
from dragoman.conversation.talk import Talk
from dragoman.values.errors import DragomanError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.slash_commands import Invocation
    from dragoman.conversation.subcommand import Printed

T = TypeVar("T")


def begins_with_path(line: str) -> bool:
    """Whether the first word is an absolute path: it has a second slash, or something of that name is there. Or it is a prompt of an MCP
    server, which goes to the model too."""
    word = line.split(maxsplit=1)[0]
    return "/" in word[1:] or word.startswith("/mcp__") or os.path.lexists(word)


class SlashCommands:
    """`run` takes the whole line, with its slash. Nothing of it is sent to the model.

    A command is the function that its row names, or `do_NAME` here, where it depends on how things are shown. What a function returns is
    shown: a text of ours, what a subcommand printed, or work that takes a while.
    """

    place: ClassVar[Place] = "plain"

    def __init__(self, conversation: Talk) -> None:
        self._conversation = conversation
        self._say = conversation.screen.message

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.slash for each in commands_of(self.place))

    def knows(self, line: str) -> bool:
        return line.split(maxsplit=1)[0] in self.names

    def find_in_files(self, line: str) -> Invocation | None:
        """A command in a file, or a skill. What is built in has its name for itself."""
        from dragoman.app.slash_commands import FileCommands

        commands = FileCommands(self._conversation.setup, self.names)
        for notice in commands.notices_about(line):
            self._say(notice, "yellow")
        return commands.find(line)

    def run(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        command = find_command(name, self.place)
        if command is None:
            self._say(say("unknown_command", name=name[:60], hint=did_you_mean(name, self.names)), "yellow")
        elif own := getattr(self, own_method(command), None):
            own(rest.strip())
        else:
            self._call(command, rest.strip())

    def _call_shared(self, name: str, rest: str) -> None:
        """The function of a row, the same in every conversation."""
        command = find_command(f"/{name}", self.place)
        assert command is not None
        self._call(command, rest)

    def _call(self, command: Command, rest: str) -> None:
        match self._try(lambda: function_of(command)(self._conversation, rest)):
            case None:
                return
            case str() as text:
                for line in text.splitlines():
                    self._say(line)
            case Coroutine() as work:
                self._conversation.start(work)
            case Subcommand() as subcommand:
                self._run_subcommand(f"dragoman {command.name} {rest}".strip(), subcommand)
            case printed:
                self._show_printed(f"dragoman {command.name} {rest}".strip(), printed)

    def do_help(self, rest: str) -> None:
        from dragoman.conversation.command_pages import help_page

        self._conversation.screen.page(help_page(self.place))
        self._list_file_commands()

    def _list_file_commands(self) -> None:
        from dragoman.conversation.pages.skills_command import file_command_lines

        for line in file_command_lines(self._conversation.setup, self.names):
            self._conversation.screen.line(line)

    def do_model(self, rest: str) -> None:
        if not rest:
            self._say(say("model_is", model=self._conversation.model))
            return
        self._conversation.change_model(rest)

    def do_prune(self, rest: str) -> None:
        self._call_shared("context", "prune")

    def do_search(self, rest: str) -> None:
        from dragoman.conversation.searching import search_in

        if not rest:
            return self._say(say("conversation.search_usage"), "yellow")
        self._conversation.start(search_in(self._conversation, rest, self._show_found))

    def do_resume(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import open_named

        if rest:
            return open_named(self._conversation, rest)
        self._call_shared("sessions", "list")
        self._say(say("conversation.resume_usage"), "dim")

    def do_models(self, rest: str) -> None:
        if rest.split()[:1] == ["pull"]:
            return self._pull_model(rest)
        talk = self._conversation
        subcommand = self._try(lambda: Subcommand(parse_words(talk.setup, "models", rest), talk.screen.columns))
        if subcommand is not None:
            self._run_subcommand(f"dragoman models {rest}".strip(), subcommand)

    # --- how it is shown

    def _run_subcommand(self, title: str, subcommand: Subcommand) -> None:
        """Nothing else goes on in this conversation meanwhile."""
        printed = self._try(lambda: run_subcommand(*subcommand))
        if printed is not None:
            self._show_printed(title, printed)

    def _show_found(self, text: str) -> None:
        self._conversation.screen.page(text)

    def _pull_model(self, rest: str) -> None:
        """Line by line the program may ask for itself, and shows how far it has come."""
        from dragoman.conversation.pages.models import run_models

        said = self._try(lambda: run_models(parse_words(self._conversation.setup, "models", rest)))
        if isinstance(said, str):
            self._conversation.screen.page(said.rstrip("\n"))

    def _try(self, act: Callable[[], T]) -> T | None:
        try:
            return act()
        except DragomanError as error:
            self._say(str(error), "yellow")
            return None

    def _show_printed(self, title: str, printed: Printed) -> None:
        for notice in printed.notices:
            self._say(notice, "yellow")
        if printed.text.strip():
            self._conversation.screen.page(printed.text.rstrip("\n"))


def own_method(command: Command) -> str:
    """What the way of a front end for a command is called."""
    return f"do_{command.name.replace('-', '_')}"
