"""Hooks that are an address, and hooks with a condition."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.app import http_hooks
from dragoman.app.hook_conditions import holds, is_rule
from dragoman.app.http_hooks import _refusal
from dragoman.app.options import Options
from dragoman.app.setup import set_up
from dragoman.extensions.hooks.definitions import Hook, definition_of
from dragoman.extensions.hooks.inputs import Occasion
from dragoman.extensions.hooks.posting import fill_headers, post_input
from dragoman.testing import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent, run_at_work
from dragoman.values.messages import ToolCall
from dragoman.values.origin import Origin
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
        (always(answer(b"fine")), "not a JSON object"),
        (always(b"garbage\r\n\r\n", then_close=True), "could not be reached"),
    ],
)
def test_anything_else_changes_nothing_and_is_said(handler: Handler, words: str) -> None:
    ended, problem, _ = posted(handler)
    assert ended is None
    assert words in problem


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "::ffff:127.0.0.1"])
def test_the_name_in_a_projects_hook_does_not_lead_to_this_machine(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lookup gives another answer: what was checked is what is connected to."""
    answers = [["127.0.0.1"], [address]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop()

    async def scenario() -> tuple[Any, str, int]:
        async with serving(always(answer(b"{}"))) as server:
            setup = set_up(Options(directory=str(tmp_path)), {"HOME": str(tmp_path)})
            url = f"http://nice.example:{server.port}/x"
            ended, problem = await http_hooks.post_hook(setup, None, hook(url, project="/p"), b"{}")
            mine, _ = await http_hooks.post_hook(setup, None, hook(f"http://localhost:{server.port}/", project="/p"), b"{}")
            assert mine is not None
            return ended, str(problem), len(server.requests)

    monkeypatch.setattr(http_hooks, "system_resolve", resolve)
    ended, problem, count = asyncio.run(scenario())
    assert (ended, "resolves to" in problem, count, len(answers)) == (None, True, 1, 1), problem


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


@pytest.mark.parametrize("said", ["yes", "no", "nobody"])
def test_in_auto_a_host_that_was_not_named_is_asked_about_once(tmp_path: Path, said: str) -> None:
    """And nobody to ask means no."""
    asked: list[str] = []

    async def ask(call: ToolCall, view: Intent) -> Allow | Deny:
        asked.append(view.preview)
        return Allow() if said == "yes" else Deny("not there")

    async def scenario() -> list[str]:
        one = ask if said != "nobody" else None
        async with make_agent(ScriptedProvider("text: ok"), ask=one, workspace=str(tmp_path)) as agent:
            agent.approvals._has_sandbox = lambda: True  # no command is run here
            agent.approvals.mode = "auto"
            run_at_work.set(lambda: agent)  # type: ignore[arg-type,return-value]
            return [await _refusal(agent, hook("http://hooks.example:8080/x", project="/p"), "hooks.example", 8080) for _ in range(2)]

    refusals = asyncio.run(scenario())
    assert asked == (["hooks.example:8080"] if said != "nobody" else [])
    expected = {"yes": "", "no": "not there", "nobody": "network.hosts"}[said]
    assert all(expected in each and bool(each) == bool(expected) for each in refusals), refusals
