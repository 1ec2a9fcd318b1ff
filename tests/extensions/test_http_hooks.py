"""Hooks that are an address, and hooks with a condition."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.app.hook_conditions import holds, is_rule
from dragoman.extensions.hooks.definitions import Hook, definition_of
from dragoman.extensions.hooks.inputs import Occasion
from dragoman.extensions.hooks.posting import fill_headers, post_input
from dragoman.extensions.sources import Origin
from dragoman.testing import ScriptedProvider
from loopback_http import Handler, Server, always, answer, serving, silent


def hook(url: str = "", **fields: Any) -> Hook:
    return Hook("Stop", "Stop", "", Origin("claude", "user", "/f", 3), url=url, **fields)


def posted(handler: Handler, **fields: Any) -> tuple[Any, str, Server]:
    async def scenario() -> tuple[Any, str, Server]:
        async with serving(handler) as server:
            ended, problem = await post_input(hook(f"{server.url}/x", **fields), b'{"a": 1}', {"X-Token": "t"})
            return ended, str(problem), server

    return asyncio.run(scenario())


def test_the_input_is_posted_and_the_answer_is_what_a_command_prints() -> None:
    ended, problem, server = posted(always(answer(b'{"decision": "block"}')))
    assert (ended.code, ended.stdout, problem) == (0, b'{"decision": "block"}', "")
    (request,) = server.requests
    assert (request.method, request.target, request.body) == ("POST", "/x", b'{"a": 1}')
    assert (request.headers["x-token"], request.headers["content-type"]) == ("t", "application/json")
    assert posted(always(answer(b"")))[0].stdout == b""


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (always(answer(b"no", "403 Forbidden")), "HTTP 403"),
        (always(answer(b"", "302 Found", "location: /y\r\n")), "HTTP 302"),
        (always(answer(b"fine")), "no JSON object"),
        (always(b"garbage\r\n\r\n", then_close=True), "could not be reached"),
    ],
)
def test_anything_else_changes_nothing_and_is_said(handler: Handler, words: str) -> None:
    ended, problem, _ = posted(handler)
    assert ended is None
    assert words in problem


def test_time_and_size_have_bounds() -> None:
    ended, _, _ = posted(silent, timeout_s=0.2)
    assert ended.timed_out
    ended, _, _ = posted(always(answer(b"x" * 3_000_000)))
    assert ended.is_cut


def test_headers_have_only_the_variables_that_are_named_and_a_project_gets_no_key() -> None:
    env = {"A": "a\r\nX: y", "B": "b", "KEY": "k"}
    headers = (("x", "$A ${B} $KEY $$"),)
    assert fill_headers(hook("http://x", headers=headers, env_vars=("A", "KEY")), env, {"KEY"}) == {"x": "aX: y  k $$"}
    assert fill_headers(hook("http://x", headers=headers, env_vars=("B", "KEY"), project="/p"), env, {"KEY"}) == {"x": " b  $$"}


def test_a_yes_is_to_all_of_it() -> None:
    made = [hook("http://x"), hook("http://y"), hook("http://x", condition="Bash"), hook("http://x", headers=(("a", "b"),))]
    assert len({definition_of(each) for each in made}) == len({each.id for each in made}) == 4


@pytest.mark.parametrize(
    ("condition", "tool", "given", "fits"),
    [
        ("Bash(git *)", "run_shell", {"command": "FOO=bar git push"}, True),
        ("Bash(git *)", "run_shell", {"command": "npm test && git push"}, True),
        ("Bash(rm *)", "run_shell", {"command": "echo $(rm -rf /)"}, True),
        ("Bash(rm *)", "run_shell", {"command": "ls -l"}, False),
        ("Bash(git push:*)", "run_shell", {"command": "git status"}, False),
        ("Bash", "run_shell", {"command": "ls"}, True),
        ("Bash(rm *)", "run_shell", {"command": "echo '"}, True),
        ("Edit(*.ts)", "write_file", {"file_path": "src/a.ts", "content": ""}, True),
        ("Edit(*.ts)", "write_file", {"file_path": "src/a.py", "content": ""}, False),
        ("Edit(src/**)", "edit", {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}, True),
        ("Bash(rm *)", "write_file", {"file_path": "rm", "content": ""}, False),
        ("Read(*.env)", "read_file", {"file_path": "x.env"}, True),
        ("Grep", "grep", {"pattern": "x"}, True),
        ("PowerShell(x)", "run_shell", {"command": "ls"}, False),
        ("nonsense(", "run_shell", {"command": "ls"}, True),
    ],
)
def test_conditions(tmp_path: Path, condition: str, tool: str, given: dict[str, Any], fits: bool) -> None:
    agent = make_agent(ScriptedProvider("text: ok"), workspace=str(tmp_path))
    occasion = Occasion("PreToolUse", directory=str(tmp_path), subject=tool, tool_input=given)
    assert holds(condition, occasion, agent) is fits


def test_a_condition_is_about_calls() -> None:
    assert not holds("Bash", Occasion("Stop"), None)
    assert is_rule("Bash(git push *)")
    assert not is_rule("git push && rm")
