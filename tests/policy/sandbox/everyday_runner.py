"""Runs everyday tools as the program would, as whoever runs it: `everyday_runner.py LEVEL FOLDER OWNER NAME...`. Prints JSON."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

from dragoman.loop.agent import Agent
from dragoman.loop.options import ApprovalOptions, Sandboxing, ToolOptions, WorkspaceOptions
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.testing import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall
from policy.sandbox.everyday_tools import ORDER, ROWS, Row, Step
from told_commands import told_in

TIMEOUT_S = 120
GIT = "git init -q -b main && echo one > a && git add a && git -c user.name=n -c user.email=e commit -qm first"


class Ran(msgspec.Struct):
    """A command, what was asked, and what the model was told."""

    command: str
    needed: str
    asked: list[str]
    told: dict[str, Any]


async def run_steps(level: int, folder: Path, steps: list[Step], outside: str = "") -> list[Ran]:
    """In one session, in the mode default. The person says yes to writing and to a command outside, and no to every host."""
    asked: list[str] = []

    def answer(call: ToolCall, intent: Intent) -> Allow | Deny:
        asked.append("outside" if intent.outside else "yes" if call.name == "run_shell" else "host")
        return Deny("the user said no") if asked[-1] == "host" else Allow()

    calls = [to_call(step, outside) for step in steps if not step.from_outside]
    provider = ScriptedProvider("\n---\n".join(f"call: run_shell {json.dumps(each)}\n---\ntext: Good." for each in calls) or "text: Good.")
    ran: list[Ran] = []
    async with Agent(
        provider,
        tools=ToolOptions(builtin=["run_shell", "shell_output"], sandbox=Sandboxing(level=level)),  # type: ignore[arg-type]
        workspace=WorkspaceOptions(root=folder, describe=False),
        approval=ApprovalOptions(ask=answer),
    ) as agent:
        for step in steps:
            asked.clear()
            if step.from_outside:
                ran.append(await ask_from_outside(agent, step))
            else:
                await agent.run("go on")
                seen = told_in(agent.history.entries)[-1]
                ran.append(Ran(step.command, judge(step, seen, asked), list(asked), seen))
            if ORDER.index(ran[-1].needed) >= ORDER.index("host"):
                break
    return ran


class YourServer(threading.Thread):
    """A server of the user's own, outside the sandbox."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]

    def run(self) -> None:
        while True:
            with self._server.accept()[0] as client:
                client.recv(4096)
                client.sendall(b"HTTP/1.0 200 OK\r\n\r\nyours\n")


def to_call(step: Step, outside: str) -> dict[str, object]:
    more = {"background": True} if step.background else {}
    wanted = {"outside": outside} if outside else {"writes": True} if step.writes else {}
    return {"command": step.command, "timeout_s": TIMEOUT_S, **more, **wanted}


async def ask_from_outside(agent: Agent, step: Step) -> Ran:
    """As a browser would, after `/sandbox port`."""
    commands = agent._harness.commands
    assert commands is not None
    try:
        url = await commands.open_port(int(step.command))
        said = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=60).read().decode())
    except OSError as error:
        return Ran(step.command, "no", [], {"sandbox": str(error)})
    return Ran(step.command, "yes" if step.says in said else "silent", ["port"], {"stdout": said})


def judge(step: Step, told: dict[str, Any], asked: list[str]) -> str:
    """What the command needed, or that it failed and nobody said why."""
    has_worked = told.get("exitCode", 1) == 0 or (step.background and told.get("status") == "running")
    said = str(told.get("stdout", "")) + str(told.get("stderr", "")) + str(told.get("output", ""))
    sentence = str(told.get("sandbox", ""))
    if has_worked and step.says in said:
        return "undone" if sentence.startswith("Undone") else "yes" if "yes" in asked else "inside"
    if "host" in asked and (told.get("network") or {}).get("refused"):
        return "host"
    if "sandbox" not in sentence.lower():
        return "silent"
    return "outside" if "`outside`" in sentence else "no"


def lay(folder: Path, row: Row) -> None:
    for name, content in row.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    if row.group == "git":
        subprocess.run(GIT, shell=True, check=True, cwd=folder)


async def run_row(level: int, folder: Path, row: Row, yours: YourServer) -> list[Ran]:
    await asyncio.to_thread(lay, folder, row)
    steps = [step._replace(command=step.command.replace("{your_port}", str(yours.port))) for step in row.steps]
    ran = await run_steps(level, folder, steps)
    if ran[-1].needed == "outside" and row.works_outside:  # the advice must be true
        ran += await run_steps(level, folder, [steps[len(ran) - 1]], outside="the sandbox stopped it")
        if ran[-1].told.get("exitCode") == 0:
            ran[-1].needed = "outside"
    return ran


async def main() -> None:
    level, folder, owner, names = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    (folder / "empty").mkdir()
    sandbox = Sandbox([str(folder / "empty")], level=level)  # type: ignore[arg-type]
    detected = sandbox.detected
    sandbox.close()
    if detected.level != level:
        print(json.dumps({"": detected.words}))
        return
    found: dict[str, list[Ran]] = {}
    yours = YourServer()
    yours.start()
    for number, row in enumerate(row for row in ROWS if row.name in names):
        workspace = folder / f"work-{number}"
        workspace.mkdir()
        if row.root_refuses and os.getuid() == 0:
            os.chown(workspace, owner, owner)
        found[row.name] = await run_row(level, workspace, row, yours)
    print(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    asyncio.run(main())
