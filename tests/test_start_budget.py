"""What may be loaded before there is work to do. The budgets count modules and lines, not milliseconds, so they hold on any machine."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

import dragoman

ROOT = Path(__file__).resolve().parent.parent

HEAVY = {"argparse", "asyncio", "httpx2", "importlib.metadata", "inspect", "json", "logging", "msgspec", "re", "ssl", "typing"}
"""Modules, of the standard library and of others, that the quick ways in must do without."""


# import dragoman

IMPORT_BUDGET = {"dragoman"}


def test_import_loads_one_module() -> None:
    loaded = modules_loaded_by("import dragoman")
    assert loaded <= IMPORT_BUDGET, f"importing dragoman loads too much: {sorted(loaded - IMPORT_BUDGET)}"


def test_import_is_silent() -> None:
    done = python("-c", "import dragoman")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# dragoman --version

VERSION_BUDGET = {"dragoman", "dragoman.__main__", "dragoman.cli", "dragoman.cli.main"}


def test_version_loads_the_entry_modules_alone() -> None:
    loaded = modules_loaded_by("from dragoman.cli.main import main; assert main(['--version']) == 0")
    assert loaded <= VERSION_BUDGET, f"dragoman --version loads too much: {sorted(loaded - VERSION_BUDGET)}"


def test_version_through_the_module_loads_nothing_heavy() -> None:
    run = "import runpy; sys.argv = ['dragoman', '--version']\ntry: runpy.run_module('dragoman', run_name='__main__', alter_sys=True)\n"
    loaded = modules_loaded_by(run + "except SystemExit as stop: assert not stop.code")
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("dragoman")} <= VERSION_BUDGET


def test_the_entry_module_imports_sys_alone() -> None:
    tree = ast.parse((ROOT / "src" / "dragoman" / "cli" / "main.py").read_text(encoding="utf-8"))
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports == ["import sys"]


def test_version_is_printed() -> None:
    done = python("-m", "dragoman", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"dragoman {dragoman.__version__}\n", "")


def test_version_has_one_value() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dragoman.__version__ == project["version"]


# dragoman acp

HELLO = b'{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}'


def test_an_editor_is_greeted_before_the_program_is_loaded() -> None:
    loaded = modules_loaded_by(f"from dragoman.acp import door, greeting; assert greeting.answer_hello({HELLO!r})")
    assert {"json", "dragoman.words"} <= loaded
    assert not loaded & (HEAVY - {"json", "re", "typing"}), sorted(loaded & HEAVY)


# The first request

# Lines are what is compiled and run, modules what is looked for: a module that grows costs as one that is added does.
REQUEST_LINES, PROGRAM_LINES = 8_440, 29_750
LATER = {"anyio", "argparse", "certifi", "importlib.metadata", "mcp", "prompt_toolkit", "rich", "sqlite3", "tomllib", "tree_sitter"}
"""What is not loaded before the first request is on the wire."""

FIRST_REQUEST = """
import asyncio
import dragoman as dm

