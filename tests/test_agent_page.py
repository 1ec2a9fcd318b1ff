"""The code of docs/embed, docs/inside/pruning.md and docs/start/first-agent.md runs as a reader pastes it, against a loopback service."""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
import os
import re
import shutil
import subprocess
import sys
import threading
import typing
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import dragoman as dm
from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script_steps import ScriptedAnswer, answer

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
RUN_ELSEWHERE = {
    "contracts.md": "one program: tests/test_contracts.py",
    "testing.md": "suites of pytest: tests/doubles/test_fixtures.py",
}
PAGES = sorted(page.name for page in (DOCS / "embed").glob("*.md") if page.name not in RUN_ELSEWHERE)
PAGES.append("../inside/pruning.md")
FIRST_AGENT = tuple(sorted((DOCS / "start").glob("first-agent*.md")))
"""In English, and in Chinese."""


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def at_the_quay(request: ModelRequest) -> ScriptedAnswer:
    """What fits the type, where one is asked for."""
    asked = str({key: value for key, value in request.body.items() if key not in ("messages", "input", "contents")})
    if "depth_m" in asked:
        return answer('{"name": "Muscat", "depth_m": 13.5}')
    if "'number'" in asked:
        return answer('{"harbour": "Muscat", "number": 3}')
    return answer('{"result": ["Muttrah"]}' if "'result'" in asked else "At the quay.")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[dm.testing.MockServer]:
    """A service that answers every request, whatever its protocol, in a thread of its own."""
    loop, server = asyncio.new_event_loop(), dm.testing.MockServer(at_the_quay)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(60)
    for name in ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "key-for-tests")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    yield server
    asyncio.run_coroutine_threadsafe(server.aclose(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


def compiled(page: Path) -> list[CodeType]:
    """The blocks, each with the lines it has on the page, in which `await` may stand anywhere: as `python -m asyncio` takes them."""
    text = page.read_text(encoding="utf-8")
    found: list[CodeType] = []
    for block in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
        lines_before = "\n" * text[: block.start(1)].count("\n")
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        found.append(compile(lines_before + block[1], str(page), "exec", flags=flags, dont_inherit=True))
    return found


def run_page(page: Path) -> dict[str, Any]:
    """Run the blocks of a page one after the other, with nothing but what the page itself defines. Returns its names."""
    names: dict[str, Any] = {"__name__": "__main__"}

    async def go() -> None:
        agents: dict[int, dm.Agent[Any, Any]] = {}
        for code in compiled(page):
            done = eval(code, names)
            if inspect.isawaitable(done):
                await done
            agents |= {id(value): value for value in names.values() if isinstance(value, dm.Agent)}
        for agent in agents.values():
            await agent.aclose()

    asyncio.run(go())
    return names


@pytest.mark.parametrize("name", PAGES)
def test_the_code_on_the_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: dm.testing.MockServer) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).parent / "mcp_servers" / "harbour_server.py", "harbour.py")
    shutil.copy(next((DOCS / "images").glob("*.png")), "shot.png")
    monkeypatch.setattr(builtins, "input", lambda prompt: "y")
    names = run_page(DOCS / "embed" / name)
    assert not [request.violation for request in service.requests if request.violation]
    if name == "other-libraries.md":
        assert names["harbour"].name == "Muscat"


def test_every_page_begins_with_code_that_stands_alone() -> None:
    """Who opens a page in the middle of the documents can begin to paste at its first block."""
    for page in (DOCS / "embed").glob("*.md"):
        if page.name == "promises.md":
            continue  # it has no code
        blocks = python_blocks(page)
        assert "import" in blocks[0], page.name


# --- the first agent


def test_the_first_agent_is_there_in_both_languages() -> None:
    assert [page.name for page in FIRST_AGENT] == ["first-agent.md", "first-agent.zh-CN.md"]


@pytest.fixture(params=FIRST_AGENT, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Path:
    return typing.cast(Path, request.param)


@pytest.fixture
def played(page: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of somebody without a key, who plays the model as the page says."""
    script = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[-1]
    (tmp_path / "answers.txt").write_text(script, encoding="utf-8")
    command = [sys.executable, "-u", "-m", "dragoman.testing.mock", "--script", "answers.txt", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        assert server.stdout is not None
        url = next(found.group() for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        kept = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_BASE_URL", "_PROXY"))}
        yield kept | {"PYTHONUTF8": "1", "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": url}
        server.terminate()


def run_file(folder: Path, code: str, env: dict[str, str]) -> str:
    (folder / "agent.py").write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "agent.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_step_of_the_first_agent_prints_what_the_page_shows(page: Path, tmp_path: Path, played: dict[str, str]) -> None:
    text = page.read_text(encoding="utf-8")
    steps = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(steps) == 5
    assert [run_file(tmp_path, code, played) for code, _ in steps] == [shown for _, shown in steps]


def test_the_test_of_the_first_agent_passes(page: Path, tmp_path: Path) -> None:
    *_, shop, test = python_blocks(page)
    (tmp_path / "shop.py").write_text(shop, encoding="utf-8")
    (tmp_path / "test_shop.py").write_text(test, encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.endswith("_KEY")} | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert "1 passed" in done.stdout, done.stdout
