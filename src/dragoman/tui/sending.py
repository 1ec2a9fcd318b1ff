"""Handles what the user sends (a prompt, a command, a shell line): now, or when the current run is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.conversation.commands import find_command
from dragoman.conversation.slash import begins_with_path
from dragoman.tui import cells
from dragoman.tui.commands import LiveCommands
from dragoman.tui.line import EMPTY
from dragoman.tui.prompt import PromptInput
from dragoman.tui.talk import LiveTalk
from dragoman.tui.turns import Turns

if TYPE_CHECKING:
    from dragoman.app.slash_commands import Invocation


class Sending:
    """Takes what the user sends, and decides when it is carried out."""

    def __init__(self, talk: LiveTalk, prompt: PromptInput, turns: Turns) -> None:
        self._talk = talk
        self._prompt = prompt
        self._turns = turns

    def send(self, *, queued: bool) -> None:
        if not self._prompt.composer.whole_text().strip():
            return
        text = self._prompt.take().rstrip()
        if not self._talk.is_busy:
            return self.submit(text)
        is_command = text.startswith(("/", "!")) and not text.startswith("//") and not begins_with_path(text)
        if is_command and _may_run_now(text.split()):
            self.run_command(text)
        elif queued or is_command or not self._turns.can_steer:
            self._turns.queue(text)
        else:
            self._turns.steer(text.removeprefix("/") if text.startswith("//") else text)

    def submit(self, text: str) -> None:
        if text.startswith("!") and text[1:].strip():
            self.show(text)
            self._turns.run_own(text[1:].strip(), self._talk.setup.workspace)
        elif text.startswith("//"):
            self.ask(text[1:])
        elif not text.startswith("/") or not self.run_command(text):
            self.ask(text)

    def run_command(self, text: str) -> bool:
        """False if it is not a command but begins with a path."""
        commands = LiveCommands(self._talk)
        if not commands.knows(text):
            if (invocation := commands.find_in_files(text)) is not None:
                self.ask(text, invocation)
                return True
            if begins_with_path(text):
                return False
        is_list = _opens_list(text.strip())
        if not is_list:
            self.show(text)
        commands.run(text)
        if not is_list:
            self._talk.canvas.part()
        return True

    def show(self, text: str, *, within: bool = False) -> None:
        """`within`: a run that goes on with it."""
        canvas = self._talk.canvas
        if within:
            canvas.part()
        canvas.commit(cells.prompt(text, canvas.columns))
        if within:
            canvas.part()

    def ask(self, prompt: str | None, invocation: Invocation | None = None) -> None:
        """Begin a run. Without a prompt: retry from where the last one failed. With an invocation: what that stands for."""
        if prompt is not None:
            self.show(prompt)
            self._talk.canvas.commit([EMPTY])
        self._turns.ask(self._talk.agent, prompt, invocation)


def _may_run_now(words: list[str]) -> bool:
    """During a run; a file's command of the name that another program gives one of ours is a prompt, and waits."""
    command = find_command(words[0], "live")
    return command is not None and command.slash == words[0] and not command.waits(words)


def _opens_list(line: str) -> bool:
    command = find_command(line, "live")
    return command is not None and command.slash == line and command.opens_list
