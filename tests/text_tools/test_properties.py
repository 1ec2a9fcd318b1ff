"""What holds of any text, however it is cut."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.text_tools import dialects, json_text, neutralise, parse, render_call, render_calls
from dragoman.text_tools.calls import Call, PlainText, Reasoning
from dragoman.text_tools.dialect_table import find_dialect
from dragoman.text_tools.lexer import Finder
from dragoman.text_tools.lookahead import BESIDE, FIXED, WINDOW
from dragoman.text_tools.openers import ENDINGS, NOISE, OPENERS, REASONING, RESPONSES
from dragoman.text_tools.parser import StreamParser
from text_tools.reading import TOOLS, read

FRAGMENTS = [
    *OPENERS,
    *ENDINGS,
    *NOISE,
    *REASONING,
    *REASONING.values(),
    *RESPONSES,
    *("<|start|>", "<|channel|>", "<|message|>", "assistant", "final", "analysis", " to=functions.read_file", "to=self", ">>>", "all\n"),
    *('{"name": "read_file", "arguments": {"path": "a"}}', '{"tool_call": {"name": "now", "arguments": {}}}', '{"name": "', '"arguments"'),
    *("[read_file(path='a')]", "[now()]", "read_file", "read_file\n", "call:read_file{", "path:", "<read_file>", "<path>", "</path>"),
    *("<parameter=path>", "</parameter>", '<parameter name="path">', "<arg_key>path</arg_key>", "<arg_value>", "</arg_value>"),
    *("```", "```json\n", "`", "\n", " ", "{", "}", "[", "]", '"', "'", ":", ",", "\\", "<", ">", "=", "(", ")", "<![CDATA[", "]]>"),
    *("prose and more", "1", "true", "None", "é", "語", "\u2028", "\x00", "😀"),
]
noise = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=24).map("".join)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True).filter(
    lambda name: name not in ("tool_name", "function_name", "function")
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4).map("".join)
)
AWKWARD = [
    "",
    "/",
    "/a",
    "//",
    "a/",
    "/f",
    "/invoke",
    "invoke",
    "item",
    "/item",
    "f",
    "<",
    ">",
    "a>b",
    "</f>",
    "<f>",
    "\n",
    "\n<",
    " ",
    " a",
    "a ",
    "\t/",
]
AWKWARD += [
    '"',
    "'",
    "&",
    "&#47;",
    "&amp;",
    "a=b",
    "]]>",
    "<![CDATA[",
    "</parameter>",
    "</arg_key>",
    "]<]minimax[>[",
    "<|sep|>",
    "\\n",
    "{",
    "x" * 120,
]
keys = st.text(max_size=8) | st.sampled_from(AWKWARD)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8)
arguments = st.dictionaries(keys | names, values, max_size=4)
BARE = [
    *(
        "[read_file(path='a')]",
        "[now()]",
        "[default_api.now()]",
        '{"name": "now", "arguments": {}}',
        '[{"name": "now", "arguments": {}}]',
        '{"name": "now"',
    ),
    *("[now(", '{"name": 1}', '```json\n{"name": "now", "arguments": {}}\n```', '{"tool_call": {"name": "now", "arguments": {}}}'),
    *(
        ">>>all\n",
        '>>>now\n{"a": 1}',
        ">>>now\n{",
        "<now></now>",
        "<now>",
        "<channel|>",
        "<|end|>",
        "<|start|>assistant<|message|>",
        "</think>",
        "<think>",
    ),
    *(
        "<tool_call>",
        "</tool_call>",
        "<function=now></function>",
        "<tool_response>",
        "functools[",
        "`",
        "```",
        "x",
        "So: ",
        " ",
        "\n",
        ";",
        ",",
        "\n\n",
    ),
]
"""Calls without a marker, which count only if nothing follows, and what may follow."""
beside_bare = st.lists(st.sampled_from(BARE), min_size=1, max_size=7).map("".join)
TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", list: "array", dict: "object"}


def examples(count: int) -> settings:
    """A third of them in the default profile, and as many times more as another asks for: `HYPOTHESIS_PROFILE=long`."""
    return settings(max_examples=max(1, count * settings().max_examples // 120))


@given(
    noise | beside_bare,
    st.lists(st.integers(0, 200), max_size=8),
    st.sampled_from(["auto", "hermes", "fenced_json", "pythonic", "harmony", "cline", "glm"]),
)
@examples(400)
@example(text="[default_api.now()]", places=[4], dialect="auto")
def test_any_cut_gives_the_same_reading(text: str, places: list[int], dialect: str) -> None:
    """Spec: any split gives the same calls, text and reasoning; the pieces tile the input; nothing emitted is taken back."""
    whole, _ = read([text], TOOLS, dialect=dialect)
    bounds = sorted(min(place, len(text)) for place in places)
    parts = [text[start:end] for start, end in zip([0, *bounds], [*bounds, len(text)], strict=True)]
    assert read(parts, TOOLS, dialect=dialect)[0] == whole
    assert read(list(text), TOOLS, dialect=dialect)[0] == whole


@given(noise | beside_bare, st.sampled_from([None, TOOLS]), st.sampled_from(["stop", "length", "tool_calls"]))
@examples(300)
@example(text="[read_file(path='a')]<channel|>", tools=None, finish="stop")
@example(text='```[read_file(path=\'a\')]```{"name": "now"', tools=TOOLS, finish="stop")
@example(text="[now()]<|end|> [now()] <|end|>", tools=None, finish="stop")
@example(text="[now()]\n>>>all\n", tools=None, finish="stop")
@example(text='[now()] {"name": 1} ', tools=None, finish="stop")
def test_no_text_raises(text: str, tools: Any, finish: str) -> None:
    for dialect in ("auto", "kimi_k2", "xlam"):
        read([text], tools, dialect=dialect, finish=finish)


@given(st.text())
def test_text_with_no_marker_and_no_tool_name_yields_no_call(text: str) -> None:
    if not any(mark in text for mark in ("<", "[", "{", "✿", "`", ">>>")):
        parsed, _ = read(list(text), TOOLS)
        assert parsed.calls == ()
        assert parsed.text + parsed.reasoning == text


@given(st.text(alphabet="abc <>{}[]`\n\"':|/_=()t."))
def test_plain_text_waits_for_no_more_than_a_marker(text: str) -> None:
    parser = StreamParser(TOOLS)
    shown = 0
    for at, character in enumerate(text, 1):
        shown += sum(len(event.text) for event in parser.feed(character) if isinstance(event, PlainText | Reasoning))
        assert at - shown <= WINDOW - 1


@pytest.mark.parametrize("dialect", [name for name in dialects() if name != "cline"])
@given(name=names, args=arguments)
@examples(60)
@example(name="f", args={"x": "3", "y": 3, "z": "</parameter>\n</function>", "": "]]>", "a b": "\u2028```"})
@example(name="f", args={"x": {"": "]<]minimax[>["}, "y": ["]<]minimax[>["], "z": ["</parameter>\n</function>", 1]})
@example(name="f", args={"/": None})
@example(name="f", args={"/invoke": {"/": "x", "a/b": ["/"]}, "x": [{"/item": "y"}], ">": "<", "\n": " ", " a ": {"": "", "</x>": "z"}})
@example(name="f", args={"!" * 60: "several\nlines"})
@example(name="f", args={"x": "true", "y": "null", "z": " lead\n", "l": [], "d": {}})
def test_what_is_rendered_is_read_back(dialect: str, name: str, args: dict[str, Any]) -> None:
    """Spec: parse(render(call)) == call for every dialect and any JSON args."""
    text = render_call(Call(name, args), dialect)
    for spoken in (dialect, "auto"):
        parsed, _ = read([text], dialect=spoken)
        assert [(call.name, call.args) for call in parsed.calls] == [(name, args)], text
        assert _types(parsed.calls[0].args) == _types(args)


@given(name=names, args=st.dictionaries(keys | names, values, max_size=4))
@example(name="f", args={"/f": "x", "/": None, "a b": 1, "a>b": "</a>", "a": "b>\n<a b>"})
def test_elements_named_after_parameters_are_read_back(name: str, args: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {key: {"type": TYPES[type(value)]} for key, value in args.items()}}
    text = render_call(Call(name, args), "cline")
    for parts in ([text], list(text)):
        parsed, _ = read(parts, [{"name": name, "parameters": schema}], dialect="cline")
        assert [(call.name, call.args) for call in parsed.calls] == [(name, args)], text


def test_more_elements_than_are_read_stand_as_json() -> None:
    """The reader of elements within elements stops at `MAX_ELEMENTS`."""
    args = {"lines": ["x"] * 6000, "more": {"a": "b"}}
    assert parse(render_call(Call("f", args), "minimax_m3"), dialect="minimax_m3").calls[0].args == args


def test_a_marker_behind_a_call_that_waited_keeps_its_place() -> None:
    parsed, _ = read(["So:\n[now()]<|end|>\n[now()]<|im_end|>"])
    assert [call.span for call in parsed.calls] == [(4, 11), (19, 26)]
    assert [piece.kind for piece in parsed.pieces] == ["text", "call", "marker", "text", "call", "marker"]


def test_text_behind_a_call_that_waited_comes_after_it() -> None:
    """What turns out to be no call is text, and text behind such a call refuses it: in the order in which it was written."""
    parsed, events = read(['[now()] {"name": 1} '])
    assert parsed.calls == ()
    assert "".join(event.text for event in events if isinstance(event, PlainText)) == '[now()] {"name": 1} '


@pytest.mark.parametrize("dialect", [name for name in dialects() if name != "cline"])
@given(calls=st.lists(st.tuples(names, st.dictionaries(names, st.text() | st.integers(0, 9), max_size=2)), min_size=2, max_size=4))
@examples(25)
def test_several_calls_are_read_back(dialect: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    text = render_calls([Call(name, args) for name, args in calls], dialect)
    tools = [{"name": name} for name, _ in calls]
    parsed, _ = read([text], tools, dialect=dialect)
    assert [(call.name, call.args) for call in parsed.calls] == calls, text


@pytest.mark.parametrize("dialect", [name for name in dialects() if name != "cline"])
def test_no_proper_prefix_of_a_call_is_one_when_the_limit_cut_it(dialect: str) -> None:
    text = render_call(Call("get_weather", {"city": "Paris", "days": 12, "options": {"a": [1, 2]}}), dialect)
    whole = parse(text, TOOLS, dialect=dialect)
    for end in range(len(text)):
        cut = parse(text[:end], TOOLS, dialect=dialect, finish="length")
        assert not cut.calls or cut.calls[0].args == whole.calls[0].args, text[:end]


@pytest.mark.parametrize("dialect", dialects())
@given(text=noise)
@examples(20)
def test_adding_a_dialect_changes_nothing_for_text_without_its_markers(dialect: str, text: str) -> None:
    markers = set(find_dialect(dialect).openers) & set(OPENERS)
    if not markers or any(marker in text for marker in markers):
        return
    fewer = StreamParser(TOOLS)
    fewer._machine._find = Finder((FIXED | set(fewer._machine._lookahead.elements)) - markers, BESIDE)  # the table without it
    fewer._search = fewer._machine.search = fewer._machine._find.search
    fewer.feed(text)
    fewer.finish()
    assert fewer.result == parse(text, TOOLS)


@given(noise)
def test_neutralised_text_has_no_markers(text: str) -> None:
    clean = neutralise(text)
    for marker in (*OPENERS, *ENDINGS, *REASONING, *REASONING.values(), *RESPONSES, *NOISE, "<|start|>", "<|channel|>", "<|message|>"):
        assert marker not in clean
    assert neutralise(clean) is clean
    assert clean.replace("\u2060", "") == text.replace("\u2060", "")


@given(values, st.sampled_from([None, 2]))
def test_valid_json_is_read_as_the_standard_library_reads_it(value: Any, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=random.random() < 0.5, indent=indent)
    read_back, repairs = json_text.loads(text)
    assert repairs == ()
    assert json.dumps(read_back) == json.dumps(json.loads(text))


@given(st.text(alphabet="{}[]\",:'\\ \n1aTrueNone.-/*", max_size=60))
@examples(300)
def test_json_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        try:
            json_text.loads(text)
        except json_text.NotReadable:
            pass
    else:
        assert json_text.loads(text) == (expected, ())


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is Python's, not JSON's")


def _types(value: Any) -> Any:
    match value:
        case dict():
            return {key: _types(each) for key, each in value.items()}
        case list():
            return [_types(each) for each in value]
        case _:
            return type(value)
