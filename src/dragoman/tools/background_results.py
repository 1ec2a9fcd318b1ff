"""What the model and the user read about background commands."""

from __future__ import annotations

from dragoman.base import jsontext
from dragoman.base.visible import escape_hidden, hidden_note
from dragoman.tools.background import BackgroundCommand, BackgroundCommands
from dragoman.tools.listening import tell_ports
from dragoman.tools.output import Outputs
from dragoman.tools.process import tell_user
from dragoman.tools.shell_screen import last_lines
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import ToolOutput
from dragoman.values.commands import Launch
from dragoman.values.messages import Text

_FRAME_CHARS = 500
"""Size of the JSON around the output."""
_TITLE_CHARS = 80
SHARED_NETWORK = "Later commands reach its ports at 127.0.0.1. Nothing outside the sandbox does, unless the user opens a port."
OWN_NETWORK = "Nothing outside reaches its ports, other commands neither: to try a server out, start it and ask it in one command."
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
    if stop:
        await commands.do(command.stop())
    elif wait_s:
        await commands.do(command.wait_for_news(wait_s))
    return _describe(command, outputs, await tell_ports(launch, [command.id]) if command.is_running else "")


def title_of(command: str) -> str:
    """A command in a line."""
    first, *others = command.strip().splitlines() or [""]
    shown = escape_hidden(first, one_line=True)
    return f"{shown[: _TITLE_CHARS - 1]}…" if len(shown) > _TITLE_CHARS or others else shown


def _describe(command: BackgroundCommand, outputs: Outputs, remark: str = "", note: str = "") -> ToolOutput:
    now = command.describe()  # before its output is taken: then none comes after its end
    output = command.take(max(0, outputs.max_chars - _FRAME_CHARS - outputs.note_chars), jsontext.quoted_chars)
    told: dict[str, object] = {"id": now.id, "status": now.state, "output": output.text}
    ended = command.exit
    if now.state != "running":
        if not command.is_told and ended is not None:
            tell_user(ended.notice)
        command.is_told = True
        if now.exit_code is not None:
            told["exitCode"] = now.exit_code
        if ended is not None and ended.signal:
            told["signal"] = ended.signal
        remark = " ".join(filter(None, (ended.remark, command.explain(output.text[-10_000:])))) if ended is not None else ""
    if now.is_outside:
        told["outside"] = True
    if remark:
        told["sandbox"] = remark
    if note:
        told["note"] = note
    if hidden := hidden_note(output.text):
        told["hiddenCharacters"] = f"output {hidden}"
    if command.draws_full_screen:
        told["screen"] = FULL_SCREEN
    text = output.text
    lines = last_lines(text[-10_000:], text.count("\n") + (not text.endswith("\n"))) if text else []
    state = f"{now.id}: {now.state}{f', exit code {now.exit_code}' if now.exit_code else ''}"
    extras = jsontext.dumps({"background": {"id": now.id, "state": now.state, "command": title_of(now.command)}})
    return ToolOutput((Text(jsontext.dumps(told)),), display="\n".join([state, *lines]), extras=extras, output_file=output.output_file)
