"""Reading a whole answer for calls, and the guidance that asks for them: for whoever talks to a model without us."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.text_tools.calls import Parsed
from dragoman.text_tools.dialect import AUTO, DEFAULT
from dragoman.text_tools.dialect_table import find_dialect
from dragoman.text_tools.parser import parse
from dragoman.text_tools.prompt import render_prompt
from dragoman.text_tools.toolset import Tool
from dragoman.values.errors import InputError


def read_calls(text: str, tools: Iterable[Tool] | None = None, *, dialect: str = AUTO, keep_text: bool = True) -> Parsed:
    """Read the calls that a model wrote as text (the documents' parseTextForToolCalls): `calls`, the `text` beside them without thinking
    (cleanText), and the answer as it came, `original_text`.

    `tools` are the tools it may call: names and arguments are matched to them. Without them any name counts. `dialect` is the form it was
    asked for; by itself, each known one is recognised. Without `keep_text` (preserveContext), text beside calls is dropped, as
    native calls have none. Raises InputError for a dialect that nobody knows, and for what declares no tool.
    """
    parsed = parse(text, tools, dialect=_known(dialect))
    return parsed if keep_text or not parsed.calls else msgspec.structs.replace(parsed, text="")


def call_guidance(tools: Iterable[Tool], dialect: str = DEFAULT) -> str:
    """Describe tools to a model without function calling, and how to call them (the documents' createSystemToolGuidance). Empty without
    tools."""
    return render_prompt(tools, _known(dialect))


def _known(dialect: str) -> str:
    try:
        return dialect if dialect == AUTO else find_dialect(dialect).name
    except ValueError as error:
        raise InputError(str(error)) from None
