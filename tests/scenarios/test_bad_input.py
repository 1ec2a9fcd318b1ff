"""Bad input through the real program: one line that says what to do, the right exit code, no traceback, bounded memory."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import sys
from pathlib import Path

import pytest

from agents import make_agent
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall
from scenarios.harness import KEY, QUICK, Desk, Ended, finished, prompts, told_results, told_text
from scenarios.workshop import check_record, play

MB = 1_000_000
MOST_MB = 80
"""What the program may take at most, whatever it is given: it takes about 35 MB for a plain answer."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path, "anthropic")


def complaint(ended: Ended, code: int, *words: str) -> str:
    assert ended.code == code, (ended.code, ended.out, ended.err)
    (line,) = ended.err.splitlines()
    assert line.startswith("dragoman: ")
    for word in words:
        assert word in line, line
    assert ended.out == ""
    return line


def called(name: str, **arguments: object) -> str:
    return f"call: {name} {json.dumps(arguments)}\n---\ntext: I see."


def told(desk: Desk, script: str, *arguments: str) -> str:
    """What the model was told of its one call. The run itself ends well."""
    ended = desk.run(script, *arguments)
    assert (ended.code, ended.out) == (0, "I see.\n"), ended.err
    (text,) = told_results(ended.requests[1].body)
    return text


# --- who is asked ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("anthropc/claude-opus-5", "anthropic/claude-opus-5"),
        ("claude-opus-55", "anthropic/claude-opus-5"),
        ("gemini-3.8-flahs", "gemini/gemini-3.8-flash"),
        ("nonsense", "deployment/model"),
    ],
)
def test_an_unknown_model_names_the_nearest(desk: Desk, model: str, near: str) -> None:
    complaint(desk.run("text: never", model=model), 52, model, near)


def test_a_model_the_service_does_not_know(desk: Desk) -> None:
    ended = desk.run("error: 404", model="anthropic/claude-opus-55")
    notice, line = ended.err.splitlines()
    assert (ended.code, ended.out) == (57, "")
    assert "anthropic/claude-opus-55 is not in the catalog" in notice
    assert "check the model's name" in line


@pytest.mark.parametrize("protocol", ["gemini", "openai_chat", "anthropic"])
def test_a_missing_key_names_the_variable(tmp_path: Path, protocol: str) -> None:
    variable = f"{protocol.partition('_')[0].upper()}_API_KEY"
    desk = Desk.at(tmp_path, protocol)
    ended = desk.run("text: never", env={variable: ""})
    complaint(ended, 41, variable)
    assert ended.requests == []


def test_no_key_and_no_model_at_all(desk: Desk) -> None:
    complaint(desk.run("text: never", model="", env={"ANTHROPIC_API_KEY": ""}), 41, "GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY")


def test_a_wrong_key_is_said_at_once(desk: Desk) -> None:
    ended = desk.run("text: never", server={"key": "another"}, config="")
    complaint(ended, 41, "ANTHROPIC_API_KEY")
    assert len(ended.requests) == 1
    assert KEY not in ended.err


def test_a_service_that_repeats_the_key_does_not_get_it_shown(desk: Desk) -> None:
    for arguments in ([], ["--output-format", "json"], ["--output-format", "stream-json"]):
        ended = desk.run(f'error: 401 "Incorrect API key provided: {KEY}. Find yours at https://example.org."', *arguments)
        assert ended.code == 41
        assert "Find yours" in ended.out + ended.err
        assert KEY[-20:] not in ended.out + ended.err


def test_what_a_service_says_is_one_harmless_line(desk: Desk) -> None:
    message = json.dumps("first\nsecond \x1b]0;title\x07\x1b[31mred\x1b[0m " + "long " * 2_000)
    ended = desk.run(f"script: end=repeat\nerror: 400 {message}")
    line = complaint(ended, 57, "first second", "red")
    assert "\x1b" not in line
    assert len(line) < 3_000
    retried = desk.run(f"error: 500 {message}\n---\ntext: Good.")
    assert (retried.code, retried.out) == (0, "Good.\n")
    assert len(retried.err.splitlines()) == 1
    assert "\x1b" not in retried.err


def test_debugging_shows_no_key(desk: Desk) -> None:
    ended = desk.run("error: 500\n---\ntext: Good.", "--debug")
    assert (ended.code, ended.out) == (0, "Good.\n")
    assert len(ended.err.splitlines()) > 2
    assert KEY not in ended.err


