"""How a model is told of tools: natively, as text, or natively with an eye on what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.values.contracts import Provider
from dragoman.values.messages import ToolCall

if TYPE_CHECKING:
    from dragoman.text_tools.wrapper import TextOptions

ToolsAs = Literal["auto", "native", "text"]


class Calling:
    """What the user and the profile want. One per agent."""

    def __init__(self, tools_as: ToolsAs = "auto", options: TextOptions | None = None) -> None:
        self._tools_as = tools_as
        self._options = options
        self.found = ""
        """The dialect of a call that was found written as text where a native one was expected."""

    def around(self, provider: Provider, model: str) -> Provider:
        """The provider as the agent uses it. A model nobody knows is watched, should its server not read its calls."""
        if hasattr(provider, "dialect"):
            return provider  # an embedder has seen to it
        profile = provider.profile(model)
        if self._tools_as == "text" or (self._tools_as == "auto" and profile.tools == "text"):
            return self.in_text(provider, model)
        if self._tools_as == "native" or profile.known:
            return provider
        from dragoman.text_tools.detector import Detector

        return Detector(provider, self._notice)

    def in_text(self, provider: Provider, model: str, dialect: str = "") -> Provider:
        """With tools as text, whatever stood around it before. The dialect: named, configured, the profile's, the default."""
        from dragoman.text_tools.detector import Detector
        from dragoman.text_tools.dialect import DEFAULT
        from dragoman.text_tools.wrapper import TextOptions, TextTools, place_for

        self.found = ""
        if isinstance(provider, Detector | TextTools):
            provider = provider.provider
        options, profile = self._options or TextOptions(), provider.profile(model)
        chosen = dialect or (options.dialect if options.dialect != DEFAULT else profile.dialect or DEFAULT)
        place = place_for(chosen, getattr(provider, "protocol", ""))
        is_thinking = options.is_thinking or profile.opens_thinking
        return TextTools(provider, msgspec.structs.replace(options, dialect=chosen, place=place, is_thinking=is_thinking))

    def _notice(self, dialect: str) -> None:
        self.found = dialect


def is_echo(call: ToolCall) -> bool:
    """Whether a call that was read out of text stands in what a tool returned: somebody else may have written it."""
    if call.opaque is None:
        return False
    from dragoman.text_tools.call_note import note_on

    note = note_on(call)
    return note is not None and bool(note.echo_of)
