"""Options of tools as text."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from dragoman.text_tools.align import NameMapping
from dragoman.text_tools.dialect import DEFAULT, FENCED_JSON
from dragoman.text_tools.dialect_table import find_dialect


class TextOptions(msgspec.Struct, frozen=True):
    """How tools are put into text."""

    dialect: str = DEFAULT
    """How calls are written: one of `dialects()`."""
    place: Literal["auto", "system", "user"] = "auto"
    """Where the tools are described: in the system message, or in the first user message. "auto": see `place_for`."""
    preserve_context: bool = True
    """Keep the text beside calls; False drops it, as some services with native calls do. Text is then shown when the answer is complete:
    only then is it known whether it stands beside a call."""
    no_think: str | None = None
    """The switch added to prompts if thinking is off: `/no_think` after the prompt, or `<no_think>` before it. With native tools too, but
    not for a model whose service has a setting of its own for thinking. None: as the profile says. Empty: nothing."""
    is_thinking: bool = False
    """The chat template opens the model's thinking itself, so answers begin inside it."""
    mapping: NameMapping = {}
    """The user's own names for tools and parameters of any model: see `align.NameMapping`. Native calls are read by it too."""
    model_mapping: Mapping[str, NameMapping] = {}
    """Tables for single models, by a pattern for `model` or `deployment/model`: `qwen*`. A later table comes before an earlier one, and
    all of them before `mapping`."""

    def place_over(self, protocol: str) -> Literal["system", "user"]:
        """Where the tools are described in requests of this protocol."""
        return place_for(self.dialect, protocol) if self.place == "auto" else self.place

    def mapping_for(self, deployment: str, model: str) -> NameMapping:
        """The names of one model: the tables whose pattern it fits, over those for any model."""
        if not self.model_mapping:
            return self.mapping
        found = {tool: dict(names) for tool, names in self.mapping.items()}
        for pattern, table in self.model_mapping.items():
            if fnmatchcase(model, pattern) or fnmatchcase(f"{deployment}/{model}", pattern):
                for tool, names in table.items():
                    found[tool] = {**found.get(tool, {}), **names}
        return found


def place_for(dialect: str, protocol: str) -> Literal["system", "user"]:
    """Over Gemini the guidance for `fenced_json` is the first user content; elsewhere it is in the system message."""
    return "user" if find_dialect(dialect).name == FENCED_JSON and protocol == "gemini" else "system"
