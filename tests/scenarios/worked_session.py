"""A saved session that is resumed at given times, and how its calls and results look: for the worked examples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from program import PROTOCOLS, Place, calls, script, service
from scenarios.harness import told_results, told_text
from shifted_clock import clock_at
from terminals import terminal

PLACEHOLDERS = {"zh": "此命令返回内容已过时", "en": "(outdated output, removed to save room)"}
DAY = "2026-01-31"


@dataclass(frozen=True)
class Call:
    """A call, and what its result has to hold whole."""

    name: str
    """Of the file it is about."""
    line: str
    """As the script writes it."""
    note: str = ""
    """What the model is told in front of the result."""
    shown: tuple[str, ...] = ()
    """What the result holds, beside the file."""


@dataclass(frozen=True)
class Step:
    """A prompt to the session as it was left, at its time."""

    time: str
    calls: Sequence[Call] = ()
    gone: frozenset[str] = frozenset()
    """Which results the first request of the step no longer holds."""
    then_gone: frozenset[str] = frozenset()
    """Which ones its second request does not hold, beside those."""
    edits: Mapping[str, str] = field(default_factory=dict)
    """In a conversation: what the person at the terminal replaces in the command they are asked about."""


class Session:
    """A session that is left and resumed, and all that was ever sent of its results."""

    def __init__(self, place: Place, protocol: str, language: str, config: str) -> None:
        self.place = place
        self.protocol, self.language = protocol, language
        self.placeholder = PLACEHOLDERS[language]
        self.names: list[str] = []
        """Of the results, in the order of the conversation."""
        self.fresh: dict[str, str] = {}
        """Each result as it was told first."""
        folder = place.home / "dragoman"
        folder.mkdir()
        (folder / "config.toml").write_text(config + HOOKS)
        place.more_env["EDITOR"] = str(place.home / "editor")

    def hold(self, steps: Sequence[Step]) -> list[list[frozenset[str]]]:
        """Go through the steps; returns what was gone, for each request of each step."""
        for call in (call for step in steps for call in step.calls):
            (self.place.work / f"{call.name}.log").write_text(content(call.name))
        answers = [answer for step in steps for answer in (*(["\n".join(c.line for c in step.calls)] if step.calls else []), "text: Done.")]
        with service(script(*answers)) as self.place.service:
            return [self._take(step) for step in steps]

    def _take(self, step: Step) -> list[frozenset[str]]:
        assert self.place.service is not None
        sent_before, file_before = len(self.place.service.requests), self.file.read_bytes() if self.names else b""
        resumes = ("--resume",) if self.names else ("-m", PROTOCOLS[self.protocol])
        env = clock_at(f"{DAY} {step.time}")
        if step.edits:
            self._converse(step, *resumes, env=env)
        else:
            done = self.place.run(*resumes, "--lang", self.language, "-p", f"It is {step.time}.", env=env)
            assert (done.code, done.out) == (0, "Done.\n"), done
        assert self.file.read_bytes().startswith(file_before), "what was saved is not changed"
        exchanges = self.place.service.server.requests[sent_before:]
        assert [each.violation for each in exchanges if each.violation is not None] == []
        bodies = [each.body for each in exchanges]
        assert len(bodies) == 1 + bool(step.calls)
        gone = [self._gone(bodies[0])]
        if step.calls:
            self._remember(step, told_results(bodies[1]))
            gone.append(self._gone(bodies[1]))
        return gone

    def _converse(self, step: Step, *arguments: str, env: dict[str, str]) -> None:
        """The same in a terminal: the person edits the command that they are asked about."""
        editor = self.place.home / "editor"
        editor.write_text('#!/bin/sh\nsed -i "' + ";".join(f"s/{old}/{new}/" for old, new in step.edits.items()) + '" "$1"\n')
        editor.chmod(0o755)
        asked = {"en": "stop the run): ", "zh": "停止运行）："}[self.language]
        with terminal(self.place, *arguments, "--lang", self.language, env=env, model="", size=(40, 400)) as shown:
            shown.prompt()
            shown.ask(f"It is {step.time}.")
            shown.expect(asked)
            shown.send("e\r")
            shown.expect(asked)
            shown.send("y\r")
            shown.expect("Done.")
            shown.prompt()  # and then it is killed: under faketime 0.9.10, `time.sleep` in the thread that sees to its end fails

    def _remember(self, step: Step, told: list[str]) -> None:
        """What the new results say when they come."""
        new = told[len(self.names) :]
        assert len(new) == len(step.calls)
        for call, text in zip(step.calls, new, strict=True):
            assert call.note in text, text
            for shown in call.shown or (content(call.name).strip(),):
                assert shown in text, text
            self.names.append(call.name)
            self.fresh[call.name] = text

    def _gone(self, body: Any) -> frozenset[str]:
        """The results that are one line in this request. All others are there as they came, to the byte."""
        told = told_results(body)
        assert len(told) == len(self.names)
        gone = frozenset(name for name, text in zip(self.names, told, strict=True) if text == self.placeholder)
        for name, text in zip(self.names, told, strict=True):
            assert name in gone or text == self.fresh[name]
            assert name not in gone or content(name).splitlines()[-1] not in told_text(body), "it is nowhere else"
        return gone

    @property
    def file(self) -> Path:
        [file] = (self.place.home / "dragoman").rglob("sessions/**/*.jsonl")
        return file

    def saved(self) -> dict[str, dict[str, Any]]:
        """The results in the session's file: name → its entry."""
        entries = [json.loads(line) for line in self.file.read_text().splitlines()]
        parts = [part for entry in entries if entry["kind"] == "said" for part in entry["message"]["parts"]]
        finished = {entry["result"]["call_id"]: entry for entry in entries if entry["kind"] == "tool_finished"}
        return dict(zip(self.names, (finished[part["id"]] for part in parts if part["type"] == "call"), strict=True))