def test_a_key_that_cannot_be_one(desk: Desk) -> None:
    complaint(desk.run("text: never", env={"ANTHROPIC_API_KEY": "new\nline"}), 41, "ANTHROPIC_API_KEY")


def test_an_unreachable_host(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]

    async def go() -> Ended:
        desk.url = f"http://127.0.0.1:{free}"
        async with desk.started(config=QUICK.replace("[retry]", "[retry]\nattempts = 1")) as started:
            return await finished(started)

    complaint(asyncio.run(go()), 57, f"127.0.0.1:{free}")


def test_a_host_that_is_none(desk: Desk) -> None:
    async def go() -> Ended:
        desk.url = "http://no-such-host.invalid"
        async with desk.started(config=QUICK.replace("[retry]", "[retry]\nattempts = 1")) as started:
            return await finished(started)

    complaint(asyncio.run(go()), 57, "no-such-host.invalid")


@pytest.mark.parametrize("url", ["not a url", "ftp://127.0.0.1/", "http://"])
def test_an_address_that_is_none(desk: Desk, url: str) -> None:
    async def go() -> Ended:
        desk.url = url
        async with desk.started() as started:
            return await finished(started)

    ended = asyncio.run(go())
    assert ended.code in (52, 57)
    complaint(ended, ended.code)


# --- configuration ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "line", "words"),
    [
        ('\n\nmodle = "gemini"\n', 3, ("modle", "did you mean model?")),
        ("[retry]\natempts = 3\n", 2, ("retry.atempts", "retry.attempts")),
        ('max_turns = "many"\n', 1, ("max_turns", "a whole number")),
        ('[settings]\nthinking = "hard"\n', 2, ("settings.thinking", "low, medium, high")),
        ("model = \n", 1, ("TOML",)),
        ("approval = 'auto-edits'\n", 1, ("approval", "auto-edit")),
        ("[retry]\nattempts = 0\n", 2, ("retry.attempts",)),
        ("[deployments.mine]\nprotocl = 'anthropic'\n", 2, ("protocl",)),
    ],
)
def test_a_wrong_config_names_file_line_key_and_what_is_right(desk: Desk, config: str, line: int, words: tuple[str, ...]) -> None:
    ended = desk.run("text: never", config=config)
    complaint(ended, 52, f"config.toml:{line}", *words)
    assert ended.requests == []


def test_a_config_that_is_a_folder_or_binary(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    complaint(desk.run("text: never", "--config", str(tmp_path / "folder.toml")), 52, "folder.toml", "directory")
    complaint(desk.run("text: never", "--config", str(tmp_path / "binary.toml")), 52, "binary.toml", "UTF-8")
    complaint(desk.run("text: never", "--config", str(tmp_path / "missing.toml")), 52, "missing.toml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-turn", "3"], ("--max-turns",)),
        (["--max-turns", "many"], ("--max-turns", "'many'")),
        (["--output-format", "yaml"], ("stream-json",)),
        (["--approval", "yolo"], ("auto-edit",)),
        (["-C", "/no/such/folder"], ("/no/such/folder",)),
        (["--include", "nowhere"], ("nowhere",)),
    ],
)
def test_a_wrong_option_says_what_is_right(desk: Desk, arguments: list[str], words: tuple[str, ...]) -> None:
    complaint(desk.run("text: never", *arguments), 42, *words)


def test_a_failure_before_anything_began_ends_with_a_result_too(desk: Desk) -> None:
    for arguments in (["--approval", "yolo"], ["--config", "missing.toml"], ["-m", "nonsense"]):
        ended = desk.run("text: never", *arguments, "--output-format", "stream-json", model="")
        assert ended.code in (42, 52)
        assert ended.result["status"] == "error"
        assert ended.result["error"]["message"]


# --- the prompt --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stdin", [b"\xff\xfe\x00\x01" * 100, b"text and \x00 more", "naïve".encode("latin-1")])
def test_a_prompt_that_is_not_text(desk: Desk, stdin: bytes) -> None:
    complaint(desk.run("text: never", prompt=None, stdin=stdin), 42, "standard input", "UTF-8", "file")


def test_a_prompt_that_is_endless(desk: Desk) -> None:
    ended = desk.run("text: never", prompt=None, stdin=b"yes\n" * 4_000_000)
    complaint(ended, 42, "standard input is longer")


