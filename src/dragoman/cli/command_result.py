"""What the result of a command says, for a person: what it put out, its exit code, and what stopped it, in their language.

The model is given all of it as JSON, and so it stands on the record.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.base.words import say

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


def read_command_result(text: str) -> CommandResult:
    """Read what the model was given; all empty if it is something else."""
    told = jsontext.decode_object(text) if text.startswith("{") else None
    has_ended = told is not None and ("stdout" in told or "exitCode" in told)  # a background command may have ended at once
    if told is None or not has_ended:
        return CommandResult()
    output = "".join(str(told.get(name) or "") for name in ("stdout", "stderr", "output"))
    code = told.get("exitCode")
    return CommandResult(output, code if isinstance(code, int) else None, tuple(_notes(told)))


def _notes(told: dict[str, Any]) -> list[str]:
    notes = [say("results.timed_out")] if told.get("timedOut") else []
    remark = told.get("sandbox")
    if isinstance(remark, str) and (said := _sandbox_words(remark)):
        notes.append(said)
    network = told.get("network")
    if isinstance(network, dict) and (hosts := _names(network.get("refused"))):
        notes.append(say("results.hosts_refused", hosts=hosts))
    if hosts := _names(told.get("allowedLate")):
        notes.append(say("results.hosts_late", hosts=hosts))
    return notes


def _sandbox_words(remark: str) -> str:
    from dragoman.policy.sandbox.refusal_words import read_sentence  # only where a sandbox stopped something

    found = read_sentence(remark)
    if found is None:
        return ""
    kind, fields = found
    return say(f"results.sandbox_{kind}", **fields)


def _names(hosts: object) -> str:
    return clip(", ".join(map(str, hosts)), _HOSTS_CHARS) if isinstance(hosts, list) else ""


def clean_output(text: str) -> str:
    """What a command put out, as its reader sees it: without escape sequences, and of a line that was written over its last state."""
    text = _SEQUENCE.sub("", text) if "\x1b" in text else text
    text = text.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(next((part for part in reversed(row.split("\r")) if part), "") for row in text.split("\n"))
