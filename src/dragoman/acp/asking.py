"""Questions of the conversation, put to the person through the client: as a permission request, or as a form where the client has forms."""

from __future__ import annotations

from typing import Any, Literal

from dragoman.acp.calls import fenced, kind_of, texts
from dragoman.acp.diffs import read_diff
from dragoman.acp.incoming import FormAnswer, Permission
from dragoman.acp.outgoing import (
    AskedToolCall,
    FormRequest,
    Kind,
    Location,
    OptionKind,
    Part,
    PermissionOption,
    PermissionRequest,
)
from dragoman.acp.rpc import ClientPeer, read
from dragoman.acp.updates import Shows
from dragoman.base import jsontext
from dragoman.conversation.conversation import Conversation
from dragoman.conversation.types import AskedQuestion, Meaning, QuestionAnswer
from dragoman.words import say

# SentText to the model: in English, whatever the program's language.
CANNOT_ASK = "The user's editor cannot show questions. Ask in your answer instead, and end your turn there."
NOT_NOW = "not_now"
_ONCE: dict[Meaning, OptionKind] = {"allow": "allow_once", "deny": "reject_once"}
_ALWAYS = ("b", "a")
"""The answers that one `allow_always` may stand for, the first that is there: what begins alike, or the same again, for this session. An
editor may show no more of an option than its kind. So each kind is there once, and nothing that it says is kept for good, or covers more
than the call that is shown: `/approvals keep` and `/sandbox write on` do that."""
Before = Literal["y", "n", "e"]
_BEFORE: dict[str, tuple[Before, OptionKind]] = {"y": ("y", "allow_always"), "n": ("n", "reject_always"), "e": ("e", "allow_once")}
"""Of what is asked before anything begins: the answer is remembered."""


class ClientQuestions:
    """Puts one question and gives its answer: None where the person gave none, `esc` where they stopped the run."""

    def __init__(self, peer: ClientPeer, shows: Shows, session_id: str, conversation: Conversation) -> None:
        self._peer = peer
        self._shows = shows
        self._session_id = session_id
        self._conversation = conversation

    async def put(self, question: AskedQuestion) -> QuestionAnswer | None:
        """Raises AcpError where the client cannot show it."""
        if question.kind != "ask_user":
            return await self._ask_permission(question)
        if self._shows.elicitation:
            return await self._ask_in_form(question)
        if question.takes_text:
            return QuestionAnswer(question.id, text=CANNOT_ASK)
        return None

    # --- permission

    async def _ask_permission(self, question: AskedQuestion) -> QuestionAnswer | None:
        options = self._options(question)
        request = PermissionRequest(self._session_id, self._call(question), options)
        answered = read(await self._peer.request("session/request_permission", request), Permission).outcome
        if answered.outcome != "selected":
            return QuestionAnswer(question.id, "esc") if any(each.key == "esc" for each in question.choices) else None
        chosen = next((each.option_id for each in options if each.option_id == answered.option_id), NOT_NOW)
        if chosen == NOT_NOW:
            return QuestionAnswer(question.id, "n") if question.kind == "approval" else None
        return QuestionAnswer(question.id, chosen)

    def _options(self, question: AskedQuestion) -> tuple[PermissionOption, ...]:
        """What needs words or an editor is not offered: a permission is answered by a choice alone."""
        if question.kind == "approval":
            session = {each.key: each for each in question.choices if each.meaning == "allow_session"}
            always = next((session[key] for key in _ALWAYS if key in session), None)
            offered = [each for each in question.choices if each is always or each.meaning in _ONCE]
            return tuple(PermissionOption(each.key, each.label, _ONCE.get(each.meaning, "allow_always")) for each in offered)
        known = [_BEFORE[each.key] for each in question.choices if each.key in _BEFORE]
        told = [PermissionOption(key, _before_words(key), kind) for key, kind in known]
        return (*told, PermissionOption(NOT_NOW, str(say("acp.not_now")), "reject_once"))

    def _call(self, question: AskedQuestion) -> AskedToolCall:
        block = self._conversation.log.find(question.call) if question.call else None
        name = block.data.get("name", "") if block is not None else ""
        places = tuple(Location(path) for path in question.paths)
        content = self._content(question)
        if block is None:  # of a subagent, or of no call
            id, kind = question.call or f"question-{question.id}", "edit" if question.paths else "other"
            return AskedToolCall(id, question.about or _title(question), kind, "pending", None, content, places)
        kind: Kind = kind_of(name)
        raw = jsontext.decode_object(block.data.get("arguments") or "{}")
        title = question.about or block.text
        return AskedToolCall(question.call, title, kind, "pending", name or None, content, places, raw)

    def _content(self, question: AskedQuestion) -> tuple[Part, ...]:
        """The diff itself, or all of what would run; and why it is asked."""
        diff = read_diff(question.detail, question.paths[0])[0] if question.paths else []
        detail = () if diff else texts(fenced(question.detail) if question.kind == "approval" else question.detail)
        title = (question.title,) if question.kind == "approval" else ()
        return (*diff, *detail, *texts("\n".join((*title, *question.notes))))

    # --- forms

    async def _ask_in_form(self, question: AskedQuestion) -> QuestionAnswer | None:
        told = FormRequest(self._session_id, question.title, _schema(question), question.call or None)
        answered = read(await self._peer.request("elicitation/create", told), FormAnswer)
        if answered.action != "accept":
            return None
        given = answered.content or {}
        choice, text = given.get("choice"), given.get("text")
        if isinstance(text, str) and text.strip() and question.takes_text:
            return QuestionAnswer(question.id, text=text)
        known = {each.label: each.key for each in question.choices} | {each.key: each.key for each in question.choices}
        return QuestionAnswer(question.id, known[choice]) if isinstance(choice, str) and choice in known else None


def _schema(question: AskedQuestion) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    if question.choices:
        choices = [{"const": each.key, "title": each.label} for each in question.choices]
        properties["choice"] = {"type": "string", "title": str(say("acp.form_choice")), "oneOf": choices}
    if question.takes_text:
        properties["text"] = {"type": "string", "title": str(say("acp.form_words" if question.choices else "acp.form_answer"))}
    required = list(properties) if len(properties) == 1 else []
    return {"type": "object", "properties": properties, "required": required}


def _before_words(key: Before) -> str:
    return str(say(f"acp.before_{key}"))


def _title(question: AskedQuestion) -> str:
    """Without the keys of a terminal, which stand behind the question."""
    return question.title.partition("   ")[0]
