"""Makes a world to escape into, as whoever runs it, and lets every attack loose at one level: `escape_runner.py LEVEL FOLDER PYTHON`.
Prints JSON."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.policy.sandbox.gate import Gate, Reachable
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.values.commands import Launched

HERE = Path(__file__).resolve().parent
SECRET = os.environ["CORP_LOGIN"]
"""Given with our environment, so that it stands in /proc."""


class Outside:
    """Files, servers and a process that a command must not reach."""

    def __init__(self, folder: Path) -> None:
        self.mark = "mark-" + uuid.uuid4().hex
        self.home, self.outside, self.workspace = folder / "home", folder / "outside", folder / "workspace"
        for path in (".ssh", ".config/dragoman", ".local/share/dragoman/sessions"):
            (self.home / path).mkdir(parents=True)
        (self.home / ".ssh/id_rsa").write_text(SECRET)
        (self.home / ".bashrc").write_text("")
        (self.home / ".config/dragoman/config.toml").write_text("")
        (self.home / ".local/share/dragoman/sessions/one.jsonl").write_text("")
        (self.home / ".local/share/dragoman/keys.json").write_text(SECRET)
        self.outside.mkdir()
        (self.outside / "victim.txt").write_text("untouched")
        (self.outside / "victim.txt").chmod(0o600)
        (self.outside / "full.txt").write_text("untouched")
        (self.outside / "documents" / "modules").mkdir(parents=True)
        for name in ("letter.txt", "config", "pre-commit", "modules/kept.txt"):
            (self.outside / "documents" / name).write_text("mine")
        (self.workspace / ".dragoman").mkdir(parents=True)
        (self.workspace / "tmp").mkdir()
        (self.workspace / "linked").mkdir()
        (self.outside / "known-inside.txt").write_text("untouched")
        os.link(self.outside / "known-inside.txt", self.workspace / "linked/before.txt")
        (self.workspace / ".dragoman/config.toml").write_text("")
        subprocess.run(["git", "init", "-q", self.workspace], check=True, env={"PATH": os.environ["PATH"], "HOME": str(self.home)})
        subprocess.run(["git", "init", "-q", self.workspace / "sub"], check=True, env={"PATH": os.environ["PATH"], "HOME": str(self.home)})
        with (self.workspace / ".git/config").open("a") as config:
            config.write("[core]\n\thooksPath = githooks\n")
        (self.workspace / "githooks").mkdir()
        (self.workspace / "githooks/post-merge").write_text("true")
        shutil.copy(HERE / "attacks.py", self.workspace)
        self.documents = self._documents()
        self.in_tmp = Path("/tmp") / f"other-{self.mark}"
        self.in_tmp.write_text(SECRET)
        self.folder_in_tmp = Path("/tmp") / f"folder-{self.mark}"
        self.folder_in_tmp.mkdir()
        (self.folder_in_tmp / "kept.txt").write_text(SECRET)
        self._make_environment(self.workspace / ".venv")
        self.in_shm = Path("/dev/shm") / self.mark
        self.victim = subprocess.Popen(["/bin/sleep", "1000"], env={"SECRET": SECRET})
        self.heard: list[str] = []
        self._sockets: list[socket.socket] = []

    def _make_environment(self, folder: Path) -> None:
        """As a hostile project would bring it: what passes for the libraries of its Python is a link."""
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/python3").symlink_to("/usr/bin/python3")
        (folder / "lib").symlink_to(self.folder_in_tmp)
        (folder / "pyvenv.cfg").write_text(f"home = {folder}/bin\n")

    def serve(self) -> dict[str, Any]:
        tcp = socket.create_server(("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        stream, inside, abstract = (
            socket.socket(socket.AF_UNIX, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_STREAM)
        )
        stream.bind(str(self.outside / "s"))
        inside.bind(str(self.workspace / "s"))
        abstract.bind("\0" + self.mark)
        stream.listen()
        abstract.listen()
        for each in (tcp, stream, abstract):
            threading.Thread(target=self._accept, args=(each,), daemon=True).start()
        threading.Thread(target=self._answer, args=(udp,), daemon=True).start()
        self._sockets = [tcp, udp, stream, inside, abstract]
        return {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}

    def _accept(self, server: socket.socket) -> None:
        while True:
            with server.accept()[0] as client:
                client.send(b"service")

    def _answer(self, server: socket.socket) -> None:
        while True:
            server.sendto(b"service", server.recvfrom(100)[1])

    def describe(self) -> dict[str, Any]:
        names = os.listdir("/sys/block") if os.path.isdir("/sys/block") else []
        return {
            "secret": SECRET, "mark": self.mark, "agent": os.getpid(), "victim": self.victim.pid,
            "home": str(self.home), "outside": str(self.outside), "workspace": str(self.workspace),
            "in_tmp": str(self.in_tmp), "folder_in_tmp": str(self.folder_in_tmp), "in_shm": str(self.in_shm),
            "disks": ["/dev/mem", "/dev/kmsg", *(f"/dev/{name}" for name in names)],
            "unix_outside": str(self.outside / "s"), "unix_inside": str(self.workspace / "s"), **self.serve(),
        }  # fmt: skip

    def changes(self) -> dict[str, bool]:
        """What an attack has really left behind, where that can be seen."""
        git, victim = self.workspace / ".git", self.outside / "victim.txt"
        return {
            "write outside the workspace": (self.outside / "new.txt").exists(),
            "write from a program in memory (memfd)": (self.outside / "from-memory.txt").exists(),
            "write outside while a link is swapped (race)": (self.outside / "raced.txt").exists(),
            "write outside through a link": "HOSTILE" in victim.read_text(),
            "write outside through a hard link": "HOSTILE" in victim.read_text(),
            "write outside through a hard link that was there before": "HOSTILE" in (self.outside / "known-inside.txt").read_text(),
            "have our guard empty a folder outside, by a repository swapped for a link": self._documents() != self.documents,
            "have our guard write outside, by a folder of hooks swapped for a link": self._documents() != self.documents,
            "replace the sandbox's own temporary folder": (self.outside / "by-the-next-command.txt").exists(),
            "have a new `AGENTS.md` believed": (self.workspace / "AGENTS.md").exists(),
            "empty a file outside": not (self.outside / "full.txt").read_text(),
            "change the mode of a file outside": stat.S_IMODE(victim.stat().st_mode) != 0o600,
            "leave a file in `/dev/shm`": self.in_shm.exists(),
            "leave a file in the system's `/tmp`": (Path("/tmp") / self.mark).exists(),
            "add a hook to `.git/hooks`": (git / "hooks/pre-commit").exists(),
            "change `.git/config`": "HOSTILE" in (git / "config").read_text(),
            "move `.git` away and make another": False,
            "lead git elsewhere with `.git/commondir`": (git / "commondir").exists(),
            "change the project's `.dragoman/config.toml`": bool((self.workspace / ".dragoman/config.toml").read_text()),
            "change Dragoman's own configuration": bool((self.home / ".config/dragoman/config.toml").read_text()),
            "change a saved session": bool((self.home / ".local/share/dragoman/sessions/one.jsonl").read_text()),
            "change `~/.bashrc`": bool((self.home / ".bashrc").read_text()),
            "outlive the call (setsid, double fork, `env -i`, SIGTERM ignored)": self._has_survivors(),
        }

    def _documents(self) -> dict[str, str]:
        paths = (self.outside / "documents").rglob("*")
        return {str(path): path.read_text() if path.is_file() else "" for path in paths}

    def _has_survivors(self) -> bool:
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and self.mark.encode() in Path(f"/proc/{name}/cmdline").read_bytes() and int(name) != os.getpid():
                    return True
            except OSError:
                continue
        return False

    def close(self) -> None:
        self.victim.send_signal(signal.SIGKILL)
        self.victim.wait()
        for path in (self.in_tmp, self.in_shm, Path("/tmp") / self.mark):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.folder_in_tmp)


SERVE = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(flush=True)
while True:
    server.accept()[0].send(b"service")
"""


