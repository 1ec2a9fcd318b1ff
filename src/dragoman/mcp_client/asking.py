"""Questions of servers to the user (elicitation), asked one field at a time as the model's own questions are."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any
from urllib.parse import urlsplit

from dragoman.base.jsontext import valid_unicode
from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.mcp_client.contracts import Elicit, Elicitation, Elicited
from dragoman.values.calls import AskUser, Only
from dragoman.values.errors import Cancelled
from dragoman.words import say

MAX_FIELDS = 20
ATTEMPTS = 3
MAX_CHOICES = 200
_MAX_CHARS = 2_000
_MAX_LINE_CHARS = 200
_HIDDEN = re.compile(r"[^\x21-\x7e]|[\\<>\"`{}|^]")


class NoAnswer(Exception):
    """The user went away, or left a required field empty."""


def asks_by(ask_user: AskUser, server: str) -> Elicit:
    """Answers a server's questions by asking the user, and says which server asks."""

    async def elicit(question: Elicitation) -> Elicited:
        if question.url and not is_page(question.url):
            return Elicited("decline")  # not for a browser: `file:`, `javascript:`, or one that is shown as another than it is
        try:
            if question.url:
                return await _open_page(ask_user, server, question)
            return await _fill_form(ask_user, server, question)
        except NoAnswer:
            return Elicited("cancel")

    return elicit


async def _open_page(ask_user: AskUser, server: str, question: Elicitation) -> Elicited:
    """The address is shown whole, and never opened for the user: it is the server's."""
    opened, declined = say("mcp_servers.page_opened"), say("mcp_servers.declines")
    words = say("mcp_servers.asks_page", server=server, message=_visible(question.message), url=_visible(question.url))
    answer = await _ask(ask_user, words, Only((opened, declined)))
    return Elicited("accept" if answer in (opened, "1") else "decline")


async def _fill_form(ask_user: AskUser, server: str, question: Elicitation) -> Elicited:
    schema = question.schema or {}
    properties = schema.get("properties")
    fields = list(properties.items())[:MAX_FIELDS] if isinstance(properties, dict) else []
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    accepts, declines = say("mcp_servers.accepts"), say("mcp_servers.declines")
    words = say("mcp_servers.asks_form", server=server, message=_visible(question.message), count=len(fields))
    answer = await _ask(ask_user, words, Only((accepts, declines)))
    if answer not in (accepts, "1"):
        return Elicited("decline")
    content: dict[str, Any] = {}
    for name, field in fields:
        value = await _ask_field(ask_user, str(name), field if isinstance(field, dict) else {}, is_required=name in (required or ()))
        if value is not None:
            content[str(name)] = value
    return Elicited("accept", content)


async def _ask_field(ask_user: AskUser, name: str, field: dict[str, Any], *, is_required: bool) -> Any:
    """The value; None where an optional field is left empty. Raises NoAnswer."""
    choices, values = _choices(field)
    title = _line(str(field.get("title") or name))
    about = field.get("description") or ""
    hint = "" if is_required else say("mcp_servers.field_optional")
    words = say("mcp_servers.asks_field", name=_visible(str(title)), about=f": {_visible(str(about))}" if about else "", hint=hint)
    for _ in range(ATTEMPTS):
        answer = await _ask(ask_user, words, choices, may_be_empty=not is_required or "default" in field)
        if not answer:
            return field.get("default")
        value = values[choices.index(answer)] if answer in choices else _converted(answer, field)
        if value is not None:
            return value
        words = say("mcp_servers.field_wrong", answer=_visible(answer), name=_visible(str(title)), kind=str(field.get("type")))
    raise NoAnswer


def is_page(url: str) -> bool:
    """Whether it is a plain address of a page: a person who opens it must see where it leads."""
    if _HIDDEN.search(url) or len(url) > _MAX_CHARS:
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def _choices(field: dict[str, Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """What is shown, and what it stands for."""
    if field.get("type") == "boolean":
        return (say("mcp_servers.yes"), say("mcp_servers.no")), (True, False)
    named = field.get("oneOf") or field.get("anyOf")
    if isinstance(named, list):
        pairs = [(str(each.get("title") or each["const"]), each["const"]) for each in named if isinstance(each, dict) and "const" in each]
        pairs = pairs[:MAX_CHOICES]
        return tuple(_line(pair[0]) for pair in pairs), tuple(pair[1] for pair in pairs)
    values = field.get("enum")
    if not isinstance(values, list):
        return (), ()
    names = field.get("enumNames")
    shown = names if isinstance(names, list) and len(names) == len(values) else values
    return tuple(_line(str(each)) for each in shown[:MAX_CHOICES]), tuple(values[:MAX_CHOICES])


def _converted(answer: str, field: dict[str, Any]) -> Any:
    """The answer as the field's type; None if it does not fit."""
    kind = field.get("type")
    try:
        match kind:
            case "integer":
                return int(answer)
            case "number":
                return float(answer)
            case "boolean":
                return {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}.get(answer.lower())
            case "array":
                return [part.strip() for part in answer.split(",") if part.strip()]
            case _:
                return answer if not _choices(field)[0] else None
    except ValueError:
        return None


async def _ask(ask_user: AskUser, words: str, choices: tuple[str, ...], *, may_be_empty: bool = False) -> str:
    try:
        asked = ask_user(words, choices)
        answer = valid_unicode(str((await asked if isinstance(asked, Awaitable) else asked) or "")).strip()
    except (EOFError, KeyboardInterrupt, Cancelled) as error:
        raise NoAnswer from error
    if not answer and not may_be_empty:
        raise NoAnswer
    return answer


def _visible(text: str) -> str:
    return clip(escape_hidden(text), _MAX_CHARS)


def _line(text: str) -> str:
    return clip(escape_hidden(text, one_line=True), _MAX_LINE_CHARS)
