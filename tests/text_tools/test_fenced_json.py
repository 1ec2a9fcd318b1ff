"""The dialect `fenced_json`, exact (TEXT-1, TEXT-3), and where a simpler parser of it is known to fail."""

# ruff: noqa: E501 - what models and prompts say stands as they say it

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.text_tools import parse, render_call, render_prompt
from dragoman.text_tools.calls import Call
from dragoman.text_tools.dialect_table import current_name, find_dialect
from text_tools.reading import TOOLS, cuts, read

LIST = {
    "name": "list_directory",
    "description": "List files and directories in a specified path",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "The directory path to list"}},
        "required": ["path"],
    },
}
GUIDANCE = """You are an AI assistant with access to the following tools. When you need to use a tool, respond with JSON in this exact format:

```json
{
  "tool_call": {
    "name": "tool_name",
    "arguments": {"param": "value"}
  }
}
```

Available tools:
**list_directory**: List files and directories in a specified path
  Parameters:
    "path": string (required) - The directory path to list

IMPORTANT:
- Only use tools when necessary to complete the user's request
- Always use the exact JSON format shown above
- Include all required parameters
- You can provide explanatory text along with tool calls when helpful"""

CALL = '{"tool_call": {"name": "list_directory", "arguments": {"path": "/src"}}}'
FENCE = f"```json\n{CALL}\n```"
EXPECTED = [("list_directory", {"path": "/src"})]


def calls(text: str, tools: Any = (LIST,), **options: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.args) for call in parse(text, tools, **options).calls]


def test_the_guidance_is_word_for_word_as_required() -> None:
    """TEXT-1."""
    assert render_prompt([LIST], "fenced_json") == GUIDANCE


def test_the_old_name_of_the_dialect_is_still_read() -> None:
    """Configurations and logs of earlier versions call it `seed`."""
    assert find_dialect("seed").name == current_name("seed") == "fenced_json"
    assert render_prompt([LIST], "seed") == GUIDANCE
    assert calls(FENCE, dialect="seed") == EXPECTED


# --- the known failures, by name


@pytest.mark.parametrize("dialect", ["fenced_json", "auto"])
def test_the_inline_form_is_read(dialect: str) -> None:
    assert calls(f"Let me look. {CALL}", dialect=dialect) == EXPECTED
    assert calls(f"{CALL} So let us see.", dialect=dialect) == EXPECTED
    nested = '{ "tool_call" : {"name": "list_directory", "arguments": {"path": "/{a}", "deep": {"x": {"y": 1}}}}}'
    assert calls(nested, dialect=dialect) == [("list_directory", {"path": "/{a}", "deep": {"x": {"y": 1}}})]


@pytest.mark.parametrize("dialect", ["fenced_json", "auto"])
def test_a_second_fence_is_not_lost(dialect: str) -> None:
    other = FENCE.replace("/src", "/docs")
    parsed = parse(f"First this.\n{FENCE}\nThen that.\n{other}\nDone.", [LIST], dialect=dialect)
    assert [call.args["path"] for call in parsed.calls] == ["/src", "/docs"]
    assert parsed.text == "First this.\n\nThen that.\n\nDone."


@pytest.mark.parametrize("dialect", ["fenced_json", "auto"])
def test_a_draft_inside_thinking_is_not_executed(dialect: str) -> None:
    other = CALL.replace("/src", "/draft")
    assert calls(f"<think>\nMaybe {other}\n</think>\n{FENCE}", dialect=dialect) == EXPECTED
    assert calls(f"Maybe {other}\n</think>\n{FENCE}", dialect=dialect) == EXPECTED
    assert calls(f"Maybe\n```json\n{other}\n```\nor not.\n</think>\n\nI will not.", dialect=dialect) == []
    drafted = parse(f"Maybe {other}\n</think>\n\nI will not.", [LIST], dialect=dialect)
    assert drafted.reasoning == f"Maybe {other}\n"
    assert drafted.text == "\n\nI will not."
    assert [each.reason for each in drafted.rejected] == ["it was written while thinking"]


@pytest.mark.parametrize("dialect", ["fenced_json", "auto"])
@pytest.mark.parametrize(
    "text",
    [
        f"Write `{CALL}` to list.",
        f'The format is "{CALL}".',
        f"> {CALL}\n\nis what I was told.",
        f"````markdown\n{FENCE}\n````\nshows it.",
        f"```python\nprint('''{CALL}''')\n```",
        f"``` text\nfor example:\n{CALL}\n```",
        GUIDANCE,
    ],
)
def test_a_quoted_example_is_not_executed(dialect: str, text: str) -> None:
    assert calls(text, dialect=dialect) == []
    assert calls(text, None, dialect=dialect) == []


