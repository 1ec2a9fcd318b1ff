"""The record: entries survive the way to disk and back, known or not."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.jsontext import NotJSON
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Response, SafetyRating, Settings, Text, Thinking, ToolResult, ToolSpec, assistant
from dragoman.values.record import (
    AnswerRejected,
    AnswerUnchecked,
    AttemptFailed,
    Compressed,
    Configured,
    Entry,
    FieldRefused,
    Kept,
    ModelChanged,
    NotCompressed,
    Pruned,
    Rewound,
    RunEnded,
    RunOutcome,
    RunStarted,
    Said,
    Spent,
    Titled,
    ToolDecided,
    ToolFinished,
    ToolPostponed,
    ToolStarted,
    Unknown,
    encode_entry,
)
from dragoman.values.record_reading import decode_entry
from dragoman.values.usage import Usage
from property.conversations import damaged, spoken

numbers = st.integers(0, 2**40)
messages = damaged.map(lambda some: some[0])
valid_text = st.text()
results = st.builds(ToolResult, valid_text, valid_text, st.lists(valid_text.map(Text), max_size=2).map(tuple), st.booleans())
settings = st.builds(Settings, thinking=st.none() | st.builds(Thinking), temperature=st.none() | st.floats(0, 2))
specs = st.lists(st.builds(ToolSpec, valid_text, valid_text), max_size=2).map(tuple)
usages = st.builds(Usage, numbers)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(Configured, numbers, numbers, valid_text, valid_text, specs, settings),
    st.builds(
        Said, numbers, numbers, st.just(assistant("hello", "世界")), valid_text, st.builds(Usage, numbers), st.sampled_from(FinishReason)
    ),
    st.builds(AnswerRejected, numbers, numbers, numbers, valid_text),
    st.builds(AnswerUnchecked, numbers, numbers, numbers, valid_text),
    st.builds(ToolStarted, numbers, numbers, valid_text, valid_text),
    st.builds(
        ToolPostponed, numbers, numbers, valid_text, valid_text, st.sampled_from(["decision", "result"]), valid_text, valid_text, valid_text
    ),
    st.builds(ToolDecided, numbers, numbers, valid_text, st.booleans(), valid_text, st.sampled_from(["once", "session"]), valid_text),
    st.builds(
        ToolFinished, numbers, numbers, results, st.sampled_from(["finished", "failed", "cancelled", "refused", "not_run", "unknown"])
    ),
    st.builds(Kept, numbers, numbers, st.lists(valid_text, max_size=3).map(tuple), st.booleans(), numbers),
    st.builds(Pruned, numbers, numbers, st.lists(valid_text, max_size=3).map(tuple), numbers, valid_text, numbers),
    st.builds(
        Compressed, numbers, numbers, numbers, st.just(assistant("summary")), numbers, numbers, numbers, valid_text, st.none() | usages
    ),
    st.builds(
        NotCompressed, numbers, numbers, st.sampled_from(["inflated", "empty", "truncated", "failed"]), numbers, valid_text, valid_text
    ),
    st.builds(Spent, numbers, numbers, valid_text, usages, valid_text),
    st.builds(FieldRefused, numbers, numbers, valid_text, valid_text, valid_text, valid_text),
    st.builds(ModelChanged, numbers, numbers, valid_text),
    st.builds(AttemptFailed, numbers, numbers, numbers, valid_text, st.floats(0, 1e6), valid_text),
    st.builds(RunStarted, numbers, numbers),
    st.builds(
        RunEnded,
        numbers,
        numbers,
        st.sampled_from(get_args(RunOutcome)),
        valid_text,
        valid_text,
        numbers,
        numbers,
        numbers,
        st.none() | st.floats(0, 1e6),
        st.booleans(),
        numbers,
    ),
    st.builds(Rewound, numbers, numbers, numbers),
    st.builds(Titled, numbers, numbers, spoken.filter(lambda text: "\ud800" not in text)),
)


@given(entry=entries)
def test_an_entry_is_what_it_was_after_a_round_trip(entry: Entry) -> None:
    line = encode_entry(entry)
    assert b"\n" not in line
    assert decode_entry(line) == entry


@given(message=messages)
def test_any_message_can_be_written_down(message: object) -> None:
    """Lone surrogates would stop the encoder: they are replaced, and the rest is kept."""
    line = encode_entry(Said(1, 2, message))  # type: ignore[arg-type]
    read = decode_entry(line)
    assert isinstance(read, Said)
    assert len(read.message.parts) == len(message.parts)  # type: ignore[attr-defined]
    assert encode_entry(read) == line


def test_an_unknown_kind_is_kept_to_the_letter() -> None:
    line = '{"kind":"from_the_future","seq":7,"timestamp_ms":9,"what":"é"}'.encode()
    entry = decode_entry(line)
    assert entry == Unknown(7, 9, line.decode())
    assert encode_entry(entry) == line


@pytest.mark.parametrize("line", [b"", b"nonsense", b"[1]", b"{}", b'{"seq":1}', b'{"kind":"said","seq"'])
def test_what_is_no_entry_is_refused(line: bytes) -> None:
    with pytest.raises(NotJSON, match="not an entry"):
        decode_entry(line)


def test_the_record_keeps_how_a_service_rated_an_answer() -> None:
    rated = (SafetyRating("HARM_CATEGORY_HARASSMENT", "HIGH", blocked=True),)
    said = History().answer(Response(assistant(), FinishReason.SAFETY, "SAFETY", ratings=rated))
    read = decode_entry(encode_entry(said))
    assert isinstance(read, Said)
    assert read.ratings == rated
