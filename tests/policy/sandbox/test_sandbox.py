"""What works inside the sandbox, what is refused and how that is told, and how a level is chosen."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.policy.sandbox import seatbelt
from dragoman.policy.sandbox.detection import Detected
from dragoman.policy.sandbox.environment import rebuild
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.tools.output import Outputs
from dragoman.tools.shell import RunShell
from dragoman.tools.workspace import Workspace
from dragoman.words import say
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at
from system_parts import require_program
from told_commands import told_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


def run(sandbox: Sandbox, command: str, folder: Path) -> tuple[int, str]:
    ended, said = asyncio.run(bash(sandbox, command, folder))
    return ended.code, said


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


GIT = "git -c user.name=A -c user.email=a@example.com"


# Working in it


@pytest.mark.parametrize("level", LEVELS)
def test_daily_work_with_git_works(level: int, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("1\n")
    work = f"{GIT} add a && {GIT} commit -qm one && {GIT} checkout -qb other && echo 2 >> a && {GIT} stash -q && {GIT} stash pop -q && \
{GIT} commit -qam two && {GIT} rebase -q HEAD~0 && {GIT} tag t && {GIT} gc -q && {GIT} status --short && {GIT} log --oneline | wc -l"
    with sandbox_at(level, tmp_path) as sandbox:
        ended, said = asyncio.run(bash(sandbox, work, tmp_path))
    assert (ended.code, said.strip(), ended.remark) == (0, "2", "")


@pytest.mark.parametrize("level", LEVELS)
def test_a_linked_worktree_works_too(level: int, tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "one")
    git(main, "worktree", "add", "-q", str(linked))
    with sandbox_at(level, linked) as sandbox:
        code, said = run(sandbox, f"echo x > x && {GIT} add x && {GIT} commit -qm two && {GIT} log --oneline | wc -l", linked)
        assert (code, said.strip()) == (0, "2")
        run(sandbox, f"echo hostile > {main}/.git/hooks/post-commit; echo hostile > {main}/.git/config; echo {linked}/h > .git", linked)
    assert not (main / ".git/hooks/post-commit").exists()
    assert "hostile" not in (main / ".git/config").read_text()


@pytest.mark.parametrize("level", LEVELS)
def test_temporary_files_last_for_the_session_and_no_longer(level: int, tmp_path: Path) -> None:
    with sandbox_at(level, tmp_path) as sandbox:
        run(sandbox, "echo kept > $TMPDIR/a; mktemp >/dev/null", tmp_path)
        assert run(sandbox, "cat $TMPDIR/a", tmp_path) == (0, "kept\n")
        assert sandbox._ground is not None
        private = Path(sandbox._ground.private)
        assert (private / "tmp/a").exists()
    assert not private.exists()


def test_each_level_has_its_own_loopback(tmp_path: Path) -> None:
    lines = ("import socket", "s = socket.create_server(('127.0.0.1', 0))", "socket.create_connection(s.getsockname())", "print('ok')")
    joined = "; ".join(lines)
    serve = f'python3 -c "{joined}"'
    for level in (1, 2):
        with sandbox_at(level, tmp_path) as sandbox:
            assert run(sandbox, f"PATH=/usr/bin:/bin {serve}", tmp_path) == (0, "ok\n")


def test_terminals_can_be_made_at_level_one(tmp_path: Path) -> None:
    with sandbox_at(1, tmp_path) as sandbox:
        code, said = run(sandbox, 'PATH=/usr/bin:/bin python3 -c \'import pty; pty.spawn(["/bin/echo", "hi"])\' < /dev/null', tmp_path)
    assert (code, said.strip()) == (0, "hi")


# Settings


@pytest.mark.parametrize("level", LEVELS)
def test_settings_let_through_what_they_name(level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, more = tmp_path / "w", tmp_path / "more"
    workspace.mkdir()
    more.mkdir()
    monkeypatch.setenv("CORP_MODE", "test")
    make = "PATH=/usr/bin:/bin python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s'); print('made')\""
    options: dict[str, Any] = {"unix_sockets": True, "writable": [str(more)], "environment": ["CORP_MODE"]}
    with sandbox_at(level, workspace, **options) as sandbox:
        assert run(sandbox, f"echo $CORP_MODE; touch {more}/x; {make}", workspace) == (0, "test\nmade\n")
    with sandbox_at(level, workspace) as sandbox:
        code, said = run(sandbox, f"echo $CORP_MODE; rm s; touch {more}/y; {make}", workspace)
    assert code == 1
    assert "made" not in said
    assert (more / "x").exists()
    assert not (more / "y").exists()


def test_the_environment_is_a_short_list() -> None:
    env = {"PATH": "/bin", "LC_ALL": "C", "MY_SETTING": "1", "SSH_AUTH_SOCK": "/s", "DBUS_SESSION_BUS_ADDRESS": "d", "HOME": "/h"}
    rebuilt = rebuild(env, temporary="/tmp")
    assert {"PATH", "LC_ALL", "HOME"} <= set(rebuilt)
    assert not {"MY_SETTING", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"} & set(rebuilt)
    assert (rebuilt["PIP_RETRIES"], rebuilt["npm_config_fetch_retries"], rebuilt["TMPDIR"]) == ("0", "0", "/tmp")
    assert rebuild({}, temporary="/tmp", has_gate=True)["PIP_RETRIES"] == "1", "a host that is refused is refused the tenth time too"


# The gate


@pytest.mark.parametrize("level", [1, 2])
def test_the_listener_inside_is_passed_out(level: int, tmp_path: Path) -> None:
    async def main(sandbox: Sandbox) -> bool:
        nothing = os.open(os.devnull, os.O_RDWR)
        command = 'exec 3<>/dev/tcp/127.0.0.2/${http_proxy##*:}; echo "$http_proxy" >&3; cat <&3 >/dev/null'
        argv = ["/bin/bash", "-c", command]
        started = await sandbox.start(argv, directory=str(tmp_path), env={}, streams=(nothing, nothing, nothing))
        os.close(nothing)
        gate = started.take_gate()
        assert gate is not None
        with socket.socket(fileno=gate.descriptor) as listener:
            url = f"http://dragoman:{gate.secret}@127.0.0.2:{listener.getsockname()[1]}\n"
            listener.settimeout(5)
            connection = await asyncio.to_thread(lambda: listener.accept()[0])
            with connection:
                heard = await asyncio.to_thread(lambda: connection.recv(100))
        await started.end(0.1)
        return heard == url.encode()

    with sandbox_at(level, tmp_path, gate_port=1) as sandbox:
        assert asyncio.run(main(sandbox))


# What the model is told


def shell(sandbox: Sandbox, folder: Path, **args: Any) -> tuple[RunShell, Mapping[str, Any]]:
    tool = RunShell(Workspace(folder), Outputs(str(folder.parent / "outputs"), 40_000), launch=lambda: sandbox)
    output = asyncio.run(tool.run(args, lambda text: None))
    return tool, told_of(output)


@pytest.mark.parametrize("level", LEVELS)
def test_the_model_is_told_what_the_sandbox_refused(level: int, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    git(workspace, "init", "-q")
    with sandbox_at(level, workspace) as sandbox:
        tool, result = shell(
            sandbox, workspace, command="PATH=/usr/bin:/bin python3 -c \"import urllib.request as u; u.urlopen('http://example.com')\""
        )
        assert "no network" in result["sandbox"]
        assert tool.intend({"command": "ls"}).sandboxed
        _, result = shell(sandbox, workspace, command=f"touch {pwd.getpwuid(os.getuid()).pw_dir}/.dragoman-x")
        assert "only in the workspace" in result["sandbox"]
        _, result = shell(sandbox, workspace, command="echo /evil > .git/commondir")
        assert "commondir" in result["sandbox"]
        _, result = shell(sandbox, workspace, command="python3 -c 'import socket; socket.socket(socket.AF_UNIX)'")
        assert "sandbox" in result, result
        _, result = shell(sandbox, workspace, command="echo fine; exit 3")
        assert "sandbox" not in result


def test_without_a_sandbox_a_command_is_not_called_sandboxed(tmp_path: Path) -> None:
    with sandbox_at("off", tmp_path) as sandbox:
        tool, result = shell(sandbox, tmp_path, command="echo hi")
        assert (result["stdout"], result["exitCode"]) == ("hi\n", 0)
        assert not tool.intend({"command": "ls"}).sandboxed


def test_a_command_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    for level in ("off", 1, 3):
        with sandbox_at(level, tmp_path) as sandbox, pytest.raises(FileNotFoundError):
            asyncio.run(sandbox.start(["/no/such"], directory=str(tmp_path), env={}, streams=(0, 1, 2)))


# Without a sandbox

HIDDEN = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from dragoman.policy.sandbox.sandbox import Sandbox
from policy.sandbox.sandboxes import bash
command = f"cat /proc/{os.getpid()}/environ /proc/$PPID/environ | tr '\\\\0' '\\\\n'; cat /proc/{os.getpid()}/cmdline | wc -c"
sandbox = Sandbox(["/var/tmp"], level="off", hide=len(sys.argv) > 2)
print(asyncio.run(bash(sandbox, command, Path("/var/tmp")))[1])
"""


