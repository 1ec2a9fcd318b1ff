"""The same bytes give the same answer, wherever the wire cuts them, and the deltas of an answer are the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing.script_steps import CallQuirk, CallStep, Cite, ReportStep, Say, ScriptFraming, Think, answer
from dragoman.values.messages import Citation, FinishReason, Text, Thought
from dragoman.values.usage import Usage
from streaming import CUTS, PROTOCOLS, calls_of, checked, cut_at, made_valid, pieces_of, recorded, single_bytes, streamed

TEXT = "Let me see: naïve 文字列 \U0001f9d1\u200d\U0001f680 שלום \u2028\u0085 end."
THOUGHT = "**Plan**\n\nRead 两 files \U0001f914, then שלום."
CALLS = (
    CallStep("read_file", '{"path":"日本.txt","n":1.0}', id="call_a", piece_chars=3),
    CallStep("read_file", '{"path":"\U0001f642","deep":{"a":[1,{"b":"}{"}]}}', id="call_b", piece_chars=1),
    CallStep("list_dir", "{}", id="call_c"),
)
USAGE = Usage(fresh_tokens=100, cache_read_tokens=50, output_tokens=20, thought_tokens=7)
RICH = answer(
    Think(THOUGHT, "c2lnbmF0dXJl", piece_chars=5),
    Say(TEXT, piece_chars=2),
    Cite("https://example.org/ü", "Ein Titel", "end."),
    Say("\n\nAnd \U0001f642 more."),
    *CALLS,
    ReportStep(USAGE),
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rich_answer_is_read_whole(protocol: str) -> None:
    """Text in every script, a signed thought, a citation, three parallel calls, usage: all there, and told as it came."""
    events = streamed(protocol, recorded(protocol, RICH))
    response = checked(events)
    message = response.message
    assert message.text == TEXT + "\n\nAnd \U0001f642 more."
    assert "".join(part.text for part in message.parts if isinstance(part, Thought)) == THOUGHT
    assert [(call.id, call.name, call.args) for call in message.calls] == [(call.id, call.name, call_args(call)) for call in CALLS]
    assert len([part for part in message.parts if isinstance(part, Citation)]) == 1
    assert (response.finish, response.usage) == (FinishReason.TOOL_CALLS, USAGE)
    assert response.response_id
    assert response.model_version == "a-model"
    if protocol != "openai_chat":  # which has no place for one
        opaque = "".join(part.opaque.json for part in message.parts if part.opaque)  # type: ignore[union-attr]
        assert "c2lnbmF0dXJl" in opaque


def call_args(call: CallStep) -> object:
    import json

    return json.loads(call.arguments)


@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses", "anthropic"])
def test_pieces_of_arguments_add_up_to_the_arguments(protocol: str) -> None:
    """ToolCallDelta: concatenated they are the call's arguments, as the model wrote them."""
    events = streamed(protocol, recorded(protocol, RICH))
    assert pieces_of(events) == {call.id: call.arguments for call in CALLS}
    assert calls_of(checked(events)) == [(call.id, call.name, call.arguments) for call in CALLS]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_single_byte_on_its_own(protocol: str) -> None:
    body = recorded(protocol, RICH)
    assert streamed(protocol, single_bytes(body)) == streamed(protocol, body)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(cuts=CUTS)
def test_any_cutting_gives_the_same_events(protocol: str, cuts: list[int]) -> None:
    """UTF-8 split across chunks, events split anywhere."""
    body = recorded(protocol, RICH)
    assert streamed(protocol, cut_at(body, cuts)) == streamed(protocol, body)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(framing=st.sets(st.sampled_from(ScriptFraming)), cuts=CUTS)
def test_any_framing_gives_the_same_events(protocol: str, framing: set[ScriptFraming], cuts: list[int]) -> None:
    """PV06: CRLF, CR, comments, `data:` without space, several data lines, BOM, no last blank line, in any combination."""
    plain = recorded(protocol, RICH)
    framed = recorded(protocol, answer(*RICH.steps, framing=tuple(framing)))
    assert streamed(protocol, cut_at(framed, cuts)) == streamed(protocol, plain)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(quirks=st.sets(st.sampled_from(CallQuirk)), cuts=CUTS)
def test_what_is_rebuilt_does_not_depend_on_the_cutting(protocol: str, quirks: set[CallQuirk], cuts: list[int]) -> None:
    """PV12: whether a layout of calls can be rebuilt or breaks the stream is decided by its events, not by how they arrive."""
    body = recorded(protocol, answer(*CALLS, calls=tuple(quirks)))
    assert outcome(protocol, cut_at(body, cuts)) == outcome(protocol, [body])


def outcome(protocol: str, chunks: list[bytes]) -> object:
    from dragoman.values.errors import StreamBroken

    try:
        return streamed(protocol, chunks)
    except StreamBroken as error:
        return error.message


# --- halves of surrogate pairs ----------------------------------------------------------------------------------------------

HALVES = st.text(st.sampled_from("ab\ud83d\ude00\ud800\udfff\U0001f642é"), min_size=1, max_size=12)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pair_split_over_two_deltas_is_joined_and_a_lone_half_replaced(protocol: str) -> None:
    """Text is valid Unicode; rule 24 of docs/reference/wire.md: lone surrogates never reach the wire."""
    split = "a\ud83d\ude00b\ud83dc\ude00d\ud83d"
    said = answer(Think(split, piece_chars=1), Say(split, piece_chars=1), CallStep("f", '{"a":1}'))
    response = checked(streamed(protocol, recorded(protocol, said)))
    whole = "a\U0001f600b\ufffdc\ufffdd\ufffd"
    assert [part.text for part in response.message.parts if isinstance(part, Text | Thought)] == [whole, whole]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(thought=HALVES, text=HALVES, size=st.integers(0, 3))
def test_every_text_becomes_valid_however_its_deltas_split_it(protocol: str, thought: str, text: str, size: int) -> None:
    said = answer(Think(thought, "c2ln", piece_chars=size), Say(text, piece_chars=size))
    message = checked(streamed(protocol, recorded(protocol, said))).message
    assert message.text == made_valid(text)
    assert "".join(part.text for part in message.parts if isinstance(part, Thought)) == made_valid(thought)


@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses", "anthropic"])
@given(held=HALVES, size=st.integers(0, 3))
def test_arguments_become_valid_however_their_deltas_split_them(protocol: str, held: str, size: int) -> None:
    """A pair split over two pieces of arguments is joined in the pieces that are told, too."""
    call = CallStep("f", f'{{"a":"{held}"}}', id="c", piece_chars=size)
    events = streamed(protocol, recorded(protocol, answer(call)))
    response = checked(events)
    assert response.message.calls[0].args == {"a": made_valid(held)}
    assert pieces_of(events)["c"] == response.message.calls[0].arguments


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_escaped_halves_in_arguments_and_names_are_replaced(protocol: str) -> None:
    call = CallStep("f\ud83d", '{"a\\ud83d":["\\ud83d\\ude00","\\ude00"],"same":"\\\\ud83d"}', id="c")
    response = checked(streamed(protocol, recorded(protocol, answer(call))))
    found = response.message.calls[0]
    assert (found.name, found.args) == ("f\ufffd", {"a\ufffd": ["\U0001f600", "\ufffd"], "same": "\\ud83d"})
    assert response.finish is FinishReason.TOOL_CALLS
