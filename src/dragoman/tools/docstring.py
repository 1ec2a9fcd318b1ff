"""Parsing docstrings: what a function does, and what each parameter means."""

from __future__ import annotations

import re

_HEADING = re.compile(r"(Args|Arguments|Parameters|Params):\s*\Z")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)\Z")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and the `Args:` entry of each parameter. Expects cleaned indentation (`inspect.getdoc`)."""
    kept: list[str] = []
    described: dict[str, str] = {}
    lines = text.splitlines()
    position = 0
    while position < len(lines):
        if _HEADING.match(lines[position]):
            end = _end_of_section(lines, position + 1)
            described.update(_entries(lines[position + 1 : end]))
            position = end
        else:
            kept.append(lines[position].rstrip())
            position += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), described


def _end_of_section(lines: list[str], start: int) -> int:
    """The first line after the heading that is not indented."""
    return next((at for at in range(start, len(lines)) if lines[at].strip() and not lines[at][0].isspace()), len(lines))


def _entries(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name, depth = "", -1
    for line in lines:
        indent = len(line) - len(line.lstrip())
        entry = _ENTRY.match(line.strip())
        if entry and (depth < 0 or indent <= depth):
            name, depth = entry.group(1), indent
            found[name] = entry.group(2)
        elif name and line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
