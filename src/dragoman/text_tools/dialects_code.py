"""Dialects in which a call is written as code."""

from __future__ import annotations

from dragoman.text_tools.dialect import Dialect
from dragoman.text_tools.raw_calls import Form

_CODE: frozenset[Form] = frozenset(("code",))
_CODE_OR_JSON: frozenset[Form] = frozenset(("code", "json"))
_BRACES: frozenset[Form] = frozenset(("braces",))

CODE: tuple[Dialect, ...] = (
    Dialect(
        name="pythonic",
        family="code",
        layout="code_list",
        forms=_CODE,
        is_bare=True,
        aliases=("llama32_pythonic", "toolace", "gemma3_pythonic", "raven", "nexusraven", "arctic", "deepseek_coder"),
    ),
    Dialect(
        name="gorilla",
        family="code",
        layout="code_lines",
        forms=_CODE,
        openers=("<<function>>",),
        aliases=("gorilla_openfunctions",),
        call=("<<function>>", ""),
        between="",
    ),
    Dialect(
        name="llama4",
        family="code",
        layout="code_list",
        forms=_CODE_OR_JSON,
        openers=("<|python_start|>",),
        is_bare=True,
        aliases=("llama4_pythonic",),
        section=("<|python_start|>", "<|python_end|>"),
    ),
    Dialect(
        name="olmo3",
        family="code",
        layout="code_lines",
        forms=_CODE,
        openers=("<function_calls>",),
        aliases=("olmo3_pythonic", "olmo"),
        section=("<function_calls>", "</function_calls>"),
    ),
    Dialect(
        name="lfm2",
        family="code",
        layout="code_list",
        forms=_CODE_OR_JSON,
        openers=("<|tool_call_start|>",),
        aliases=("lfm2_pythonic", "lfm25"),
        section=("<|tool_call_start|>", "<|tool_call_end|>"),
    ),
    Dialect(
        name="gemma4",
        family="code",
        layout="braces",
        forms=_BRACES,
        openers=("<|tool_call>",),
        call=("<|tool_call>", "<tool_call|>"),
        between="",
        quote='<|"|>',
        thinking=("<|channel>thought\n", "<channel|>"),
        response=("<|tool_response>", "<tool_response|>"),
    ),
    Dialect(
        name="functiongemma",
        family="code",
        layout="braces",
        forms=_BRACES,
        openers=("<start_function_call>",),
        call=("<start_function_call>", "<end_function_call>"),
        between="",
        quote="<escape>",
        response=("<start_function_response>", "<end_function_response>"),
    ),
)
