"""Windows and macOS, as far as they can be shown here: the program where what they lack is missing (tests/elsewhere.py).

It was never run on either. What is shown: every module can be imported, an answer comes, and a conversation in lines works to its end.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from program import Done, Place, Service, calls, script, take_terminal
from terminals import Terminal

ELSEWHERE = str(Path(__file__).parents[1] / "elsewhere.py")
MODEL = "anthropic/claude-opus-5"
SYSTEMS = ("windows", "macos")
Serve = Callable[..., Service]


def run(place: Place, system: str, *arguments: str, encoding: str = "utf-8") -> Done:
    env = place.env | {"PYTHONWARNINGS": "ignore", "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, ELSEWHERE, system, *arguments], cwd=place.work, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=120
    )
    return Done(done.returncode, done.stdout.decode(encoding).encode(), done.stderr.decode(encoding).encode())


@contextmanager
def talk(place: Place, system: str) -> Iterator[Terminal]:
    import termios

    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (40, 120))
    before = termios.tcgetattr(slave)
    env = place.env | {"PYTHONWARNINGS": "ignore"}
    words = [sys.executable, ELSEWHERE, system, "-m", MODEL]
    with subprocess.Popen(
        words, cwd=place.work, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=take_terminal
    ) as process:
        shown = Terminal(process, master, slave, before)
        try:
            yield shown
        finally:
            shown.close()


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_module_can_be_imported(system: str, place: Place) -> None:
    done = run(place, system, "--import-all")
    assert done.code == 0, done
    assert re.search(r"^\d+ modules, 0 failed$", done.out, re.MULTILINE), done


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_answer_for_which_a_file_is_read_and_one_is_written(system: str, place: Place, serve: Serve) -> None:
    (place.work / "über.txt").write_text("marmalade 果酱", encoding="utf-8")
    read, write = ("read_file", {"file_path": "über.txt"}), ("write_file", {"file_path": "new/b.txt", "content": "one\r\ntwo"})
    service = serve(script(calls(read, write), "text: It is marmalade."))
    done = run(place, system, "-m", MODEL, "--approval", "auto-edit", "--output-format", "json", "-p", "what is in it?")
    assert (done.code, done.json["response"]) == (0, "It is marmalade."), done
    assert "果酱" in str(service.requests[-1])
    assert (place.work / "new" / "b.txt").read_bytes() == b"one\r\ntwo"


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "gbk"])
def test_a_console_of_another_encoding_gets_what_it_can_show(encoding: str, place: Place, serve: Serve) -> None:
    serve("text: It costs 5 € — 你好.")
    done = run(place, "windows", "-m", MODEL, "-p", "hi", encoding=encoding)
    assert done.code == 0, done
    assert done.out.startswith("It costs 5 "), done


def test_there_is_no_sandbox_and_nothing_is_run_unasked(place: Place, serve: Serve) -> None:
    serve("text: Hello.")
    refused = run(place, "windows", "-m", MODEL, "--approval", "auto", "-p", "hi")
    assert refused.code == 44, refused
    assert "sandbox" in refused.err


def test_a_conversation_in_lines_where_no_key_can_be_read_alone(place: Place, serve: Serve) -> None:
    serve(script(calls(("write_file", {"file_path": "a.txt", "content": "one"})), "text: Written.", "text: Still here."))
    with talk(place, "windows") as shown:
        shown.prompt()
        shown.ask("write it")
        shown.expect("then Enter): ")
        shown.send("y\r")
        assert "Written." in shown.prompt()
        assert (place.work / "a.txt").read_text() == "one"
        shown.ask("are you there?")
        assert "Still here." in shown.prompt()
        shown.ask("/tools")
        assert "write_file" in shown.prompt()
        shown.send(b"\x04")
        assert shown.ended() == 0
        assert shown.modes == shown.before


def test_a_command_runs_in_the_shell_of_the_system(place: Place, serve: Serve) -> None:
    shell = place.home / "cmd.exe"
    shell.write_text('#!/bin/sh\n[ "$1 $2 $3" = "/d /s /c" ] && exec sh -c "$4"\n')
    shell.chmod(0o755)
    place.more_env = {"COMSPEC": str(shell)}
    service = serve(script(calls(("run_shell", {"command": "echo one; echo two >&2; exit 3"})), "text: It failed."))
    with talk(place, "windows") as shown:
        shown.prompt()
        shown.ask("run it")
        shown.expect("then Enter): ")
        shown.send("y\r")
        assert "It failed." in shown.prompt()
    assert all(word in str(service.requests[-1]) for word in ("one", "two", "3"))


def test_what_is_no_answer_is_asked_again_and_kept(place: Place, serve: Serve) -> None:
    serve(script(calls(("write_file", {"file_path": "a.txt", "content": "one"})), "text: Not written."))
    with talk(place, "windows") as shown:
        shown.prompt()
        shown.ask("write it")
        shown.expect("then Enter): ")
        shown.send("do it later\r")
        shown.expect("then Enter): ")
        shown.send("n\r")
        shown.expect("› do it later")
        assert not (place.work / "a.txt").exists()


def test_ctrl_c_at_a_question_stops_the_run_and_the_conversation_goes_on(place: Place, serve: Serve) -> None:
    serve(script(calls(("write_file", {"file_path": "a.txt", "content": "one"})), "text: Still here."))
    with talk(place, "windows") as shown:
        shown.prompt()
        shown.ask("write it")
        shown.expect("then Enter): ")
        shown.send(b"\x03")
        shown.prompt()
        shown.ask("are you there?")
        assert "Still here." in shown.prompt()