def content(name: str) -> str:
    return "".join(f"{name}: unit {number} was built\n" for number in range(60))


def shell(name: str, command: str = "", **more: Any) -> Call:
    return Call(name, calls(("run_shell", {"command": command or f"cat {name}.log"} | more)))


def read(name: str) -> Call:
    return Call(name, calls(("read_file", {"file_path": f"{name}.log"})))


def repaired(name: str) -> Call:
    line = calls(("run_shell", {"cmd": f"cat {name}.log", "timeout": "30"}))
    return Call(name, line, "cmd → command")


def broken(name: str, protocol: str) -> Call:
    """Arguments that are no JSON. A Gemini service knows only objects: there it is a number written as text."""
    if protocol == "gemini":
        return Call(name, calls(("run_shell", {"command": f"cat {name}.log", "timeout_s": "30"})), "timeout_s")
    arguments = json.dumps(json.dumps({"command": f"cat {name}.log"})[:-1] + ",}")
    return Call(name, f"call args={arguments}: run_shell", "comma")


def failed(name: str) -> Call:
    """It writes to standard error and ends with 1; one of its parameters had another name."""
    line = calls(("run_shell", {"cmd": f"cat {name}.log no-such.log"}))
    return Call(name, line, "cmd → command", (content(name).strip(), "no-such.log: No such file"))


def warned(name: str) -> Call:
    """It writes to standard error and ends well: an error by the document's rule. A hook wrote the command."""
    line = calls(("run_shell", {"command": f"cat draft-{name}.log"}))
    return Call(name, line, "no-such", (content(name).strip(), "no-such.log: No such file"))


def hooked(name: str) -> Call:
    return Call(name, calls(("run_shell", {"command": f"cat draft-{name}.log"})), f"cat {name}.log")


def supposed(name: str) -> Call:
    """The model's command would write; the person who is asked has it read instead."""
    return Call(name, calls(("run_shell", {"command": f"cp {name}.log copy.log", "writes": True})), f"cat {name}.log")


def refused(name: str) -> Call:
    """Another tool's result that begins with `Error:`."""
    return Call(name, calls(("read_file", {"file_path": f"no-{name}.log"})), shown=(f"no-{name}.log",))


def hook(name: str, command: str) -> str:
    """Configured: this command takes the place of the draft."""
    said = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": command}}})
    return f"""
[[hooks.PreToolUse]]
matcher = "run_shell"
[[hooks.PreToolUse.hooks]]
type = "command"
if = "Bash(cat draft-{name}.log)"
command = '''echo '{said}' '''
"""


HOOKS = hook("0120", "cat 0120.log") + hook("0140", "cat 0140.log; cat no-such.log || true")
