"""What the sandbox stopped is said as such, with what to do; what it did not stop is not blamed on it."""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import shutil
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.policy.sandbox.refusal_words import read_sentence, sentence
from dragoman.policy.sandbox.refusals import Circumstances, explain
from dragoman.policy.sandbox.refused_paths import PathLimits
from dragoman.values.record import HostsUsed
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
PYTHON = f"{shlex.quote(os.path.realpath(sys.executable))} -I -c"
_SOCKET = 'import socket; socket.socket(socket.AF_UNIX).connect("/run/x")'
_NODE = "node:fs:2342\n    return binding.writeFileUtf8(\n\nError: EROFS: read-only file system, open '{home}/xp'\n    at Object.open\n"


def kind_of(told: str) -> str:
    found = read_sentence(told)
    return found[0] if found is not None else told


# By running it


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (tmp_path / "elsewhere").mkdir()
    return workspace


def say_of(level: int, folder: Path, command: str, *, has_gate: bool = False) -> str:
    """What is said of a command that fails in there."""
    with sandbox_at(level, folder) as sandbox:
        ended, said = asyncio.run(bash(sandbox, command, folder))
        assert ended.code, said
        return kind_of(sandbox.explain(said, directory=str(folder), has_gate=has_gate))


INSIDE = {
    "writing": f"touch {shlex.quote(pwd.getpwuid(os.getuid()).pw_dir)}/.dragoman-probe",  # where this user may write outside
    "sockets": f"{PYTHON} '{_SOCKET}'",
    "network": f"{PYTHON} 'import socket; socket.getaddrinfo(\"example.org\", 80)'",
    "rights": "unshare -r true",
    "processes": "kill -0 {pid}",
}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_real_command_that_is_stopped_is_told_why(kind: str, level: int, folder: Path) -> None:
    command = INSIDE[kind].format(pid=os.getpid())
    wanted = "all_sockets" if kind == "sockets" and level == 3 else kind
    assert say_of(level, folder, command) == wanted


OWN_FAULT = [
    "cat nosuch.txt",
    "cat /nosuch/at/all",
    f"{PYTHON} 'import nowhere_at_all'",
    "printf x > s.sh; ./s.sh",
    "mkdir locked && touch locked/f && chmod 500 locked && chmod 000 locked/f; cat locked; false",
    f"{PYTHON} 'import socket; socket.create_connection((\"127.0.0.1\", 9))'",
    "echo 'ERROR: permission denied for table users'; false",
    "dd if=/dev/zero of=/dev/full count=1",
    "echo \"AssertionError: assert 'Read-only file system' in ''\"; false",
    "echo 'E   expected EROFS, got ENOENT'; false",
    "kill -0 999999999",
    "ls missing/; grep -r x missing",
]


@pytest.mark.parametrize("command", OWN_FAULT)
def test_a_real_command_that_fails_by_itself_is_not_blamed_on_the_sandbox(command: str, level: int, folder: Path) -> None:
    if level == 3 and "create_connection" in command:
        pytest.skip("with Landlock alone it is the sandbox")
    assert say_of(level, folder, command) == ""


