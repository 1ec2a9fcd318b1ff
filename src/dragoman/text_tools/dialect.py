"""A dialect as data: how calls are written. The prompt, the history, the reader's trust and the grammar all follow from it."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.text_tools.raw_calls import Form

Family = Literal["json", "named", "tagged", "code"]

JsonLayout = Literal["object", "list", "name_as_key", "wrapped"]
TagLayout = Literal["function", "function_name", "invoke", "pairs", "elements", "nested", "xtml"]
CodeLayout = Literal["code_list", "code_lines", "braces"]
Layout = JsonLayout | Literal["named"] | TagLayout | CodeLayout
"""How one call is laid out."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One way of writing calls as text."""

    name: str
    family: Family
    layout: Layout
    forms: frozenset[Form]
    """The forms that count as this dialect after its own markers."""
    openers: tuple[str, ...] = ()
    """Its markers, in `openers.OPENERS`."""
    is_bare: bool = False
    """Whether calls may have no marker."""
    in_fence: bool = False
    """Whether calls are written in a ```json fence."""
    aliases: tuple[str, ...] = ()
    section: tuple[str, str] = ("", "")
    """Around all calls of an answer."""
    call: tuple[str, str] = ("", "")
    """Around each call."""
    between: str = "\n"
    """Between one call and the next."""
    name_key: str = "name"
    args_key: str = "arguments"
    name_prefix: str = ""
    name_suffix: str = ""
    separator: str = ""
    """Between the name and the arguments."""
    tags: str = ""
    """Which tags, for dialects that write arguments between tags."""
    quote: str = '"'
    """Around strings, for dialects with their own string delimiters."""
    thinking: tuple[str, str] = ("<think>", "</think>")
    response: tuple[str, str] = ("<tool_response>\n", "\n</tool_response>")


AUTO = "auto"
DEFAULT = "dragoman"
FENCED_JSON = "fenced_json"
