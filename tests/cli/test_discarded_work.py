"""Commands that throw away work that git does not hold: kept and given back in `auto`, asked about by name in a conversation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from program import Place, Service, calls, script
from terminals import terminal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
Serve = Callable[..., Service]
WIPE = "git checkout -- . && git clean -fdq && git status --short"


def git(folder: Path, *words: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture
def work(place: Place) -> Path:
    """A repository with a day's work in it that was not committed."""
    git(place.work, "init", "-q", "-b", "main")
    (place.work / "code.py").write_text("committed\n")
    (place.work / ".gitignore").write_text("*.log\n")
    git(place.work, "add", "-A")
    git(place.work, "commit", "-qm", "one")
    (place.work / "code.py").write_text("a day's work\n")
    (place.work / "notes").mkdir()
    (place.work / "notes" / "ü plan.md").write_bytes(b"\0never added\r\n")
    (place.work / "run.log").write_text("ignored")
    return place.work


def state(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if ".git" not in path.relative_to(folder).parts and path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def told(service: Service, request: int) -> str:
    return json.dumps(service.requests[request]["messages"][-1], ensure_ascii=False)


def test_in_auto_it_is_kept_said_and_given_back(place: Place, serve: Serve, work: Path) -> None:
    before = state(work)
    service = serve(script([calls(("run_shell", {"command": WIPE}))], "text: Wiped."))
    done = place.ask("wipe", "--approval", "auto")
    assert done.code == 0, done
    assert state(work) == {"code.py": b"committed\n", ".gitignore": b"*.log\n", "run.log": b"ignored"}
    for said in (done.err, told(service, 1)):
        assert "code.py, notes/ü plan.md" in said, done
    undone = place.run("sessions", "undo", "latest")
    assert undone.code == 0, undone
    assert "code.py" in undone.out, undone
    assert "notes/ü plan.md" in undone.out, undone
    assert state(work) == before


def test_what_the_user_changed_since_is_not_overwritten(place: Place, serve: Serve, work: Path) -> None:
    serve(script([calls(("run_shell", {"command": WIPE}))], "text: Wiped."))
    assert place.ask("wipe", "--approval", "auto").code == 0
    (work / "code.py").write_text("written anew\n")
    now = state(work)
    refused = place.run("sessions", "undo", "latest")
    assert refused.code != 0, refused
    assert "code.py" in refused.err, refused
    assert state(work) == now


def test_of_what_a_rule_hides_no_copy_lies_where_commands_can_read_it(place: Place, serve: Serve, work: Path) -> None:
    (place.home / "dragoman").mkdir(exist_ok=True)
    (place.home / "dragoman" / "config.toml").write_text('[rules]\ndeny = ["read_file private.env"]\n')
    (work / "private.env").write_text("PASSWORD=correct-horse\n")
    find = "grep -rlsa correct-horse ~ . ; echo searched"
    serve(script([calls(("run_shell", {"command": "touch begun"})), calls(("run_shell", {"command": find}))], "text: Done."))
    done = place.ask("look", "--approval", "auto")
    assert done.code == 0, done
    assert (work / "begun").exists()
    held = [path.name for path in place.home.rglob("*") if path.is_file() and b"correct-horse\n" in path.read_bytes()]
    assert held == []
    assert any(b"a day's work" in path.read_bytes() for path in place.home.rglob("*") if path.is_file())


@pytest.mark.parametrize("line", ["git clean -fdqx", "rm big.bin", "git stash -q && git stash drop"])
def test_in_auto_nobody_to_ask_and_no_copy_means_that_it_does_not_run(place: Place, serve: Serve, work: Path, line: str) -> None:
    with (work / "big.bin").open("wb") as file:
        file.truncate(30_000_000)
    git(work, "stash", "push", "-q", "code.py")
    before = state(work)
    service = serve(script([calls(("run_shell", {"command": line}))], "text: No."))
    done = place.ask("wipe", "--approval", "auto")
    assert state(work) == before, done
    assert "nobody can be asked" in told(service, 1)
    assert git(work, "stash", "list") != ""


def test_after_w_a_command_that_throws_work_away_is_asked_about_anew(place: Place, serve: Serve, work: Path) -> None:
    before = state(work)
    touch = calls(("run_shell", {"command": "touch zz.txt"}))
    wipe = calls(("run_shell", {"command": "git checkout -- . ; rm zz.txt"}))
    serve(script([touch], [wipe], "text: Done."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("do it")
        shown.expect("touch zz.txt")
        shown.expect("): ")
        shown.send("w")
        shown.expect("throws away work that git does not hold: code.py, zz.txt", "run): ")
        shown.send("n")
        shown.expect("Done.")
    assert state(work) == {**before, "zz.txt": b""}


def test_after_a_kill_in_the_middle_of_a_command_the_work_can_be_had_again(place: Place, serve: Serve, work: Path) -> None:
    before = state(work)
    serve(script([calls(("run_shell", {"command": "git checkout -- . && git clean -fdq && touch done.log && sleep 60"}))], "text: Done."))
    process = place.start("-m", "anthropic/claude-opus-5", "--approval", "auto", "-p", "wipe")
    until = time.monotonic() + 60
    while not (work / "done.log").exists():
        assert time.monotonic() < until, "the command did not get so far"
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=60)
    refused = place.run("sessions", "undo", "latest")
    assert refused.code != 0, refused
    assert "code.py" in refused.err, refused
    undone = place.run("sessions", "undo", "latest", "--force")
    assert undone.code == 0, undone
    assert state(work) == {**before, "done.log": b""}