# --- every rendering, at 99.5 % and more

Rendering = Callable[[str, dict[str, Any]], str]


def _json(name: str, args: Any, **options: Any) -> str:
    return json.dumps({"tool_call": {"name": name, "arguments": args}}, ensure_ascii=False, **options)


RENDERINGS: dict[str, Rendering] = {
    "one fence": lambda name, args: f"```json\n{_json(name, args, indent=2)}\n```",
    "inline": lambda name, args: f"I will look. {_json(name, args)} And then we see.",
    "untagged fence": lambda name, args: f"Now:\n```\n{_json(name, args)}\n```",
    "missing closers": lambda name, args: f"```json\n{_json(name, args)[:-1]}\n```",
    "missing closers, no fence end": lambda name, args: f"```json\n{_json(name, args)[:-2]}",
    "draft before a bare </think>": lambda name, args: f"Perhaps {_json('now', {})}, no.\n</think>\n\n```json\n{_json(name, args)}\n```",
    "trailing comma": lambda name, args: f"```json\n{_json(name, args)[:-2]},}}}}\n```",
    "Python literals": lambda name, args: f"```json\n{ {'tool_call': {'name': name, 'arguments': args}}!r}\n```",
    "args as a string": lambda name, args: f"```json\n{_json(name, json.dumps(args))}\n```",
}


def random_args(rng: random.Random) -> dict[str, Any]:
    texts = ["Paris", "a\nb", "it's", 'say "hi"', "{x}", "```", "語 😀", "C:\\dir", "</think", "a, b: c]", ""]
    options = [True, False, None, 3, -1.5, [], ["x", {"y": None}], {"deep": {"er": [1, 2]}}]
    args: dict[str, Any] = {"city": rng.choice(texts)}
    if rng.random() < 0.6:
        args["options"] = {"a": rng.choice(options), "b": rng.choice(texts)}
    if rng.random() < 0.4:
        args["tags"] = [rng.choice(texts) for _ in range(rng.randint(0, 3))]
    return args


@pytest.mark.parametrize("dialect", ["fenced_json", "auto"])
@pytest.mark.parametrize("rendering", RENDERINGS)
def test_each_rendering_is_read(rendering: str, dialect: str) -> None:
    rng, wrong = random.Random(7), list[str]()
    for _ in range(200):
        args = random_args(rng)
        text = RENDERINGS[rendering]("get_weather", args)
        if calls(text, TOOLS, dialect=dialect) != [("get_weather", args)]:
            wrong.append(text)
    assert len(wrong) <= 1, wrong[:3]


def test_two_fences_are_read() -> None:
    rng = random.Random(8)
    for _ in range(100):
        first, second = random_args(rng), random_args(rng)
        text = "\nand\n".join(RENDERINGS["one fence"]("get_weather", args) for args in (first, second))
        assert [call.args for call in parse(text, TOOLS, dialect="fenced_json").calls] == [first, second], text
        for parts in cuts(text, 3, seed=1):
            assert [call.args for call in read(parts, TOOLS, dialect="fenced_json")[0].calls] == [first, second]


def test_history_is_rendered_as_the_guidance_asks() -> None:
    text = render_call(Call("list_directory", {"path": "/src"}), "fenced_json")
    assert (
        text == '```json\n{\n  "tool_call": {\n    "name": "list_directory",\n    "arguments": {\n      "path": "/src"\n    }\n  }\n}\n```'
    )


@pytest.mark.parametrize("written", ['```json\n{"tool_call": {"name": "now"}}\n```', 'I look. {"tool_call": {"name": "now"}}'])
@pytest.mark.parametrize("dialect", ["auto", "fenced_json"])
def test_a_call_may_leave_its_arguments_out(written: str, dialect: str) -> None:
    """So the document reads it: what it asks for is a name. Without the key around it, it is an object like any other."""
    now = [{"name": "now", "parameters": {"type": "object", "properties": {}}}]
    assert calls(written, now, dialect=dialect) == [("now", {})]
    assert calls(written.replace('{"tool_call": {"name": "now"}}', '{"name": "now"}'), now, dialect=dialect) == []
