"""The question before anything in a folder is read. How such questions are asked: app/asking.py, and in the first frame of a conversation
tui/question_frame.py."""

from __future__ import annotations

from dragoman.app.asking import FirstQuestion
from dragoman.app.config_tables import FolderTrust
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