@pytest.mark.parametrize(("prompt", "stdin"), [("", None), ("  \n", b""), (None, b"\n\n")])
def test_an_empty_prompt(desk: Desk, prompt: str | None, stdin: bytes | None) -> None:
    complaint(desk.run("text: never", prompt=prompt, stdin=stdin), 42, "prompt is empty")


def test_a_prompt_in_every_script(desk: Desk) -> None:
    prompt = "你好 مرحبا 👩‍🚀 \u2028 \u202e"
    ended = desk.run(f"text: {prompt}", prompt=prompt)
    assert (ended.code, ended.out) == (0, f"{prompt}\n")
    assert prompts(ended.requests[0].body, prompt) == 1


# --- files ---------------------------------------------------------------------------------------------------------------------------


def test_an_unreadable_file(desk: Desk) -> None:
    desk.write("secret.txt", "x").chmod(0)
    if os.geteuid() == 0:
        # Root reads everything; a socket is what it cannot read either.
        (desk.workspace / "secret.txt").unlink()
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.getcwd()
            os.chdir(desk.workspace)  # a socket's path may not be long
            try:
                listener.bind("secret.txt")
            finally:
                os.chdir(here)
            text = told(desk, called("read_file", file_path="secret.txt"))
    else:
        text = told(desk, called("read_file", file_path="secret.txt"))
    assert "secret.txt" in text
    assert "\n" not in text.strip()


def test_a_pipe_is_not_waited_for(desk: Desk) -> None:
    os.mkfifo(desk.workspace / "pipe")
    assert "pipe" in told(desk, called("read_file", file_path="pipe"))


def test_a_binary_file(desk: Desk) -> None:
    (desk.workspace / "program").write_bytes(b"\x7fELF" + bytes(range(256)) * 100)
    text = told(desk, called("read_file", file_path="program"))
    assert "binary" in text
    assert "ELF" in text
    assert len(text) < 500


def test_a_directory_instead_of_a_file(desk: Desk) -> None:
    (desk.workspace / "src").mkdir()
    text = told(desk, called("read_file", file_path="src"))
    assert "is a directory" in text
    assert "list_directory" in text


def test_a_missing_file_names_the_nearest(desk: Desk) -> None:
    desk.write("README.md", "x")
    assert "README.md" in told(desk, called("read_file", file_path="REDME.md"))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_file_of_a_gigabyte_takes_no_more_memory_than_a_small_one(desk: Desk) -> None:
    """Sparse: zeros; and with text on its first lines. Read, searched, listed, edited."""
    huge = desk.workspace / "huge.bin"
    with huge.open("wb") as file:
        file.truncate(1_000 * MB)
    with (desk.workspace / "huge.txt").open("wb") as file:
        file.write(b"first line\n" * 1_000)
        file.truncate(1_000 * MB)
    calls = "\n".join(
        f"call: {name} {json.dumps(arguments)}"
        for name, arguments in [
            ("read_file", {"file_path": "huge.bin"}),
            ("read_file", {"file_path": "huge.txt", "limit": 3}),
            ("read_many_files", {"paths": ["huge.*"]}),
            ("grep", {"pattern": "first", "path": "huge.txt"}),
            ("list_directory", {}),
            ("edit", {"file_path": "huge.txt", "old_string": "first", "new_string": "second"}),
        ]
    )
    ended, peak_mb = measured(desk, f"{calls}\n---\ntext: I see.", "--approval", "auto-edit")
    assert (ended.code, ended.out) == (0, "I see.\n")
    assert peak_mb < MOST_MB
    read_binary, read_text, _, searched, listed, edited = told_results(ended.requests[1].body)
    assert "binary" in read_binary
    assert read_text.startswith("first line\nfirst line\nfirst line\n")
    assert searched.startswith("huge.txt\n1: first line")
    assert "1.0 GB" in listed
    assert "too large to edit" in edited
    assert huge.stat().st_size == 1_000 * MB


