"""A table of results: Markdown for people, data for programs."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

Cell = str | float | int | None
"""None is a cell that cannot be measured."""


@dataclass
class Table:
    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [self.columns, ["---"] + ["--:"] * (len(self.columns) - 1), *([_shown(cell) for cell in row] for row in self.rows)]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n".join([f"### {self.title}", "", body, "", *(f"- {note}" for note in self.notes), ""])

    def data(self) -> dict[str, object]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": self.notes}


def _shown(cell: Cell) -> str:
    match cell:
        case None:
            return "–"
        case float() if cell >= 100:
            return f"{cell:,.0f}"
        case float() if cell >= 10:
            return f"{cell:.1f}"
        case float():
            return f"{cell:.2f}"
        case int():
            return f"{cell:,}"
        case _:
            return cell


def machine() -> str:
    """What it was measured on and with."""
    packages = ", ".join(f"{name} {_version(name)}" for name in ("msgspec", "httpx2", "openai", "anthropic", "google-genai"))
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"Python {platform.python_version()}, {sys.platform} {platform.machine()}, {os.cpu_count()} cores{load}; {packages}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
