"""What is made of the rows of `commands.py`: `/help`, the menu behind a `/`, what may follow a command, and the table in the docs."""

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


# --- docs/use/commands.md


def docs_table() -> str:
    """Return the tables of all slash commands, one for each group, in English as the page is."""
    plain = {each.name for each in listed("plain")}
    only_live = [f"`{each.slash}`" for each in listed("live") if each.name not in plain]
    lines = [
        "A ✓ marks a command that you may use while a run works. The others wait for its end.",
        "The plain conversation has all of them except these:",
        f"{', '.join(only_live[:-1])} and {only_live[-1]}.",
        "The names in the last column are those of other programs.",
        "They work here too, unless a command of your own has the name.",
    ]
    for group in GROUPS:
        rows = [_docs_row(each) for each in listed("live") if each.group == group]
        lines += [
            "",
            f"### {say(f'commands.group_{group}')}",
            "",
            "| command | what it does | during a run | also called |",
            "|---|---|:-:|---|",
        ]
        lines += rows
    return "\n".join(lines)


def _docs_row(command: Command) -> str:
    during = "✓" if command.while_running else ""
    if command.waits_with:
        during += f", except {', '.join(f'`{each}`' for each in command.waits_with)}"
    cells = (f"`{command.usage}`", about(command), during, ", ".join(f"`/{each}`" for each in command.aliases))
    return f"| {' | '.join(each.replace('|', '&#124;') for each in cells)} |"
