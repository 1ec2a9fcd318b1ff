"""The question before anything in a folder is read. How such questions are asked: app/asking.py, and in the first frame of a conversation
tui/question_frame.py."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.app.asking import FirstQuestion
from dragoman.app.config_tables import FolderTrust
from dragoman.app.setup import Setup, set_up
from dragoman.app.trust import trust_names
from dragoman.base.places import shorten_home
from dragoman.base.visible import escape_hidden
from dragoman.words import say


def trust_question(trust: FolderTrust) -> FirstQuestion:
    """Whether a folder is trusted, asked before anything in it is read."""
    if trust.state == "doubted":
        intro = say("trust_doubted_intro", folder=escape_hidden(shorten_home(trust.folder), one_line=True), names=trust_names(trust))
        said = {"y": say("trust_doubted_said_yes"), "n": say("trust_said_no")}
        return FirstQuestion((intro,), say("trust_doubted_question"), said, say("trust_doubted_why"))
    intro = say("trust_intro", folder=escape_hidden(shorten_home(trust.folder), one_line=True), names=trust_names(trust))
    return FirstQuestion((intro,), say("trust_question"), {"y": say("trust_said_yes"), "n": say("trust_said_no")}, say("trust_why"))


def ask_again(setup: Setup, ask: Callable[[FirstQuestion], str]) -> Setup | None:
    """Ask about a folder that was opened without a question: the setup with what was answered; None where nobody answered. It waits for a
    person, so it is called in a thread of its own."""
    from dragoman.conversation.offers import ask_about_offers

    try:
        asked = set_up(setup.options, setup.env, ask_trust=lambda trust: "yes" if ask(trust_question(trust)) == "y" else "no")
        asked = msgspec.structs.replace(asked, choice=setup.choice, servers=setup.servers)
        problem = ask_about_offers(asked, ask)
    except EOFError:
        return None
    return msgspec.structs.replace(asked, notices=(*asked.notices, problem)) if problem else asked
