"""Calls in a stream of the chat protocol: which call a delta belongs to, and what many of them cost."""

from __future__ import annotations

import json
import time
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from destinations import connection
from dragoman.providers import openai_chat_stream
from dragoman.providers.openai_chat_stream import Decoder, _Alike, _Call, _is_whole
from dragoman.providers.wire import Destination
from dragoman.values.errors import StreamBroken


class PlainlyAlike(_Alike):
    """The same answers, by looking at every call."""

    def find(self, wire_id: object) -> _Call | None:
        return next((call for call in reversed(self.calls) if call.wire_id == wire_id), None)

    def first_without_id(self) -> _Call | None:
        return next((call for call in self.calls if not call.wire_id), None)

    def are_whole_but_last(self) -> bool:
        return all(map(_is_whole, self.calls[:-1]))


def decoder() -> Decoder:
    where = connection("openai_chat")
    provider: Any = where.provider
    return Decoder(Destination(provider.deployment, provider.profile(where.model), where.model), frozenset)


def feed(into: Decoder, *pieces: dict[str, Any]) -> list[str]:
    data = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": list(pieces)}}]}
    return [str(event) for event in into.feed("", json.dumps(data).encode()) or ()]


ARGUMENTS = st.sampled_from(["", "{}", '{"a":', "1}"])
FUNCTIONS = st.fixed_dictionaries({}, optional={"name": st.sampled_from("fg"), "arguments": ARGUMENTS})
INDEXES = st.sampled_from([None, 0, 1, 2, "0", [1]])
PIECES = st.fixed_dictionaries({"function": FUNCTIONS}, optional={"index": INDEXES, "id": st.sampled_from(["", "a", "b", "c"])})


@given(st.lists(PIECES, max_size=12))
def test_a_delta_belongs_to_the_call_that_looking_at_every_call_would_find(pieces: list[dict[str, Any]]) -> None:
    found: list[list[str]] = []
    for kind in (_Alike, PlainlyAlike):
        said: list[str] = []
        with patch.object(openai_chat_stream, "_Alike", kind):
            into = decoder()
            try:
                for piece in pieces:
                    said += feed(into, piece)
            except StreamBroken as error:
                said.append(str(error))
        found.append(said)
    assert found[0] == found[1]


def test_thousands_of_calls_in_one_answer_cost_no_more_each_than_a_few() -> None:
    count = 50_000
    for numbered in ({}, {"index": 0}):
        into, begun_s = decoder(), time.process_time()
        for number in range(0, count, 100):
            calls = (
                {"index": each, **numbered, "id": f"call_{each}", "function": {"name": "read_file", "arguments": "{}"}}
                for each in range(number, number + 100)
            )
            assert len(feed(into, *calls)) >= 100
        assert time.process_time() - begun_s < 10
