"""What the result of a command says, for a person: what it put out, its exit code, and what stopped it, in their language.

It is read from the record, which keeps it beside the text for the model. Records of an earlier version have it as JSON in that text.
"""

from __future__ import annotations

import re

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.values.notes import without_notes
from dragoman.values.record import CommandOutput, HostsUsed
from dragoman.words import say

_HOSTS_CHARS = 200
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-Z\\-~])")


class CommandResult(msgspec.Struct, frozen=True):
    """What came of a command that has ended."""

    output: str = ""
    exit_code: int | None = None
    notes: tuple[str, ...] = ()
    """What else the user should know, each a line: its time was up, the sandbox stopped it, hosts it was refused."""

    @property
    def has_failed(self) -> bool:
        return bool(self.exit_code)


def read_command_result(command: CommandOutput | None, text: str) -> CommandResult:
    """`command` as the record has it, `text` as the model was given it; all empty where neither tells of a command that has ended."""
    command = command if command is not None else command_in(text)
    if command is None or (command.background and command.exit_code is None):
        return CommandResult()
    return CommandResult(command.stdout + command.stderr, command.exit_code, tuple(_notes(command)))


def command_in(text: str) -> CommandOutput | None:
    """What a result of an earlier version says of a command; None if it is something else."""
    own = without_notes(text)
    told = jsontext.decode_object(own) if own.startswith("{") else None
    if told is None or ("stdout" not in told and "exitCode" not in told):  # a background command may have ended at once
        return None
    code, remark, network = told.get("exitCode"), told.get("sandbox"), told.get("network")
    return CommandOutput(
        str(told.get("stdout") or told.get("output") or ""),
        str(told.get("stderr") or ""),
        code if isinstance(code, int) else None,
        timed_out=bool(told.get("timedOut")),
        outside=bool(told.get("outside")),
        sandbox=remark if isinstance(remark, str) else "",
        hosts=HostsUsed(refused=_hosts(network.get("refused") if isinstance(network, dict) else ()), late=_hosts(told.get("allowedLate"))),
    )


def _notes(command: CommandOutput) -> list[str]:
    notes = [say("results.timed_out")] if command.timed_out else []
    if command.sandbox and (said := _sandbox_words(command.sandbox)):
        notes.append(said)
    if command.hosts.refused:
        notes.append(say("results.hosts_refused", hosts=_names(command.hosts.refused)))
    if command.hosts.late:
        notes.append(say("results.hosts_late", hosts=_names(command.hosts.late)))
    return notes


def _sandbox_words(remark: str) -> str:
    from dragoman.policy.sandbox.refusal_words import read_sentence  # only where a sandbox stopped something

    found = read_sentence(remark)
    if found is None:
        return ""
    kind, fields = found
    return say(f"results.sandbox_{kind}", **fields)


def _hosts(told: object) -> tuple[str, ...]:
    return tuple(map(str, told)) if isinstance(told, list) else ()


def _names(hosts: tuple[str, ...]) -> str:
    return clip(", ".join(hosts), _HOSTS_CHARS)


def clean_output(text: str) -> str:
    """What a command put out, as its reader sees it: without escape sequences, and of a line that was written over its last state."""
    text = _SEQUENCE.sub("", text) if "\x1b" in text else text
    text = text.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(next((part for part in reversed(row.split("\r")) if part), "") for row in text.split("\n"))
