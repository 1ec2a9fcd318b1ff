"""A question about a host stops the clock of its command, and outlives the program that asked, and the command."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.loop.options import Sandboxing
from dragoman.policy.grants import Grants
from dragoman.testing import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.errors import Cancelled
from dragoman.values.messages import ToolCall
from internet import Internet, internet, serving_files  # noqa: F401 - a fixture
from told_commands import told_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
CURL = "curl -sS http://example.org/hello.txt"
GIVES_UP = f"{CURL} & until test -e asked; do sleep 0.02; done; kill $!; wait; touch ended"
"""However busy the machine is, it asks before it gives up, and gives up before it is answered."""


@pytest.fixture
def folder(tmp_path: Path, internet: Internet) -> Iterator[Path]:  # noqa: F811
    """A workspace; example.org and other.test serve hello.txt."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "hello.txt").write_text("hello\n")
    workspace = tmp_path / "w"
    workspace.mkdir()
    with serving_files(site) as port:
        internet.add("example.org", port)
        internet.add("other.test", port)
        yield workspace


class Slow:
    """An `ask` that thinks for a while, or until it is told to answer, or until a command that gives up has ended."""

    def __init__(self, answer: Allow | Deny | None = None, seconds: float = 0.0, until_given_up_in: Path | None = None) -> None:
        self._answer = answer
        self._seconds = seconds
        self._until_given_up_in = until_given_up_in
        self.asked: list[str] = []
        self.previews: list[str] = []
        self.withdrawn: list[str] = []
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.may_answer = asyncio.Event()
        self.was_asked = asyncio.Event()

    async def __call__(self, call: ToolCall, intent: Intent) -> Allow | Deny:
        self.asked.append(intent.scope)
        self.previews.append(intent.preview)
        self.loops.add(asyncio.get_running_loop())
        self.was_asked.set()
        try:
            if self._answer is None:
                await self.may_answer.wait()
            if self._until_given_up_in is not None:
                (self._until_given_up_in / "asked").touch()
                await wait_for_file(self._until_given_up_in / "ended")
            await asyncio.sleep(self._seconds)
        except asyncio.CancelledError:
            self.withdrawn.append(intent.scope)
            raise
        return self._answer or Allow()


async def wait_for_file(path: Path) -> None:
    while not await asyncio.to_thread(path.exists):  # noqa: ASYNC110 - a command writes it
        await asyncio.sleep(0.02)


def shell(command: str, **options: Any) -> str:
    return f"call: run_shell {json.dumps({'command': command, 'timeout_s': 60, **options})}\n---\n"


def make(provider: ScriptedProvider, folder: Path, ask: Any, **options: Any) -> Any:
    tools = ["run_shell", "shell_output"]
    given = {"workspace": folder, "builtin": tools, "describe": False, "approval": "auto", "sandbox": Sandboxing(level=1)}
    return make_agent(provider, ask=ask, **given, **options)


def run_commands(folder: Path, ask: Any, *calls: str, **options: Any) -> list[dict[str, Any]]:
    async def main() -> list[dict[str, Any]]:
        provider = ScriptedProvider(f"{''.join(calls)}text: Good.")
        async with make(provider, folder, ask, **options) as agent:
            await agent.run("go")
            return told_in(agent.history.entries)

    return asyncio.run(main())


@pytest.mark.parametrize("tty", [False, True])
def test_the_time_limit_stands_still_while_the_user_thinks(folder: Path, tty: bool) -> None:
    [result] = run_commands(folder, Slow(Allow(), 2.5), shell(CURL, timeout_s=2, tty=tty))
    assert result["stdout"] == "hello\n", result
    assert "timedOut" not in result


def test_after_the_answer_the_rest_of_the_time_runs(folder: Path) -> None:
    [result] = run_commands(folder, Slow(Allow(), 0.5), shell(f"{CURL}; sleep 60", timeout_s=2))
    assert (result["stdout"], result["timedOut"]) == ("hello\n", True)


def test_with_several_hosts_it_stands_still_until_the_last_is_answered(folder: Path) -> None:
    both = f"{CURL} & curl -sS http://other.test/hello.txt & wait"
    ask = Slow(Allow(), 1.2)  # one after the other, as a person is asked
    lock = asyncio.Lock()

    async def ask_in_turn(call: ToolCall, intent: Intent) -> Allow | Deny:
        async with lock:
            return await ask(call, intent)

    [result] = run_commands(folder, ask_in_turn, shell(both, timeout_s=2))
    assert (result["stdout"], sorted(ask.asked)) == ("hello\nhello\n", ["example.org", "other.test"])


