"""What is not a call, and why each call that is one is believed."""

from __future__ import annotations

import pytest

from dragoman.text_tools import parse
from dragoman.text_tools.calls import ArgDelta, CallBegin, CallName, CallReady, CallRejected, Done
from dragoman.text_tools.ledger import MAX_CALLS
from dragoman.text_tools.parser import StreamParser
from text_tools.reading import NOW, TOOLS, read

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
MARKERS = ("<think>", "</think>", "[THINK]", "[/THINK]")
BARE = '{"name": "get_weather", "arguments": {"city": "Paris"}}'


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{CALL}</think>No.",
        f"[THINK]{CALL}[/THINK]No.",
        f"I think {CALL}</think>No.",
        f"```xml\n{CALL}\n```",
        f"~ `{CALL.replace(chr(10), '')}` ~",
        f'It says "{CALL}" there.',
        f"> {CALL.replace(chr(10), '')}",
        "<tool_response>\nsunny\n</tool_response>\n" + CALL,
        '<tool_call>\n{"name": "launch", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "tool_name", "arguments": {"param": "value"}}\n</tool_call>',
        "<tool_call>like this</tool_call>",
        "<tool_call></tool_call>",
        "<function=<tool_call>\n</function>",
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par',
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}',
        f"You could write {BARE} to ask.",
        f'{BARE[:-1]}, "note": 1}}',
        '{"name": "Ann", "age": 3}',
        '[{"name": "get_weather"}]',
        "Use [get_weather(city='Paris')] for that, say.",
        "The list [1](get_weather) and {x} and <get_weather> and <b>get_weather</b>.",
        "print(get_weather(city='Paris'))",
    ],
)
def test_this_is_no_call(text: str) -> None:
    parsed, _ = read([text], TOOLS)
    assert parsed.calls == ()
    assert all(piece.kind in ("text", "reasoning") or text[piece.start : piece.end] in MARKERS for piece in parsed.pieces)


def test_a_call_cut_off_by_the_output_limit_is_none() -> None:
    for end in range(1, len(CALL)):
        assert parse(CALL[:end], TOOLS, finish="length").calls == ()
    assert len(parse(CALL, TOOLS, finish="length").calls) == 1
    (rejected,) = parse(CALL.removesuffix("\n</tool_call>"), TOOLS, finish="length").rejected
    assert rejected.reason == "the answer was cut off"


def test_an_unknown_tool_is_refused_with_suggestions_and_its_text_stays() -> None:
    text = CALL.replace("get_weather", "get_wether")
    parsed = parse(text, TOOLS)
    assert parsed.text == text
    assert parsed.rejected[0].suggestions == ("get_weather",)
    assert parsed.rejected[0].text.startswith('{"name"')


def test_trust_tells_why_a_call_is_believed() -> None:
    assert parse(CALL, TOOLS, dialect="hermes").calls[0].trust == "negotiated"
    assert parse(CALL, TOOLS).calls[0].trust == "recognised"
    assert parse(BARE, TOOLS).calls[0].trust == "bare"


def test_another_dialect_counts_at_the_start_of_a_line_with_fitting_arguments() -> None:
    assert len(parse(f"Well.\n{CALL}", TOOLS, dialect="kimi_k2").calls) == 1
    assert parse(f"Well. {CALL}", TOOLS, dialect="kimi_k2").calls == ()
    assert parse(CALL.replace('"city"', '"town_of"'), TOOLS, dialect="kimi_k2").calls == ()
    assert parse(CALL, None, dialect="kimi_k2").calls == ()


def test_a_call_without_a_marker_counts_when_it_is_the_whole_message_or_its_end() -> None:
    assert len(parse(f"\n{BARE}\n", TOOLS).calls) == 1
    assert len(parse(f"I look it up:\n{BARE}\n", TOOLS).calls) == 1
    assert parse(f"I look it up:\n{BARE}\nas you see.", TOOLS).calls == ()
    assert len(parse(BARE, None).calls) == 1
    assert parse(f"{BARE} is how.", None).calls == ()
    assert parse(f"I look it up:\n{BARE}", TOOLS, dialect="hermes").calls == ()


def test_unclosed_thinking_may_end_in_a_call_but_not_go_on_behind_it() -> None:
    parsed = parse(f"<think>so\n{CALL}\n", TOOLS)
    assert len(parsed.calls) == 1
    assert parsed.reasoning == "so\n"
    read([f"<think>so\n{CALL}\n</｜DSML｜tool_calls>\n{CALL}\n"], TOOLS)
    assert parse(f"<think>so\n{CALL}\nor rather not", TOOLS).calls == ()
    assert parse(f"<think>so\n{CALL}", TOOLS, finish="length").calls == ()


def test_thinking_opened_by_the_template_is_thinking_from_the_start() -> None:
    parser = StreamParser(TOOLS, is_thinking=True)
    events = [*parser.feed(f"so {CALL} hm</thi"), *parser.feed("nk>\nNo."), *parser.finish()]
    assert parser.result.reasoning == f"so {CALL} hm"
    assert parser.result.text == "\nNo."
    assert not any(isinstance(event, CallReady) for event in events)


def test_only_the_chosen_tool_may_be_called() -> None:
    assert parse(CALL, TOOLS, tool_choice="now").calls == ()
    assert len(parse(CALL, TOOLS, tool_choice="get_weather").calls) == 1


def test_calls_are_bounded_in_number() -> None:
    one = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    parsed = parse(one * (MAX_CALLS + 5), [NOW])
    assert len(parsed.calls) == MAX_CALLS
    assert {each.reason for each in parsed.rejected} == {"there are too many calls"}


def test_depth_is_bounded() -> None:
    deep = '{"name": "now", "arguments": ' + '{"a":' * 5000 + "1" + "}" * 5000 + "}"
    parsed = parse(f"<tool_call>{deep}</tool_call>", [NOW])
    assert parsed.calls == ()
    assert parsed.rejected[0].reason == "it is nested too deeply"
    assert parsed.rejected[0].span[1] < 1000


def test_events_tell_a_call_as_it_comes() -> None:
    parser = StreamParser(TOOLS)
    events = [
        event for part in ("Hi ", "<tool_call>", '{"name": "now",', ' "arguments": {}}', "</tool_call>") for event in parser.feed(part)
    ]
    events += parser.finish()
    kinds = [type(event) for event in events]
    assert kinds.index(CallBegin) < kinds.index(ArgDelta) < kinds.index(CallName) < kinds.index(CallReady) < kinds.index(Done)
    assert CallRejected not in kinds
    assert (
        "".join(event.text for event in events if isinstance(event, ArgDelta)) == '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    )
    assert parser.feed("more") == []
    assert parser.finish() == []
