"""How a question about a call may be answered: which choices there are, what each covers, and what it decides. In every front end alike."""

from __future__ import annotations

from typing import Literal

from dragoman.base.text import one_line
from dragoman.base.visible import escape_hidden
from dragoman.conversation.types import AnswerChoice
from dragoman.policy.rules import NETWORK
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.words import say

CallKind = Literal["edit", "command", "host", "other"]
_TITLE_CHARS = 200

# Sent to the model: in English, whatever the program's language.
SAID_NO = "the user said no"
REFUSED = "the user refused it and said: {reason}"


def kind_of(name: str, tool_kind: str) -> CallKind:
    """The kind of question, by the kind that the tool declares."""
    if name == NETWORK:
        return "host"
    return "edit" if tool_kind == "edit" else "command" if tool_kind == "execute" or name == "run_shell" else "other"


def can_let_write(intent: Intent) -> bool:
    """Whether one answer lets all commands write in the workspace, in this session."""
    return intent.writing in ("wanted", "refused") and not intent.guarded


def question_words(name: str, intent: Intent, kind: CallKind, file: str = "") -> str:
    """The question in a sentence. `file`: what an edit is made to, as it is shown."""
    if intent.writing == "refused":
        return say("conversation.ask_again")
    if intent.outside:
        return say("outside_asks")
    if kind == "command":
        return say("conversation.ask_command")
    if kind == "edit":
        return say("conversation.ask_edit", name=shown_name(file or intent.title))
    if kind == "host":
        return say("conversation.ask_host", host=shown_name(intent.scope))
    return say("conversation.ask_other", name=shown_name(intent.title or name))


def choices_for(name: str, intent: Intent, kind: CallKind, *, may_always: bool = True, alone: bool = False) -> list[AnswerChoice]:
    """In the order in which they are shown. `alone`: each label is read by itself, so none refers to the one before it."""
    write = [AnswerChoice("w", say("conversation.choice_write"), "allow_session")] if can_let_write(intent) else []
    no = [AnswerChoice("n", say("conversation.choice_no"), "deny"), AnswerChoice("r", say("conversation.choice_reason"), "deny_because")]
    stop = AnswerChoice("esc", say("conversation.choice_stop"), "stop")
    if intent.writing == "refused":
        return [AnswerChoice("y", say("conversation.choice_again"), "allow"), *write, *no, stop]
    yes = "once" if intent.outside else "host" if kind == "host" else "yes"
    edit = [AnswerChoice("e", say("conversation.choice_edit"), "edit")] if kind != "host" else []
    first = AnswerChoice("y", say(f"conversation.choice_{yes}"), "allow")
    return [first, *_lasting(name, intent, kind, may_always=may_always, alone=alone), *write, *no, *edit, stop]


def _lasting(name: str, intent: Intent, kind: CallKind, *, may_always: bool, alone: bool) -> list[AnswerChoice]:
    """Those that allow more than this call."""
    begins = say("conversation.covers_beginning", prefix=shown_name(intent.prefix)) if intent.prefix else ""
    if may_always and not intent.guarded:
        covers = covered(name, intent, kind)
        found = [
            AnswerChoice("a", say("conversation.choice_session", what=covers), "allow_session"),
            AnswerChoice("s", _kept(covers, whole=alone or kind == "edit"), "allow_folder"),
        ]
        if begins:
            found.append(AnswerChoice("b", say("conversation.choice_session", what=begins), "allow_session"))
            found.append(AnswerChoice("f", _kept(begins, whole=alone), "allow_folder"))
        return found
    if intent.outside and begins:
        return [AnswerChoice("b", say("conversation.choice_session_outside", what=begins), "allow_session")]
    return []


def _kept(covers: str, *, whole: bool) -> str:
    return say("conversation.choice_folder", what=covers) if whole else say("conversation.choice_folder_same")


def covered(name: str, intent: Intent, kind: CallKind) -> str:
    """What `always` covers: for an edit all edits, for a command only itself."""
    if kind == "edit":
        return say("conversation.covers_edits")
    if kind == "command":
        return say("conversation.covers_command")
    scope = shown_name(intent.scope)
    if kind == "host":
        return say("conversation.covers_host", host=scope)
    return say("covers_scope", name=shown_name(name), scope=scope) if scope else say("conversation.covers_tool", name=shown_name(name))


def decide(key: str, intent: Intent, arguments: str = "", reason: str = "") -> Allow | Deny | None:
    """What a choice decides; None for one that decides nothing yet or is not offered. `arguments`: as a person edited them."""
    match key:
        case "y":
            return Allow(arguments)
        case "w" if can_let_write(intent):
            return Allow(arguments, commands_write=True)
        case "a" if not intent.guarded:
            return Allow(arguments, remember="session")
        case "s" if not intent.guarded:
            return Allow(arguments, remember="saved")
        case "b" if intent.prefix and (intent.outside or not intent.guarded):
            return Allow(arguments, remember="session", prefix=intent.prefix)
        case "f" if intent.prefix and not intent.guarded:
            return Allow(arguments, remember="saved", prefix=intent.prefix)
        case "n":
            return Deny(SAID_NO)
        case "r":
            return Deny(REFUSED.format(reason=reason.strip()) if reason.strip() else SAID_NO)
        case _:
            return None


def shown_name(text: str) -> str:
    """Escaped before anything else is done with it: what is hidden is shown, not left out."""
    return one_line(escape_hidden(text, one_line=True), _TITLE_CHARS)
