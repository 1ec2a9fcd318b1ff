"""run_shell: what the model is given, what the user sees, what is refused, and that a call leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.tools.command_text import CUT_CHARS, FAILED_CUT_CHARS
from dragoman.tools.output import Outputs
from dragoman.tools.shell import RunShell
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import ToolOutput
from dragoman.values.record import CommandOutput
from file_tools import text_of
from processes import children, gone_within, marked_sleep, none_left, started_within
from told_commands import told_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="bash")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "file").write_text("x")
    return Workspace(tmp_path / "work")


@pytest.fixture
def shell(workspace: Workspace, tmp_path: Path) -> RunShell:
    return RunShell(workspace, Outputs(tmp_path / "kept"))


def run(shell: RunShell, command: str, **args: Any) -> ToolOutput:
    return asyncio.run(shell.run({"command": command, **args}, lambda text: None))


# For the model, and for the record


@pytest.mark.parametrize(
    ("command", "text", "recorded"),
    [
        ("echo out", "out", CommandOutput("out\n", "", 0)),
        ("echo err >&2", "err", CommandOutput("", "err\n", 0)),
        ("echo out; echo err >&2", "out\n[stderr]\nerr", CommandOutput("out\n", "err\n", 0)),
        ("printf '  a\\n\\n'; exit 3", "  a\n[exit code 3]", CommandOutput("  a\n\n", "", 3)),
        ("exit 3", "[exit code 3]", CommandOutput("", "", 3)),
        ("true", "(no output)", CommandOutput("", "", 0)),
        ("kill -KILL $$", "[ended by SIGKILL, exit code 137]", CommandOutput("", "", 137, "SIGKILL")),
        (
            r"printf '\033[1;31mred\033[0m\n10%%\r100%%\n\tend'",
            "red\n100%\n\tend",
            CommandOutput("\x1b[1;31mred\x1b[0m\n10%\r100%\n\tend", "", 0),
        ),
    ],
)
def test_the_model_reads_what_a_person_would_and_the_record_keeps_all(
    shell: RunShell, command: str, text: str, recorded: CommandOutput
) -> None:
    output = run(shell, command)
    assert text_of(output) == text
    assert output.command == recorded
    assert not output.is_error


def test_a_timeout_says_what_to_do_next(shell: RunShell) -> None:
    output = run(shell, "echo before; sleep 1000", timeout_s=0.3)
    assert text_of(output) == (
        "before\n[ended after 0.3 s, when its time was up. If it needs longer, call it again with timeout_s up to 600.]"
    )
    assert output.command == CommandOutput("before\n", "", 143, "SIGTERM", timed_out=True)
    assert (output.is_error, output.error_type) == (True, "timed_out")
    assert output.display == "before\n(ended after 0.3 s)"


def test_bash_it_is(shell: RunShell) -> None:
    assert told_of(run(shell, "[[ a == a* ]] && echo ${BASH_VERSION:+bash}"))["stdout"] == "bash\n"


def test_there_is_no_input(shell: RunShell) -> None:
    assert told_of(run(shell, "cat; read line; echo $?"))["stdout"] == "1\n"


def test_it_runs_in_the_workspace_or_below(shell: RunShell, workspace: Workspace) -> None:
    assert told_of(run(shell, "pwd"))["stdout"] == f"{workspace.root}\n"
    assert told_of(run(shell, "pwd", directory="sub"))["stdout"] == f"{workspace.root}/sub\n"


def test_binary_output_becomes_text(shell: RunShell) -> None:
    assert told_of(run(shell, r"printf 'a\0b\377c\303'"))["stdout"] == "a␀b\ufffdc\ufffd"


def test_secrets_are_not_there_unless_the_user_chose_so(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SE01"""
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("GITHUB_TOKEN", "hidden")
    shell = RunShell(workspace, Outputs(tmp_path / "kept"), env={"GITHUB_TOKEN": "chosen"})
    assert told_of(run(shell, 'echo "$SOME_API_KEY-$GITHUB_TOKEN-$PAGER-$TERM"'))["stdout"] == "-chosen-cat-dumb\n"


# Long output


