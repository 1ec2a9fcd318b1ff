"""Commands that ran with the workspace read-only: whether one was refused to write, and whether it runs again and may.

Nothing that such a command tried to write has been written, so that it can run again. Not by itself, though, where it has reached a host,
or may have reached a server of another command: what it did there would be done twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dragoman.base import jsontext
from dragoman.base.visible import escape_hidden
from dragoman.tools.process import Exit
from dragoman.tools.refusals import find_refused_write, find_servers
from dragoman.values.calls import Allow, Intent, WriteApproval
from dragoman.values.commands import REFUSED_TO_WRITE, WAS_READ_ONLY, Launch, Reach
from dragoman.values.messages import ToolCall
from dragoman.words import say

_HEAD_CHARS, _TAIL_CHARS = 20_000, 20_000
# Told to the model.
RAN_AGAIN = "It ran again with writing allowed; this is the second run."
_CALL_AGAIN = "call it again with writes"
_EDITED = "It was not run again: the user wants another command in its place. Call it with writes: {command}"
_SHOWN = 5


def background_note(approval: WriteApproval | None) -> str:
    """What is said of a background command that starts with the workspace read-only."""
    cannot_write = approval.cannot_write if approval is not None else ""
    way = f" ({cannot_write})." if cannot_write else ". If it must write there, stop it and start it with writes."
    return f"The workspace is read-only for it{way}"


class HeadAndTail:
    """The beginning and the end of what a command says."""

    def __init__(self) -> None:
        self._head = self._tail = ""

    def add(self, text: str) -> None:
        room = _HEAD_CHARS - len(self._head)
        self._head += text[:room] if room > 0 else ""
        if len(text) > room:
            self._tail = (self._tail + text[max(room, 0) :])[-_TAIL_CHARS:]

    @property
    def text(self) -> str:
        return f"{self._head}\n{self._tail}" if len(self._tail) == _TAIL_CHARS else self._head + self._tail


class Afterwards(NamedTuple):
    """What comes of a read-only run: another run, or words for the model."""

    runs_again: bool = False
    remark: str = ""


async def after_read_only(call: ToolCall, intent: Intent, ended: Exit, said: str, launch: Launch, approval: WriteApproval) -> Afterwards:
    """Ask the person, if it failed because it was refused to write, and may run again."""
    cannot_write = approval.cannot_write
    line = find_refused_write(launch, said)
    advice = f"({cannot_write})" if cannot_write else f"If it was to write, {_CALL_AGAIN}."
    if not line:
        is_silent = ended.code and not said.strip() and not cannot_write
        return Afterwards(remark=f"{WAS_READ_ONLY}. {advice}" if is_silent else "")
    if not ended.code or ended.timed_out:
        return Afterwards(remark=f"{REFUSED_TO_WRITE}: {line}. {advice}")
    if why := await _find_lasting(ended, launch):
        return Afterwards(remark=f"{REFUSED_TO_WRITE}. It is not run again by itself, because {why}. {advice}")
    why = say("tools.refused_to_write", line=escape_hidden(line, one_line=True))
    view = msgspec.structs.replace(intent, writing="refused", why=why)
    answer = await approval.ask_to_write(call, view)
    if isinstance(answer, Allow) and not answer.arguments:
        return Afterwards(runs_again=True)
    if isinstance(answer, Allow):
        edited = (jsontext.decode_object(answer.arguments) or {}).get("command", "")
        return Afterwards(remark=f"{REFUSED_TO_WRITE}. {_EDITED.format(command=jsontext.dumps(edited))}")
    return Afterwards(remark=f"{REFUSED_TO_WRITE}. It was not run again with writing allowed: {answer.reason.rstrip('.')}.")


async def _find_lasting(ended: Exit, launch: Launch) -> str:
    """Why a second run might do something twice, though nothing was written; empty: it would not."""
    if ended.hosts.reached:
        return f"it had reached {', '.join(ended.hosts.reached)}"
    if not ended.is_gone:
        return "something of it may still run"
    if ports := await find_servers(launch):
        return f"it may have changed something through a server that runs in the background (port {', '.join(map(str, ports[:_SHOWN]))})"
    return ""


def tell_runs(runs: Sequence[tuple[Reach, Exit]]) -> str:
    """For the record: how far each run of a call reached, and how it ended. Empty: one in the workspace, as always."""
    if all(reach == "workspace" for reach, _ in runs):
        return ""
    return jsontext.dumps({"runs": [{"reach": reach, "exitCode": ended.code} for reach, ended in runs]})
