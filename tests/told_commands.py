"""What the record says of commands, as plain fields, for assertions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.values.calls import ToolOutput
from dragoman.values.messages import Text
from dragoman.values.record import CommandOutput, Entry, ToolFinished


def fields_of(command: CommandOutput | None, text: str) -> dict[str, Any]:
    """Those that are set; of a call that ran no command the text, as `error`."""
    if command is None:
        return {"error": text}
    told: dict[str, Any] = {"stdout": command.stdout, "stderr": command.stderr, "exitCode": command.exit_code}
    if command.background:
        told = {"id": command.background, "status": command.status, "output": command.stdout}
        told |= {"exitCode": command.exit_code} if command.exit_code is not None else {}
    more = {"signal": command.signal, "timedOut": command.timed_out, "outside": command.outside, "sandbox": command.sandbox}
    told |= {name: value for name, value in more.items() if value}
    hosts = command.hosts
    if hosts.reached or hosts.refused:
        told["network"] = {"reached": list(hosts.reached), "refused": list(hosts.refused)}
    return told | ({"allowedLate": list(hosts.late)} if hosts.late else {})


def told_of(output: ToolOutput) -> dict[str, Any]:
    return fields_of(output.command, "".join(part.text for part in output.content if isinstance(part, Text)))


def told_in(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Of each call that has ended, in the order of their ends."""
    return [fields_of(entry.command, entry.result.text) for entry in entries if isinstance(entry, ToolFinished)]