@pytest.mark.parametrize(
    "command",
    [
        "seq 100000",
        "seq 100000 >&2",
        "seq 100000 | tee /dev/stderr",
        "seq 100000; echo short >&2",
        "yes '\"' | head -c 100000",
        "yes 漢字🎉 | head -c 300000",
        "yes '' | head -c 39000",
        "yes '' | head -c 15000; yes '' | head -c 15000 >&2",
        "seq 100000; exit 1",
    ],
)
@pytest.mark.parametrize("max_chars", [40_000, 5_000])
def test_the_whole_result_keeps_to_the_cap(workspace: Workspace, tmp_path: Path, command: str, max_chars: int) -> None:
    output = run(RunShell(workspace, Outputs(tmp_path / "kept", max_chars)), command)
    text = text_of(output)
    bound = min(max_chars, FAILED_CUT_CHARS if "exit 1" in command else CUT_CHARS)
    assert len(text) <= min(max_chars, bound + 1_200), "two notes at most, and how it ended"
    assert "lines left out here. The whole output is in " in text
    assert output.output_file
    assert output.output_file in text


def test_an_endless_line_is_folded(shell: RunShell) -> None:
    output = run(shell, "printf A; head -c 300000 /dev/zero | tr '\\0' x; echo Z; echo end")
    line, end, note = text_of(output).split("\n")
    assert line.startswith("Axx")
    assert line.endswith("xxZ")
    assert " …[298,202 characters of this line left out]… " in line
    assert end == "end"
    assert output.output_file in note
    assert len(line) < 2_000


def test_the_whole_output_can_be_read_in_the_file(shell: RunShell) -> None:
    output = run(shell, r"printf '\033[32m'; seq 100000")
    whole = "".join(f"{number}\n" for number in range(1, 100_001))
    assert Path(output.output_file).read_text() == whole, "without its colours"
    head, _, rest = text_of(output).partition("\n[")
    tail = rest.partition("]\n")[2]
    assert whole.startswith(head + "\n")
    assert whole.endswith("\n" + tail + "\n"), "whole lines"
    assert len(tail) > 2 * len(head), "the end tells most"
    missing = 100_000 - head.count("\n") - tail.count("\n") - 2
    assert rest.startswith(f"{missing:,} lines left out here. ")


def test_the_record_keeps_both_ends_of_a_long_output(shell: RunShell) -> None:
    command = run(shell, "seq 100000").command
    assert command is not None
    assert command.stdout.startswith("1\n2\n")
    assert command.stdout.endswith("\n100000\n")
    assert "characters left out here]" in command.stdout
    assert len(command.stdout) < 41_000


def test_a_failure_is_shown_more_of(shell: RunShell) -> None:
    done, failed = text_of(run(shell, "seq 100000")), text_of(run(shell, "seq 100000; exit 1"))
    assert len(failed) > 1.8 * len(done)
    assert failed.endswith("100000\n[exit code 1]")


def test_what_one_stream_does_not_need_the_other_may_have(shell: RunShell) -> None:
    text = text_of(run(shell, "seq 100000; echo a; echo b >&2"))
    assert text.endswith("a\n[stderr]\nb")
    assert 7_500 < len(text) < 8_600


def test_short_output_is_whole_and_makes_no_file(shell: RunShell, tmp_path: Path) -> None:
    output = run(shell, "yes x | tr -d '\\n' | head -c 15000")
    assert text_of(output) == "x" * 15_000
    assert output.output_file == ""
    assert not (tmp_path / "kept").exists()


def test_a_bar_that_is_drawn_for_long_is_its_last_state(shell: RunShell) -> None:
    output = run(shell, r"for i in $(seq 5000); do printf '\r\033[K%d of 5000' $i; done; echo; echo ok")
    assert text_of(output) == "5000 of 5000\nok"
    assert output.output_file == "", "nothing is missing"


# For the user


def test_the_display_is_the_last_lines_and_their_count(shell: RunShell) -> None:
    display = run(shell, "seq 100; exit 2").display
    assert display.split("\n") == ["… the last 20 of 100 lines", *map(str, range(81, 101)), "(exit code 2)"]
    assert run(shell, "printf 'a\\nb'").display == "a\nb"
    assert run(shell, "true").display == "(no output)"


def test_the_display_is_bounded_and_shows_what_hides(shell: RunShell) -> None:
    assert len(run(shell, "yes | tr -d '\\n' | head -c 1000000").display) < 1000
    assert run(shell, r"printf '\033[31mred\r50%%\r100%%\r\n'").display == "<U+001B>[31mred\n50%\n100%"


def test_output_is_shown_while_it_comes(shell: RunShell, workspace: Workspace) -> None:
    shown: list[str] = []

    async def main() -> None:
        seen = asyncio.Event()

        def show(text: str) -> None:
            shown.append(text)
            seen.set()

        task = asyncio.create_task(shell.run({"command": "echo first; while [ ! -e go ]; do sleep 0.01; done; echo second"}, show))
        await asyncio.wait_for(seen.wait(), 60)
        assert shown == ["first\n"]
        (Path(workspace.root) / "go").touch()
        await task

    asyncio.run(main())
    assert "".join(shown) == "first\nsecond\n"


