"""Opens the conversation with a live region: the model is chosen and the agent opened behind the first frame."""

from __future__ import annotations

import os

from msgspec.structs import replace

from dragoman.app.asking import LineQuestions
from dragoman.app.choice import named_choice
from dragoman.app.connecting import choose_first_model
from dragoman.app.setup import Setup, catalog_of, is_from_package
from dragoman.tui import first
from dragoman.tui.conversation import LiveConversation
from dragoman.tui.first import FirstFrame
from dragoman.tui.keys import Paste


def open_live(setup: Setup, by_line: LineQuestions) -> LiveConversation:
    """Raises DragomanError if it cannot start; then the caller takes the first frame back."""
    if _may_ask(setup):
        first.take_back()
    is_to_pick = setup.options.resume == ""
    if is_to_pick:
        setup = replace(setup, options=replace(setup.options, resume=None))
    setup = choose_first_model(setup, by_line)
    return LiveConversation(setup, first.shown or _new_frame(setup, by_line.take_draft()), is_to_pick=is_to_pick)


def _new_frame(setup: Setup, draft: str) -> FirstFrame:
    """With what was typed in the frame before it, and at the questions since."""
    frame = FirstFrame(dict(os.environ), color=setup.config.color != "never")
    if first.taken is not None:
        frame.composer, frame.waiting = first.taken.composer, first.taken.waiting
    if draft:
        frame.keep(Paste(draft))
    frame.open()
    first.shown = frame
    return frame


def _may_ask(setup: Setup) -> bool:
    """Whether the user may have to agree to a model, or to pull one: those questions are asked on a terminal in its usual mode."""
    if setup.options.resume is not None and not setup.options.model:
        return False
    catalog = catalog_of(setup)
    choice = named_choice(setup, catalog)
    return choice is None or (not is_from_package(choice.model, catalog) and catalog.find(choice.model)[0].in_process)