class Neighbours:
    """A server of another session, with a port that is open to the user; and, in the session under attack, a command in the background
    whose gate leads everywhere."""

    def __init__(self, level: int, outside: Outside, python: str) -> None:
        self._outside, self._python = outside, python
        (outside.home.parent / "other").mkdir()
        self._other = Sandbox([str(outside.home.parent / "other")], level=level or "off")  # type: ignore[arg-type]
        self._started: list[Launched] = []
        self._gates: list[Gate] = []

    async def start(self, sandbox: Sandbox) -> dict[str, Any]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        beside = f"beside-{uuid.uuid4().hex}"
        with suppress(OSError):
            await self._run(self._other, SERVE, str(port))
        await self._run(sandbox, "import time; print(flush=True); time.sleep(1000)", beside)
        try:
            opened = (await self._other.open_port(port)).split("/")[2].split(":")[0]
        except OSError:  # there is no such network
            opened = "127.0.0.1"
        return {"elsewhere": port, "opened": opened, "beside": beside}

    async def _run(self, sandbox: Sandbox, program: str, *words: str) -> None:
        """Until it has said something, or ended."""
        reading, writing = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        argv = [self._python, "-I", "-c", program, *words]
        directory = str(self._outside.home.parent)
        started = await sandbox.start(argv, directory=directory, env={"PATH": "/usr/bin:/bin"}, streams=(nothing, writing, nothing))
        os.close(writing)
        self._started.append(started)
        if (end := started.take_gate()) is not None:
            self._gates.append(Gate(_admit_all, secret=end.secret, connect=_dial_nobody))
            await self._gates[-1].open(end.descriptor)
        await asyncio.to_thread(read_line, reading)

    async def end(self) -> None:
        for each in self._started:
            await each.end(0)
        for gate in self._gates:
            gate.close()
        self._other.close()


