"""Several conversations in one process, each with a front end of its own: what a command says reaches the one in which it was typed."""

from __future__ import annotations

import ast
import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoman.app.opening import close_agent, open_agent
from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up
from dragoman.conversation.slash import SlashCommands
from dragoman.conversation.style import Style
from dragoman.loop.agent import Agent
from dragoman.sessions.store import FileStore
from dragoman.values.usage import Usage
from program import KEY, service

SOURCE = Path(__file__).resolve().parents[2] / "src" / "dragoman"
NAMES = ("harbour", "lighthouse")
WIDTHS = {"harbour": 84, "lighthouse": 110}
ROUNDS = 3
PATIENCE_S = 60
Meet = Callable[[], Awaitable[None]]


class Shown:
    """A front end that keeps what it is given."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.texts: list[str] = []

    def message(self, text: str, style: Style = "") -> None:
        self.texts.append(text)

    page = line = message

    def take(self) -> str:
        texts, self.texts = self.texts, []
        return "\n".join(texts)


class OwnTalk:
    """A conversation with a front end, an agent and a folder of its own."""

    def __init__(self, setup: Setup, agent: Agent, columns: int) -> None:
        self.setup, self.agent, self.screen = setup, agent, Shown(columns)
        self.store = FileStore(setup.places.sessions)
        self.usage, self.cost_usd, self.cost_is_whole, self.runs, self.may_retry = Usage(), None, True, 0, False
        self.started: list[asyncio.Task[None]] = []

    @property
    def model(self) -> str:
        return self.agent.model

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self.started.append(asyncio.get_running_loop().create_task(work))

    def say(self, line: str) -> str:
        """What this conversation shows of it."""
        SlashCommands(self).run(line)  # ty: ignore[invalid-argument-type]
        return self.screen.take()


@pytest.fixture
def setups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Setup]]:
    """Two folders, each with a configuration and a service of its own."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with ExitStack() as stack:
        found: dict[str, Setup] = {}
        for name in NAMES:
            url = stack.enter_context(service(f"text: This is the {name}.")).url
            (tmp_path / name).mkdir()
            file = tmp_path / f"{name}.toml"
            file.write_text(
                f'model = "anthropic/claude-{name}"\n[local]\nfind_servers = false\n[deployments.anthropic]\nbase_url = "{url}"\n'
            )
            found[name] = set_up(Options(directory=str(tmp_path / name), config=str(file)))
        yield found


async def converse(name: str, setup: Setup, meet: Meet) -> None:
    """Every command beside the same one in the other conversation."""
    other = NAMES[1 - NAMES.index(name)]
    async with AsyncExitStack() as stack:
        agent = (await open_agent(setup)).agent
        stack.push_async_callback(close_agent, agent)
        talk = OwnTalk(setup, agent, WIDTHS[name])
        await meet()
        first = talk.say("/context --request")
        assert f'"model":"claude-{name}"' in first, "what it will begin with, for which an agent is opened in a loop of its own"
        await agent.run(f"Where is the {name}?")
        for _ in range(ROUNDS):
            said: dict[str, str] = {}
            for line in ("/sessions list", "/sessions show", "/context --at 2", "/context --request", "/config", "/models", "/context"):
                await meet()
                said[line] = talk.say(line)
            assert said["/sessions list"].count("Where is the") == 1
            assert f"Where is the {name}?" in said["/sessions list"]
            assert f"This is the {name}." in said["/sessions show"]
            assert f"claude-{name}" in said["/config"]
            assert "POST http://127.0.0.1" in said["/context --request"], "the head is told beside the body"
            assert f'"model":"claude-{name}"' in said["/context --request"]
            assert f"Where is the {name}?" in said["/context"]
            assert f"anthropic/claude-{name}" in said["/models"]
            assert other not in "".join(said.values())
            for line in ("/sessions list", "/config", "/models"):
                assert max(map(len, said[line].splitlines())) <= WIDTHS[name]
        await meet()


def test_two_conversations_in_two_threads_have_each_their_own_text(setups: dict[str, Setup], capfd: pytest.CaptureFixture[str]) -> None:
    barrier, failed = threading.Barrier(2), list[BaseException]()

    async def meet() -> None:
        barrier.wait(PATIENCE_S)

    def run(name: str) -> None:
        try:
            asyncio.run(converse(name, setups[name], meet))
        except BaseException as error:
            failed.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(name,)) for name in NAMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    assert capfd.readouterr() == ("", "")


def test_two_conversations_in_one_loop_have_each_their_own_text(setups: dict[str, Setup], capfd: pytest.CaptureFixture[str]) -> None:
    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            for name in NAMES:
                group.create_task(converse(name, setups[name], lambda: asyncio.sleep(0)))

    asyncio.run(both())
    assert capfd.readouterr() == ("", "")


def test_nothing_puts_something_else_in_the_place_of_the_streams_of_the_process() -> None:
    found = [f"{path.relative_to(SOURCE)}: {name}" for path in SOURCE.rglob("*.py") for name in swapped(path.read_text(encoding="utf-8"))]
    assert not found


def test_no_page_writes_to_the_streams_of_the_process() -> None:
    """Only the shell does: a page returns its text, and tells the rest to the surface it is shown on."""
    paths = [
        *(SOURCE / "conversation" / "pages").glob("*.py"),
        SOURCE / "conversation" / "page.py",
        SOURCE / "conversation" / "subcommand.py",
    ]
    found = [f"{path.name}: {name}" for path in paths for name in written(path.read_text(encoding="utf-8"))]
    assert len(paths) > 10
    assert not found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("sys.stdout = out", ["stdout"]),
        ("sys.stdin, sys.stderr = a, b", ["stdin", "stderr"]),
        ("with contextlib.redirect_stdout(out): ...", ["redirect_stdout"]),
        ("with redirect_stderr(out): ...", ["redirect_stderr"]),
        ("stream = sys.stdout", []),
    ],
)
def test_a_stream_that_is_put_in_another_place_is_found(source: str, found: list[str]) -> None:
    assert list(swapped(source)) == found


def swapped(source: str) -> Iterator[str]:
    if "std" not in source:  # parsing all of it takes seconds
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdin" | "stdout" | "stderr" as name, ctx=ast.Store()):
                yield name
            case (
                ast.Name(id="redirect_stdout" | "redirect_stderr" as name)
                | ast.Attribute(attr="redirect_stdout" | "redirect_stderr" as name)
            ):
                yield name


def written(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="print" | "print_out" | "Messages" as name)):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr" as name))):
                yield name
