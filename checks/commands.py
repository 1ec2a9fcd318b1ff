"""The table of slash commands in docs/use/commands.md, made from the rows of conversation/commands.py: `python -m checks.commands`."""

from __future__ import annotations

from pathlib import Path

from dragoman.conversation.command_pages import docs_table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "use" / "commands.md"
BEGIN, END = "<!-- commands -->", "<!-- end of commands -->"


def filled(page: str) -> str:
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{docs_table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
