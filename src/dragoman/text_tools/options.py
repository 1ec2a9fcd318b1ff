"""Options of tools as text."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.text_tools.align import NameMapping
from dragoman.text_tools.dialect import DEFAULT, FENCED_JSON
from dragoman.text_tools.dialect_table import find_dialect


class TextOptions(msgspec.Struct, frozen=True):
    """How tools are put into text."""

    dialect: str = DEFAULT
    """How calls are written: one of `dialects()`."""
    place: Literal["system", "user"] = "system"
    """Where the tools are described: in the system message, or in the first user message. See `place_for`."""
    preserve_context: bool = True
    """Keep the text beside calls; False drops it from the history, as some services with native calls do."""
    no_think: str | None = None
    """The switch added to prompts if thinking is off and the server has no setting for it: `/no_think` after the prompt, or `<no_think>`
    before it. None: as the profile says. Empty: nothing."""
    is_thinking: bool = False
    """The chat template opens the model's thinking itself, so answers begin inside it."""
    mapping: NameMapping = {}
    """The user's own names for tools and parameters: see `align.Mapped`."""


def place_for(dialect: str, protocol: str) -> Literal["system", "user"]:
    """Over Gemini the guidance for `fenced_json` is the first user content; elsewhere it is in the system message."""
    return "user" if find_dialect(dialect).name == FENCED_JSON and protocol == "gemini" else "system"