def test_the_key_is_not_in_proc(tmp_path: Path) -> None:
    tests = str(Path(__file__).resolve().parent.parent.parent)
    env = {**os.environ, "CORP_LOGIN": "very-secret"}
    for hidden in ([], ["hide"]):
        done = subprocess.run([sys.executable, "-c", HIDDEN, tests, *hidden], capture_output=True, text=True, env=env, check=True)
        assert ("very-secret" in done.stdout) == (not hidden), done.stdout
        assert any(word.isdigit() for word in done.stdout.split()), "the process itself was found"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("level", LEVELS)
def test_as_root_commands_run_as_the_owner_of_the_workspace(level: int) -> None:
    workspace = Path(tempfile.mkdtemp(prefix="dragoman-owner-", dir="/var/tmp"))
    try:
        os.chown(workspace, 65534, 65534)
        with sandbox_at(level, workspace) as sandbox:
            code, said = run(sandbox, "id -u; touch made $TMPDIR/x; cat /etc/shadow", workspace)
        assert (code, said.split()[0]) == (1, "65534")
        assert (workspace / "made").stat().st_uid == 65534
    finally:
        shutil.rmtree(workspace)


# Choosing a level

DETECT = """
import sys
from dragoman.policy.sandbox.sandbox import Sandbox
print(Sandbox([sys.argv[1]]).detected.level)
"""


