"""The tables of slash commands in docs/use/commands.md and its Chinese twin, made from the rows of conversation/commands.py.

`python -m checks.commands` writes both.
"""

from __future__ import annotations

from functools import partial

from checks.marked import ROOT, Part
from dragoman.conversation.command_pages import about
from dragoman.conversation.commands import GROUPS, Command, listed
from dragoman.words import choose_language, chosen_language, say

PAGES = {"en": ROOT / "docs" / "use" / "commands.md", "zh": ROOT / "docs" / "use" / "commands.zh-CN.md"}
HEADS = {"en": ("command", "what it does", "during a run", "also called"), "zh": ("命令", "作用", "运行时", "别名")}


def tables(language: str) -> str:
    """All slash commands, a table for each group, in the words of this language."""
    before = chosen_language()
    choose_language(language)
    try:
        lines = _before_the_tables(language)
        for group in GROUPS:
            rows = [_row(each, language) for each in listed("live") if each.group == group]
            lines += ["", f"### {say(f'commands.group_{group}')}", "", f"| {' | '.join(HEADS[language])} |", "|---|---|:-:|---|", *rows]
    finally:
        choose_language(before)
    return "\n".join(lines)


def _before_the_tables(language: str) -> list[str]:
    plain = {each.name for each in listed("plain")}
    only_live = [f"`{each.slash}`" for each in listed("live") if each.name not in plain]
    if language == "zh":
        return [
            "标有 ✓ 的命令在运行时也能用，其余的要等运行结束。",
            "逐行对话中没有下面这些命令，其余都有：",
            f"{'、'.join(only_live)}。",
            "最后一栏是其他程序里的叫法。",
            "它们在这里同样有效，除非你自己的某个命令用了这个名字。",
        ]
    return [
        "A ✓ marks a command that you may use while a run works. The others wait for its end.",
        "The plain conversation has all of them except these:",
        f"{', '.join(only_live[:-1])} and {only_live[-1]}.",
        "The names in the last column are those of other programs.",
        "They work here too, unless a command of your own has the name.",
    ]


def _row(command: Command, language: str) -> str:
    during = "✓" if command.while_running else ""
    if command.waits_with:
        during += {"en": ", except ", "zh": "，除了 "}[language]
        during += {"en": ", ", "zh": "、"}[language].join(f"`{each}`" for each in command.waits_with)
    aliases = {"en": ", ", "zh": "、"}[language].join(f"`/{each}`" for each in command.aliases)
    cells = (f"`{command.usage}`", about(command), during, aliases)
    return f"| {' | '.join(each.replace('|', '&#124;') for each in cells)} |"


PARTS = [Part(page, "commands", partial(tables, language)) for language, page in PAGES.items()]

if __name__ == "__main__":
    for part in PARTS:
        part.write()
