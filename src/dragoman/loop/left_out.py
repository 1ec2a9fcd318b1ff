"""Settings that the user made and the model is not sent, each with the reason."""

from __future__ import annotations

import msgspec

from dragoman.loop.model import Model
from dragoman.values.errors import DragomanError
from dragoman.values.messages import Request, Settings, Thinking, ToolSpec, user
from dragoman.words import say

_UNSET: dict[str, object] = {"temperature": None, "top_p": None, "top_k": None, "stop": ()}


def left_out(model: Model, settings: Settings, tools: tuple[ToolSpec, ...], no_think: str = "") -> list[tuple[str, str]]:
    """The names of settings that make no difference to what is sent, and why. Nothing is sent. `no_think`: see `TextOptions`."""
    if model.provider.deployment is None:
        return []  # a provider of somebody's own: what it makes of settings is not known
    probe = _Probe(model, settings, tools)
    try:
        found = [
            (name, _why(model, name))
            for name, unset in _UNSET.items()
            if getattr(settings, name) != unset and probe.is_same(**{name: unset})
        ]
        if settings.thinking is not None and (why := _other_effort(probe, settings.thinking.effort)):
            found.append(("thinking", why))
        if no_think and settings.thinking is not None and settings.thinking.effort == "off" and _sets_thinking(model):
            found.append(("no_think", str(say("loop.no_think_not_sent", words=no_think, model=model.full_name))))
    except DragomanError:
        return []  # the request itself will tell
    return found


def _sets_thinking(model: Model) -> bool:
    from dragoman.text_tools.no_think import has_own_setting

    return has_own_setting(model.profile)


class _Probe:
    """Renders requests that differ in one setting, and compares them."""

    def __init__(self, model: Model, settings: Settings, tools: tuple[ToolSpec, ...]) -> None:
        self.model = model
        self._settings = settings
        self._tools = tools
        self._whole = self._body(settings)

    def is_same(self, **changes: object) -> bool:
        return self._body(msgspec.structs.replace(self._settings, **changes)) == self._whole

    def _body(self, settings: Settings) -> bytes:
        return self.model.provider.prepare(Request(self.model.name, (user("?"),), tools=self._tools, settings=settings)).body


def _why(model: Model, name: str) -> str:
    if model.profile.temperature:
        return str(say("loop.setting_has_no_place", name=name, model=model.full_name))
    key = "loop.setting_not_taken" if model.profile.known else "loop.setting_of_unknown_model"
    return str(say(key, name=name, model=model.full_name))


def _other_effort(probe: _Probe, asked: str) -> str:
    """Says which effort is sent instead of the one that was asked for; empty if it is the same."""
    profile, name = probe.model.profile, probe.model.full_name
    match profile.thinking:
        case "none":
            return "" if asked == "off" else str(say("loop.effort_not_taken", effort=asked, model=name))
        case "always":
            if asked == "off" and not probe.is_same(thinking=None):
                return ""  # it is told in words
            return str(say("loop.always_thinks", effort=asked, model=name))
        case _ if probe.is_same(thinking=None):
            if asked == "off" and profile.thinking_off:
                return ""
            key = "loop.effort_not_with_tools" if not profile.effort_with_tools else "loop.effort_not_taken"
            return str(say(key, effort=asked, model=name))
        case _ if asked == "off" and not profile.thinking_off:
            return str(say("loop.thinking_not_off", model=name))
        case "effort" if asked in ("low", "medium", "high") and asked not in profile.efforts:
            return str(say("loop.other_effort", effort=asked, model=name, efforts=", ".join(profile.efforts)))
        case "switch" if asked in ("low", "medium") and probe.is_same(thinking=Thinking("high")):
            return str(say("loop.thinking_on_or_off", effort=asked, model=name))
        case _:
            return ""
