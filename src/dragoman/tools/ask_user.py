"""ask_user: the model asks the user a question."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dragoman.base.jsontext import valid_unicode
from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.tools.description import load_description
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import AskUser, Intent, Show, ToolOutput
from dragoman.values.errors import Cancelled
from dragoman.values.messages import Text, ToolSpec

MAX_CHOICES = 10
_UNANSWERED = "The user did not answer. Go on as you think best, or stop and say what you need to know."


class AskTheUser:
    """Asks through the given callable. If it raises EOFError or Cancelled, or returns nothing, the user did not answer."""

    def __init__(self, ask_user: AskUser | None) -> None:
        self._ask_user = ask_user
        self.spec = ToolSpec.of(
            "ask_user",
            load_description("ask_user"),
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
                "additionalProperties": False,
            },
            display_name="Question",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        try:
            question, choices = _read_question(args)
        except ToolRefusal as refused:
            return Intent(title="ask_user", problem=refused.message)
        title = escape_hidden(f"ask: {question}", one_line=True)
        preview = escape_hidden("\n".join([question, *(f"- {choice}" for choice in choices)]))
        return Intent(title=clip(title, 100), preview=preview)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            question, choices = _read_question(args)
        except ToolRefusal as refused:
            return refused.output()
        if self._ask_user is None:
            return ToolRefusal(
                "nobody is there to be asked: go on as you think best, or stop and say what you need to know", "no_user"
            ).output()
        try:
            asked = self._ask_user(question, choices)
            answer = valid_unicode(str((asked if isinstance(asked, str | None) else await asked) or "")).strip()
        except (EOFError, KeyboardInterrupt, Cancelled):
            answer = ""
        except asyncio.CancelledError:
            # The user closed the question, not the call: that counts as declining to answer.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            answer = ""
        except Exception as error:
            return ToolRefusal(f"the user could not be asked: {error or type(error).__name__}", "no_user").output()
        if not answer:
            return ToolOutput((Text(_UNANSWERED),), display="(no answer)")
        return ToolOutput((Text(answer),), display=escape_hidden(answer))


def _read_question(args: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Raises ToolRefusal."""
    question = str(args.get("question", "")).strip()
    if not question:
        raise ToolRefusal("the question is empty: say what you want to know", "invalid")
    choices = tuple(str(choice) for choice in args.get("choices") or ())
    if len(choices) > MAX_CHOICES:
        raise ToolRefusal(f"{len(choices)} choices are too many: give at most {MAX_CHOICES}", "invalid")
    return question, choices
