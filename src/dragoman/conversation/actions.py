"""The actions of a command, such as `sessions fork` or `models pull`: what each one runs and which options it takes.

arguments.OPTIONS says which options a command takes; an action takes some of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from dragoman.app.arguments import OPTIONS
from dragoman.app.options import Options
from dragoman.base.text import did_you_mean, one_line
from dragoman.values.errors import InputError
from dragoman.words import say

T = TypeVar("T")


Output = str | bytes | tuple[str, int]
"""What a command returns to be printed: a text, which may be laid out to the width, or bytes, which go out as they are. A code that
comes with it is the exit code."""


class Action(NamedTuple, Generic[T]):
    """One row of a command's table of actions. T: what its function works on."""

    run: Callable[[T], Output]
    operand: str = ""
    """The argument it needs: `ID`, `TEXT`, `FILE` or `NAME`; in brackets where it may be left out."""
    options: tuple[str, ...] = ()
    """Keys of arguments.OPTIONS."""
    json: bool = True
    """Whether it has a JSON form."""


def find_action(options: Options, actions: Mapping[str, Action[T]]) -> tuple[str, Action[T]]:
    """The action that the first word names, with its name; `list` if there is no word. Raises InputError."""
    name = options.words[0] if options.words else "list"
    if action := actions.get(name):
        return name, action
    hint = did_you_mean(name, actions)
    raise InputError(say("unknown_action", name=one_line(name, 60), command=options.command, hint=hint, known=", ".join(actions)))


def refuse_options(options: Options, action: Action[Any], command: str, problem: str = "not_for_command") -> None:
    """Raises InputError for the first option given that the action does not take. `problem` is the id of the sentence."""
    defaults = Options()
    for option in OPTIONS:
        if options.command not in option.commands or option.key in ("output_format", *action.options):
            continue
        if getattr(options, option.key) != getattr(defaults, option.key):
            raise InputError(say(problem, name=option.names[-1], command=command))
    if options.output_format != "text" and not action.json:
        raise InputError(say(problem, name="--output-format", command=command))
