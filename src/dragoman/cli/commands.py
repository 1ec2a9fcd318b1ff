"""What a line that begins with a slash does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from dragoman.base.graphemes import fit
from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.cli.help_texts import help_for
from dragoman.cli.terminal_report import spent_words
from dragoman.policy.judge import Mode

if TYPE_CHECKING:
    from dragoman.cli.conversation import Conversation


class Commands:
    """`do` takes a line with its slash. Nothing of it is sent to the model."""

    def __init__(self, conversation: Conversation) -> None:
        self._talk = conversation
        self._say = conversation.screen.message
        self._known: dict[str, Callable[[str], None]] = {
            "/help": self._help,
            "/model": self._model,
            "/retry": self._retry,
            "/approval": self._approval,
            "/tools": self._tools,
            "/usage": self._usage,
            "/quit": self._quit,
            "/exit": self._quit,
        }

    def do(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        command = self._known.get(name)
        if command is None:
            self._unknown(name)
        else:
            command(rest.strip())

    def _unknown(self, name: str) -> None:
        from dragoman.base.text import closest

        near = closest(name, self._known)
        self._say(say("unknown_command", name=name[:60], hint=say("did_you_mean", name=near[0]) if near else ""), "yellow")

    def _help(self, rest: str) -> None:
        self._talk.screen.line(help_for("terminal").rstrip("\n"))

    def _model(self, rest: str) -> None:
        if not rest:
            self._say(say("model_is", model=self._talk.model))
            return
        self._talk.change_model(rest)

    def _retry(self, rest: str) -> None:
        if self._talk.may_retry:
            self._talk.ask(None)
        else:
            self._say(say("nothing_to_retry"), "yellow")

    def _approval(self, rest: str) -> None:
        approvals = self._talk.agent.approvals
        mode = next((mode for mode in get_args(Mode) if mode == rest), None)
        if mode is not None:
            approvals.mode = mode
        elif rest == "auto":
            self._say(say("no_sandbox"), "yellow")
            return
        elif rest:
            self._say(say("no_such_mode", name=rest[:60], known=", ".join(get_args(Mode))), "yellow")
            return
        self._say(say("approval_is", mode=approvals.mode, meaning=say(f"mode_{approvals.mode}")))

    def _tools(self, rest: str) -> None:
        screen, specs = self._talk.screen, self._talk.agent.registry.specs
        width = max((len(spec.name) for spec in specs), default=0)
        for spec in specs:
            summary = one_line(spec.description).partition(". ")[0].rstrip(".")
            text = summary if spec.read_only else say("asking_tool", text=summary)
            screen.line(fit(f"  {spec.name:{width}}  {text}", screen.columns - 1))

    def _usage(self, rest: str) -> None:
        talk = self._talk
        self._say(say("usage_so_far", runs=talk.runs, spent=spent_words(talk.usage, talk.cost_usd, estimated=not talk.cost_is_whole)))

    def _quit(self, rest: str) -> None:
        self._talk.leave(0)
