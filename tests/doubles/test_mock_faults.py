"""The loopback server goes wrong in every way a service and a wire can, and in no other."""

from __future__ import annotations

import asyncio
import json
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from dragoman.testing.mock.server import MockServer
from dragoman.testing.script_steps import ScriptFraming
from raw_client import (
    PROTOCOLS,
    SAID,
    USER,
    answered,
    ask,
    connect,
    ends,
    events,
    objects,
    read_for,
    request_bytes,
    run,
    text_of,
)

# --- faults of the wire ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_comes_at_the_very_byte(protocol: str) -> None:
    whole = len(answered(SAID, protocol).body)

    async def every(server: MockServer) -> None:
        for offset in {*range(0, whole, 97), 1, whole - 1, whole}:
            server.play(f"{SAID}\ncut: {offset}")
            got = await ask(server, protocol)
            assert (got.status, len(got.body), got.complete) == (200, offset, False)
            assert server.requests[-1].outcome == "cut by the script"
        server.play(f"{SAID}\ncut: {whole + 1}")
        assert (await ask(server, protocol)).complete

    run("", every)


def test_a_cut_may_come_before_the_head() -> None:
    async def nothing(server: MockServer) -> bytes:
        reader, writer = await connect(server)
        writer.write(request_bytes("anthropic"))
        got = await reader.read()
        writer.close()
        return got

    assert run("cut", nothing) == b""


def test_a_cut_without_streaming_leaves_half_a_body() -> None:
    got = answered("text: Hello.\ncut", "openai_chat", body={"model": "gpt-mock", "messages": [USER]})
    assert (got.complete, len(got.body)) == (False, int(got.headers["content-length"]) // 2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("step", ["stall", "ping: forever every=0.005"])
def test_a_stall_lasts_until_the_client_leaves(protocol: str, step: str) -> None:
    async def leave(server: MockServer) -> tuple[bytes, str]:
        reader, writer = await connect(server)
        writer.write(request_bytes(protocol))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        said = await reader.readuntil(b"half")
        while step.startswith("ping") and b"ping" not in said and b"keep" not in said:
            said += await reader.read(1000)
        said += await read_for(reader, 0.03)
        assert not reader.at_eof()
        writer.close()
        for _ in range(1000):
            if server.requests[0].outcome != "waiting":
                break
            await asyncio.sleep(0.005)
        return said, server.requests[0].outcome

    said, outcome = run(f"text: half\n{step}\ntext: more", leave)
    assert b"half" in said
    assert b"more" not in said
    assert (b"ping" in said or b"keep" in said) == step.startswith("ping")
    assert outcome == "the client went away"


def test_a_head_may_be_all_there_is_and_a_stall_may_go_by_count() -> None:
    async def stalled(server: MockServer) -> list[bytes]:
        said: list[bytes] = []
        for _ in range(2):
            reader, writer = await connect(server)
            writer.write(request_bytes("anthropic"))
            await reader.readuntil(b"\r\n\r\n")
            said.append(await read_for(reader, 0.2))
            writer.close()
        return said

    first, second = run("stall\ntext: a\n---\ntext: a\nstall: 3", stalled)
    assert first == b""
    assert second.count(b"event: ") == 3


def test_closing_the_server_ends_stalls() -> None:
    async def close_early(server: MockServer) -> None:
        reader, writer = await connect(server)
        writer.write(request_bytes("anthropic"))
        await reader.readuntil(b"\r\n\r\n")
        await server.aclose()
        assert (await reader.read()) == b""
        writer.close()
        assert server.requests[0].outcome == "the server closed"

    run("stall", close_early)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bodies_go_out_in_pieces_of_any_size(protocol: str) -> None:
    plain = answered(SAID, protocol).body
    for size in (1, 7, 10_000):
        got = answered(f"answer: piece_bytes={size}\n{SAID}", protocol)
        assert {len(chunk) for chunk in got.chunks[:-1]} <= {size}
        assert len(got.body) == len(plain)
        assert text_of(protocol, got.body) == text_of(protocol, plain) == "Let me see: naïve \U0001f642"


def test_bodies_may_be_slow() -> None:
    start = time.monotonic()
    got = answered("answer: piece_bytes=100 piece_wait=0.01\ntext: Hello.", "openai_chat")
    assert time.monotonic() - start >= (len(got.chunks) - 1) * 0.01
    assert text_of("openai_chat", got.body) == "Hello."


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "framing",
    [*([each] for each in ScriptFraming), [ScriptFraming.CRLF, ScriptFraming.BOM, ScriptFraming.MULTILINE, ScriptFraming.COMMENTS]],
)
def test_every_framing_says_the_same(protocol: str, framing: list[ScriptFraming]) -> None:
    said = 'text: "a\\u2028b\\u0085c"\ncall id=c1: f {"a": 1}'
    plain = answered(said, protocol)
    framed = answered(f"answer: framing={'+'.join(framing)}\n{said}", protocol)
    assert framed.body != plain.body
    assert text_of(protocol, framed.body) == "a\u2028b\u0085c"
    assert [name for name, _ in events(framed.body)] == [name for name, _ in events(plain.body)]
    by_server = answered(said, protocol, options={"framing": framing})
    assert len(by_server.body) == len(framed.body)