def test_it_is_shown_twenty_times_a_second_at_most(shell: RunShell) -> None:
    shown: list[str] = []
    start = time.monotonic()
    asyncio.run(shell.run({"command": "for i in $(seq 300); do echo $i; sleep 0.002; done"}, shown.append))
    assert len(shown) <= (time.monotonic() - start) * 20 + 2
    assert "".join(shown) == "".join(f"{number}\n" for number in range(1, 301))


def test_what_is_shown_is_bounded(shell: RunShell) -> None:
    shown: list[str] = []
    asyncio.run(shell.run({"command": "yes 'much text' | head -c 50000000"}, shown.append))
    assert max(map(len, shown)) < 3000
    assert sum(map(len, shown)) < 1_100_000


# What it would do


def test_the_intent_shows_every_character(shell: RunShell) -> None:
    intent = shell.intend({"command": "echo \u202eevil\x1b[2K && \\\n\trm x\u200b"})
    assert intent.title == "$ echo <U+202E>evil<U+001B>[2K && \\…"
    assert intent.preview == "echo <U+202E>evil<U+001B>[2K && \\\n\trm x<U+200B>"
    assert (intent.writes, intent.problem) == ((), "")


def test_the_title_is_one_bounded_line(shell: RunShell) -> None:
    intent = shell.intend({"command": "echo " + "x" * 500})
    assert len(intent.title) == 100
    assert intent.title.endswith("x…")
    assert len(intent.preview) == 505
    assert shell.intend({"command": "ls", "directory": "sub"}).preview == "ls\n(in sub)"


@pytest.mark.parametrize(
    ("args", "words", "error_type"),
    [
        ({"command": " \n"}, "empty", "invalid"),
        ({"command": "echo a\0b"}, "NUL", "invalid"),
        ({"command": "x" * 70_000}, "70,000 bytes", "too_long"),
        ({"command": "é" * 33_000}, "66,000 bytes", "too_long"),
        ({"command": "ls", "directory": "none"}, "none does not exist", "not_found"),
        ({"command": "ls", "directory": "file"}, "not a directory", "not_directory"),
        ({"command": "ls", "directory": "/etc"}, "outside the workspace", "outside"),
        ({"command": "ls", "directory": "../"}, "outside the workspace", "outside"),
        ({"command": "ls", "timeout_s": -1}, "more than 0", "invalid"),
    ],
)
def test_what_cannot_work_is_refused_before_anyone_is_asked(shell: RunShell, args: dict[str, Any], words: str, error_type: str) -> None:
    assert words in shell.intend(args).problem
    output = asyncio.run(shell.run(args, lambda text: None))
    assert (output.is_error, output.error_type) == (True, error_type)
    assert words in text_of(output)


def test_a_long_command_within_the_limit_runs(shell: RunShell) -> None:
    assert told_of(run(shell, "echo " + "x" * 65_000))["exitCode"] == 0


def test_the_timeout_has_an_upper_bound(shell: RunShell) -> None:
    assert shell._prepare({"command": "ls", "timeout_s": 10_000})[2] == 600
    assert shell._prepare({"command": "ls"})[2] == 120


def test_a_shell_in_the_workspace_is_not_used(shell: RunShell, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Path(workspace.root) / "bash"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f".:{workspace.root}:{os.environ['PATH']}")
    assert told_of(run(shell, "echo real"))["stdout"] == "real\n"


# The end


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_cancel_takes_everything_with_it(shell: RunShell, tmp_path: Path) -> None:
    """DO03, by cancel, with output spilled to a file nobody will be told of."""
    before = set(children())
    sleep = marked_sleep()

    async def main() -> None:
        seen = asyncio.Event()
        command = f"(setsid nohup {sleep} &) ; {sleep} & disown ; seq 100000; echo $!; {sleep}"
        task = asyncio.create_task(shell.run({"command": command}, lambda text: seen.set()))
        await seen.wait()
        assert await asyncio.to_thread(started_within, 60, sleep, 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 120))
    assert gone_within(60, sleep)
    assert none_left(before)
    assert not [*(tmp_path / "kept").iterdir()]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_case_as_it_is_written_down(shell: RunShell) -> None:
    """DO03, word for word: a timeout of 2 s."""
    before = set(children())
    sleep = marked_sleep()
    output = run(shell, f"(setsid nohup {sleep} &) ; {sleep} & disown ; {sleep}", timeout_s=2)
    assert told_of(output)["timedOut"]
    assert gone_within(60, sleep)
    assert none_left(before)