@pytest.mark.parametrize("level", [1, 2])
def test_a_server_of_the_users_own_is_known_by_its_port(level: int, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert say_of(level, folder, f"curl -sS http://127.0.0.1:{port}/") == "loopback"
    assert say_of(level, folder, f"curl -sS http://127.0.0.1:{port}/") == "", "nobody listens there any more"


@pytest.mark.parametrize("level", [1, 2])
def test_a_file_that_is_there_but_not_seen_is_said_to_be_hidden(level: int, folder: Path) -> None:
    assert say_of(level, folder, "cat /var/tmp/dragoman-nosuch") == ""
    secret = folder.parent / "elsewhere" / "key"
    secret.write_text("x")
    with sandbox_at(level, folder, secret=[str(secret)]) as sandbox:
        assert kind_of(sandbox.explain(f"cat: {secret}: No such file or directory", directory=str(folder))) == "hidden"


def test_a_program_among_temporary_files_is_said_to_be_hidden(level: int, folder: Path) -> None:
    program = Path(tempfile.mkdtemp(dir="/tmp")) / "interpreter"
    program.parent.chmod(0o755)
    try:
        program.write_text("#!/bin/sh\nexit 3\n")
        program.chmod(0o755)
        assert say_of(level, folder, f"{program} -c pass") == "hidden"
        assert say_of(level, folder, f"cat {program}") == "hidden"
        assert say_of(level, folder, f"cat {program.parent}/nothing") == ""
        program.chmod(0o000)
        if os.getuid() and level == 3:
            assert say_of(level, folder, f"cat {program}") == "", "that is the file's own mode"
    finally:
        shutil.rmtree(program.parent)


@pytest.mark.parametrize("level", [1, 2])
def test_what_git_may_not_change_is_named(level: int, folder: Path) -> None:
    asyncio.run(asyncio.to_thread(os.system, f"git init -q -b main {folder}"))
    assert say_of(level, folder, "git config user.name x") == "git"
    assert say_of(level, folder, "echo x > .git/hooks/pre-commit") == "git"


# By what real programs said


@pytest.fixture
def limits(tmp_path: Path) -> PathLimits:
    home, root = tmp_path / "home", tmp_path / "w"
    home.mkdir()
    root.mkdir()
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_rsa").write_text("x")
    return PathLimits((str(root),), (f"{root}/.git/config",), (str(home / ".ssh"),), ("/tmp/private",), os.getuid())


REAL = [
    (1, "proxy", "ssh: Could not resolve hostname github.com: Temporary failure in name resolution\nfatal: Could not read from remote"),
    (1, "proxy", "curl: (6) Could not resolve host: example.com"),
    (1, "proxy", "Error: getaddrinfo EAI_AGAIN example.com\n  errno: -3001,\n  code: 'EAI_AGAIN',"),
    (1, "proxy", "OSError: [Errno 101] Network is unreachable"),
    (
        3,
        "network",
        'go: Get "https://proxy.example.org/x": dial tcp: lookup proxy.example.org: dial udp 10.0.0.1:53: socket: permission denied',
    ),
    (
        3,
        "network",
        "ERROR: Could not find a version that satisfies the requirement six (from versions: none)\nERROR: No matching distribution",
    ),
    (3, "network", 'psql: error: connection to server at "127.0.0.1", port 5432 failed: could not create socket: Permission denied'),
    (
        1,
        "sockets",
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "
        '"http://%2Fvar%2Frun%2Fdocker.sock/v1.50/containers/json": dial unix /var/run/docker.sock: socket: permission denied',
    ),
    (1, "sockets", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"),
    (1, "sockets", 'psql: error: connection to server on socket "/run/.s.PGSQL.5432" failed: could not create socket: Permission denied'),
    (1, "sockets", "error connecting to /tmp/tmux-0/default (Permission denied)"),
    (1, "sockets", "[3:3:FATAL:chrome/browser/process_singleton_posix.cc:297] Check failed: . socket() failed: Permission denied (13)"),
    (1, "sockets", "listen EACCES: permission denied /tmp/s.sock"),
    (1, "writing", "[ERROR:chrome/app/chrome_main.cc:210] Failed to create headless user data directory container."),
    (1, "writing", "touch: cannot touch '{home}/x-probe': Read-only file system"),
    (1, "writing", "/usr/bin/bash: line 1: {home}/x: Read-only file system"),
    (1, "writing", "OSError: [Errno 30] Read-only file system: '{home}/x-probe'"),
    (1, "writing", _NODE),
    (1, "writing", "  errno: -30,\n  code: 'EROFS',\n  syscall: 'open',\n  path: '{home}/xp'\n"),
    (1, "writing", 'error: Could not acquire lock\n  cause: Read-only file system (os error 30) at path "{home}/.cache/uv/.tmpG8"'),
    (1, "writing", "npm error enoent ENOENT: no such file or directory, mkdir '{home}/.npm/_cacache'"),
    (1, "writing", "error: could not lock config file {home}/.gitconfig: Read-only file system"),
    (3, "writing", "touch: cannot touch '{home}/x-probe': Permission denied"),
    (3, "writing", "E: Could not open lock file {home}/lock-frontend - open (13: Permission denied)"),
    (1, "hidden", "cat: {home}/.ssh/id_rsa: No such file or directory"),
    (3, "hidden", "cat: {home}/.ssh/id_rsa: Permission denied"),
    (1, "git", "error: could not write config file .git/config: Device or resource busy"),
    (1, "rights", 'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.'),
    (1, "rights", "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted\nstrace: PTRACE_TRACEME: Operation not permitted"),
    (1, "unclear_writing", "mkdir failed: Read-only file system"),
    (1, "sockets", 'LOG:  could not create Unix socket for address "/tmp/.s.PGSQL.5433": Permission denied'),
    (
        1,
        "half_made",
        "npm error enoent Could not read it: Error: ENOENT: no such file or directory, open '/tmp/private/npm/_npx/03f/package.json'",
    ),
    (3, "all_sockets", 'LOG:  could not create IPv4 socket for address "127.0.0.1": Permission denied'),
    (
        3,
        "all_sockets",
        "Error: listen EACCES: permission denied 127.0.0.1:8347\n    at Server.setupListenHandle [as _listen2] (node:net:1886)",
    ),
    (3, "all_sockets", "listen tcp 127.0.0.1:8080: socket: permission denied\nexit status 1"),
    (3, "all_sockets", "curl: (7) Failed to connect to 127.0.0.1 port 8347 after 0 ms: Couldn't connect to server"),
    (3, "all_sockets", "Caused by: java.net.SocketException: Permission denied"),
]
NOT_OURS = [
    (1, "npm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '{work}/_npx/03f/package.json'"),
    (1, "ModuleNotFoundError: No module named 'nowhere'"),
    (1, "touch: cannot touch '{work}/x': Read-only file system"),
    (1, "Cannot connect to the Docker daemon at tcp://10.0.0.1:2375. Is the docker daemon running?"),
    (1, "curl: (6) Could not resolve host: asked.test"),
    (1, "permission denied: {home}/x"),
    (1, "curl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server"),
    (1, "Error: listen EACCES: permission denied 127.0.0.1:8347"),
    (3, "/usr/bin/bash: line 1: ./s.sh: Permission denied"),
    (3, "touch: cannot touch '{work}/x': Permission denied"),
    (3, "PermissionError: [Errno 13] Permission denied: '/proc/1/mem'"),
    (1, "E       AssertionError: assert 'cp: Read-only file system' == ''"),
    (1, '{"log": "Read-only file system", "path": "/etc"}'),
    (1, "cat: {home}/nothing: No such file or directory"),
    (1, "npm error code E404\nnpm error 404 Not Found - GET https://registry.example.org/zz9x"),
    (1, "fatal: 'origin' does not appear to be a git repository\nfatal: Could not read from remote repository."),
]


def explained(level: int, output: str, limits: PathLimits, **known: object) -> str:
    work, home = limits.writable[0], str(Path(limits.hidden[0]).parent)
    about = Circumstances(level, directory=work, has_gate=level < 3, **known)  # type: ignore[arg-type]
    return explain(output.replace("{work}", work).replace("{home}", home), about, lambda: limits)


@pytest.mark.parametrize(("level", "kind", "output"), REAL)
def test_what_real_programs_say_when_they_are_stopped(level: int, kind: str, output: str, limits: PathLimits) -> None:
    assert kind_of(explained(level, output, limits)) == kind


@pytest.mark.parametrize(("level", "output"), NOT_OURS)
def test_what_they_say_when_it_is_not_the_sandbox(level: int, output: str, limits: PathLimits) -> None:
    assert explained(level, output, limits, hosts=HostsUsed(refused=("asked.test",))) == ""


def test_the_way_out_is_named_where_there_is_one(limits: PathLimits) -> None:
    output = "touch: cannot touch '{home}/x': Read-only file system"
    assert explained(1, output, limits, can_leave=True).endswith("call it again with `outside` and say why.")
    assert "`outside`" not in explained(1, output, limits)
    assert explained(1, output, limits, reach="outside") == ""


def test_where_the_user_may_not_write_either_no_way_out_is_offered(limits: PathLimits) -> None:
    stranger = PathLimits(limits.writable, (), (str(Path(limits.hidden[0])),), (), user=12345)
    told = explained(1, "touch: cannot touch '/etc/x': Read-only file system", stranger, can_leave=True)
    assert kind_of(told) == "writing"
    assert "`outside`" not in told
    assert explained(3, "touch: cannot touch '/etc/x': Permission denied", stranger) == "", "that is the system's own rule"


def test_of_a_run_that_only_reads_the_workspace_is_what_was_read_only(limits: PathLimits) -> None:
    told = explained(1, "touch: cannot touch '{work}/x': Read-only file system", limits, reach="read-only")
    assert kind_of(told) == "read_only_run"
    assert "`writes`" in told


def test_with_sockets_allowed_they_are_not_blamed(limits: PathLimits) -> None:
    assert explained(1, "error connecting to /tmp/tmux-0/default (Permission denied)", limits, unix_sockets=True) == ""


@given(st.text(max_size=200), st.sampled_from((1, 2, 3)))
def test_any_output_is_read(output: str, level: int) -> None:
    nothing = PathLimits((), (), (), (), 0)
    told = explain(output, Circumstances(level, directory="/"), lambda: nothing)
    assert told == "" or read_sentence(told) is not None


_PATHS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=80).map("/{}".format)


@given(_PATHS, _PATHS, st.booleans())
def test_a_sentence_can_be_read_back(path: str, temporary: str, can_leave: bool) -> None:
    told = sentence("writing", can_leave=can_leave, path=path, temporary=temporary)
    assert read_sentence(f"Before. {told}") == ("writing", {"path": path, "temporary": temporary})