def test_text_goes_out_as_utf8_and_not_as_escapes() -> None:
    assert "\u2028\u0085é".encode() in answered('text: "\\u2028\\u0085é"', "anthropic").body
    assert b"\\ud83d" in answered('text: "\\ud83d"', "anthropic").body  # but half a surrogate pair has no other way


# --- faults of the service -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
def test_an_error_has_the_services_shape(protocol: str, status: int) -> None:
    got = answered(f'error: {status} "No."', protocol)
    assert got.status == status
    error = got.json["error"]
    assert error["message"] == "No."
    match protocol:
        case "gemini":
            assert error["code"] == status
            assert re.fullmatch("[A-Z_]+", error["status"])
        case "anthropic":
            assert got.json["type"] == "error"
            assert error["type"].endswith(("_error", "_too_large"))
            assert got.json["request_id"] == got.headers["request-id"]
        case _:
            assert set(error) == {"message", "type", "param", "code"}
            assert got.headers["x-request-id"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_form_of_hint(protocol: str) -> None:
    assert answered("error: 429 retry_after=7", protocol).headers["retry-after"] == "7"
    before = time.time()
    dated = answered("error: 429 retry_date=70", protocol).headers["retry-after"]
    assert before + 69 <= parsedate_to_datetime(dated).timestamp() <= time.time() + 71


def test_google_hints_are_in_the_body() -> None:
    got = answered("error: 429 retry_after=7 retry_info=45.837906927 quota_id=GenerateRequestsPerDay-FreeTier", "gemini")
    quota, retry = got.json["error"]["details"]
    assert quota["violations"][0]["quotaId"] == "GenerateRequestsPerDay-FreeTier"
    assert retry == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "45.837906927s"}
    assert got.headers["retry-after"] == "7"


def test_an_error_after_output_is_an_event() -> None:
    for protocol in PROTOCOLS:
        got = answered('text: half\nerror: 529 "Overloaded"', protocol)
        assert (got.status, got.complete) == (200, True)
        assert "Overloaded" in events(got.body)[-1][1]
        assert text_of_half(protocol, got.body)
    names = [name for name, _ in events(answered("text: half\nerror: 529", "anthropic").body)]
    assert names[-1] == "error"


def text_of_half(protocol: str, body: bytes) -> bool:
    return b"half" in body and b"[DONE]" not in body and b"message_stop" not in body


def test_garbage_raw_bytes_and_unknown_events_go_as_they_are() -> None:
    for protocol in PROTOCOLS:
        got = answered('text: a\ngarbage\nraw: "event: news\\ndata: {}\\n\\n"\nraw base64: //4=\ntext: b', protocol)
        assert b'data: {"broken\n\n' in got.body
        assert b"event: news\ndata: {}\n\n\xff\xfe" in got.body
    whole = answered("garbage: <html>", "openai_chat", body={"model": "gpt-mock", "messages": [USER]})
    assert whole.body == b"<html>"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_empty_answers(protocol: str) -> None:
    nothing = answered("nothing", protocol)
    assert (nothing.status, nothing.body, nothing.complete) == (200, b"", True)
    only_finish = answered("finish: stop", protocol)
    assert text_of(protocol, only_finish.body) == ""
    assert ends(protocol, only_finish.body) in ("STOP", "stop", "completed", "end_turn")
    no_finish = answered("text: a\nfinish: none", protocol)
    assert (no_finish.complete, text_of(protocol, no_finish.body), ends(protocol, no_finish.body)) == (True, "a", None)


