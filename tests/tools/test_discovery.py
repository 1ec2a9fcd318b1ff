"""Tools that a command declares and another carries out."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.base import jsontext
from dragoman.tools.discovery import MAX_OUTPUT_BYTES, discover
from dragoman.values.calls import Tool, ToolOutput
from dragoman.values.errors import ConfigError
from dragoman.values.messages import Text, ToolCall
from scheduling import Bench


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-S", "-c", code, *arguments]


def printing(declarations: Any) -> list[str]:
    return python(f"print({jsontext.dumps(declarations)!r})")


ECHO = python("import sys; print(sys.argv[1], sys.stdin.read())")
WORD = {"name": "count", "description": "Counts.", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}


def found(command: Sequence[str], call: Sequence[str] = ECHO, **settings: Any) -> list[Tool]:
    return asyncio.run(discover(command, call, **settings))


def one(call: Sequence[str], **settings: Any) -> Tool:
    (tool,) = found(printing([WORD]), call, **settings)
    return tool


def run(tool: Tool, **args: Any) -> ToolOutput:
    return asyncio.run(tool.run(args, lambda text: None))


def text(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content if isinstance(part, Text))


# --- declarations


@pytest.mark.parametrize(
    "declared",
    [
        [WORD],
        WORD,
        {"function_declarations": [WORD]},
        {"functionDeclarations": [WORD]},
        [{"function_declarations": [WORD]}],
        [{**WORD, "parameters": None, "parametersJsonSchema": WORD["parameters"]}],
        [{**WORD, "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}}],
        [{"name": "count", "description": "Counts.", "inputSchema": WORD["parameters"]}],
    ],
)
def test_declarations_are_understood_however_they_are_written(declared: Any) -> None:
    (tool,) = found(printing(declared))
    assert (tool.spec.name, tool.spec.description, tool.spec.read_only) == ("count", "Counts.", False)
    assert tool.spec.schema == WORD["parameters"]


def test_a_declaration_may_say_little() -> None:
    (tool,) = found(printing([{"name": "now"}]))
    assert (tool.spec.description, tool.spec.schema) == ("", {"type": "object", "properties": {}})


def test_a_declaration_may_say_that_it_only_reads() -> None:
    tools = found(printing([{**WORD, "read_only": True, "kind": "search"}, {"name": "b", "read_only": "yes", "kind": "magic"}]))
    assert [(tool.spec.read_only, tool.spec.kind) for tool in tools] == [(True, "search"), (False, "other")]


def test_a_parameter_called_type_keeps_its_name() -> None:
    schema = {"type": "OBJECT", "properties": {"type": {"type": "STRING", "enum": ["A"]}}}
    (tool,) = found(printing([{"name": "t", "parameters": schema}]))
    assert tool.spec.schema == {"type": "object", "properties": {"type": {"type": "string", "enum": ["A"]}}}


def test_no_declarations_are_no_tools() -> None:
    assert found(printing([])) == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (python("print('Loading…')"), "did not print JSON .*; it must print a list of declarations"),
        (python(""), "did not print JSON"),
        (printing([{"description": "x"}]), "without a name"),
        (printing([7]), "without a name: 7"),
        (printing(["x"]), "without a name"),
        (printing([{"name": "a b"}]), "invalid tool name 'a b'"),
        (printing([WORD, WORD]), "already a tool called 'count'"),
        (printing([{"name": "a", "parameters": "x"}]), "parameters that are not a JSON Schema"),
        (python("import sys; print('[]'); print('no database', file=sys.stderr); sys.exit(3)"), r"exit code 3 \(no database\)"),
        (["/nowhere/at-all"], "cannot be run: No such file"),
        (["/"], "cannot be run: Permission denied"),
        ([], "needs two commands"),
        (python("import sys; sys.stdout.write('[' + ' ' * 5_000_000 + ']')"), "printed more than 4,000,000 bytes"),
    ],
)
def test_what_cannot_be_used_is_a_config_error_that_says_what_to_do(command: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        found(command)


def test_a_discovery_command_that_hangs_is_ended() -> None:
    with pytest.raises(ConfigError, match=r"took longer than 0\.2 s"):
        found(python("import time; time.sleep(60)"), timeout_s=0.2)


# --- calls


def test_a_call_gets_the_name_as_argument_and_the_arguments_on_stdin() -> None:
    assert text(run(one(ECHO), n=3, word="é")) == 'count {"n":3,"word":"é"}\n'


def test_a_call_runs_in_its_directory_and_with_its_environment(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), sorted(os.environ))"
    tool = one(python(code), directory=tmp_path, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
    assert text(run(tool)) == f"{os.path.realpath(tmp_path)} ['DRAGOMAN_CALL', 'LC_ALL', 'PATH']\n"


def test_a_call_that_fails_tells_everything_there_is() -> None:
    output = run(one(python("import sys; print('half'); print('why', file=sys.stderr); sys.exit(4)")))
    assert (output.is_error, output.error_type) == (True, "exit_code")
    assert text(output) == "count failed.\nstdout: half\n\nstderr: why\n\nexit code: 4"


def test_a_call_that_takes_too_long_is_ended_and_what_it_printed_is_kept() -> None:
    output = run(one(python("import time; print('half', flush=True); time.sleep(60)"), call_timeout_s=0.5))
    assert output.error_type == "timeout"
    assert "stdout: half" in text(output)
    assert "took longer than 0.5 s" in text(output)


def test_a_call_whose_command_is_gone_is_an_error_output() -> None:
    output = run(one(["/nowhere/at-all"]))
    assert (output.is_error, output.error_type) == (True, "not_runnable")


def test_a_call_that_does_not_read_its_input_is_not_waited_for() -> None:
    assert text(run(one(python("print('done')")), n=1, word="x" * 1_000_000)) == "done\n"


def test_output_beyond_the_bound_is_read_and_dropped() -> None:
    code = f"import sys; sys.stdout.write('x' * {MAX_OUTPUT_BYTES + 5_000_000})"
    output = run(one(python(code)))
    assert not output.is_error
    assert text(output).endswith("[more than 10,000,000 bytes were printed; the rest was dropped]")
    assert len(text(output)) < MAX_OUTPUT_BYTES + 200


def test_output_that_is_no_text_becomes_text() -> None:
    assert text(run(one(python(r"import sys; sys.stdout.buffer.write(b'a\xff\x00b')")))) == "a\ufffd␀b"


def test_what_a_call_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """A child in the background holds the pipes open, and would for minutes."""
    code = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(300)']).pid)"
    child = int(text(run(one(python(code)))))
    assert ended(child)


def test_a_cancelled_call_leaves_nothing_running(tmp_path: Path) -> None:
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(300)'])\n"
        f"open({str(fifo)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(300)"
    )

    async def scenario() -> list[int]:
        (tool,) = await discover(printing([WORD]), python(code))
        task = asyncio.create_task(tool.run({}, lambda text: None))
        pids = [int(each) for each in (await asyncio.to_thread(fifo.read_text)).split()]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids

    assert all(map(ended, asyncio.run(scenario())))


def test_a_discovered_tool_runs_through_the_scheduler_and_shows_its_command(tmp_path: Path) -> None:
    script = tmp_path / "call"
    script.write_text("#!/bin/sh\ncat\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    tool = one([str(script)])
    assert tool.intend({"n": 1}).preview == f'$ {script} count\n{{"n":1}}'
    bench = Bench([tool])
    good, bad = bench.run(ToolCall("1", "count", '{"n": 1}'), ToolCall("2", "count", '{"n": "x"}'))
    assert text(good.output) == '{"n":1}'
    assert "n must be an integer" in text(bad.output)


def ended(pid: int) -> bool:
    """Whether a process is gone. One that was killed may take a moment to be, and may be left for its new parent to bury."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False
