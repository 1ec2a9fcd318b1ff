"""ROOM. Tools as text: for models or servers without native function calling. Dialects, a streaming reader of calls, prompts and history.

Importing it loads nothing else; each name loads its module when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.text_tools.calls import Call as Call
    from dragoman.text_tools.calls import Parsed as Parsed
    from dragoman.text_tools.dialect_table import dialects as dialects
    from dragoman.text_tools.gbnf import grammar as grammar
    from dragoman.text_tools.neutral import neutralise as neutralise
    from dragoman.text_tools.parser import StreamParser as StreamParser
    from dragoman.text_tools.parser import parse as parse
    from dragoman.text_tools.prompt import render_prompt as render_prompt
    from dragoman.text_tools.render import render_call as render_call
    from dragoman.text_tools.render import render_calls as render_calls
    from dragoman.text_tools.render import render_response as render_response

_EXPORTS: dict[str, str] = {
    "Call": "calls",
    "Parsed": "calls",
    "StreamParser": "parser",
    "dialects": "dialect_table",
    "grammar": "gbnf",
    "neutralise": "neutral",
    "parse": "parser",
    "render_call": "render",
    "render_calls": "render",
    "render_prompt": "prompt",
    "render_response": "render",
}

__all__ = [*_EXPORTS]  # pyrefly: ignore[unresolvable-dunder-all]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