@pytest.mark.parametrize(
    ("finish", "gemini", "chat", "responses", "anthropic"),
    [
        ("stop", "STOP", "stop", "completed", "end_turn"),
        ("length", "MAX_TOKENS", "length", "max_output_tokens", "max_tokens"),
        ("tool_calls", "STOP", "tool_calls", "completed", "tool_use"),
        ("safety", "SAFETY", "content_filter", "content_filter", "refusal"),
        ("recitation", "RECITATION", "content_filter", "content_filter", "refusal"),
        ("refusal", "PROHIBITED_CONTENT", "stop", "completed", "refusal"),
        ("malformed_tool_call", "MALFORMED_FUNCTION_CALL", *["malformed_tool_call"] * 3),
        ("UNEXPECTED_TOOL_CALL", *["UNEXPECTED_TOOL_CALL"] * 4),
        ("content_filter", *["content_filter"] * 4),
    ],
)
def test_every_end_in_the_services_own_word(finish: str, gemini: str, chat: str, responses: str, anthropic: str) -> None:
    async def all_four(server: MockServer) -> list[str | None]:
        return [ends(protocol, (await ask(server, protocol)).body) for protocol in PROTOCOLS]

    said = run(f"answer: times=4\ntext: half\nfinish: {finish}", all_four)
    assert said == [gemini, chat, responses, anthropic]


def test_a_blocked_prompt() -> None:
    feedback = objects(answered("block: PROHIBITED_CONTENT", "gemini").body)
    assert [(each["promptFeedback"], "candidates" in each) for each in feedback] == [({"blockReason": "PROHIBITED_CONTENT"}, False)]
    assert ends("openai_chat", answered("block", "openai_chat").body) == "content_filter"
    assert ends("openai_responses", answered("block", "openai_responses").body) == "content_filter"
    assert ends("anthropic", answered("block", "anthropic").body) == "refusal"


# --- how calls are laid out -------------------------------------------------------------------------------------------------------

TWO_CALLS = 'call id=c1 piece=4: f {"a": 1}\ncall id=c2 piece=4: g {"b": 2}'


def chat_deltas(quirks: str) -> list[dict[str, Any]]:
    got = answered(f"answer: calls={quirks}\n{TWO_CALLS}", "openai_chat")
    return [delta for each in objects(got.body) for choice in each["choices"] for delta in choice["delta"].get("tool_calls", [])]


def test_chat_deltas_have_index_always_and_id_and_name_once() -> None:
    got = answered(TWO_CALLS, "openai_chat")
    deltas = [delta for each in objects(got.body) for choice in each["choices"] for delta in choice["delta"].get("tool_calls", [])]
    assert [(d["index"], d.get("id"), d["function"].get("name"), d["function"]["arguments"]) for d in deltas] == [
        (0, "c1", "f", ""),
        (0, None, None, '{"a"'),
        (0, None, None, ": 1}"),
        (1, "c2", "g", ""),
        (1, None, None, '{"b"'),
        (1, None, None, ": 2}"),
    ]


def test_chat_deltas_with_every_quirk() -> None:
    assert [d["index"] for d in chat_deltas("interleaved")] == [0, 1, 0, 1, 0, 1]
    assert all("index" not in d for d in chat_deltas("no_index"))
    assert [(d["index"], d.get("id")) for d in chat_deltas("same_index")] == [
        (0, "c1"),
        (0, None),
        (0, None),
        (0, "c2"),
        (0, None),
        (0, None),
    ]
    assert [d["id"] for d in chat_deltas("no_index+id_every+interleaved")] == ["c1", "c2"] * 3
    assert [d["function"].get("name") for d in chat_deltas("late_name")] == [None, "f", None, None, "g", None]
    late = objects(answered(f"answer: calls=late_delta\n{TWO_CALLS}", "openai_chat").body)
    kinds = ["finish" if c["finish_reason"] else "call" if "tool_calls" in c["delta"] else "" for each in late for c in each["choices"]]
    assert kinds[-2:] == ["finish", "call"]


