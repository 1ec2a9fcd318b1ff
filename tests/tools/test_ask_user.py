"""Questions of the model's own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dragoman.tools.ask_user import AskTheUser
from dragoman.values.calls import AskUser, ToolOutput
from dragoman.values.errors import Cancelled
from dragoman.values.messages import Text


def answering(answer: str | BaseException) -> tuple[AskUser, list[tuple[str, Sequence[str]]]]:
    asked: list[tuple[str, Sequence[str]]] = []

    async def ask(question: str, choices: Sequence[str]) -> str:
        asked.append((question, choices))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return ask, asked


def run(ask: AskUser | None, **args: object) -> ToolOutput:
    return asyncio.run(AskTheUser(ask).run(args, lambda text: None))


def test_the_answer_goes_to_the_model() -> None:
    ask, asked = answering(" blue\n")
    output = run(ask, question="Which colour?", choices=["red", "blue"])
    assert output.content == (Text("blue"),)
    assert asked == [("Which colour?", ("red", "blue"))]


def test_choices_may_be_left_out() -> None:
    ask, asked = answering("yes")
    run(ask, question="Go on?", choices=None)
    assert asked == [("Go on?", ())]


@pytest.mark.parametrize("answer", ["", "  \n", EOFError(), Cancelled("esc"), asyncio.CancelledError()])
def test_no_answer_is_told_as_such(answer: str | BaseException) -> None:
    output = run(answering(answer)[0], question="Which?")
    assert "The user did not answer" in str(output.content)
    assert not output.is_error


def test_a_cancel_of_the_call_goes_through() -> None:
    async def ask(question: str, choices: Sequence[str]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    async def main() -> None:
        task = asyncio.create_task(AskTheUser(ask).run({"question": "Which?"}, lambda text: None))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asked = asyncio.Event()
    asyncio.run(main())


@pytest.mark.parametrize(
    ("ask", "args", "words"),
    [
        (None, {"question": "Which?"}, "nobody is there"),
        (answering("x")[0], {"question": " "}, "empty"),
        (answering("x")[0], {"question": "Which?", "choices": [str(number) for number in range(11)]}, "too many"),
        (answering(ValueError("broken terminal"))[0], {"question": "Which?"}, "broken terminal"),
    ],
)
def test_what_cannot_be_asked_is_an_error(ask: AskUser | None, args: dict[str, object], words: str) -> None:
    output = run(ask, **args)
    assert output.is_error
    assert words in str(output.content)


def test_the_intent_shows_the_question() -> None:
    intent = AskTheUser(None).intend({"question": "Which\u202e one?\nReally?", "choices": ["a", "b"]})
    assert intent.title == "ask: Which<U+202E> one?<U+000A>Really?"
    assert intent.preview == "Which<U+202E> one?\nReally?\n- a\n- b"
