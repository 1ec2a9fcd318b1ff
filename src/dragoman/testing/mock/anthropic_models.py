"""What Anthropic's models differ in, by name: what one takes, another refuses with status 400."""

from __future__ import annotations

import msgspec

_ALL_EFFORTS = ("low", "medium", "high", "xhigh", "max")


class Abilities(msgspec.Struct, frozen=True):
    """What a model takes. The defaults are those of the newest models, and of any that is not known."""

    efforts: tuple[str, ...] = _ALL_EFFORTS
    """The words of `output_config.effort`."""
    adaptive: bool = True
    """`thinking.adaptive`."""
    budget: bool = False
    """`thinking.enabled` with `budget_tokens`."""
    thinking_off: bool = True
    """`thinking.disabled`."""
    forced_choice: bool = True
    forced_while_thinking: bool = False
    """A forced tool choice beside adaptive thinking. Beside a budget it is always refused."""
    prefill: bool = False
    """The conversation may end with the assistant's words."""
    system_messages: bool = True
    """`system` as a role, between other messages."""
    temperature_with_top_p: bool = False


_OLD = Abilities((), adaptive=False, budget=True, prefill=True, system_messages=False)
_OLDEST = msgspec.structs.replace(_OLD, temperature_with_top_p=True)
_FIRST_ADAPTIVE = Abilities(("low", "medium", "high", "max"), budget=True, forced_while_thinking=True, system_messages=False)
_ADAPTIVE = Abilities(forced_while_thinking=True)
_BOUND = Abilities(thinking_off=False, forced_choice=False)
_BY_NAME = {
    "claude-3": _OLDEST,
    "claude-sonnet-4": _OLDEST,
    "claude-opus-4": _OLDEST,
    "claude-opus-4-1": _OLD,
    "claude-sonnet-4-5": _OLD,
    "claude-haiku-4-5": _OLD,
    "claude-opus-4-5": msgspec.structs.replace(_OLD, efforts=("low", "medium", "high")),
    "claude-sonnet-4-6": _FIRST_ADAPTIVE,
    "claude-opus-4-6": _FIRST_ADAPTIVE,
    "claude-opus-4-7": msgspec.structs.replace(_ADAPTIVE, system_messages=False),
    "claude-opus-4-8": _ADAPTIVE,
    "claude-sonnet-5": _ADAPTIVE,
    "claude-opus-5": _ADAPTIVE,
    "claude-fable-5": msgspec.structs.replace(_ADAPTIVE, thinking_off=False),
    "claude-mythos-5": msgspec.structs.replace(_ADAPTIVE, thinking_off=False),
    "claude-fable-5-1": _BOUND,
    "claude-fable-5-2": _BOUND,
    "claude-mythos-5-1": _BOUND,
    "claude-mythos-5-2": _BOUND,
    "claude-opus-5-5": _BOUND,
    "claude-sonnet-5-5": _BOUND,
}


def abilities_of(model: str) -> Abilities:
    """The abilities of a model, by the longest known prefix of its name."""
    return _BY_NAME.get(max((name for name in _BY_NAME if model.startswith(name)), key=len, default=""), Abilities())
