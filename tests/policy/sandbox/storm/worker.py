"""Runs sequences inside the cage: `worker.py DECOYS LEVEL STEP_S`. Reads one a line, and prints a line for each step and each result.

Each sequence gets a world of its own and an agent as the program has it: commands in the sandbox of this level, our file tools, a saved
session to undo and rewind in.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

from dragoman.app.worktrees import leave_worktree
from dragoman.base.places import find_places
from dragoman.errors import DragomanError, SandboxError
from dragoman.loop.agent import Agent
from dragoman.loop.coding import coding_agent
from dragoman.options import Limits, LoopLimits, Sandboxing, SessionOptions, ToolOptions, WorkspaceOptions
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.testing import ScriptedProvider
from dragoman.testing.script_steps import CallStep, Say, ScriptedAnswer
from dragoman.tools import shell
from dragoman.values.messages import Request
from policy.sandbox.storm import seen
from policy.sandbox.storm.layout import UNTOUCHED
from policy.sandbox.storm.others import HostServers, Neighbour, approval_for, browse, start_neighbour
from policy.sandbox.storm.sequences import Sequence, Step, parse
from policy.sandbox.storm.world import Placed, clear, make_world, prepare

_COMMAND_S = 10
_ENDING_S = 20
_READY_MOST = 3
_SIGNS = {
    "ran outside": "it ran outside the sandbox",
    "ran again": "this is the second run",
    "read-only": "workspace was read-only",
    "answered": "answered",
}
"""By what happened: what the model is told of it."""
_GRACE_S = 0.03
"""How long a background command is waited for: it is to run beside the next steps."""
_TOOLS = ("run_shell", "shell_output", "write_file", "edit", "read_file", "glob", "grep")
_OWN_VARIABLES = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


class Model:
    """Plays a step's calls, and takes down what came back."""

    def __init__(self) -> None:
        self.provider = ScriptedProvider(self._answer)
        self._waiting: tuple[CallStep, ...] = ()
        self.said: list[str] = []
        """What the model was given by the last step."""
        self.heard: list[str] = []
        """All that the model was ever given."""

    def prepare(self, step: Step, placed: Placed) -> None:
        self.said = []
        filled = [(name, json.loads(placed.fill(json.dumps(arguments)))) for name, arguments in step.calls]
        self._waiting = tuple(CallStep(name, json.dumps(_bounded(name, arguments))) for name, arguments in filled)

    def _answer(self, request: Request) -> ScriptedAnswer:
        if calls := self._waiting:
            self._waiting = ()
            return ScriptedAnswer(calls)
        self.said = [str(request.messages[-1])]
        self.heard += self.said
        return ScriptedAnswer((Say("Done."),))


def _bounded(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"timeout_s": _COMMAND_S, **arguments} if name == "run_shell" else arguments


