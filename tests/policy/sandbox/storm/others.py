"""Who else is there while a sequence runs: the person who is asked, servers of the host that no command may reach, and a session of another
process, which is killed in the end."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
from typing import NamedTuple

from dragoman.options import ApprovalOptions
from dragoman.policy.rules import allow
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall
from policy.sandbox.storm.layout import HOST_PORT, NEIGHBOUR_PORT, UNTOUCHED
from policy.sandbox.storm.session_commands import HARMLESS

_SERVE = f"""
import socket
server = socket.create_server(("127.0.0.1", {NEIGHBOUR_PORT}))
print(flush=True)
while True:
    server.accept()
    open("reached", "a").write("x")
"""
_START_S = 30.0
_RULES = (allow("outside docker ps"), allow("outside gh *"))


# --- the person


def approval_for(way: str) -> ApprovalOptions:
    """Somebody who lets commands run, and no tool write what has to be asked about; and who lets beginnings out of the sandbox."""
    mode, _, says = way.partition(", ")

    def answer(call: ToolCall, intent: Intent) -> Allow | Deny:
        if way in UNTOUCHED:
            return Deny("no")
        if intent.outside:
            if intent.prefix:
                return Allow(remember="session", prefix=intent.prefix)
            return Allow() if intent.command in HARMLESS else Deny("no")
        if intent.command and not intent.sandboxed:
            return Deny("no")  # there is no boundary here
        if intent.command:
            return Allow(commands_write=says == "for the session")
        return Allow() if mode == "default" and not intent.guarded else Deny("no")

    rules = _RULES if way not in UNTOUCHED else ()
    return ApprovalOptions(mode, ask=answer, rules=rules)  # type: ignore[arg-type]


# --- the host


class HostServers:
    """On the loopback interface of the host. They count who comes."""

    def __init__(self) -> None:
        self._listening = [socket.create_server(("127.0.0.1", HOST_PORT))]
        if socket.has_ipv6:
            try:
                self._listening.append(socket.create_server(("::1", HOST_PORT), family=socket.AF_INET6))
            except OSError:  # the kernel has none
                pass
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", HOST_PORT))

    def count(self) -> int:
        """Of those that came since the last time."""
        came = 0
        while ready := select.select([*self._listening, self._datagrams], (), (), 0)[0]:
            for each in ready:
                came += 1
                each.recv(100) if each is self._datagrams else each.accept()[0].close()
        return came


def browse(url: str) -> None:
    """As the user's browser does. Nobody may be there."""
    host, port = url.removeprefix("http://").split(":")
    try:
        with socket.create_connection((host, int(port)), 2) as client:
            client.settimeout(0.2)
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            client.recv(100)
    except OSError:
        pass


# --- another session


class Neighbour(NamedTuple):
    """A process with a session of its own: a server in its network, with a port that is open to the user."""

    pid: int
    opened: str
    """The address of that port."""

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def start_neighbour(root: str, level: int) -> Neighbour:
    """Before an event loop runs: it is a fork."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            asyncio.run(_be_neighbour(f"{root}/neighbour", level, writing))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        line = pipe.readline() if select.select([pipe], (), (), _START_S)[0] else b""
    if not line:
        Neighbour(pid, "").kill()
        raise RuntimeError("the other session did not begin")
    return Neighbour(pid, line.decode().strip())


async def _be_neighbour(workspace: str, level: int, writing: int) -> None:
    os.makedirs(workspace)
    sandbox = Sandbox([workspace], level=level)  # type: ignore[arg-type]
    nothing = os.open(os.devnull, os.O_RDWR)
    said, saying = os.pipe()
    argv = ["/usr/bin/python3", "-ISc", _SERVE] if level != 3 else ["/bin/sh", "-c", "echo; exec sleep 300"]
    await sandbox.start(argv, directory=workspace, env={"PATH": "/usr/bin:/bin"}, streams=(nothing, saying, nothing))
    os.close(saying)
    await asyncio.to_thread(os.read, said, 1)
    opened = (await sandbox.open_port(NEIGHBOUR_PORT)).removeprefix("http://").split(":")[0] if sandbox.shares_network else "127.0.0.1"
    os.write(writing, f"{opened}\n".encode())
    await asyncio.Event().wait()
