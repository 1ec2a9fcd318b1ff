"""Calls as they were written, before anything is known of the tools they mean."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Form = Literal["json", "named", "function", "function_name", "invoke", "pairs", "elements", "nested", "xtml", "code", "braces", "raw"]
"""How a call was written."""


class Raw(msgspec.Struct, frozen=True):
    """A call as it was written: nothing is known yet of the tool."""

    name: str
    args: dict[str, Any]
    form: Form
    start: int
    end: int
    is_raw: bool = False
    """Whether the values are text that says nothing of its type."""
    repairs: tuple[str, ...] = ()
    positional: tuple[Any, ...] = ()


class Block(msgspec.Struct, frozen=True):
    calls: tuple[Raw, ...]
    is_closed: bool
    """Whether all that belongs to it was there. What is not closed at the output limit was cut off."""
    is_cut: bool = False
    """Whether the answer ended within a value, brackets missing."""
    opener: str = ""
    faults: tuple[str, ...] = ()
    """Why something in it that began like a call is none."""
