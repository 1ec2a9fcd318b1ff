"""Before a run: what the model is told of itself, its tools and its surroundings, and the prompt. All of it is on the record before
anything is sent."""

from __future__ import annotations

import os
from functools import cache

from dragoman.base.words import say
from dragoman.context.tokens import MAX_SCALE, message_tokens
from dragoman.loop.harness import Harness
from dragoman.loop.options import RunOptions
from dragoman.loop.session import VERSIONS
from dragoman.loop.small_model import choose_tools, wants_short_prompt
from dragoman.loop.web import offer_search
from dragoman.values.errors import InputError
from dragoman.values.messages import Message, user
from dragoman.values.record import Entry

_PROMPTS = os.path.join(os.path.dirname(__file__), "prompts")


async def take_prompt(harness: Harness, prompt: Message | None, options: RunOptions) -> Entry | None:
    """Record what the next request rests on. Returns the entry that stood before the prompt, for a prompt that has to be taken back."""
    session, history = harness.session, harness.session.history
    await harness.connect_early()
    if session.log is not None:
        session.log.begin(session, harness.directories)
    history.close_interrupted()
    configure(harness, options)
    before = None
    if prompt is not None and not is_repeated(harness, prompt):
        _orient(harness)
        before = history.entries[-1]
        history.say(prompt)
        harness.asked = prompt
    if not history.view.messages:
        raise InputError(say("loop.nothing_to_continue"))
    return before


def configure(harness: Harness, options: RunOptions | None = None) -> None:
    """Record system, tools and settings, if something changed: a request without such an entry extends the cached prefix of the last."""
    session, model, options = harness.session, harness.session.model, options or RunOptions()
    settings = options.settings or harness.settings
    # As many characters as the window has tokens: a third of it at most. A file that fills a small window would end the run.
    harness.outputs.max_chars = min(harness.limits.max_output_chars, max(model.profile.context_window, 1_000))
    view, tools = session.history.view, harness.registry.specs
    if harness.web is not None and harness.searcher is not None:
        tools, settings = offer_search(options.search or harness.web.search, harness.searcher, tools, settings)
    if options.ask_for is not None:
        tools, settings = options.ask_for(tools, settings)
    system = harness.system
    if system is None:
        system = _read_prompt("system-small.md" if wants_short_prompt(model) else "system.md")
    if options.instructions:
        system = f"{system}\n\n{options.instructions}" if system else options.instructions
    tools = choose_tools(model, tools, harness.unchosen)
    now = (model.name, model.provider.name, model.profile.prompt_window, system, tools, settings)
    if now == (view.model, view.deployment, view.window, view.system, view.tools, view.settings) and not harness.has_new_directories:
        return
    harness.has_new_directories = False
    session.history.configure(
        model.name,
        system,
        tools,
        settings,
        session_id=session.id,
        # Fixed when the session starts: another later would change what was sent.
        placeholder="" if view.model else harness.placeholder,
        deployment=model.provider.name,
        directories=harness.directories,
        versions=VERSIONS,
        window=model.profile.prompt_window,
    )


def is_short(harness: Harness, prompt: Message | None = None) -> bool:
    """Whether the next request, with this prompt, fits the model's window, whatever its tokenizer."""
    raw_tokens = harness.session.history.view.raw_tokens + (message_tokens(prompt) if prompt is not None else 0)
    return raw_tokens * MAX_SCALE < harness.session.model.profile.prompt_window


def _orient(harness: Harness) -> None:
    """Tell the model of its surroundings: all of them at first, later what has changed."""
    if harness.orientation is None or wants_short_prompt(harness.session.model):
        return
    history = harness.session.history
    about, text = harness.orientation.next_text(history, harness.directories)
    if text:
        history.say(user(text), about)


def is_repeated(harness: Harness, prompt: Message) -> bool:
    """The same prompt after a failure is not a second prompt, though notes of the program may stand behind it."""
    for message in reversed(harness.session.history.view.messages):
        if message == prompt:
            return True
        if prompt != harness.asked or message.role != "user" or message.results:
            return False
    return False


@cache
def _read_prompt(name: str) -> str:
    with open(os.path.join(_PROMPTS, name), encoding="utf-8") as file:
        return file.read().strip()
