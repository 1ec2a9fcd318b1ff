"""Every marker that begins a call or a run of calls, its end markers, and what may be in between. One table for all dialects: many share
a marker, and what follows it distinguishes them."""

from __future__ import annotations

import msgspec

M3 = "]<]minimax[>["
"""What MiniMax M3 puts before each of its tags."""


class Opener(msgspec.Struct, frozen=True):
    open: str
    close: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    """Openers of the individual calls, if this one opens a run of them."""
    is_optional: bool = False
    """Whether the end marker may be missing without the call being truncated."""
    left: int = 0
    """How many of its characters belong to what follows and are not consumed."""
    has_noise: bool = False
    """Whether text between the calls is skipped."""
    is_code: bool = False
    """Whether calls may be written as code, one after the other."""
    name_as_key: bool = False


def _direct(*markers: str) -> tuple[Opener, ...]:
    """Markers that are part of the call itself."""
    return tuple(Opener(marker, left=len(marker)) for marker in markers)


_TABLE: tuple[Opener, ...] = (
    # JSON between tags
    Opener("<tool_call>", ("</tool_call>",)),
    Opener("<tool_call:opensource>", ("</tool_call:opensource>",)),
    Opener("<tool_calls>", ("</tool_calls>",), inner=("<tool_call>",)),
    Opener("<tool_calls:opensource>", ("</tool_calls:opensource>",), inner=("<tool_call:opensource>",)),
    Opener("<|tool_call|>", ("<|/tool_call|>", "<|end_tool_call|>"), is_optional=True),
    Opener("<function_call>", ("</function_call>",), is_optional=True),
    Opener("<TOOLCALL>", ("</TOOLCALL>",)),
    Opener("<longcat_tool_call>", ("</longcat_tool_call>",)),
    Opener("<|START_ACTION|>", ("<|END_ACTION|>",)),
    Opener("<|tools_prefix|>", ("<|tools_suffix|>",), name_as_key=True),
    Opener("<|action_start|><|plugin|>", ("<|action_end|>",)),
    Opener("<|action_start|> <|plugin|>", ("<|action_end|>",)),
    Opener("<|function_call|>", ("<|message_sep|>", "</s>"), is_optional=True),
    Opener("<|message_sep|>\n\nfunction call<|role_sep|>\n", ("<|message_sep|>", "</s>"), is_optional=True),
    Opener("<|content_invoke_tool_json|>", ("<|end_message|>",)),
    Opener("[TOOL_CALLS]", ("[/TOOL_CALLS]", "</s>"), is_optional=True),
    Opener("functools[", left=1),
    # a name, then JSON
    Opener(
        "<|tool_calls_section_begin|>",
        ("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
        inner=("<|tool_call_begin|>",),
        has_noise=True,
    ),
    Opener(
        "<|tool_call_section_begin|>",
        ("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
        inner=("<|tool_call_begin|>",),
        has_noise=True,
    ),
    Opener("<|tool_call_begin|>", ("<|tool_call_end|>",), is_optional=True),
    Opener("<｜tool▁calls▁begin｜>", ("<｜tool▁calls▁end｜>",), inner=("<｜tool▁call▁begin｜>",), has_noise=True),
    Opener("<｜tool▁call▁begin｜>", ("<｜tool▁call▁end｜>",)),
    Opener("<｜tool_calls_begin｜>", ("<｜tool_calls_end｜>",), inner=("<｜tool_call_begin｜>",), has_noise=True),
    Opener("<｜tool_call_begin｜>", ("<｜tool_call_end｜>",)),
    Opener("<|tool_call:begin|>", ("<|tool_call:end|>",)),
    Opener("✿FUNCTION✿", ("✿RESULT✿", "✿RETURN✿"), is_optional=True),
    # tags for each argument
    Opener("<seed:tool_call>", ("</seed:tool_call>",)),
    Opener("<minimax:tool_call>", ("</minimax:tool_call>",)),
    Opener("<dots_function_call>", ("</dots_function_call>",)),
    Opener("<｜DSML｜function_calls>", ("</｜DSML｜function_calls>",)),
    Opener("<｜DSML｜tool_calls>", ("</｜DSML｜tool_calls>",)),
    Opener("<atem:function_calls>", ("</atem:function_calls>",)),
    Opener(f"{M3}<tool_call>", (f"{M3}</tool_call>",)),
    Opener("<|open|>tools<|sep|>", ("<|close|>tools<|sep|>",)),
    *_direct("<function=", "<function name=", "<functionname=", "<functionĠname=", "<invoke name=", "<｜DSML｜invoke"),
    *_direct("<atem:invoke", "<steptml:invoke"),
    # code
    Opener("<|python_tag|>", ("<|eom_id|>", "<|eot_id|>"), is_optional=True, is_code=True),
    Opener("<|python_start|>", ("<|python_end|>",), is_optional=True, is_code=True),
    Opener("<|tool_call_start|>", ("<|tool_call_end|>",), is_code=True),
    Opener("<function_calls>", ("</function_calls>",), is_code=True),
    Opener("<<function>>", ("</s>",), is_optional=True, is_code=True),
    Opener("<|tool_call>", ("<tool_call|>",)),
    Opener("<start_function_call>", ("<end_function_call>",)),
)

OPENERS: dict[str, Opener] = {opener.open: opener for opener in _TABLE}

ENDINGS: frozenset[str] = frozenset(
    (
        *(close for opener in _TABLE for close in opener.close),
        *("</function>", "</invoke>", "</｜DSML｜invoke>", "</atem:invoke>", "</steptml:invoke>"),
    )
)
"""End markers of calls. A stray one right after a call belongs to the call; elsewhere it is text."""

REASONING: dict[str, str] = {
    "<think>": "</think>",
    "<think:opensource>": "</think:opensource>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "<mm:think>": "</mm:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
    "<|content_thinking|>": "<|end_message|>",
}
"""What opens the model's thinking, and what closes it."""

BARE_ENDS: frozenset[str] = frozenset(REASONING.values()) - {"<channel|>", "<|end_message|>"}
"""If one of these comes without its opening tag, everything before it was thinking: the chat template had opened it."""

CHANNELS = ("<|start|>", "<|channel|>")
"""Markers that begin a message whose heading names the recipient and ends with MESSAGE."""
MESSAGE = "<|message|>"
MESSAGE_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>", *CHANNELS)

NOISE: frozenset[str] = frozenset(
    (
        *("<|channel>", "<channel|>", "<|end|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>"),
        *("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        *("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>"),
        *("<|message_model|>", "<|content_text|>", "<|end_message|>", "<|content_model_end_sampling|>"),
        *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|message_sep|>", "<|role_sep|>"),
        *("<|im_start|>", "<|im_start|>assistant", "<|start_header_id|>assistant<|end_header_id|>"),
        *("<|start_header_id|>", "<|end_header_id|>", "<|begin_of_text|>", "<|end_of_text|>", "<|endoftext|>", "<|EOT|>", "<|assistant|>"),
        *("<start_of_turn>model", "<start_of_turn>", "<end_of_turn>", "<bot_end>"),
    )
)
"""Control tokens without meaning, which are dropped."""

RESPONSES: tuple[str, ...] = (
    *("<tool_response>", "<|tool_response>", "<|tool_response|>", "<TOOL_RESPONSE>", "[TOOL_RESULTS]", "<|START_TOOL_RESULT|>"),
    *("<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>", "✿RESULT✿", "<function_response>", "<start_function_response>"),
)
"""Markers of tool results. If the model writes one itself, it invents the result that follows."""