def test_anthropic_blocks_with_every_quirk() -> None:
    def blocks(quirk: str) -> list[tuple[str, int | None]]:
        got = answered(f"answer: calls={quirk}\n{TWO_CALLS}", "anthropic")
        short = {"content_block_start": "start", "content_block_delta": "delta", "content_block_stop": "stop", "message_delta": "end"}
        return [(short[each["type"]], each.get("index")) for each in objects(got.body) if each["type"] in short]

    one_by_one = [("start", 0), ("delta", 0), ("delta", 0), ("stop", 0), ("start", 1), ("delta", 1), ("delta", 1), ("stop", 1)]
    assert blocks("id_every") == [*one_by_one, ("end", None)]
    assert [index for _, index in blocks("interleaved")] == [0, 1, 0, 1, 0, 1, 0, 1, None]
    assert {index for _, index in blocks("no_index")} == {None}
    assert {index for _, index in blocks("same_index")[:-1]} == {0}
    assert blocks("late_delta")[-3:] == [("end", None), ("delta", 1), ("stop", 1)]


def test_responses_items_with_every_quirk() -> None:
    def deltas(quirk: str) -> list[dict[str, Any]]:
        got = answered(f"answer: calls={quirk}\n{TWO_CALLS}", "openai_responses")
        return [each for each in objects(got.body) if each["type"] == "response.function_call_arguments.delta"]

    assert [each["output_index"] for each in deltas("interleaved")] == [0, 1, 0, 1]
    assert all("output_index" not in each and each["item_id"] for each in deltas("no_index"))
    assert {each["output_index"] for each in deltas("same_index")} == {0}
    late = [each["type"] for each in objects(answered(f"answer: calls=late_delta\n{TWO_CALLS}", "openai_responses").body)]
    assert late.index("response.completed") < len(late) - 1


def test_gemini_calls_come_whole_and_together() -> None:
    def parts(source: str) -> list[list[Any]]:
        return [each["candidates"][0]["content"].get("parts", []) for each in objects(answered(source, "gemini").body)]

    together = [
        [{"functionCall": {"name": "f", "args": {"a": 1}, "id": "c1"}}, {"functionCall": {"name": "g", "args": {"b": 2}, "id": "c2"}}],
        [],
    ]
    assert parts(TWO_CALLS) == together
    assert [len(each) for each in parts(f"answer: calls=late_delta\n{TWO_CALLS}")] == [1, 0, 1]
    assert parts('thought signature=c2ln: Hm\ncall id="": f')[1] == [
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
    ]
    assert parts("thought signature=c2ln: Hm\ntext: a")[-1] == [{"text": "", "thoughtSignature": "c2ln"}]


def test_ids_are_made_up_repeated_or_empty_as_the_script_says() -> None:
    def ids(source: str) -> list[str]:
        return [
            each["content_block"]["id"] for each in objects(answered(source, "anthropic").body) if each["type"] == "content_block_start"
        ]

    made_up = ids("call: f\ncall: f")
    assert len(set(made_up)) == 2
    assert all(each.startswith("toolu_") for each in made_up)
    assert ids('call id=x: f\ncall id=x: f\ncall id="": f') == ["x", "x", ""]


def test_monstrous_arguments_pass_through() -> None:
    deep = "[" * 10_000 + "]" * 10_000
    long = json.dumps({"content": "x" * 3_000_000})
    for arguments in (deep, long, '{"a": NaN}', '{"a": 1, "a": 2}', '{"a": "\\ud800"}'):
        source = f"call id=c: f {arguments}"
        assert arguments.encode() in answered(source, "gemini").body
        pieces = [e["delta"]["partial_json"] for e in objects(answered(source, "anthropic").body) if e["type"] == "content_block_delta"]
        assert "".join(pieces) == arguments
    many = answered("\n".join(["call: f"] * 500), "openai_chat")
    assert len({d["index"] for e in objects(many.body) for c in e["choices"] for d in c["delta"].get("tool_calls", [])}) == 500
