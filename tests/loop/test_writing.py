"""Commands run with the workspace read-only first: who is asked before one writes, what runs again, and what is told and recorded."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agents import make_agent
from dragoman.loop.agent import Agent
from dragoman.loop.options import Sandboxing
from dragoman.policy.rules import allow, ask, deny
from dragoman.testing import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.record import ToolFinished, ToolStarted
from internet import Internet, internet, serving_files  # noqa: F401 - a fixture
from processes import alive, marked_sleep
from system_parts import require_program
from told_commands import told_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that can do it is for Linux")
TESTS = Path(__file__).resolve().parent.parent
NO = Deny("the user said no")


class Happened(NamedTuple):
    results: list[dict[str, Any]]
    """What the record says of each command."""
    asked: list[Intent]
    runs: list[list[tuple[str, int]]]
    """From the record: how far each run of each call reached, and its exit code."""
    texts: list[str]
    """What the model reads of each."""


def run_commands(
    folder: Path, *commands: str | dict[str, Any], answer: Any = NO, level: Any = 1, then: Callable[[Agent], object] = id, **options: Any
) -> Happened:
    if level == 2:
        require_program("bwrap")
    asked: list[Intent] = []

    def ask_person(call: ToolCall, intent: Intent) -> Any:
        asked.append(intent)
        return answer(intent) if callable(answer) else answer

    calls = [json.dumps(each if isinstance(each, dict) else {"command": each}) for each in commands]
    provider = ScriptedProvider("\n---\n".join([*(f"call: run_shell {each}" for each in calls), "text: Good."]))
    options.setdefault("ask", ask_person)

    async def main() -> Happened:
        async with make_agent(
            provider, workspace=folder, builtin=["run_shell", "shell_output"], describe=False, sandbox=Sandboxing(level=level), **options
        ) as agent:
            await agent.run("go")
            then(agent)
            entries = agent._harness.session.history.entries
        results = told_in(entries)
        started = [each for each in entries if isinstance(each, ToolStarted)]
        assert len(started) == len([each for each in results if "error" not in each]), "each call that ran was noted before it did"
        finished = [json.loads(each.extras or "{}") for each in entries if isinstance(each, ToolFinished)]
        runs = [[(run["reach"], run["exitCode"]) for run in each.get("runs", ())] for each in finished]
        texts = [each.result.text for each in entries if isinstance(each, ToolFinished)]
        return Happened(results, asked, runs, texts)

    return asyncio.run(main())


@pytest.fixture(params=[1, 2])
def level(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "work"
    folder.mkdir()
    git = "git init -q && echo one > a && git add a && git -c user.name=n -c user.email=e commit -qm first"
    subprocess.run(git, shell=True, check=True, cwd=folder)
    return folder


# --- what runs unasked


def test_what_does_not_write_runs_unasked_and_read_only(work: Path, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=":")  # where a python3 with pytest is
    (work / "test_a.py").write_text("def test_a() -> None: ...")
    happened = run_commands(work, "git status", "git log --oneline", "python3 -m pytest -q", "env true; ps", "touch $TMPDIR/x", level=level)
    assert [each["exitCode"] for each in happened.results] == [0] * 5
    assert happened.asked == []
    assert happened.runs == [[("read-only", 0)]] * 5
    assert not any("sandbox" in each for each in happened.results)


def test_what_is_about_to_delete_everything_deletes_nothing(work: Path, level: int) -> None:
    happened = run_commands(work, "rm -rf a", "git push --force; git reset --hard HEAD~1; env rm -r .git/refs", level=level)
    assert (work / "a").read_text() == "one\n"
    assert (work / ".git" / "refs" / "heads").is_dir()
    assert [each.writing for each in happened.asked] == ["refused", "refused"], "it ran, and is asked about because it was stopped"


def test_plan_mode_runs_what_reads_and_never_offers_to_write(work: Path, level: int) -> None:
    commands = ["git log --oneline", "touch b", {"command": "touch b", "writes": True}]
    happened = run_commands(work, *commands[:2], level=level, answer=Allow(), approval="plan")
    assert happened.results[0]["stdout"].endswith(" first\n")
    assert "plan mode only reads" in happened.results[1]["sandbox"]
    assert "with writes" not in happened.results[1]["sandbox"]
    assert happened.asked == []
    assert not (work / "b").exists()


# --- one that needs to write


def test_a_command_that_was_refused_to_write_is_asked_about_and_runs_again(work: Path, level: int) -> None:
    happened = run_commands(work, "touch b && echo done", "touch c", level=level, answer=Allow())
    assert happened.results[0]["stdout"] == "done\n"
    assert "ran again with writing allowed" in happened.results[0]["sandbox"]
    assert [each.command for each in happened.asked] == ["touch b && echo done", "touch c"], "once is once"
    assert "touch: cannot touch 'b': Read-only file system" in happened.asked[0].why
    assert happened.runs == [[("read-only", 1), ("workspace", 0)]] * 2
    assert (work / "b").exists()


def test_a_refusal_leaves_the_first_run_and_says_so(work: Path, level: int) -> None:
    happened = run_commands(work, "echo begun; touch b", level=level, answer=Deny("the user refused it and said: not now"))
    [result] = happened.results
    assert (result["stdout"], result["exitCode"]) == ("begun\n", 1)
    assert "It was not run again with writing allowed: the user refused it and said: not now." in result["sandbox"]
    assert happened.runs == [[("read-only", 1)]]
    assert not (work / "b").exists()


def test_for_the_session_is_asked_once(work: Path, level: int) -> None:
    switched: list[bool] = []
    commit = "git -c user.name=n -c user.email=e commit -qm second"
    happened = run_commands(
        work,
        *("touch b", "git add b", commit, "mkdir d && rmdir d"),
        level=level,
        answer=Allow(commands_write=True),
        then=lambda agent: switched.append(agent.approvals.commands_write),
    )
    assert [each["exitCode"] for each in happened.results] == [0] * 4
    assert len(happened.asked) == 1
    assert happened.runs[1:] == [[], [], []], "they are commands as always"
    assert switched == [True]


def test_one_that_says_that_it_writes_is_asked_about_before_it_runs(work: Path, level: int) -> None:
    writes = {"command": "touch b", "writes": True}
    happened = run_commands(work, writes, level=level)
    assert [each.writing for each in happened.asked] == ["wanted"]
    assert happened.asked[0].why == "it changes files, as the model says"
    assert (happened.runs, (work / "b").exists()) == ([[]], False)
    happened = run_commands(work, writes, {"command": "touch c", "writes": True}, level=level, answer=Allow(commands_write=True))
    assert [each["exitCode"] for each in happened.results] == [0, 0]
    assert (len(happened.asked), happened.runs) == (1, [[], []])


def test_without_anybody_to_ask_the_output_comes_with_words(work: Path) -> None:
    happened = run_commands(work, "touch b", ask=None)
    assert "nobody can be asked" in happened.results[0]["sandbox"]
    assert not (work / "b").exists()


def test_success_in_spite_of_a_refusal_is_remarked(work: Path) -> None:
    happened = run_commands(work, "touch b; true", "false", "ls nowhere", answer=Allow())
    assert happened.asked == []
    assert "cannot touch 'b'" in happened.results[0]["sandbox"]
    assert "call it again with writes" in happened.results[0]["sandbox"]
    assert "call it again with writes" in happened.results[1]["sandbox"], "it says nothing: it may have wanted to write"
    assert "sandbox" not in happened.results[2], "this is not the sandbox's doing"


def test_what_no_command_may_write_is_no_reason_to_ask(work: Path) -> None:
    happened = run_commands(work, "touch /usr/b", answer=Allow())
    assert happened.asked == []
    assert happened.results[0]["exitCode"] == 1


def test_nothing_of_the_first_run_lives_on(work: Path) -> None:
    sleep = marked_sleep()
    left: list[list[int]] = []

    def look(intent: Intent) -> Allow:
        left.append(alive(sleep))
        return Allow()

    happened = run_commands(work, f"(setsid {sleep} >/dev/null 2>&1 &) ; touch b", answer=look)
    assert left == [[]]
    assert happened.results[0]["exitCode"] == 0


def test_one_that_has_reached_a_host_is_not_run_again_by_itself(tmp_path: Path, work: Path, internet: Internet, level: int) -> None:  # noqa: F811
    site = tmp_path / "site"
    site.mkdir()
    (site / "hello.txt").write_text("hello")
    with serving_files(site) as port:
        internet.add("example.org", port)
        command = "curl -sS http://example.org/hello.txt -o got"
        happened = run_commands(work, f"curl -sS http://example.org/hello.txt && {command}", level=level, hosts=["example.org"])
    assert happened.results[0]["network"]["reached"] == ["example.org"]
    assert "it had reached example.org" in happened.results[0]["sandbox"]
    assert "call it again with writes" in happened.results[0]["sandbox"]
    assert (happened.asked, len(happened.runs[0])) == ([], 1)


def test_one_that_may_have_reached_a_server_is_not_run_again_by_itself(work: Path, level: int) -> None:
    server = "import http.server as h; h.HTTPServer(('127.0.0.1', 8931), h.SimpleHTTPRequestHandler).serve_forever()"
    wait = "until echo > /dev/tcp/127.0.0.1/8931; do sleep 0.05; done 2>/dev/null"
    serve = {"command": f'python3 -c "{server}"', "background": True}
    happened = run_commands(work, serve, wait, "touch made", answer=Allow(), level=level)
    assert (
        "a server that runs in the background (port 8931). If it was to write, call it again with writes." in happened.results[2]["sandbox"]
    )
    assert (happened.asked, happened.runs[2], (work / "made").exists()) == ([], [("read-only", 1)], False)


def test_an_edited_command_is_not_taken_for_the_one_that_ran(work: Path) -> None:
    happened = run_commands(work, "touch made", answer=Allow(json.dumps({"command": "touch other"})))
    assert 'the user wants another command in its place. Call it with writes: "touch other"' in happened.results[0]["sandbox"]
    assert happened.runs == [[("read-only", 1)]]
    assert sorted(path.name for path in work.iterdir()) == [".git", "a"]


def test_a_command_in_the_background_starts_read_only_unless_it_says_that_it_writes(work: Path) -> None:
    commands = [{"command": f"touch {name}; echo $?", "background": True, "writes": writes} for name, writes in (("b", False), ("c", True))]
    happened = run_commands(work, *commands, answer=Allow())
    assert "[The workspace is read-only for it." in happened.texts[0]
    assert "read-only" not in happened.texts[1].replace("Read-only file system", "")
    assert [each.writing for each in happened.asked] == ["wanted"]
    assert [(work / name).exists() for name in "bc"] == [False, True]


def test_a_kill_between_the_two_runs_leaves_a_call_that_was_interrupted(work: Path, tmp_path: Path) -> None:
    script = f"""
