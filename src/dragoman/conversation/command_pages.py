"""What is made of the rows of `commands.py`: `/help`, the menu behind a `/`, and what may follow a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dragoman.conversation.commands import GROUPS, Command, Place, find_command, listed
from dragoman.words import lookup, say

_COLUMN = 19
"""Where the sentences of the page begin."""


def help_groups(place: Place) -> Iterator[tuple[str, list[tuple[Command, str]]]]:
    """Each heading with its commands, and what each does in a line."""
    commands = listed(place)
    for group in GROUPS:
        rows = [(each, say(f"commands.help_{each.name}")) for each in commands if each.group == group]
        yield say(f"commands.group_{group}"), rows


def menu_rows(place: Place) -> Mapping[str, str]:
    """Name with its slash → what it does, in the order in which they are offered."""
    rows = {command.slash: about for _, rows in help_groups(place) for command, about in rows}
    return {"/help": rows["/help"], **rows}


def choices_after(line: str, place: Place) -> list[tuple[str, str]]:
    """What may follow a command that stands alone, each with its sentence."""
    command = find_command(line, place)
    operand = command.operands[0] if command is not None and command.operands else None
    if operand is None:
        return []
    return [(each, operand.about(each) if operand.about is not None else "") for each in operand.choices]


def help_page(place: Place) -> str:
    """`/help` line by line: every command with what may follow it, and all there is to say in a line or two."""
    lines: list[str] = []
    for heading, rows in help_groups(place):
        lines += [heading, *(line for command, _ in rows for line in _page_lines(command)), ""]
    return "\n".join([*lines, say("commands.foot")])


def _page_lines(command: Command) -> list[str]:
    usage = f"  {command.usage}"
    if len(usage) > _COLUMN:
        return [usage, f"{'':{_COLUMN + 2}}{about(command)}"]
    return [f"{usage:{_COLUMN}}  {about(command)}"]


def about(command: Command) -> str:
    """The longer sentence where there is one."""
    longer = f"commands.more_{command.name}"
    return say(longer) if lookup(longer) is not None else say(f"commands.help_{command.name}")
