"""`/models pull NAME`: weights come in while the conversation stays on the screen; Esc stops it, and the next pull goes on from there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.app.pulling import download_sources, progress_words, sources_of, state_of
from dragoman.app.setup import Setup, set_up
from dragoman.base.places import shorten_home
from dragoman.base.text import one_line, size
from dragoman.conversation.pages.models import check_words
from dragoman.conversation.subcommand import parse_words
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.local.weights.models import LocalModel
    from dragoman.local.weights.progress import Progress
    from dragoman.tui.talk import LiveTalk


def start_pull(talk: LiveTalk, rest: str) -> None:
    """Raises InputError. Without --yes it only says what would be downloaded, unless that was agreed to before."""
    from dragoman.local.weights.models import get_model
    from dragoman.local.weights.places import find, own_file

    options = parse_words(talk.setup, "models", rest)
    check_words(options)
    setup, name = set_up(options), options.words[1]
    if path := own_file(name):
        raise InputError(say("weights_own_file", path=one_line(str(path))))
    model = get_model(name)
    if path := find(model.name, Path(setup.places.weights)):
        talk.screen.message(say("weights_are_here", name=model.name, path=path))
    elif options.yes or options.source or state_of(model, setup) == "begun":
        talk.start(_pull(talk, model, setup))
    else:
        talk.screen.message(
            say(
                "conversation.pull_it",
                name=model.name,
                title=model.title,
                size=size(model.bytes),
                licence=model.licence,
                publisher=model.publisher,
                sources=download_sources(model, setup),
                folder=shorten_home(setup.places.weights),
            )
        )


async def _pull(talk: LiveTalk, model: LocalModel, setup: Setup) -> None:
    from dragoman.local.weights.pull import pull

    def show(progress: Progress) -> None:
        talk.show_progress(progress_words(progress))

    try:
        path = await pull(model.name, folder=Path(setup.places.weights), progress=show, sources=sources_of(setup), env=setup.env)
    except asyncio.CancelledError:
        talk.screen.message(say("weights_cancelled", name=model.name), "yellow")
        raise
    talk.screen.message(say("weights_pulled", name=model.name, path=path, size=size(model.bytes)))
