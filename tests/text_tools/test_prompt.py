"""What the model is told. No example of ours is ever taken for a call."""

# ruff: noqa: E501 - what models and prompts say stands as they say it

from __future__ import annotations

import pytest

from dragoman.text_tools import dialects, parse, render_prompt, render_response
from dragoman.values.messages import ToolSpec
from text_tools.reading import READ, TOOLS, WEATHER, read


def test_tools_are_shown_as_signatures() -> None:
    told = render_prompt([WEATHER, READ])
    assert (
        "get_weather(city: string, days?: integer, exact?: boolean, tags?: string[], options?: object)\n  The weather in a city\n  - city: Where"
        in told
    )
    assert '<tool_call>\n{"name": "tool_name", "arguments": {"param": "value"}}\n</tool_call>' in told
    assert '<raw name="text">\nfirst line\nsecond line\n</raw>' in told


def test_types_are_written_as_one_would_write_them() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"enum": ["x", 1]},
            "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "c": {"type": "array", "items": {"$ref": "#/$defs/point"}},
            "d": {"type": ["integer", "null"]},
        },
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    }
    told = render_prompt([ToolSpec.of("f", "", schema)])
    assert 'f(a?: "x" | 1, b?: string | null, c?: {x: number}[], d?: integer | null)' in told


@pytest.mark.parametrize("dialect", dialects())
def test_a_prompt_that_is_repeated_calls_nothing(dialect: str) -> None:
    told = render_prompt(TOOLS, dialect)
    for tools in (TOOLS, None):
        for spoken in (dialect, "auto"):
            parsed, _ = read([told], tools, dialect=spoken)
            assert parsed.calls == (), parsed.calls


def test_without_tools_nothing_is_said() -> None:
    assert render_prompt([]) == ""


def test_results_go_back_in_the_dialects_own_words() -> None:
    assert render_response("now", "12:00", "hermes") == "<tool_response>\n12:00\n</tool_response>"
    assert parse(render_response("now", "12:00", "hermes"), TOOLS).calls == ()