async def _admit_all(url: str) -> Reachable:
    return Reachable("example.org", 80, ["192.0.2.1"], "example.org")


async def _dial_nobody(address: str, port: int, limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    return await asyncio.open_connection(*server.sockets[0].getsockname(), limit=limit)


async def attack(level: int, outside: Outside, python: str) -> dict[str, str]:
    os.environ["HOME"] = str(outside.home)
    tempfile.tempdir = str(outside.workspace / "tmp")  # as where TMPDIR lies in the workspace
    share = outside.home / ".local/share/dragoman"
    sandbox = Sandbox(
        [str(outside.workspace)],
        level=level or "off",  # type: ignore[arg-type]
        own=(str(outside.home / ".config/dragoman"), str(share / "sessions")),
        secret=(str(share / "keys.json"),),
        gate_port=1,
    )
    await sandbox.prepare()
    if sandbox.detected.level != level:
        return {"": sandbox.detected.words}
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    neighbours = Neighbours(level, outside, python)
    world = {**outside.describe(), **await neighbours.start(sandbox)}
    argv = [python, "-I", str(outside.workspace / "attacks.py"), json.dumps(world)]
    env = {**os.environ, "PATH": "/usr/bin:/bin"}
    given = (nothing, writing, nothing)
    started = await sandbox.start(argv, directory=str(outside.workspace), env=env, streams=given, with_gate=False)
    os.close(writing)
    output = await asyncio.to_thread(read_line, reading)
    seen = json.loads(output)
    try:
        await asyncio.wait_for(started.end(0.2), 60)
    except TimeoutError:
        seen["stop the agent by a FIFO in the place of a file of git's"] = True
    said, next_command = started.remark, "echo x | tee /tmp/by-the-next-command.txt $TMPDIR/by-the-next-command.txt"
    again = await sandbox.start(["/bin/sh", "-c", next_command], directory="/", env=env, streams=(nothing, nothing, nothing))
    await again.wait()
    await again.end(0.2)
    await neighbours.end()
    sandbox.close()
    found = {name: "open" if got else "held" for name, got in seen.items()}
    for name, changed in outside.changes().items():
        is_told = any(each in name and each in said for each in (".dragoman", "AGENTS.md"))
        is_put_back = seen[name] and ".git" in name
        found[name] = "told" if changed and is_told else "open" if changed else "put back" if is_put_back else "held"
    return found


def read_line(descriptor: int) -> str:
    """The first line: what the command started keeps the pipe open."""
    with os.fdopen(descriptor) as pipe:
        return pipe.readline()


def main() -> None:
    assert sys.argv[1] != "0" or os.getuid() != 0, "without a sandbox these attacks, as root, would really damage the machine"
    outside = Outside(Path(sys.argv[2]))
    try:
        print(json.dumps(asyncio.run(attack(int(sys.argv[1]), outside, sys.argv[3]))))
    finally:
        outside.close()


if __name__ == "__main__":
    main()
