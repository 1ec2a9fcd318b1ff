"""Calls as written, before they are matched to tools."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Form = Literal["json", "named", "function", "function_name", "invoke", "pairs", "elements", "nested", "xtml", "code", "braces", "raw"]
"""How a call was written."""


class RawCall(msgspec.Struct, frozen=True):
    """A call as written, not yet matched to a tool."""

    name: str
    args: dict[str, Any]
    form: Form
    start: int
    end: int
    is_raw: bool = False
    """Whether the values are untyped text."""
    repairs: tuple[str, ...] = ()
    positional: tuple[Any, ...] = ()


class CallBlock(msgspec.Struct, frozen=True):
    calls: tuple[RawCall, ...]
    is_closed: bool
    """Whether it is complete. A block that is not closed at the output limit was truncated."""
    is_cut: bool = False
    """Whether the answer ended within a value, with brackets missing."""
    opener: str = ""
    faults: tuple[str, ...] = ()
    """Why parts that began like a call are not one."""
