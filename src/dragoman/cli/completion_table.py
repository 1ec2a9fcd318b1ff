"""What a shell can complete: commands, actions, options and their values.

Everything comes from the rows of commands, the tables by which the command line is parsed (arguments.OPTIONS, the ACTIONS of a command) and
the help texts, so a new command or option is completed without being named here.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Literal, NamedTuple

from dragoman.app.arguments import COMMANDS, OPTIONS
from dragoman.base.graphemes import fit
from dragoman.cli.program import PRINTING_COMMANDS
from dragoman.conversation.actions import Action
from dragoman.conversation.commands import Kind, Operand, commands_of
from dragoman.conversation.help_texts import help_for

SHELLS = ("bash", "zsh", "fish")

_VALUES: dict[str, Kind] = {
    "model": "models",
    "fallback": "models",
    "request": "models",
    "resume": "sessions",
    "include": "directories",
    "directory": "directories",
    "config": "files",
    "record": "files",
    "output": "files",
    "source": "files",
}
"""Key of an option → its values."""
_DESCRIPTION_COLUMNS = 60


class Word(NamedTuple):
    """Something to offer."""

    name: str
    about: str = ""


class CompletedOption(NamedTuple):
    """An option as the completion scripts need it."""

    names: tuple[str, ...]
    takes: Literal["nothing", "value", "maybe", "many"]
    choices: tuple[str, ...]
    kind: Kind
    about: str


class CompletedCommand(NamedTuple):
    """A command, or `run` for what stands without one."""

    name: str
    about: str
    options: tuple[CompletedOption, ...]
    actions: tuple[Word, ...]
    words: Kind
    """What may follow the command itself."""
    operands: dict[str, Kind]
    """Action → what may follow it."""


def completed_commands() -> list[CompletedCommand]:
    return [_completed(command) for command in ("run", *COMMANDS)]


def _completed(command: str) -> CompletedCommand:
    text = help_for(command)
    actions = _actions_of(command)
    about = _described_actions(command, text)
    shown = [Word(name, about.get(name, "")) for name in actions if command != "completions" or name in SHELLS]
    if command == "sessions":
        shown.append(Word("resume", about.get("resume", "")))  # the program takes it for --resume
    operands = {name: _kind_of(action.operand, command) for name, action in actions.items()}
    if command == "sessions":
        operands["resume"] = "sessions"
    return CompletedCommand(command, _summary(text), _options_of(command, text), tuple(shown), _kind_of("", command), operands)


def _actions_of(command: str) -> dict[str, Action[object]]:
    """The table of its module; two commands in one module have a table each. Not every command has actions."""
    module = import_module(f"dragoman.{PRINTING_COMMANDS[command][0]}") if command in PRINTING_COMMANDS else None
    return getattr(module, f"{command.upper()}_ACTIONS", None) or getattr(module, "ACTIONS", {})


def _kind_of(operand: str, command: str) -> Kind:
    """What an action asks for; or what may follow the command itself, and each of its actions, beside these."""
    operands = _operands_of(command)
    of_action = next((each for each in operands if operand and each.behind == "actions" and each.name == operand.strip("[]")), None)
    found = of_action or next((each for each in operands if each.behind == "shell"), None)
    return found.completes if found is not None else ""


def _operands_of(command: str) -> tuple[Operand, ...]:
    return next((each.operands for each in commands_of("shell") if each.name == command), ())


def _options_of(command: str, text: str) -> tuple[CompletedOption, ...]:
    about = {row.group(1): row.group(2) for row in re.finditer(r"^ +(?:-\w, )?(--[\w-]+)[^\n]*?  +(\S.*)$", text, re.MULTILINE)}
    found = [option for option in OPTIONS if not option.commands or command in option.commands]
    return tuple(
        CompletedOption(option.names, option.takes, option.choices, _VALUES.get(option.key, ""), _short(about.get(option.names[-1], "")))
        for option in found
    )


def _described_actions(command: str, text: str) -> dict[str, str]:
    rows = re.finditer(rf"dragoman {command} \[?([\w-]+)\]?[^\n]*?  +(\S.*)$", text, re.MULTILINE)
    return {row.group(1): _short(row.group(2)) for row in rows}


def _summary(text: str) -> str:
    """What a command is for: beside its first usage, or the first sentence below."""
    usage, _, rest = text.partition("\n\n")
    beside = usage.split("\n")[0].rpartition("  ")
    return _short(beside[2] if beside[0] else rest)


def _short(text: str) -> str:
    """The first clause; nothing of a row that has cells of its own."""
    clause = re.split(r"[;:.] |\.$|\n", text.strip())[0].strip()
    return "" if "  " in clause else fit(clause, _DESCRIPTION_COLUMNS)
