"""What the model and the user read about background commands."""

from __future__ import annotations

from dragoman.base import jsontext
from dragoman.base.visible import escape_hidden, hidden_note
from dragoman.tools.background import BackgroundCommand, BackgroundCommands
from dragoman.tools.output import Outputs
from dragoman.tools.process import tell_user
from dragoman.tools.shell_screen import last_lines
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import ToolOutput
from dragoman.values.messages import Text

_FRAME_CHARS = 500
"""Size of the JSON around the output."""
_TITLE_CHARS = 80
OWN_NETWORK = "Nothing outside reaches its ports, other commands neither: to try a server out, start it and ask it in one command."
FULL_SCREEN = "The program draws a full screen, which is not shown."


def describe_start(command: BackgroundCommand, outputs: Outputs, *, is_sandboxed: bool, note: str = "") -> ToolOutput:
    return _describe(command, outputs, OWN_NETWORK if is_sandboxed and command.is_running else "", note)


async def read_command(commands: BackgroundCommands, outputs: Outputs, id: str, *, wait_s: float, stop: bool) -> ToolOutput:
    command = commands.get(id.strip())
    if command is None:
        known = ", ".join(f"{each.id} ({each.state})" for each in commands.describe()) or "there are none"
        return ToolRefusal(f"there is no background command {id[:40]!r}: {known}", "not_found").output()
    if stop:
        await commands.do(command.stop())
    elif wait_s:
        await commands.do(command.wait_for_news(wait_s))
    return _describe(command, outputs)


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
        remark = ended.remark if ended is not None else ""
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