class Storm:
    """One sequence, from its world to its findings."""

    def __init__(self, sequence: Sequence, placed: Placed, level: int, host: HostServers, neighbour: Neighbour | None) -> None:
        self.sequence = sequence
        self._host = host
        self._neighbour = neighbour
        self.placed = placed
        self.level = level
        self.findings: list[str] = []
        self.was_refused = False
        self._has_own_hooks = not os.path.islink(f"{placed.workspace}/.git/hooks")
        self._model = Model()
        self._agent: Agent | None = None

    async def run(self) -> None:
        outside, shared = seen.look_outside(self.placed, self.level), seen.shared_folders(self.placed)
        own, running = self._look_at_own(), seen.look_at_git(self.placed)
        inside = seen.look_inside(self.placed) if self.sequence.world.way in UNTOUCHED else {}
        try:
            self._agent = self._open("")
        except SandboxError as error:  # where no boundary can be drawn, nothing runs unasked
            self.was_refused = True
            self.heard.append(str(error))
        try:
            for number, step in enumerate(() if self.was_refused else self.sequence.steps):
                tell({"step": number})
                await self._guard(lambda step=step: self._take(step), f"step {number}")
                running = self._judge_git(number, own, running)
        finally:
            tell({"step": "the end"})
            await self._guard(self._close, "the end")
            await self._guard(self._leave, "leaving the worktree")
        tell({"step": "the comparison"})
        if self._neighbour is not None:
            self._neighbour.kill()
        await self._find_processes()
        if self._host.count():
            self.findings.append("network: a server of the host was reached")
        self._judge_inside(inside)
        if not self.sequence.has_background:
            self._judge_own(own, "the end")
        self._judge_outside(outside, shared)
        self._judge_secrets()

    @property
    def heard(self) -> list[str]:
        return self._model.heard

    # --- steps

    def _open(self, resume: str) -> Agent:
        places = find_places()
        return coding_agent(
            self._model.provider,
            tools=ToolOptions(builtin=_TOOLS, sandbox=Sandboxing(level=self.level)),  # type: ignore[arg-type]
            workspace=WorkspaceOptions(self.placed.workspace, temporary=os.path.join(places.temporary, "storm")),
            approval=approval_for(self.sequence.world.way),
            session=SessionOptions(places.sessions, resume=resume),
            limits=Limits(loop=LoopLimits(0, 0, 0, 0, 0, 0)),
        )

    async def _take(self, step: Step) -> None:
        agent = self._agent
        if agent is None:
            return  # it was refused when it was to be opened again
        if step.calls:
            self._model.prepare(step, self.placed)
            await agent.run("go on")
            return
        match step.other:
            case "undo" | "undo force":
                agent.undo(2, force=step.other != "undo")
            case "rewind":
                if seqs := [entry.seq for entry in agent.history.entries]:
                    agent.rewind(seqs[len(seqs) // 2], files=True, force=True)
            case "reopen":
                has_begun = bool(agent.history.entries)
                await self._close()
                self._agent = self._open("latest" if has_begun else "")
            case "kill holder" | "kill launcher":
                _kill(_launchers(self._neighbour), with_children=step.other == "kill holder")
            case other:
                await self._turn_port(agent, *other.split(" "))

    async def _turn_port(self, agent: Agent, what: str, port: str) -> None:
        starter = agent._harness.starter
        if starter is None or not starter.shares_network:
            return
        if what == "open":
            url = await starter.open_port(int(port))
            await asyncio.to_thread(browse, url)
        else:
            await starter.close_port(int(port))

    async def _close(self) -> None:
        agent, self._agent = self._agent, None
        if agent is not None:
            await agent.aclose()

    async def _leave(self) -> None:
        if self.placed.worktree is not None:
            leave_worktree(self.placed.worktree)

    async def _guard(self, act: Callable[[], Awaitable[None]], where: str) -> None:
        """What we refuse is well; what falls out of our code is not."""
        try:
            await act()
        except DragomanError as error:
            self.heard.append(f"refused: {error} ({where})")
        except Exception as error:
            self.findings.append(f"failed: {type(error).__name__}: {str(error)[:200]} ({where})")

    # --- what is found

    def _judge_git(self, number: int, own: dict[str, str], before: dict[str, str]) -> dict[str, str]:
        """After each step: what git would run is as before, or the model was told."""
        if self.sequence.has_background:  # which changes it meanwhile, and is told of when it has ended
            return before
        now = seen.look_at_git(self.placed)
        self._judge_own(own, f"step {number}")
        known = set(before.values())
        for path, content in now.items():
            if before.get(path) != content and content not in known and not self._was_told(path):
                self.findings.append(f"not reported: {path} (step {number})")
        return now

    def _judge_own(self, own: dict[str, str], where: str) -> None:
        now = self._look_at_own() if own else {}  # one that a command made is not the workspace's own
        for path in sorted({*own, *now}):
            is_gone = path not in now
            is_left = self.level == 3 and (is_gone or self._was_told(path))  # which may put back, report, or leave nothing to run
            if own.get(path) != now.get(path) and not is_left:
                self.findings.append(f"own repository: {path} {'is gone' if is_gone else 'changed'} ({where})")

    def _look_at_own(self) -> dict[str, str]:
        return seen.look_at_own(self.placed, with_hooks=self._has_own_hooks)

    def _was_told(self, path: str) -> bool:
        """Whether the file, by this name or by where it leads, or the repository it is in, was named to the model."""
        said = "\n".join(self._model.said)
        git = (path.partition("/hooks/")[0] if "/hooks/" in path else os.path.dirname(path)).removesuffix("/rebase-merge")
        real, root = os.path.realpath(path), self.placed.real
        names = [os.path.relpath(each, base) for each, base in ((git, self.placed.workspace), (real, root), (os.path.realpath(git), root))]
        return any(name in said for name in (*names, *_folders_between(git, self.placed.workspace), *_folders_between(real, root)))

    def _judge_outside(self, before: dict[str, seen.Seen], shared: list[str]) -> None:
        after = seen.look_outside(self.placed, self.level)
        if self.placed.worktree is not None and not os.path.lexists(self.placed.workspace):  # we removed what we had made
            git = f"{self.placed.worktree.main}/.git"
            gone = (os.path.dirname(self.placed.workspace), f"{git}/worktrees")
            before = {path: each for path, each in before.items() if not path.startswith(gone)}
            before = {**before, f"{git}/config": before[f"{git}/config"]._replace(mtime_ns=after[f"{git}/config"].mtime_ns)}  # the branch
        lines = seen.differences(before, after, shared)
        left = {line.partition("/dragoman-private-")[0] for line in lines if "/dragoman-private-" in line and line.endswith(" is new")}
        self.findings += [f"left: our own folder in {folder}" for folder in sorted(left)]
        self.findings += [f"outside: {line}" for line in lines if "/dragoman-private-" not in line]

    def _judge_inside(self, before: dict[str, seen.Seen]) -> None:
        """Where nothing may change at all."""
        if not before or not os.path.lexists(self.placed.workspace):  # it was a worktree of ours, which we have removed
            return
        lines = seen.differences(before, seen.look_inside(self.placed), [])
        # At level 3 `git status` runs unasked because of its words, and notes in its index how files look.
        self.findings += [f"inside: {line}" for line in lines if self.level != 3 or "/index changed: " not in line]

    def _judge_secrets(self) -> None:
        stores = [os.path.realpath(path) for path in (self.placed.home, self.placed.data)]
        if self.level == 3 and any(path.startswith(self.placed.real) for path in stores):
            return  # Landlock makes no exceptions in a folder that may be read
        is_apart = self.level != 3 and not os.path.realpath(self.placed.home).startswith(self.placed.real)
        if self.sequence.world.way in UNTOUCHED and is_apart and any("Dear all" in text for text in self._model.heard):
            self.findings.append("sight: a command that only reads was shown a letter")
        if any(self.placed.secret in text for text in self._model.heard):
            self.findings.append("secret: the model was given it")
        self.findings += [f"secret: {path}" for path in seen.find_secret(self.placed)]

    async def _find_processes(self) -> None:
        """All but this one, process 1, and the launchers, which stay for the next command."""
        deadline_s = time.monotonic() + _ENDING_S
        while left := _processes():
            if time.monotonic() > deadline_s:
                self.findings += [f"process left: {each}" for each in left]
                return
            await asyncio.sleep(0.01)


def _folders_between(path: str, root: str) -> Iterator[str]:
    """The path, and the folders it lies in."""
    while path.startswith(f"{root}/"):
        yield path
        path = os.path.dirname(path)


def _launchers(neighbour: Neighbour | None) -> list[int]:
    known = {int(name): each for name in os.listdir("/proc") if name.isdigit() and (each := _process(int(name)))}
    return [pid for pid, (_, parent) in known.items() if parent == os.getpid() and (neighbour is None or pid != neighbour.pid)]


def _kill(launchers: list[int], *, with_children: bool) -> None:
    """Them, or all that they have made: holders, supervisors and those that are ready to be one."""
    if with_children:
        known = {int(name): each for name in os.listdir("/proc") if name.isdigit() and (each := _process(int(name)))}
        launchers = [pid for pid, (_, parent) in known.items() if parent in launchers]
    for pid in launchers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _processes() -> list[str]:
    """Those that are left: not our launchers, each of which keeps a child ready for the next order of each kind."""
    known = {pid: each for name in os.listdir("/proc") if name.isdigit() and (each := _process(pid := int(name)))}
    parents = {parent for _, parent in known.values()}
    launchers = {pid for pid, (_, parent) in known.items() if parent == os.getpid()}
    ready = {pid for pid, (name, parent) in known.items() if parent in launchers and pid not in parents and name == known[os.getpid()][0]}
    if len(ready) > _READY_MOST * len(launchers):
        return [f"{len(ready)} launchers"]
    ours = {1, os.getpid(), *launchers, *ready}
    return [f"{name} of {parent}" for pid, (name, parent) in known.items() if pid not in ours]


def _process(pid: int) -> tuple[str, int] | None:
    """Its name and its parent; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            name, _, rest = file.read().partition(" (")[2].rpartition(") ")
    except OSError:
        return None
    state, parent = rest.split()[:2]
    return (name, int(parent)) if state != "Z" else None


# --- the line ---------------------------------------------------------------------------------------------------------------


def tell(data: dict[str, Any]) -> None:
    """Say how far we are. Where nothing more comes for long, all threads say on stderr where they are: whoever waits for us shows it."""
    print(json.dumps(data), flush=True)
    faulthandler.dump_traceback_later(float(sys.argv[3]) * 0.8)


def run_one(sequence: Sequence, root: str, level: int, secret: str, host: HostServers) -> dict[str, Any]:
    began_s = time.monotonic()
    clear(root)
    for name in _OWN_VARIABLES:
        os.environ.pop(name, None)
    placed = make_world(sequence.world, root, secret)
    os.environ.update(placed.env)
    tempfile.tempdir = None
    neighbour = start_neighbour(root, level) if "neighbour" in sequence.world.traits else None
    if neighbour is not None:
        placed = placed._replace(opened=neighbour.opened)
    storm = Storm(sequence, placed, level, host, neighbour)
    try:
        asyncio.run(storm.run())
    finally:
        if placed.worktree is not None and placed.worktree.held >= 0:
            os.close(placed.worktree.held)
    took_s = round(time.monotonic() - began_s, 3)
    heard = "\n".join(storm.heard)
    return {
        "findings": storm.findings,
        "seconds": took_s,
        "refused": storm.was_refused,
        "happened": {name: heard.count(sign) for name, sign in _SIGNS.items()},
        "heard": storm.heard if storm.findings else [],
    }


def require_level(root: str, level: int) -> None:
    """Say so, where this level does not hold here at all."""
    os.mkdir(f"{root}/trial")
    sandbox = Sandbox([f"{root}/trial"], level=level)  # type: ignore[arg-type]
    if sandbox.detected.level != level:
        tell({"level": sandbox.detected.words})
        raise SystemExit(1)
    sandbox.close()


def main() -> None:
    root, level = sys.argv[1], int(sys.argv[2])
    os.environ["HOME"] = root
    require_level(root, level)
    shell.GRACE_S = _GRACE_S
    prepare(root)
    host = HostServers()
    tell({})
    for number, line in enumerate(sys.stdin):
        tell(run_one(parse(line), root, level, f"secret-{number:08}-of-the-decoy", host))


if __name__ == "__main__":
    main()
