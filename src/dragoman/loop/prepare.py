"""Before a run: what the model is told of itself, its tools and its surroundings, and the prompt. All of it is on the record before
anything is sent."""

from __future__ import annotations

from dragoman.context.tokens import MAX_SCALE, message_tokens
from dragoman.loop.conditions import tell_surroundings
from dragoman.loop.configuring import configure
from dragoman.loop.harness import Harness
from dragoman.loop.options import RunOptions
from dragoman.values.errors import InputError
from dragoman.values.messages import Message
from dragoman.values.record import Entry
from dragoman.words import say


async def take_prompt(harness: Harness, prompt: Message | None, options: RunOptions) -> Entry | None:
    """Record what the next request rests on. Returns the entry that stood before the prompt, for a prompt that has to be taken back."""
    session, history = harness.session, harness.session.history
    harness.require_none_pending()
    await harness.ask_hooks_about(prompt)
    await harness.connect_early()
    if session.log is not None:
        session.log.begin(session, harness.directories)
    history.close_interrupted()
    if harness.hooks is None or not harness.hooks.configures or not history.view.model:
        configure(harness, options)
    before = None
    if prompt is not None and not is_repeated(harness, prompt):
        await tell_surroundings(harness)
        before = history.entries[-1]
        history.say(prompt)
        harness.asked = prompt
    if not history.view.messages:
        raise InputError(say("loop.nothing_to_continue"))
    return before


def is_short(harness: Harness, prompt: Message | None = None) -> bool:
    """Whether the next request, with this prompt, fits the model's window, whatever its tokenizer."""
    raw_tokens = harness.session.history.view.raw_tokens + (message_tokens(prompt) if prompt is not None else 0)
    return raw_tokens * MAX_SCALE < harness.session.model.profile_within(harness.session.history.view.windows).prompt_window


def is_repeated(harness: Harness, prompt: Message) -> bool:
    """The same prompt after a failure is not a second prompt, though notes of the program may stand behind it."""
    for message in reversed(harness.session.history.view.messages):
        if message == prompt:
            return True
        if prompt != harness.asked or message.role != "user" or message.results:
            return False
    return False
