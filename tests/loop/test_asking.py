"""Who is asked, as an embedder writes it: async or plain, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall

WRITE = 'call: write_file {"file_path": "a.txt", "content": "hello"}\n---\ntext: Done.'
QUESTION = 'call: ask_user {"question": "Which harbour?"}\n---\ntext: Done.'


async def async_ask(call: ToolCall, intent: Intent) -> Allow | Deny:
    return Allow()


def plain_ask(call: ToolCall, intent: Intent) -> Allow | Deny:
    return Allow()


class Person:
    async def ask(self, call: ToolCall, intent: Intent) -> Allow | Deny:
        return Allow()

    def __call__(self, call: ToolCall, intent: Intent) -> Allow | Deny:
        return Allow()


def run(tmp_path: Path, script: str = WRITE, **options: Any) -> tuple[str, list[dict[str, Any]]]:
    """What the model was told of the call, and what the event loop was told."""
    reported: list[dict[str, Any]] = []

    async def go() -> str:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        async with make_agent(ScriptedProvider(script), workspace=tmp_path, describe=False, **options) as agent:
            await agent.run("Go on.")
            return "".join(result.text for message in agent.history.view.messages for result in message.results)

    return asyncio.run(go()), reported


@pytest.mark.parametrize("ask", [async_ask, plain_ask, Person(), Person().ask, lambda call, intent: async_ask(call, intent)])
def test_ask_may_be_async_or_plain(ask: Callable[..., Any], tmp_path: Path) -> None:
    """A plain one failed, and nobody was told but the model."""
    assert run(tmp_path, ask=ask)[1] == []
    assert (tmp_path / "a.txt").read_text() == "hello"


def test_a_plain_no_is_a_no(tmp_path: Path) -> None:
    told, _ = run(tmp_path, ask=lambda call, intent: Deny("not today"))
    assert "not today" in told
    assert not (tmp_path / "a.txt").exists()


def failing(call: ToolCall, intent: Intent) -> Allow:
    raise RuntimeError("the window is closed")


async def failing_later(call: ToolCall, intent: Intent) -> Allow:
    raise RuntimeError("the window is closed")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (failing, "the window is closed"),
        (failing_later, "the window is closed"),
        (lambda call, intent: True, "ask returned True; it must return an Allow, a Deny or a Later"),
        (lambda call, intent: None, "ask returned None; it must return an Allow, a Deny or a Later"),
    ],
)
def test_an_ask_that_fails_refuses_the_call_and_is_reported(ask: Callable[..., Any], words: str, tmp_path: Path) -> None:
    _, reported = run(tmp_path, ask=ask)
    assert not (tmp_path / "a.txt").exists()
    assert [str(context["exception"]) for context in reported] == [words]
    assert "write_file was not run" in reported[0]["message"]


def test_a_person_who_goes_away_is_no_failure(tmp_path: Path) -> None:
    def gone(call: ToolCall, intent: Intent) -> Allow:
        raise EOFError

    assert run(tmp_path, ask=gone)[1] == []
    assert not (tmp_path / "a.txt").exists()


async def async_answer(question: str, choices: Sequence[str]) -> str:
    return "Muscat"


@pytest.mark.parametrize("ask_user", [async_answer, lambda question, choices: "Muscat"])
def test_the_models_own_question_may_be_answered_either_way(ask_user: Callable[..., Any], tmp_path: Path) -> None:
    assert run(tmp_path, QUESTION, ask_user=ask_user)[0] == "Muscat"
