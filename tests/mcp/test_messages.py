"""Framing: any chunking gives the same messages, and nothing that a server may write raises anything but NotAMessage."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.mcp_client.events import ResumableDecoder
from dragoman.mcp_client.messages import (
    LineCutter,
    NotAMessage,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResult,
    from_wire,
    to_wire,
)
from dragoman.mcp_client.mirrored import WrongHeader, header_value, headers_for, mirrored_of
from dragoman.mcp_client.offers import call_result_from_wire, prompt_from_wire, resource_from_wire, tool_from_wire

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
tables = st.dictionaries(texts, values, max_size=4)
ids = st.integers(-(2**53), 2**53) | texts
messages = st.one_of(
    st.builds(lambda identity, result: {"id": identity, "result": result}, ids, tables),
    st.builds(lambda identity, method, params: {"id": identity, "method": method, "params": params}, ids, texts, tables),
    st.builds(lambda method, params: {"method": method, "params": params}, texts, tables),
    st.builds(lambda identity, code, text: {"id": identity, "error": {"code": code, "message": text}}, ids, st.integers(-40000, 9), texts),
)


def expected(message: dict[str, Any]) -> Any:
    if "method" in message:
        if "id" in message:
            return RpcRequest(message["id"], message["method"], message["params"])
        return RpcNotification(message["method"], message["params"])
    if "error" in message:
        return RpcError(message["id"], message["error"]["code"], message["error"]["message"])
    return RpcResult(message["id"], message["result"])


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)], strict=True)]


@given(st.lists(messages, max_size=5), st.lists(st.integers(0, 10_000), max_size=12), st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"]))
def test_any_chunking_of_lines_gives_the_same_messages(sent: list[dict[str, Any]], cuts: list[int], end: bytes) -> None:
    data = b"".join(to_wire(message) + end for message in sent)
    cutter = LineCutter()
    lines = [line for chunk in chunked(data, cuts) for line in cutter.feed(chunk)] + cutter.close()
    assert [each for line in lines for each in from_wire(line)] == [expected(message) for message in sent]


@given(messages)
def test_a_message_is_one_line(message: dict[str, Any]) -> None:
    assert b"\n" not in to_wire(message)
    assert json.loads(to_wire(message)) == {"jsonrpc": "2.0", **message}


@given(st.lists(messages, min_size=1, max_size=4))
def test_a_list_of_messages_is_each_of_them(sent: list[dict[str, Any]]) -> None:
    assert from_wire(b"[" + b",".join(map(to_wire, sent)) + b"]") == [expected(message) for message in sent]


@given(st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
def test_whatever_is_no_message_is_said_to_be_none(data: bytes) -> None:
    try:
        read = from_wire(data)
    except NotAMessage:
        return
    assert all(isinstance(each, RpcRequest | RpcNotification | RpcResult | RpcError) for each in read)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"42", b"{}", b'{"id":true,"result":{}}', b'{"id":[],"result":{}}'),
        *(b'{"method":3}', b'{"result":{}}', b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"[[]]", b"nul"),
    ],
    ids=lambda data: data[:20].decode("latin-1"),
)
def test_these_are_no_messages(data: bytes) -> None:
    with pytest.raises(NotAMessage):
        from_wire(data)


@pytest.mark.parametrize("rest", ["", ',"result":3', ',"error":[]', ',"error":7'])
def test_an_answer_that_cannot_be_used_is_one_nevertheless(rest: str) -> None:
    """Whoever waits for it would wait until their time is over."""
    (read,) = from_wire(f'{{"id":1{rest}}}'.encode())
    assert isinstance(read, RpcError)
    assert read.id == 1


@pytest.mark.parametrize("rest", ['"result":{"a":1},"error":null', '"error":null,"result":{"a":1}'])
def test_an_error_that_is_null_is_none(rest: str) -> None:
    assert from_wire(f'{{"id":1,{rest}}}'.encode()) == [RpcResult(1, {"a": 1})]


@pytest.mark.parametrize(
    "form", ['{"jsonrpc":"2.0","id":7,"result":"%s"}', '{"id": 7, "result": "%s"}', '{"result":"%s","jsonrpc":"2.0","id":7}']
)
@pytest.mark.parametrize("size", [1, 90, 1000])
def test_of_an_answer_that_is_too_long_the_id_is_known(form: str, size: int) -> None:
    data = (form % ('x"id":9,' * 200)).encode() + b"\n"
    cutter = LineCutter(most_bytes=300)
    assert [line for at in range(0, len(data), size) for line in cutter.feed(data[at : at + size])] == []
    assert cutter.unread == [7]


def test_an_id_in_floating_point_is_the_number() -> None:
    assert from_wire(b'{"id":3.0,"result":{}}') == [RpcResult(3, {})]


@given(
    st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.lists(st.integers(0, 10_000), max_size=9)
)
def test_a_line_over_the_limit_is_dropped_and_the_next_is_read(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    cutter = LineCutter(most_bytes=30)
    read = [line for chunk in chunked(data, cuts) for line in cutter.feed(chunk)] + cutter.close()
    assert read == [stripped for line in lines if len(line) <= 30 and (stripped := line.strip(b" \t\r"))]
    assert cutter.dropped == sum(len(line) > 30 for line in lines)


@given(st.lists(st.tuples(st.integers(0, 99), texts.filter(lambda text: not set(text) & set("\r\n\0"))), min_size=1, max_size=5))
def test_the_last_id_is_that_of_the_last_whole_event(events: list[tuple[int, str]]) -> None:
    stream = b"".join(f"id: {number}\nretry: 250\ndata: {text}\n\n".encode() for number, text in events)
    decoder = ResumableDecoder()
    read = [event.data.decode() for byte in stream for event in decoder.feed(bytes([byte]))]
    read += [event.data.decode() for event in decoder.feed(b"id: 100\ndata: half")]
    assert read == [text for _, text in events]
    assert (decoder.last_id, decoder.retry_s) == (str(events[-1][0]), 0.25)

    decoder.restart()
    assert [event.data for event in decoder.feed(b"data: whole\n\n")] == [b"whole"]
    assert decoder.last_id == str(events[-1][0])


def test_a_pause_is_bounded() -> None:
    decoder = ResumableDecoder()
    decoder.feed(b"retry: 999999999\n\n")
    assert decoder.retry_s == 60
    decoder.feed(b"retry: soon\n\nretry: -5\n\n")
    assert decoder.retry_s == 60


# --- what servers offer


@given(tables)
def test_whatever_is_offered_is_read_or_left_out(value: dict[str, Any]) -> None:
    for read in (tool_from_wire, prompt_from_wire, resource_from_wire, call_result_from_wire):
        read(value)
        read({**value, "name": "n", "uri": "u", "content": value})


# --- arguments in headers


@given(st.text(max_size=30))
def test_a_header_holds_any_text(text: str) -> None:
    from base64 import b64decode

    value = header_value(text)
    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()
    if value.startswith("=?base64?") and value.endswith("?="):
        assert b64decode(value[9:-2]).decode("utf-8", "surrogatepass") == text
    else:
        assert value == text


@given(tables, tables)
def test_any_schema_gives_headers_or_is_wrong(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    try:
        mirrored = mirrored_of(schema)
    except WrongHeader:
        return
    headers_for(mirrored, arguments)


def one(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


MARK = {"type": "string", "x-mcp-header": "Region"}


@pytest.mark.parametrize(
    "schema",
    [
        one(type="string", **{"x-mcp-header": ""}),
        one(type="string", **{"x-mcp-header": "a b"}),
        one(type="string", **{"x-mcp-header": "a\r\nb"}),
        one(type="string", **{"x-mcp-header": 3}),
        one(type="number", **{"x-mcp-header": "N"}),
        one(type="array", items=MARK),
        one(anyOf=[MARK]),
        {"properties": {"a": MARK, "b": {**MARK, "x-mcp-header": "REGION"}}},
        {"$defs": {"a": MARK}},
        MARK,
    ],
)
def test_a_header_that_is_not_allowed_makes_its_tool_wrong(schema: dict[str, Any]) -> None:
    with pytest.raises(WrongHeader):
        mirrored_of(schema)


def test_a_nested_argument_is_repeated_and_a_property_of_that_name_is_none() -> None:
    schema = {"properties": {"where": {"type": "object", "properties": {"region": MARK}}, "x-mcp-header": {"type": "string"}}}
    mirrored = mirrored_of(schema)
    assert headers_for(mirrored, {"where": {"region": "eu"}}) == {"Mcp-Param-Region": "eu"}
    assert headers_for(mirrored, {"where": {"region": None}}) == {}
    assert headers_for(mirrored, {"where": "eu"}) == {}
