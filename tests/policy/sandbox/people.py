"""The real program as root and as an ordinary user, in a folder and a home of that user's own, against a loopback service."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from policy.sandbox.test_escapes import IS_ROOT, world
from program import NO_SERVERS, Done, calls, script, service
from reachable import AS_NOBODY, NOBODY, find_reachable
from system_parts import IS_BUILD_MACHINE, require_program

USERS = ("root", "another user") if IS_ROOT else ("the user",)
MODEL = "anthropic/claude-opus-5"


class Person:
    """Who runs the program: with a home, and a workspace beside it."""

    def __init__(self, user: str, folder: Path) -> None:
        self._prefix = AS_NOBODY if user == "another user" else ()
        self._reachable = find_reachable(self._prefix)
        self.home = folder / "home"
        self.work = folder / "work"
        for each in (self.home, self.work):
            each.mkdir(mode=0o755)
            self.own(each)

    def own(self, path: Path) -> Path:
        """Give something to the user."""
        if self._prefix:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return path

    def write(self, path: Path, text: str, mode: int = 0o644) -> Path:
        """A file of the user's, with the folders it lies in."""
        missing = [each for each in path.parents if not each.exists()]
        for each in reversed(missing):
            each.mkdir()
            self.own(each)
        path.write_text(text)
        path.chmod(mode)
        return self.own(path)

    def run(self, *arguments: str, at: Path | None = None, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
        """`python -m dragoman` in the workspace, or elsewhere."""
        told = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(self._reachable.modules),
            "LANG": "C.UTF-8",
            "DRAGOMAN_UI": "plain",
            **NO_SERVERS,
            **(env or {}),
        }
        argv = [*self._prefix, self._reachable.python, "-B", "-m", "dragoman", *arguments]
        done = subprocess.run(argv, cwd=at or self.work, env=told, input=stdin.encode(), capture_output=True, timeout=120, check=False)
        return Done(done.returncode, done.stdout, done.stderr)

    def let_call(
        self, *made: tuple[str, Mapping[str, Any]], options: Sequence[str] = (), at: Path | None = None, prompt: str = "hi"
    ) -> Told:
        """A run in which the model makes these calls, one after the other."""
        with service(script(*(calls(each) for each in made), "text: done")) as double:
            done = self.run("-m", MODEL, *options, "-p", prompt, at=at, env=double.env)
            return Told(done, double.requests)


class Told:
    """How a run ended, and what the service was sent."""

    def __init__(self, done: Done, requests: Sequence[Any]) -> None:
        self.done = done
        self.requests = requests

    @property
    def sent(self) -> str:
        """Everything that the service was sent."""
        return json.dumps(list(self.requests))

    @property
    def results(self) -> list[str]:
        """What the model was told of each call."""
        found: list[str] = []
        for message in self.requests[-1]["messages"] if self.requests else ():
            for part in message["content"] if isinstance(message["content"], list) else ():
                if part["type"] == "tool_result":
                    content = part["content"]
                    found.append(content if isinstance(content, str) else "".join(each.get("text", "") for each in content))
        return found


@contextmanager
def person(user: str) -> Iterator[Person]:
    for folder in world(user):
        yield Person(user, folder)


def require_level(who: Person, level: int) -> None:
    """Skip the test where this level does not hold on this machine; on a build machine it fails."""
    if level == 2:
        require_program("bwrap")
    told = who.let_call(("run_shell", {"command": "echo tried"}), options=("--sandbox", str(level), "--approval", "auto"))
    if told.done.code == 44:
        pytest.fail(told.done.err) if IS_BUILD_MACHINE else pytest.skip(told.done.err)
