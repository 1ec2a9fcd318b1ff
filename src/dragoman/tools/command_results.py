"""The result of a command that has ended, for its readers: the model, the user, the record."""

from __future__ import annotations

from dragoman.tools.command_text import CommandStream, cut_streams, describe_end, describe_hidden, write_text
from dragoman.tools.output import Outputs
from dragoman.tools.process import Exit
from dragoman.values.calls import ToolOutput
from dragoman.values.messages import Text
from dragoman.values.parts import NO_OUTPUT
from dragoman.values.record import CommandOutput

_HIDDEN_CHARS = 200
"""Room for a note on hidden characters, which is made when the output is cut."""


def ended_output(
    ended: Exit,
    stdout: CommandStream,
    stderr: CommandStream,
    outputs: Outputs,
    *,
    display: str,
    remark: str,
    is_outside: bool,
    after_s: float,
    advice: str,
) -> ToolOutput:
    """`remark`: what the sandbox has to say. `after_s`, `advice`: when its time was up, and what to do then."""
    stdout.end()
    stderr.end()
    command = CommandOutput(
        stdout.recorded, stderr.recorded, ended.code, ended.signal, ended.timed_out, is_outside, sandbox=remark, hosts=ended.hosts
    )
    notes = describe_end(command, after_s=after_s, advice=advice)
    room = max(0, outputs.max_chars - sum(len(note) + 3 for note in notes) - _HIDDEN_CHARS - 2 * outputs.note_chars)
    out, err = cut_streams(stdout, stderr, room, has_failed=bool(ended.code))
    return ToolOutput(
        (Text(write_text(out.text, err.text, [*notes, *describe_hidden(out.text, err.text)]) or NO_OUTPUT),),
        display=display,
        is_error=ended.timed_out,
        error_type="timed_out" if ended.timed_out else "",
        output_file=out.output_file or err.output_file,
        command=command,
    )


def advise_after(timeout_s: float, most_s: float, *, has_background: bool) -> str:
    """What to do about a command whose time was up."""
    longer = f"call it again with timeout_s up to {most_s:g}" if timeout_s < most_s else ""
    background = "with background, and read it with shell_output" if has_background else ""
    if longer and background:
        return f"If it needs longer, {longer}; if it does not end by itself, {background}."
    if longer:
        return f"If it needs longer, {longer}."
    return f"No call may take longer. Call it again {background}." if background else "No call may take longer: do it in smaller steps."