import asyncio, os, signal
from dragoman.loop.options import Sandboxing, SessionOptions
from agents import make_agent
from dragoman.testing import ScriptedProvider

def die(call, intent):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    provider = ScriptedProvider('call: run_shell {{"command": "touch b"}}')
    async with make_agent(
        provider, workspace={str(work)!r}, builtin=["run_shell"], describe=False, sandbox=Sandboxing(level=1), ask=die,
        sessions={str(tmp_path / "s")!r}
    ) as agent:
        await agent.run("go")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(TESTS)}, check=False, timeout=60)
    assert done.returncode == -9

    async def resume() -> str:
        provider = ScriptedProvider("text: I see.")
        store = str(tmp_path / "s")
        async with make_agent(provider, workspace=work, builtin=["run_shell"], describe=False, sessions=store, resume="latest") as agent:
            await agent.run("go on")
        [result] = [part for message in provider.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)]
        return result.text

    assert "interrupted" in asyncio.run(resume())
    assert not (work / "b").exists()


# --- what stands above it


def test_rules_that_ask_or_refuse_come_first_and_one_that_allows_lets_it_write(work: Path) -> None:
    rules = [ask("env *"), deny("printenv"), allow("touch *")]
    happened = run_commands(work, "env true", "printenv HOME", "touch b", rules=rules)
    assert [each.command for each in happened.asked] == ["env true"]
    assert happened.runs == [[], [], []]
    assert (work / "b").exists()


def test_emptying_the_workspace_is_asked_about_all_the_same(work: Path) -> None:
    happened = run_commands(work, "rm -rf ./*")
    assert [each.writing for each in happened.asked] == ["tried"]
    assert happened.runs == [[]]
    assert (work / "a").exists()


def test_at_the_third_level_and_without_a_sandbox_commands_are_asked_about(work: Path) -> None:
    for level in (3, "off"):
        happened = run_commands(work, "env true", level=level)
        assert [each.writing for each in happened.asked] == [""]
