"""ask_user: a question of the model's own, put before the person it works for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dragoman.base.jsontext import valid_unicode
from dragoman.base.text import clip
from dragoman.base.visible import visible
from dragoman.tools.description import described
from dragoman.tools.workspace import Refused
from dragoman.values.contracts import AskUser, Intent, Show, ToolOutput
from dragoman.values.errors import Cancelled
from dragoman.values.messages import Text, ToolSpec

MAX_CHOICES = 10
_UNANSWERED = "The user did not answer. Go on as you think best, or stop and say what you need to know."


class AskTheUser:
    """Asks through the callable it is given. One that raises EOFError or Cancelled, or returns nothing, got no answer."""

    def __init__(self, ask_user: AskUser | None) -> None:
        self._ask_user = ask_user
        self.spec = ToolSpec.of(
            "ask_user",
            described("ask_user"),
            {
                "type": "object",
                "properties": {
                    "question": {"type": "string", "description": "One question."},
                    "choices": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Answers to choose from, if there are a few likely ones.",
                    },
                },
                "required": ["question"],
            },
            display_name="Question",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        try:
            question, choices = _read(args)
        except Refused as refused:
            return Intent(title="ask_user", problem=refused.message)
        title = visible(f"ask: {question}", one_line=True)
        preview = visible("\n".join([question, *(f"- {choice}" for choice in choices)]))
        return Intent(title=clip(title, 100), preview=preview)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            question, choices = _read(args)
        except Refused as refused:
            return refused.output()
        if self._ask_user is None:
            return Refused(
                "nobody is there to be asked: go on as you think best, or stop and say what you need to know", "no_user"
            ).output()
        try:
            answer = valid_unicode(str(await self._ask_user(question, choices) or "")).strip()
        except (EOFError, KeyboardInterrupt, Cancelled):
            answer = ""
        except asyncio.CancelledError:
            # Only the question was closed, not our call: that is an answer of a kind.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            answer = ""
        except Exception as error:
            return Refused(f"the user could not be asked: {error or type(error).__name__}", "no_user").output()
        if not answer:
            return ToolOutput((Text(_UNANSWERED),), display="(no answer)")
        return ToolOutput((Text(answer),), display=visible(answer))


def _read(args: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Raises Refused."""
    question = str(args.get("question", "")).strip()
    if not question:
        raise Refused("the question is empty: say what you want to know", "invalid")
    choices = tuple(str(choice) for choice in args.get("choices") or ())
    if len(choices) > MAX_CHOICES:
        raise Refused(f"{len(choices)} choices are too many: give at most {MAX_CHOICES}", "invalid")
    return question, choices