def test_the_answer_holds_for_the_rest_of_the_command_though_the_program_gave_up(folder: Path) -> None:
    again = f"curl -sS -m 0.5 http://example.org/hello.txt; sleep 2; {CURL}"
    ask = Slow(Allow(), 1.5)
    [result] = run_commands(folder, ask, shell(again))
    assert (result["stdout"], ask.asked) == ("hello\n", ["example.org"]), result
    assert "sandbox" not in result


def test_an_answer_after_the_end_is_taken_and_remembered(folder: Path) -> None:
    ask = Slow(Allow(remember="session"), 1.0, folder)
    first, second = run_commands(folder, ask, shell(f"{GIVES_UP}; exit 7"), shell(CURL))
    assert (first["stdout"], first["exitCode"], first["allowedLate"]) == ("", 7, ["example.org"]), first
    assert "allowed example.org when the command" in first["sandbox"]
    assert first["sandbox"].endswith("run it again.")
    assert (second["stdout"], ask.asked) == ("hello\n", ["example.org"])


def test_a_yes_for_once_after_the_end_says_that_it_asks_again(folder: Path) -> None:
    grants = Grants()
    [result] = run_commands(folder, Slow(Allow(), 1.0, folder), shell(GIVES_UP), grants=grants)
    assert "for that command alone, so that they are asked again: run it again" in result["sandbox"]
    assert not grants.keys


def test_a_no_after_the_end_is_told_as_a_no(folder: Path) -> None:
    [result] = run_commands(folder, Slow(Deny("the user said no"), 1.0, folder), shell(GIVES_UP))
    assert result["network"] == {"reached": [], "refused": ["example.org"]}
    assert "example.org (the user said no)" in result["sandbox"]


@pytest.mark.parametrize("has_ended", [False, True])
def test_cancelling_the_run_withdraws_the_question(folder: Path, has_ended: bool) -> None:
    """Whether the command is still alive or has ended."""

    async def main() -> Slow:
        ask = Slow(Allow(), 60, folder) if has_ended else Slow()
        command = GIVES_UP if has_ended else CURL
        async with make(ScriptedProvider(f"{shell(command)}text: Good."), folder, ask) as agent, agent.run("go") as run:
            await asyncio.wait_for(ask.was_asked.wait(), 60)
            if has_ended:
                await wait_for_file(folder / "ended")
            await asyncio.sleep(0.6)
            run.cancel()
            with pytest.raises(Cancelled):
                await asyncio.wait_for(run, 60)
        return ask

    assert asyncio.run(main()).withdrawn == ["example.org"]


def test_a_background_command_asks_in_the_loop_of_the_run_and_its_clock_stands_still(folder: Path) -> None:
    async def main() -> tuple[Slow, list[dict[str, Any]]]:
        ask = Slow(Allow(), 2.5)
        waiting = 'call: shell_output {"id": "bg1", "wait_s": 30}\n---\n'
        provider = ScriptedProvider(f"{shell(CURL, timeout_s=2, background=True)}{waiting}text: Good.")
        async with make(provider, folder, ask) as agent:
            await agent.run("go")
            told = told_in(agent.history.entries)
        assert ask.loops == {asyncio.get_running_loop()}
        return ask, told

    ask, [started, read] = asyncio.run(main())
    assert (started["status"], ask.asked) == ("running", ["example.org"])
    assert ask.previews == [CURL], "the user sees which command wants it"
    assert (read["output"], read["status"]) == ("hello\n", "ended"), read


def test_closing_the_session_withdraws_the_question_of_a_background_command(folder: Path) -> None:
    async def main() -> Slow:
        ask = Slow()
        async with make(ScriptedProvider(f"{shell(CURL, background=True)}text: Good."), folder, ask) as agent:
            await agent.run("go")
            await asyncio.wait_for(ask.was_asked.wait(), 60)
            assert ask.withdrawn == []
        return ask

    assert asyncio.run(main()).withdrawn == ["example.org"]


def test_where_nobody_can_be_asked_nothing_waits(folder: Path) -> None:
    [result] = run_commands(folder, None, shell(f"{CURL}; echo over"), hosts=["other.test"])
    assert "nobody can be asked here" in result["stdout"]
    assert "over" in result["stdout"]


def test_what_stopped_a_background_command_is_told_when_it_is_read(folder: Path) -> None:
    [result] = run_commands(folder, None, shell("touch /usr/dragoman-probe", background=True))
    assert "The sandbox stopped this: /usr/dragoman-probe is read-only there." in result["sandbox"]