def measured(desk: Desk, script: str, *arguments: str) -> tuple[Ended, float]:
    """A run, and the most memory the program took, in MB. Programs it started are not counted: ripgrep maps what it searches."""
    file = desk.home / "peak"
    at_its_end = (
        "import atexit\n"
        "def tell():\n"
        f"    with open('/proc/self/status') as status, open({str(file)!r}, 'w') as file:\n"
        "        file.write(next(line for line in status if line.startswith('VmHWM')).split()[1])\n"
        "atexit.register(tell)\n"
    )
    (desk.home / "sitecustomize.py").write_text(at_its_end)  # which Python imports by itself
    ended = desk.run(script, *arguments, env={"PYTHONPATH": f"{desk.home}{os.pathsep}{desk.environment()['PYTHONPATH']}"})
    return ended, int(file.read_text()) * 1024 / MB


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes")
def test_names_that_are_not_utf8(desk: Desk) -> None:
    """They are listed, found and read by the name that is shown; the request is valid."""
    os.makedirs(os.path.join(os.fsencode(desk.workspace), b"caf\xe9"))
    with open(os.path.join(os.fsencode(desk.workspace), b"caf\xe9", b"na\xefve.txt"), "wb") as file:
        file.write(b"found it\n")
    name = "caf\\xe9/na\\xefve.txt"
    calls = [
        ("list_directory", {"path": "."}),
        ("glob", {"pattern": "**/*.txt"}),
        ("grep", {"pattern": "found"}),
        ("read_file", {"file_path": name}),
    ]
    script = "\n".join(f"call: {tool} {json.dumps(arguments)}" for tool, arguments in calls)
    listed, globbed, searched, read = told_results(desk.run(f"{script}\n---\ntext: I see.").requests[1].body)
    assert "caf\\xe9" in listed
    assert name in globbed
    assert name in searched
    assert "found it" in read


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes")
def test_a_workspace_whose_name_is_not_utf8(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path)
    odd = os.path.join(os.fsencode(tmp_path), b"w\xf6rk")
    os.mkdir(odd)
    desk.workspace = Path(os.fsdecode(odd))
    desk.write("a.txt", "hello\n")
    ended = desk.run(called("read_file", file_path="a.txt"), "--output-format", "stream-json")
    assert ended.code == 0
    assert "hello" in told_text(ended.requests[1].body)


@pytest.mark.skipif(sys.platform != "linux", reason="arguments are bytes")
def test_a_prompt_that_is_not_utf8(desk: Desk) -> None:
    complaint(desk.run("text: never", prompt=os.fsdecode(b"caf\xe9")), 42, "UTF-8")


# --- output ---------------------------------------------------------------------------------------------------------------------------


async def allow(call: ToolCall, view: Intent) -> Allow | Deny:
    return Allow()


def memory_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / MB


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_huge_command_output_is_bounded(tmp_path: Path, every_offset: bool) -> None:
    """200 MB of it, and 5 GB with --every-offset: the model gets head and tail, a file the rest up to its cap, memory stays."""
    size = 5_000 if every_offset else 200
    command = f"echo begin; head -c {size}M /dev/zero | tr '\\0' 'x'; echo; echo end"
    spill = tmp_path / "outputs"

    async def go() -> None:
        provider = ScriptedProvider(f"call: run_shell {json.dumps({'command': command, 'timeout_s': 500})}\n---\ntext: I see.")
        agent = make_agent(provider, workspace=tmp_path, builtin=["run_shell"], ask=allow, outputs=str(spill), describe=False)
        before, peak = memory_mb(), 0.0
        run = agent.run("go")
        async for _ in run:
            peak = max(peak, memory_mb())
        assert run.result.text == "I see."
        assert peak - before < 60, f"it grew by {peak - before:.0f} MB"
        text = agent.history.view.messages[-2].results[0].content[0].text  # type: ignore[union-attr]
        assert len(text) <= 41_000
        assert "begin" in text
        assert "end" in text
        assert str(spill) in text
        assert sum(path.stat().st_size for path in spill.rglob("*") if path.is_file()) <= 110 * MB
        check_record(agent.history)

    play(go, within_s=500)


def test_a_command_that_writes_for_ever_ends_at_its_time(tmp_path: Path) -> None:
    async def go() -> None:
        provider = ScriptedProvider('call: run_shell {"command": "yes", "timeout_s": 0.5}\n---\ntext: I see.')
        agent = make_agent(provider, workspace=tmp_path, builtin=["run_shell"], ask=allow, outputs=str(tmp_path / "spill"), describe=False)
        result = await agent.run("go")
        assert (result.text, result.tool_failures) == ("I see.", 1)

    play(go)
