"""Calls of models that were taught no dialect: bare, quoted, numbered, escaped, in fences of any kind. What counts, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text_tools import parse
from dragoman.text_tools.feedback import unreadable_calls
from text_tools.reading import cuts, read

TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "at": {"type": "object"}},
            "required": ["city"],
        },
    },
    {"name": "maps.find", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}},
    {"name": "now", "parameters": {"type": "object", "properties": {}}},
]
PARIS = ("get_weather", {"city": "Paris"})
OSLO = ("get_weather", {"city": "Oslo", "days": 3})
NOW = ("now", {})

WHOLE: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    ("get_weather(city='Paris')", [PARIS]),
    ("\n\nget_weather(city='Paris')\n", [PARIS]),
    ("get_weather(city='Paris'); now();", [PARIS, NOW]),
    ("get_weather(city='Paris'), get_weather(city='Oslo', days=3)", [PARIS, OSLO]),
    ("get_weather(city='Paris')\nnow()", [PARIS, NOW]),
    ("maps.find(query='bakery')", [("maps.find", {"query": "bakery"})]),
    # quotes, bullets, numbers, backticks
    ("['get_weather(city=\"Paris\")']", [PARIS]),
    ("['get_weather(city=\\'Paris\\')', 'now()']", [PARIS, NOW]),
    ("[\"get_weather(city='Paris')\"]", [PARIS]),
    ("\"get_weather(city='Paris')\"", [PARIS]),
    ("- get_weather(city='Paris')\n- now()", [PARIS, NOW]),
    ("* [get_weather(city='Paris')]\n* [now()]", [PARIS, NOW]),
    ("1. `get_weather(city='Paris')`\n2. `now()`", [PARIS, NOW]),
    ("`get_weather(city='Paris')`", [PARIS]),
    # escaped underscores, in names, keys and values
    ("get\\_weather(city='Paris')", [PARIS]),
    ("[get\\_weather(city='Paris'), now()]", [PARIS, NOW]),
    ("get\\_weather(city='New\\_York')", [("get_weather", {"city": "New_York"})]),
    # one object as all arguments; words and sums instead of values
    ("get_weather({'city': 'Oslo', 'days': 3})", [OSLO]),
    ("[get_weather({'city': 'Oslo', 'days': 3})]", [OSLO]),
    ("get_weather(city=Oslo, days=3)", [OSLO]),
    ("['get_weather(city=New York)']", [("get_weather", {"city": "New York"})]),
    ("get_weather(city='Oslo', days=6 / 2)", [OSLO]),
    # an object whose keys are the tools
    ('{"get_weather": {"city": "Paris"}}', [PARIS]),
    ("[{'get_weather': {'city': 'Paris'}}, {'now': {}}]", [PARIS, NOW]),
    # fences of any kind
    ("```\nget_weather(city='Paris')\n```", [PARIS]),
    ("```python\n[get_weather(city='Paris'), now()]\n```", [PARIS, NOW]),
    ("```tool_code\nget_weather(city='Paris')\nnow()\n```\n", [PARIS, NOW]),
    ("```python\nget_weather(city='Paris')  # where it is\n```", [PARIS]),
    ("```python\n[{'name': 'get_weather', 'parameters': {'city': 'Paris'}}]\n```", [PARIS]),
    ("```json\n[{'get_weather': {'city': 'Paris'}}]\n```", [PARIS]),
    # what chat templates leave behind
    ("<|im_start|>\nget_weather(city='Paris')\n<|im_end|>", [PARIS]),
    ("assistant<|end_header_id|>\n\n[get_weather(city='Paris')]", [PARIS]),
    ("<|start_header_id|>assistant<|end_header_id|>\n\nget_weather(city='Paris')<|eot_id|>", [PARIS]),
    # models' own forms
    ("<<function>>get_weather(city='Paris')<<function>>now()", [PARIS, NOW]),
    ("Call: get_weather(city='Paris')<bot_end>\nThought: The user asks for the weather.", [PARIS]),
    # thinking before it
    ("<think>\nI could call now().\n</think>\nget_weather(city='Paris')", [PARIS]),
]


@pytest.mark.parametrize(("text", "calls"), WHOLE)
def test_it_is_read_where_the_answer_holds_nothing_else(text: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    parsed = parse(text, TOOLS)
    assert [(call.name, call.args) for call in parsed.calls] == calls
    assert all(call.trust != "fenced" for call in parsed.calls)


@pytest.mark.parametrize(("text", "calls"), WHOLE)
def test_how_the_text_is_cut_does_not_matter(text: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    whole = parse(text, TOOLS)
    for pieces in cuts(text, 4, 7):
        assert read(pieces, TOOLS)[0] == whole


BESIDE = [
    "Here it is:\n\n```python\nget_weather(city='Paris')\n```",
    "Sure.\n```\n[get_weather(city='Paris')]\n```\n",
    "```python\nget_weather(city='Paris')\n```\nThis asks for the weather.",
]


@pytest.mark.parametrize("text", BESIDE)
def test_a_fence_beside_text_counts_but_is_doubted(text: str) -> None:
    """It may be an example: see `loop.model.is_doubtful` for who is asked."""
    parsed = parse(text, TOOLS)
    assert [(call.name, call.args, call.trust) for call in parsed.calls] == [(*PARIS, "fenced")]


TEXT = [
    "You could call get_weather(city='Paris') for that.",
    "get_weather(city='Paris') is the call you need.",
    "> get_weather(city='Paris')",
    "I ran `get_weather(city='Paris')` before.",
    "Here it is:\n```python\nget_weather(days=3)\n```",
    "Here it is:\n```python\nget_weather(city='Paris')\nprint('done')\n```",
    "First:\n```python\nget_weather(city='Paris')\n```\nthen something else.",
    "<think>get_weather(city='Paris')</think>Done.",
    "```python\nimport weather\nget_weather(city='Paris')\n```",
    "get_weather (the function) and now() differ.",
    "forecast(city='Paris')",
]


@pytest.mark.parametrize("text", TEXT)
def test_what_stands_in_prose_quotes_and_code_does_not_run(text: str) -> None:
    parsed = parse(text, TOOLS)
    assert not parsed.calls
    for pieces in cuts(text, 4, 7):
        assert read(pieces, TOOLS)[0] == parsed


def test_a_tool_named_with_a_bracket_is_never_passed_over_in_silence() -> None:
    parsed = parse("You could call get_weather(city='Paris') for that.", TOOLS)
    assert [(each.reason, each.name) for each in parsed.rejected] == [("it stands within other text", "get_weather")]
    assert not unreadable_calls(parsed), "prose is not answered with a correction"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("get_weather(days=3)", "its arguments do not fit: city is required"),
        ('<tool_call>\n{"name": "get_weather", "arguments": {"days": 3}}\n</tool_call>', "its arguments do not fit: city is required"),
        ("get_weather(city=lookup(1))", "its arguments are no values"),
        ("get_weather(city='Paris')\n\nThis asks for the weather.", "text stands beside it"),
        ("get_weather(city='Par", "it breaks off"),
    ],
)
def test_the_model_is_told_why_a_call_that_was_meant_could_not_be_read(text: str, reason: str) -> None:
    assert [each.reason for each in unreadable_calls(parse(text, TOOLS))] == [reason]


def test_one_bad_call_does_not_discard_its_neighbours() -> None:
    parsed = parse("[get_weather(city='Paris'), get_weather(city=lookup(1)), now()]", TOOLS)
    assert [(call.name, call.args) for call in parsed.calls] == [PARIS, NOW]
    assert [each.reason for each in parsed.rejected] == ["its arguments are no values"]


def test_without_tools_only_lists_are_read() -> None:
    assert not parse("anything(a=1)", None).calls
    assert parse("[anything(a=1)]", None).calls


_WORDS = st.sampled_from(
    [
        *("get_weather(city='Paris')", "get_weather(", "now()", "default_api.now()", "{'now': {}}", "get\\_weather(city='P')"),
        *(
            "- ",
            "1. ",
            "```",
            "```python\n",
            "\n",
            "'",
            '"',
            "`",
            "[",
            "]",
            "\\_",
            ", ",
            ";",
            "so ",
            "(",
            ")",
            "{",
            "}",
            ":",
            ".",
            "#x\n",
            "//y",
        ),
        *("Call: ", "Function call: ", "<bot_end>", "<|start|>", "<|message|>", "assistant", "assistants", "</s>", "<|im_start|>"),
        *("assistant<|end_header_id|>", "analysis", "commentary to=f <|message|>"),
    ]
)


@given(st.lists(_WORDS, max_size=14).map("".join))
def test_any_mixture_is_read_alike_however_it_is_cut(text: str) -> None:
    whole = parse(text, TOOLS)
    assert "".join(text[piece.start : piece.end] for piece in whole.pieces) == text
    for pieces in cuts(text, 4, 7):
        assert read(pieces, TOOLS)[0] == whole
