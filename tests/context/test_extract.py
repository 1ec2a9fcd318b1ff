"""The extract that stands in the place of older messages where no model sums them up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.context.compress import CHARS_PER_TOKEN, Verbatim, summary_message
from dragoman.context.extract import SAID_CHARS, extract_text
from dragoman.context.shown import Item
from dragoman.context.tokens import text_tokens
from dragoman.values.messages import Message, Text, ToolCall, ToolResult, assistant, user


def items_of(*messages: Message) -> list[Item]:
    return [Item(number, message, 1, 0) for number, message in enumerate(messages, 1)]


def called(number: int, said: str = "", *, failed: str = "") -> list[Message]:
    call = ToolCall(f"c{number}", "run_shell", f'{{"command": "make part-{number}"}}')
    result = ToolResult(call.id, call.name, (Text(failed or "o" * 5_000),), is_error=bool(failed))
    return [Message("assistant", (Text(said), call) if said else (call,)), Message("user", (result,))]


def test_each_step_is_a_line_and_failures_say_how() -> None:
    told = extract_text(
        items_of(user("Build it."), *called(1, "I build it."), *called(2, failed="no rule\nto make it"), assistant("Half.")), 500
    )
    assert told.splitlines() == [
        "- The model said: I build it.",
        "- It used run_shell (command: make part-1)",
        "- It used run_shell (command: make part-2), which failed: no rule to make it",
        "- The model said: Half.",
    ]


def test_the_newest_steps_stay_and_the_others_are_counted() -> None:
    told = extract_text(items_of(*(message for number in range(100) for message in called(number))), 100).splitlines()
    assert told[0] == f"({100 - len(told) + 1} older steps are left out here)"
    assert told[-1].endswith("part-99)")


def test_what_an_earlier_summary_said_is_kept() -> None:
    earlier = summary_message("<goal>\nship it\n</goal>", Verbatim(prompts=("Ship it.",)), is_extract=True)
    told = extract_text(items_of(*called(1), earlier, *called(2)), 500)
    assert told.splitlines() == ["<goal>", "ship it", "</goal>", "- It used run_shell (command: make part-2)"]
    again = extract_text(items_of(summary_message(told, Verbatim()), *called(3)), 500)
    assert again.splitlines()[1] == "ship it"
    assert len(again.splitlines()) == 5


@given(
    max_tokens=st.integers(100, 2_000),
    said=st.lists(st.text(max_size=600), max_size=30),
    earlier=st.text(st.characters(exclude_categories=["Cs"]), max_size=20_000),
)
def test_it_is_never_much_longer_than_allowed(max_tokens: int, said: list[str], earlier: str) -> None:
    told = extract_text(items_of(summary_message(earlier, Verbatim()), *map(assistant, said)), max_tokens)
    assert len(told) <= max(max_tokens * CHARS_PER_TOKEN / 2, SAID_CHARS) + 60 + 4 * max_tokens + SAID_CHARS
    assert text_tokens(told) <= 3 * max_tokens + SAID_CHARS
