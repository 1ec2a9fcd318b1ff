"""A pattern that takes for ever to match does not stop the loop: in typed outputs and in arguments of tools, of every kind of schema."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

import dragoman as dm
from dragoman.base import jsontext
from dragoman.testing.script_steps import CallStep, ScriptedAnswer, answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.pattern_steps import search_in_steps
from dragoman.values.patterns import is_match
from scenarios.workshop import agent_for, play

EVIL = r"^(a+)+$"
LONG = "a" * 40 + "!"
Code = Annotated[str, msgspec.Meta(pattern=EVIL)]


class Ours(msgspec.Struct):
    code: Code


class Pydantic(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    code: str = Field(pattern=EVIL)


def call(name: str, code: str) -> ScriptedAnswer:
    return answer(CallStep(name, jsontext.dumps({"code": code})))


SCHEMA = {"type": "object", "properties": {"code": {"type": "string", "pattern": EVIL}}, "required": ["code"]}


@pytest.mark.parametrize("output", [Ours, Pydantic, SCHEMA], ids=["msgspec", "pydantic", "schema"])
def test_a_typed_output_with_such_a_pattern_ends_and_says_that_it_was_not_checked(output: Any) -> None:
    provider = ScriptedProvider([call("final_answer", LONG), call("final_answer", "aaa")])

    async def go() -> None:
        async with agent_for(provider) as agent:
            value = (await agent.run("go", output=output)).output
            assert (value["code"] if isinstance(value, dict) else value.code) == "aaa"
            assert "was not checked" in str(provider.requests[1])

    play(go)


def test_a_tool_with_such_a_pattern_is_not_run_and_the_loop_goes_on() -> None:
    ran: list[str] = []

    @dm.tool(read_only=True)
    def look(code: Code) -> str:
        ran.append(code)
        return "seen"

    provider = ScriptedProvider([call("look", LONG), call("look", "aa"), answer("Done.")])

    async def go() -> None:
        async with agent_for(provider, look) as agent:
            assert (await agent.run("go")).text == "Done."
            assert "was not checked" in str(provider.requests[1])

    play(go)
    assert ran == ["aa"]


PATTERNS = [
    EVIL,
    r"(ab|a)*c", r"^[a-z]+(-[a-z]+)*$", r"\bfoo\b", r"(?=.*\d)(?=.*[a-z]).{3,}", r"(?<=a)b", r"a{2,3}?b", r"^$", r"(a*)*b", r"(?i)aB+",
    r"[^a-c]+x", r"\d{1,3}(\.\d{1,3}){3}", r"(a|b|ab)+?c$", r"^(?:a?){5}a{5}$", r"(?!a)b", r"x*", r"\S+@\S+\.\w+", r"\Aa\Z", r"(?m)^b$",
]  # fmt: skip


@given(st.sampled_from(PATTERNS), st.text(alphabet="ab c-x.1@\nfoAB", max_size=12))
def test_matching_step_by_step_finds_what_re_finds(pattern: str, text: str) -> None:
    found, _ = search_in_steps(pattern, text, 1_000_000)
    assert found is (re.search(pattern, text) is not None)


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="ab(|)*+?[^]{,}1$.\\d", max_size=14), st.text(alphabet="ab1", max_size=400))
def test_no_pattern_takes_more_steps_than_it_may(pattern: str, text: str) -> None:
    found, steps = search_in_steps(pattern, text, 50_000)
    assert steps <= 50_000
    assert found in (True, False, None)


def test_long_texts_are_still_checked_by_ordinary_patterns_with_groups() -> None:
    words = "-".join(["word"] * 400)
    assert is_match(r"^[a-z]+(-[a-z]+)*$", words) is True
    assert is_match(r"^[a-z]+(-[a-z]+)*$", f"{words}!") is False
