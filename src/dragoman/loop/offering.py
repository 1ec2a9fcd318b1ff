"""What a model is offered: instructions, tools, settings. By what the user wants, and what the model's profile says it can bear."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from dragoman.base import jsontext
from dragoman.values.contracts import Provider
from dragoman.values.messages import Settings, ToolSpec

if TYPE_CHECKING:
    from dragoman.loop.web import SearchMode

_PROMPTS = os.path.join(os.path.dirname(__file__), "prompts")


class Offer(msgspec.Struct, frozen=True):
    system: str
    tools: tuple[ToolSpec, ...]
    settings: Settings


def offer(
    provider: Provider,
    model: str,
    tools: tuple[ToolSpec, ...],
    settings: Settings,
    *,
    system: str | None = None,
    search: SearchMode | None = None,
    unchosen: Collection[str] = (),
) -> Offer:
    """`search`: how the web is searched, where it can be. `unchosen`: tools that are there because nobody said otherwise."""
    profile = provider.profile(model)
    if search is not None:
        from dragoman.loop.web import searching

        tools, settings = searching(search, provider, model, tools, settings)
    if system is None:
        system = _read("system-small.md" if profile.short_prompt else "system.md")
    if few := profile.few_tools:  # those that it can keep apart; what somebody chose is meant for it
        kept = (spec for spec in tools if spec.name in few or spec.name not in unchosen)
        tools = tuple(spec if spec.name not in unchosen else in_short(spec, few[spec.name]) for spec in kept)
    return Offer(system, tools, settings)


def in_short(spec: ToolSpec, parameters: Collection[str]) -> ToolSpec:
    """A tool told in one sentence, with some of its parameters: a small model fills in whatever it is told of."""
    schema = spec.schema
    kept = {name: each for name, each in schema.get("properties", {}).items() if name in parameters}
    schema |= {"properties": kept, "required": list(kept)}
    return msgspec.structs.replace(spec, description=spec.description.partition(". ")[0], parameters=jsontext.dumps(schema))


@cache
def _read(name: str) -> str:
    with open(os.path.join(_PROMPTS, name), encoding="utf-8") as file:
        return file.read().strip()