async def main():
    on_the_wire = set()

    async def serve(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n")
        on_the_wire.update(sys.modules)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    model = dm.connect({model!r}, base_url=url, key="key", retry=dm.RetryPolicy(attempts=1))
    try:
        async for _ in model.stream(dm.build_request(model.model, "hello")):
            pass
    except dm.errors.ConnectionFailed:
        pass
    for name in set(sys.modules) - on_the_wire:
        del sys.modules[name]

asyncio.run(main())
"""


@pytest.mark.parametrize("model", ["gemini/gemini-3.8-flash", "openai/gpt-4.1", "responses/gpt-6.1-sol", "anthropic/claude-opus-5"])
def test_the_first_request_waits_for_nothing_it_does_not_need(model: str) -> None:
    loaded = modules_loaded_by(FIRST_REQUEST.replace("{model!r}", repr(model)))
    assert "asyncio" in loaded
    assert "msgspec" in loaded
    assert not loaded & LATER
    ours = {name for name in loaded if name.startswith("dragoman")}
    assert len(ours) <= 47, sorted(ours)
    assert lines_of(ours) <= REQUEST_LINES
    protocols = {"gemini", "openai_chat", "openai_responses", "anthropic"}
    assert len({f"dragoman.providers.{name}" for name in protocols} & ours) == 1, "one protocol is spoken, one is loaded"


PROGRAM_LATER = {"dataclasses", "difflib", "json", "pty", "readline", "shutil", "tempfile", "urllib.request", "dragoman.cli.terminal"}
"""What the program besides does not load before its first prompt is on the wire."""
PROGRAM_BUDGET = 158

FIRST_PROMPT = """
import os, socket, threading
on_the_wire = set()
server = socket.create_server(("127.0.0.1", 0))

def serve():
    while True:
        connection, _ = server.accept()
        data = b""
        while b"\\r\\n\\r\\n" not in data and (more := connection.recv(65536)):
            data += more
        if data:
            on_the_wire.update(sys.modules)
            connection.sendall(b"HTTP/1.1 400 Bad Request\\r\\ncontent-length: 0\\r\\n\\r\\n")

threading.Thread(target=serve, daemon=True).start()
url = "http://127.0.0.1:%d" % server.getsockname()[1]
os.environ.update({"GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "DRAGOMAN_HOME": {home!r}})
os.environ.update({"GOOGLE_GEMINI_BASE_URL": url, "OPENAI_BASE_URL": url + "/v1", "ANTHROPIC_BASE_URL": url})
from dragoman.cli.main import main
assert main(["-m", {model!r}, "-p", "hi"]) == 57
assert on_the_wire
for name in set(sys.modules) - on_the_wire:
    del sys.modules[name]
"""


@pytest.mark.parametrize("model", ["gemini/gemini-3.8-flash", "openai/gpt-4.1", "responses/gpt-6.1-sol", "anthropic/claude-opus-5"])
def test_the_first_prompt_waits_for_nothing_it_does_not_need(model: str, tmp_path: Path) -> None:
    """dragoman -p hi, up to the moment its request is on the wire."""
    loaded = modules_loaded_by(FIRST_PROMPT.replace("{model!r}", repr(model)).replace("{home!r}", repr(str(tmp_path))))
    assert "dragoman.loop.agent" in loaded
    assert not loaded & (LATER | PROGRAM_LATER)
    ours = {name for name in loaded if name.startswith("dragoman")}
    assert len(ours) <= PROGRAM_BUDGET, sorted(ours)
    assert lines_of(ours) <= PROGRAM_LINES
    assert {name for name in ours if name.startswith("dragoman.words.en.")} <= {"dragoman.words.en.program"}


def test_a_model_nobody_knows_is_watched_without_waiting_for_what_reads_calls(tmp_path: Path) -> None:
    loaded = modules_loaded_by(FIRST_PROMPT.replace("{model!r}", repr("openai/nobody-knows-it")).replace("{home!r}", repr(str(tmp_path))))
    assert "dragoman.text_tools.detector" in loaded
    assert "dragoman.text_tools.parser" not in loaded


# The instrument, and proof that it measures.


def test_the_instrument_sees_what_is_loaded() -> None:
    loaded = modules_loaded_by("import json, argparse")
    assert {"json", "argparse"} <= loaded
    assert lines_of(["dragoman.cli"]) == len((ROOT / "src" / "dragoman" / "cli" / "__init__.py").read_text(encoding="utf-8").splitlines())
    assert lines_of(["dragoman.cli", "dragoman.cli.main"]) > 20


def modules_loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter loads for `code`, beyond those it starts with."""
    report = "print('loaded:', *sorted(set(sys.modules) - before))"
    done = python("-c", f"import sys; before = set(sys.modules)\n{code}\n{report}")
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1]
    assert line.startswith("loaded:")
    return set(line.split()[1:])


def lines_of(modules: Iterable[str]) -> int:
    """How many lines these of our modules have together."""
    paths = [ROOT / "src" / module.replace(".", "/") for module in modules]
    files = [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in paths]
    return sum(len(file.read_bytes().splitlines()) for file in files)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    # -I: neither the working directory nor the developer's variables decide what is loaded.
    return subprocess.run([sys.executable, "-I", *arguments], capture_output=True, text=True, timeout=60)