def test_where_namespaces_are_forbidden_the_third_level_holds(tmp_path: Path) -> None:
    require_program("unshare")
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    argv = ["unshare", "--user", "--map-root-user", "/bin/sh", "-c", limit, "sh", sys.executable, "-c", DETECT, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("user namespaces are forbidden here already")
    assert done.stdout.strip() == "3", done.stderr


def test_a_bubblewrap_in_the_workspace_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\ntouch PWN\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f".:{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    with sandbox_at(2, tmp_path) as sandbox:
        run(sandbox, "true", tmp_path)
    assert not (tmp_path / "PWN").exists()


def test_no_sandbox_is_said_and_nothing_claims_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.policy.sandbox.detection._try_level", lambda level, launcher, ground, own_network: "forbidden")
    sandbox = Sandbox([str(tmp_path)])
    assert not sandbox.is_sandbox
    assert sandbox.detected.words.startswith("none: commands run with all your rights (not 1: forbidden")
    sandbox.close()
    assert Detected(1).words == say("policy.sandbox_level_1")


def test_the_whole_file_system_cannot_be_a_sandbox() -> None:
    sandbox = Sandbox(["/"])
    assert sandbox.detected.level == 0
    sandbox.close()


# macOS: the text alone


def test_the_profile_for_macos_denies_by_default_and_quotes_paths() -> None:
    text = seatbelt.profile(['/w/a "b"\\c'], ["/w/.git/hooks"], ["/Users/u/.ssh"])
    assert text.startswith("(version 1)\n(deny default)\n")
    assert text.count("(") == text.count(")")
    assert '(allow file-write* (subpath "/w/a \\"b\\"\\\\c"))' in text
    assert text.index("(allow file-write* (subpath") < text.index("(deny file-write* (subpath") < text.index("(deny file-read* file-write*")
    assert "(deny network*)" in text
    assert seatbelt.wrap(["/bin/ls"], text)[:2] == ("/usr/bin/sandbox-exec", "-p")
