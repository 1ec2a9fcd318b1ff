"""What the model and the user read about background commands."""

from __future__ import annotations

from dragoman.base import jsontext
from dragoman.base.visible import escape_hidden
from dragoman.tools.background import BackgroundCommand, BackgroundCommands
from dragoman.tools.command_text import CUT_CHARS, FAILED_CUT_CHARS, WHOLE_CHARS, describe_hidden, write_text
from dragoman.tools.listening import tell_ports
from dragoman.tools.output import Outputs
from dragoman.tools.process import tell_user
from dragoman.tools.shell_screen import last_lines
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import ToolOutput
from dragoman.values.commands import Launch
from dragoman.values.messages import Text
from dragoman.values.record import CommandOutput

_NOTES_CHARS = 500
"""Room for what is said besides the output."""
_TITLE_CHARS = 80
SHARED_NETWORK = "Later commands reach its ports at 127.0.0.1. Nothing outside the sandbox does, unless the user opens a port."
OWN_NETWORK = "Nothing outside reaches its ports, other commands neither: to try a server out, start it and ask it in one command."
FIRST_WAIT_S, MAX_OWN_WAIT_S = 1.0, 30.0
"""How long the third look in a row waits that finds nothing new, and how long any waits of those that follow."""
POLLED = "{looks} looks before this one found nothing new, so this one waited up to {seconds:g} s: set wait_s to wait for output or its end"
FULL_SCREEN = "The program draws a full screen, which is not shown."


async def describe_start(command: BackgroundCommand, outputs: Outputs, *, launch: Launch | None, note: str = "") -> ToolOutput:
    """`launch`: what has started it."""
    if launch is None or not launch.is_sandbox or launch.is_external or not command.is_running:
        return _describe(command, outputs, "", note)
    network = SHARED_NETWORK if launch.shares_network else OWN_NETWORK
    return _describe(command, outputs, await tell_ports(launch, [command.id]) or network, note)


async def read_command(
    commands: BackgroundCommands, outputs: Outputs, id: str, launch: Launch | None = None, *, wait_s: float, stop: bool
) -> ToolOutput:
    command = commands.get(id.strip())
    if command is None:
        known = ", ".join(f"{each.id} ({each.state})" for each in commands.describe()) or "there are none"
        return ToolRefusal(f"there is no background command {id[:40]!r}: {known}", "not_found").output()
    looks, own_wait_s = command.empty_looks, 0.0
    if stop:
        await commands.do(command.stop())
    else:
        own_wait_s = 0.0 if wait_s else _wait_after(looks)
        if wait_s or own_wait_s:
            await commands.do(command.wait_for_news(wait_s or own_wait_s))
    ports = await tell_ports(launch, [command.id]) if command.is_running else ""
    output = _describe(command, outputs, ports, POLLED.format(looks=looks, seconds=own_wait_s) if own_wait_s else "")
    command.empty_looks = looks + 1 if _is_without_news(output.command) else 0
    return output


def _is_without_news(told: CommandOutput | None) -> bool:
    return told is not None and told.status == "running" and not told.stdout


def _wait_after(looks: int) -> float:
    """How long a look waits by itself after so many in a row that found nothing new: each is a request to the model."""
    return min(FIRST_WAIT_S * 2 ** min(looks - 2, 10), MAX_OWN_WAIT_S) if looks >= 2 else 0.0


def title_of(command: str) -> str:
    """A command in a line."""
    first, *others = command.strip().splitlines() or [""]
    shown = escape_hidden(first, one_line=True)
    return f"{shown[: _TITLE_CHARS - 1]}…" if len(shown) > _TITLE_CHARS or others else shown


def _describe(command: BackgroundCommand, outputs: Outputs, remark: str = "", note: str = "") -> ToolOutput:
    now = command.describe()  # before its output is taken: then none comes after its end
    ended = command.exit if now.state != "running" else None
    has_failed = bool(ended is not None and ended.code)
    room = max(0, min(WHOLE_CHARS, outputs.max_chars - _NOTES_CHARS - outputs.note_chars))
    output = command.take(room, min(room, FAILED_CUT_CHARS if has_failed else CUT_CHARS))
    if now.state != "running":
        if not command.is_told and ended is not None:
            tell_user(ended.notice)
        command.is_told = True
        remark = " ".join(filter(None, (ended.remark, command.explain(output.text[-10_000:])))) if ended is not None else ""
    told = CommandOutput(
        output.text,
        "",
        now.exit_code if now.state != "running" else None,
        signal=ended.signal if ended is not None else "",
        timed_out=now.state == "timed out",
        outside=now.is_outside,
        sandbox=remark,
        background=now.id,
        status=now.state,
    )
    notes = [f"{now.id}: {_state_words(told)}", *_notes_of(told, note)]
    if command.draws_full_screen:
        notes.append(FULL_SCREEN)
    text = output.text
    lines = last_lines(text[-10_000:], text.count("\n") + (not text.endswith("\n"))) if text else []
    state = f"{now.id}: {now.state}{f', exit code {now.exit_code}' if now.exit_code else ''}"
    extras = jsontext.dumps({"background": {"id": now.id, "state": now.state, "command": title_of(now.command)}})
    return ToolOutput(
        (Text(write_text(text, "", [*notes, *describe_hidden(text, "")])),),
        display="\n".join([state, *lines]),
        extras=extras,
        output_file=output.output_file,
        command=told,
    )


def _state_words(told: CommandOutput) -> str:
    if told.status == "running":
        return "running in the background" if told.stdout else "running in the background, no new output"
    if told.signal and told.status == "ended":
        return f"ended by {told.signal}, exit code {told.exit_code}"
    return told.status if told.exit_code is None else f"{told.status}, exit code {told.exit_code}"


def _notes_of(told: CommandOutput, note: str) -> list[str]:
    outside = "it runs outside the sandbox" if told.status == "running" else "it ran outside the sandbox"
    return list(filter(None, (outside if told.outside else "", told.sandbox, note)))
