"""A command's output and end, as the model reads them: what was printed, then a short line in brackets for each thing to know.

The record keeps the streams as they came (`values/commands.py: CommandOutput`). The model is given them without colours and redraws, whole
if they are not long. Of more, it is given the beginning and the end, and the name of the file that has everything.
"""

from __future__ import annotations

import codecs

from dragoman.base.text import clip
from dragoman.base.visible import hidden_note
from dragoman.tools.output import CappedText, Outputs
from dragoman.tools.printed_text import PrintedText
from dragoman.tools.text_ends import Ends, TextEnds
from dragoman.values.record import CommandOutput

WHOLE_CHARS = 16_000
"""Up to here, both streams together are shown whole."""
CUT_CHARS = 8_000
"""What is shown of more, if the command succeeded: enough to see what it is. Who wants it all reads the file."""
FAILED_CUT_CHARS = 16_000
"""What is shown of more, if it failed: what went wrong is likely to stand there."""
HEAD_SHARE = 4
"""A quarter of that is the beginning: of long output the end tells most."""
RECORDED_CHARS = 40_000
"""What the record keeps of a stream."""
_STDERR = "[stderr]"
_HOSTS_CHARS = 500


class CommandStream:
    """One stream of a command, in pieces of any size; how it was split makes no difference.

    Bytes that are not UTF-8 are replaced, NULs become `␀`, and our own keys are taken out.
    """

    def __init__(self, outputs: Outputs, label: str) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._hidden = outputs.hidden()
        self._held = ""
        """What may be the beginning of a key."""
        self._raw = _Recorded(RECORDED_CHARS)
        self._printed = PrintedText()
        self._saved = outputs.spool(label)
        self._shown = new_ends(outputs)
        self._is_over = False

    def feed(self, data: bytes) -> str:
        """Add one piece; returns what could be decoded of it, as it is."""
        return self._add(self._decoder.decode(data))

    def end(self) -> str:
        """After the last piece: returns what was held back of it."""
        if self._is_over:
            return ""
        self._is_over = True
        rest = self._add(self._decoder.decode(b"", final=True), is_end=True)
        self._show(self._printed.feed("", is_end=True) + self._printed.take())
        self._shown.add(self._saved.end())
        return rest

    @property
    def chars(self) -> int:
        """How long it is as the model would read it, after `end`."""
        return self._shown.chars

    @property
    def recorded(self) -> str:
        """What came, as it came."""
        return self._raw.text

    def cut(self, room: int) -> CappedText:
        """What the model is shown: all of it, or at most `room` characters of both ends and a note. After `end`."""
        whole = self._shown.whole
        if whole is not None and len(whole) <= room:
            return CappedText(whole)
        ends = self._shown.cut(room // HEAD_SHARE, room - room // HEAD_SHARE)
        return join_ends(ends, self._shown.chars, self._saved.save())

    def discard(self) -> None:
        """Drop this output and delete its file."""
        self._saved.discard()

    def _add(self, text: str, *, is_end: bool = False) -> str:
        if self._hidden is not None:
            text, self._held = self._hidden.split(self._held + text, is_end=is_end)
        text = text.replace("\0", "␀")
        self._raw.add(text)
        self._show(self._printed.feed(text))
        return text

    def _show(self, text: str) -> None:
        self._shown.add(self._saved.feed(text.encode()))


class _Recorded:
    """A text, or its beginning and end."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = ""
        self._tail = ""
        self._chars = 0

    def add(self, text: str) -> None:
        self._chars += len(text)
        room = self._half - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail = (self._tail + text[-self._half :])[-self._half :]

    @property
    def text(self) -> str:
        missing = self._chars - len(self._head) - len(self._tail)
        return f"{self._head}\n[{missing:,} characters left out here]\n{self._tail}" if missing else self._head + self._tail


def new_ends(outputs: Outputs) -> TextEnds:
    """What is kept in memory of a stream, for the model."""
    return TextEnds(min(WHOLE_CHARS, outputs.max_chars), FAILED_CUT_CHARS // HEAD_SHARE, FAILED_CUT_CHARS)


def join_ends(ends: Ends, chars: int, saved: tuple[str, str]) -> CappedText:
    """Both ends, with a note on what is missing between them and where all of it is."""
    path, where = saved
    if not ends.dropped_chars:  # only lines were folded
        return CappedText(f"{ends.head.removesuffix(chr(10))}\n[{where}]\n", path, max(chars - len(ends.head), 0))
    what = f"{ends.dropped_lines:,} lines" if ends.dropped_lines > 1 else f"{ends.dropped_chars:,} characters"
    gap = "" if not ends.head or ends.head.endswith("\n") else "\n"
    return CappedText(f"{ends.head}{gap}[{what} left out here. {where}]\n{ends.tail}", path, ends.dropped_chars)


def cut_streams(stdout: CommandStream, stderr: CommandStream, room: int, *, has_failed: bool) -> tuple[CappedText, CappedText]:
    """Both within `room`, each with a note besides if it is cut. What one does not need goes to the other."""
    if stdout.chars + stderr.chars > (room := min(room, WHOLE_CHARS)):
        room = min(room, FAILED_CUT_CHARS if has_failed else CUT_CHARS)
    half = room // 2
    return stdout.cut(max(half, room - stderr.chars)), stderr.cut(max(half, room - stdout.chars))


def write_text(stdout: str, stderr: str, notes: list[str]) -> str:
    """What was printed, and the notes."""
    parts = [stdout.rstrip("\n")]
    if stderr.strip("\n"):
        parts += [_STDERR, stderr.rstrip("\n")] if parts[0] else [stderr.rstrip("\n")]
    return "\n".join(filter(None, (*parts, *(f"[{note}]" for note in notes))))


def describe_end(command: CommandOutput, *, after_s: float = 0, advice: str = "") -> list[str]:
    """What there is to know besides the output, a line each. `after_s` and `advice`: when its time was up, and what to do then."""
    notes: list[str] = []
    if command.timed_out:
        notes.append(f"ended after {after_s:g} s, when its time was up. {advice}".rstrip())
    elif command.signal:
        notes.append(f"ended by {command.signal}, exit code {command.exit_code}")
    elif command.exit_code:
        notes.append(f"exit code {command.exit_code}")
    if command.outside:
        notes.append("it ran outside the sandbox")
    if command.sandbox:
        notes.append(command.sandbox)
    return [*notes, *_describe_hosts(command)]


def describe_hidden(stdout: str, stderr: str) -> list[str]:
    """Notes on characters that a person does not see."""
    both = bool(stdout and stderr)
    named = (("stdout" if both else "the output", stdout), ("stderr" if both else "the output", stderr))
    return [f"{name} {note}" for name, text in named if (note := hidden_note(text))]


def _describe_hosts(command: CommandOutput) -> list[str]:
    """Hosts that it did not reach, unless the sandbox's sentence names them."""
    said = (("not allowed to reach {}", command.hosts.refused), ("the user allowed {} when it had given up waiting", command.hosts.late))
    missing = [(words, [host for host in hosts if host not in command.sandbox]) for words, hosts in said]
    return [words.format(clip(", ".join(hosts), _HOSTS_CHARS)) for words, hosts in missing if hosts]
