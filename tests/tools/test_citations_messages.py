"""Answers with citations, of every service: one text with markers, one list of sources."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing.script_steps import Cite, Say, ScriptedAnswer
from dragoman.tools.web.grounding import cite_message, sources_of
from dragoman.values.messages import Citation, Message, Opaque, Response, Source, Text, Thought, assistant, user
from streaming import PROTOCOLS, answered, prepared, recorded, recorded_whole, sse, typed

A, B = Source("A", "https://a.example"), Source("B", "https://b.example")


def citing(source: Source, *cited_text: str) -> Source:
    return Source(source.title, source.uri, cited_text)


def opaque(told: dict[str, Any]) -> Opaque:
    return Opaque("somebody", json.dumps(told))


def gemini(parts: list[dict[str, Any]], grounding: dict[str, Any], *more: list[dict[str, Any]]) -> Response:
    """An answer as chunks: `parts`, then each of `more`, then the grounding."""
    bodies = [{"candidates": [{"content": {"role": "model", "parts": each}}]} for each in (parts, *more)]
    return answered("gemini", sse(*bodies, {"candidates": [{"finishReason": "STOP", "groundingMetadata": grounding}]}))


def grounding(*supports: tuple[dict[str, Any], list[int]]) -> dict[str, Any]:
    chunks = [{"web": {"uri": source.uri, "title": source.title}} for source in (A, B)]
    told = [{"segment": segment, "groundingChunkIndices": indices} for segment, indices in supports]
    return {"groundingChunks": chunks, "groundingSupports": told, "webSearchQueries": ["q"]}


# --- each service in its own way ----------------------------------------------------------------------------------------------


def test_gemini_counts_bytes_of_the_whole_answer() -> None:
    told = grounding(({"endIndex": 9, "text": "晴れ。"}, [1]), ({"startIndex": 9, "endIndex": 13, "text": "warm"}, [0]))
    message = gemini([{"text": "晴れ。"}], told, [{"text": "warm."}]).message
    cited = cite_message(message)
    assert cited.text == "晴れ。[2]warm[1]."
    assert cited.sources == (citing(A, "warm"), citing(B, "晴れ。"))
    assert message.text == "晴れ。warm.", "the message itself stays as it was"


def test_gemini_names_each_source_in_a_citation_of_its_own() -> None:
    citations = [part for part in gemini([{"text": "x"}], grounding()).message.parts if isinstance(part, Citation)]
    assert [(each.uri, each.title) for each in citations] == [("https://a.example", "A"), ("https://b.example", "B")]
    assert [each.opaque is not None for each in citations] == [True, False]
    assert sources_of(citations) == (A, B)


def test_gemini_counts_from_the_part_it_names() -> None:
    """`partIndex` respected, though parts of one kind are joined when an answer is read."""
    told = grounding(({"endIndex": 5, "text": "same."}, [0]), ({"partIndex": 2, "startIndex": 0, "endIndex": 5, "text": "same."}, [1]))
    message = gemini([{"text": "same."}, {"text": "same."}, {"text": "same."}], told).message
    assert cite_message(message).text == "same.[1]same.same.[2]"


def test_a_thought_is_a_part_too_and_pieces_of_one_part_are_one() -> None:
    exact = grounding(({"partIndex": 1, "startIndex": 4, "endIndex": 7, "text": "a a"}, [0]))
    message = gemini([{"text": "hm", "thought": True}], exact, [{"text": "a a "}], [{"text": "a a"}]).message
    assert cite_message(message).text == "a a a a[1]"


def test_what_comes_between_parts_two_texts() -> None:
    told = grounding(({"partIndex": 2, "endIndex": 5, "text": "same."}, [0]))
    ran: dict[str, Any] = {"executableCode": {"language": "PYTHON", "code": "1"}}
    same = [{"text": "same."}]
    message = gemini(same, told, same, same, [ran], same).message
    assert cite_message(message).text == "same.same.same.same.[1]"


def test_gemini_tells_with_each_source_the_passages_it_supports() -> None:
    told = grounding(({"endIndex": 5, "text": "same."}, [0, 1]), ({"startIndex": 5, "endIndex": 11, "text": "other."}, [1]))
    message = gemini([{"text": "same.other."}], told).message
    assert [part.cited_text for part in message.parts if isinstance(part, Citation)] == ["same.", "same.\nother."]
    assert cite_message(message).text == "same.[1][2]other.[2]"
    assert cite_message(message).sources == (citing(A, "same."), citing(B, "same.", "other."))


@pytest.mark.parametrize("name", ["citationSources", "citations"])
def test_gemini_names_what_an_answer_repeats(name: str) -> None:
    """citationMetadata: in the Gemini API's words and in Vertex AI's. Offsets are bytes of the whole answer."""
    first = {"endIndex": 9, "uri": A.uri, "title": A.title, "license": "mit"}
    second = {"startIndex": 9, "endIndex": 13, "uri": B.uri, "title": B.title}
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": "晴れ。"}]}, "citationMetadata": {name: [first]}}]},
        {"candidates": [{"content": {"parts": [{"text": "warm."}]}, "citationMetadata": {name: [first, second]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    ]
    message = answered("gemini", sse(*chunks)).message
    told = [part for part in message.parts if isinstance(part, Citation)]
    assert [(each.uri, each.title, each.cited_text) for each in told] == [(A.uri, "A", "晴れ。"), (B.uri, "B", "warm")]
    assert json.loads(told[0].opaque.json if told[0].opaque else "") == first, "the licence is kept in the record"
    assert cite_message(message).text == "晴れ。[1]warm[2]."
    assert cite_message(message).sources == (citing(A, "晴れ。"), citing(B, "warm"))


def test_a_page_that_gemini_found_and_repeated_is_one_source() -> None:
    told = grounding(({"endIndex": 5, "text": "same."}, [0]))
    repeated = {"citationSources": [{"startIndex": 5, "endIndex": 11, "uri": A.uri}, {"license": "mit"}, "nonsense"]}
    last = {"candidates": [{"finishReason": "STOP", "groundingMetadata": told, "citationMetadata": repeated}]}
    message = answered("gemini", sse({"candidates": [{"content": {"parts": [{"text": "same.other."}]}}]}, last)).message
    assert cite_message(message).text == "same.[1]other.[1]"
    assert cite_message(message).sources == (citing(A, "same.", "other."), B)


def test_openai_chat_counts_characters_of_the_answer() -> None:
    notes = [
        {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 6, "url": A.uri, "title": A.title}},
        {"type": "url_citation", "url_citation": {"start_index": 7, "end_index": 18, "url": B.uri, "title": B.title}},
    ]
    deltas = [{"content": "日本は晴れ。 It is "}, {"content": "warm."}, {"annotations": notes}]
    chunks = [{"id": "r", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    message = answered("openai_chat", sse(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})).message
    assert cite_message(message).text == "日本は晴れ。[1] It is warm.[2]"
    assert cite_message(message).sources == (citing(A, "日本は晴れ。"), citing(B, "It is warm."))


def test_openai_counts_characters_of_a_block() -> None:
    text = "日本は晴れ。 It is warm."
    notes = [
        {"type": "url_citation", "start_index": 0, "end_index": 6, "url": A.uri, "title": A.title},
        {"type": "url_citation", "start_index": 7, "end_index": 18, "url": B.uri, "title": B.title},
        {"type": "url_citation", "start_index": 7, "end_index": 18, "url": A.uri, "title": A.title},
        {"type": "file_citation", "file_id": "f", "filename": "a.pdf", "index": 3},
    ]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": notes}]}
    response = {"id": "r", "model": "m", "status": "completed", "output": [item]}
    message = answered("openai_responses", typed({"type": "response.completed", "response": response})).message
    cited = cite_message(message)
    assert cited.text == "日本は晴れ。[1] It is warm.[1][2]"
    assert cited.sources == (citing(A, "日本は晴れ。", "It is warm."), citing(B, "It is warm."), Source("a.pdf"))


def test_openai_blocks_that_are_joined_keep_their_places() -> None:
    def block(text: str) -> dict[str, Any]:
        note = {"type": "url_citation", "start_index": 0, "end_index": 6, "url": A.uri, "title": A.title}
        return {"type": "output_text", "text": text, "annotations": [note] if text.startswith("second") else []}

    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [block("first. "), block("second.")]}
    response = {"id": "r", "model": "m", "status": "completed", "output": [item]}
    message = answered("openai_responses", typed({"type": "response.completed", "response": response})).message
    assert cite_message(message).text == "first. second[1]."


def test_anthropic_cites_the_block_before() -> None:
    def located(source: Source) -> Citation:
        return Citation(source.uri, source.title, "words of the page", opaque({"type": "web_search_result_location", "url": source.uri}))

    message = assistant("Found: ", "it is sunny. ", located(A), located(B), located(A), "Enjoy. ", "Or not.", located(B))
    cited = cite_message(message)
    assert cited.text == "Found: it is sunny.[1][2] Enjoy. Or not.[2]"
    assert cited.sources == (citing(A, "words of the page"), citing(B, "words of the page"))


def test_a_quote_without_more_is_looked_for_in_the_text_before() -> None:
    assert cite_message(assistant("It rains. It pours.", Citation(A.uri, A.title, "It rains"))).text == "It rains[1]. It pours."
    assert cite_message(assistant("It rains.", Citation(A.uri, A.title, "not there"))).text == "It rains.[1]"


def test_a_source_alone_gets_no_marker() -> None:
    cited = cite_message(assistant("It rains.", Citation(A.uri, A.title)))
    assert (cited.text, cited.sources) == ("It rains.", (A,))
    assert cite_message(Message("assistant", (Citation(A.uri, A.title, "x"), Text("It rains.")))).text == "It rains."


# --- all services alike -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("streamed", [True, False])
def test_one_answer_reads_alike_over_every_protocol(protocol: str, streamed: bool) -> None:
    said = ScriptedAnswer(steps=(Say("今日は晴れ。"), Cite(A.uri, A.title, "今日は晴れ。")))
    body = recorded(protocol, said) if streamed else None
    message = answered(protocol, body).message if body else _whole(protocol, said)
    cited = cite_message(message)
    assert cited.text == "今日は晴れ。[1]"
    assert cited.sources == (citing(A, "今日は晴れ。"),)
    assert [part.cited_text for part in message.parts if isinstance(part, Citation)] == ["今日は晴れ。"]


def _whole(protocol: str, said: ScriptedAnswer) -> Message:
    import asyncio

    from streaming import Replay, provider_over, request_for

    provider = provider_over(protocol, Replay([recorded_whole(protocol, said)], "application/json"))
    return asyncio.run(provider.generate(request_for(protocol))).message


def test_grounding_stays_out_of_the_history() -> None:
    """SEARCH-6: groundingMetadata is not needed in the history; only the text goes back."""
    message = gemini([{"text": "sunny"}], grounding(({"endIndex": 5, "text": "sunny"}, [0]))).message
    body = json.dumps(prepared("gemini", user("Weather?"), message, user("Thanks.")))
    assert "sunny" in body
    assert "grounding" not in body
    assert "a.example" not in body


# --- nothing raises -----------------------------------------------------------------------------------------------------------

told = st.dictionaries(
    st.sampled_from(["type", "start_index", "end_index", "startIndex", "endIndex", "url_citation", "groundingChunks", "groundingSupports"]),
    st.none()
    | st.integers(-5, 50)
    | st.text(max_size=5)
    | st.lists(st.dictionaries(st.just("web"), st.none() | st.text(max_size=3)), max_size=3),
    max_size=4,
)
citations = st.builds(Citation, st.text(max_size=4), st.text(max_size=4), st.text(max_size=6), st.none() | told.map(opaque))
parts = st.lists(st.one_of(st.text(max_size=12).map(Text), st.just(Thought("hm")), citations), max_size=10)


@given(parts)
def test_whatever_the_parts_say_the_text_stays(parts: list[Any]) -> None:
    message = Message("assistant", tuple(parts))
    cited = cite_message(message)
    numbers = [f"[{number}]" for number in range(1, len(cited.sources) + 1)]
    left = cited.text
    for number in numbers:
        left = left.replace(number, "") if number not in message.text else left
    assert left == message.text or any(number in message.text for number in numbers)


def test_what_is_not_json_is_no_record() -> None:
    assert cite_message(assistant("x", Citation(A.uri, "", "", Opaque("somebody", "{")))).sources == (Source("", A.uri),)
