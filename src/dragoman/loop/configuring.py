"""Records the system prompt, tools and settings: an entry whenever one of them changes."""

from __future__ import annotations

import os
from functools import cache

import msgspec

from dragoman.loop.harness import Harness
from dragoman.loop.options import RunOptions
from dragoman.loop.session import VERSIONS
from dragoman.loop.small_model import choose_tools, wants_short_prompt
from dragoman.loop.web import ground_without_access, offer_search
from dragoman.values.messages import Settings, ToolSpec

_UNSAID = Settings()
_SETTINGS = Settings.__struct_fields__
_PROMPTS = os.path.join(os.path.dirname(__file__), "prompts")


class Configuration(msgspec.Struct, frozen=True):
    """What a model is told before anything is said."""

    system: str
    tools: tuple[ToolSpec, ...]
    settings: Settings


def configure(harness: Harness, options: RunOptions | None = None) -> None:
    """Record system, tools and settings, if something changed."""
    record(harness, compose(harness, options or RunOptions()))


def compose(harness: Harness, options: RunOptions) -> Configuration:
    model = harness.session.model
    settings = _lay_over(harness.settings, options.settings)
    # As many characters as the window has tokens: a third of it at most. A file that fills a small window would end the run.
    harness.outputs.max_chars = min(
        harness.limits.max_output_chars, max(model.profile_within(harness.session.history.view.windows).context_window, 1_000)
    )
    tools = harness.registry.specs
    if harness.web is not None and harness.searcher is not None:
        tools, settings = offer_search(options.search or harness.web.search, harness.searcher, tools, settings)
    else:
        settings = ground_without_access(options.search, model, tools, settings)
    if options.ask_for is not None:
        tools, settings = options.ask_for(tools, settings)
    system = harness.system
    if system is None:
        system = read_prompt("system-small.md" if wants_short_prompt(model) else "system.md")
    if options.instructions:
        system = f"{system}\n\n{options.instructions}" if system else options.instructions
    chosen = choose_tools(model, tools, harness.unchosen)
    return Configuration(system, _in_recorded_order(chosen, harness.session.history.view.tools), settings)


def _lay_over(settings: Settings, more: Settings | None) -> Settings:
    """The settings, with what `more` says in its place. What it does not say stays as it is."""
    if more is None or settings == _UNSAID:
        return settings if more is None else more
    return msgspec.structs.replace(
        settings, **{name: value for name in _SETTINGS if (value := getattr(more, name)) != getattr(_UNSAID, name)}
    )


def _in_recorded_order(tools: tuple[ToolSpec, ...], recorded: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """In another process tools may be registered in another order, where some had joined later: the request must stay the same."""
    places = {spec.name: place for place, spec in enumerate(recorded)}
    return tuple(sorted(tools, key=lambda spec: places.get(spec.name, len(places))))


def record(harness: Harness, wanted: Configuration) -> None:
    """Where something changed, that is an entry: a request without one extends the cached prefix of the last."""
    session, model, view = harness.session, harness.session.model, harness.session.history.view
    window = model.profile_within(view.windows).prompt_window
    now = (
        model.name,
        model.provider.name,
        window,
        wanted.system,
        wanted.tools,
        wanted.settings,
        harness.name,
        harness.boundary.for_record,
        model.provider.dialect,
    )
    told = (view.model, view.deployment, view.window, view.system, view.tools, view.settings, view.agent, view.boundary, view.dialect)
    if now == told and not harness.has_new_directories:
        return
    harness.has_new_directories = False
    session.history.configure(
        model.name,
        wanted.system,
        wanted.tools,
        wanted.settings,
        session_id=session.id,
        # Fixed when the session starts: another later would change what was sent.
        placeholder="" if view.model else harness.placeholders.commands,
        other_placeholder="" if view.model else harness.placeholders.others,
        deployment=model.provider.name,
        directories=harness.directories,
        versions=VERSIONS,
        window=window,
        agent=harness.name,
        boundary=harness.boundary.for_record,
        dialect=model.provider.dialect,
    )


@cache
def read_prompt(name: str) -> str:
    """One of our own: `system.md`."""
    with open(os.path.join(_PROMPTS, name), encoding="utf-8") as file:
        return file.read().strip()
