"""Where something that a user or a project has configured was read from, to show to the user."""

from __future__ import annotations

from typing import Literal

import msgspec

Program = Literal["dragoman", "agents", "claude", "codex", "gemini", "opencode"]
"""Whose files they are; `agents`: the folder `.agents`, which belongs to no program."""
Tier = Literal["user", "project"]


class Origin(msgspec.Struct, frozen=True, order=True):
    """The file and line that something was read from, to show to the user."""

    program: Program
    tier: Tier
    path: str
    line: int = 0
    """0: the whole file."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path
