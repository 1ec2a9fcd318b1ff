"""Capping long tool output: what the model gets of it, and where the whole is saved.

Text within the cap stays as it is. Longer text is truncated to head and tail, with one line between them that says how much is missing
and which file holds the whole. Saving is best effort: on a full disk that line says so, and nothing raises.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from typing import BinaryIO, Protocol

import msgspec

from dragoman.base.beneath import open_directory, remove_flat_folder, unlink_beneath
from dragoman.base.jsontext import valid_unicode
from dragoman.base.private import require_unshared

_STEP_CHARS = 1_000_000
"""A long text is encoded in steps of this size."""
_FILE_TAIL_BYTES = 2_000_000
"""Limit of what is buffered in memory for the tail of a file that reached its own cap."""
_FILE_NOTE_BYTES = 200


class HidesKeys(Protocol):
    """Takes our own keys out of texts."""

    def is_in(self, data: bytes) -> bool:
        """Say whether the bytes of a file hold a key."""
        ...

    def replace(self, text: str) -> str:
        """A whole text without keys."""
        ...

    def split(self, text: str, *, is_end: bool) -> tuple[str, str]:
        """The text without our keys as far as it is certain, and the rest that may still become a key; at the end there is no rest."""
        ...


class CappedText(msgspec.Struct, frozen=True):
    """A text as the model gets it."""

    text: str
    output_file: str = ""
    """The file with the whole text; empty if nothing was left out or it could not be saved."""
    dropped_chars: int = 0


class Outputs:
    """Caps tool output, and saves the whole of it in `directory`.

    The directory is created when first needed. It and its files are private to the user, with unguessable names. Links on the way to it are
    resolved once, here: one that is put there later is not followed.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        max_chars: int = 40_000,
        max_file_bytes: int = 100_000_000,
        *,
        has_tool: Callable[[str], bool] = lambda name: True,
        hidden: Callable[[], HidesKeys | None] = lambda: None,
    ) -> None:
        """`has_tool` says whether the model has a built-in tool: it is told to read the file with one that it has. `hidden` knows our own
        keys: what a file or a command shows of them reaches neither the model nor any file of ours."""
        self.directory = os.path.realpath(directory)
        self.max_chars = max_chars
        self.max_file_bytes = max_file_bytes
        self._has_tool = has_tool
        self.hidden = hidden

    def hide(self, text: str) -> str:
        """The text without our own keys."""
        hidden = self.hidden()
        return text if hidden is None else hidden.replace(text)

    def cap(self, text: str, label: str) -> CappedText:
        """The text, or its head and tail: `max_chars` characters plus a note. Saves up to `max_file_bytes`; never raises."""
        text = valid_unicode(text)
        if len(text) <= self.max_chars:
            return CappedText(text)
        file = self.new_file(label)
        for start in range(0, len(text), _STEP_CHARS):
            file.write(text[start : start + _STEP_CHARS].encode())
        head_chars = self.max_chars // 2
        tail_chars = self.max_chars - head_chars
        return _join_with_note(text[:head_chars], text[len(text) - tail_chars :], len(text), file.finish())

    def fixed(self) -> Outputs:
        """The same as it is now: it holds nothing of whoever made this."""
        has, hidden = {name for name in ("read_file", "run_shell") if self._has_tool(name)}, self.hidden()
        return Outputs(self.directory, self.max_chars, self.max_file_bytes, has_tool=has.__contains__, hidden=lambda: hidden)

    def spool(self, label: str) -> Spool:
        """The same for output that arrives in pieces."""
        return Spool(self, label)

    def new_file(self, label: str) -> SpillFile:
        return SpillFile(self.directory, label, self.max_file_bytes, self._how_to_read())

    def _how_to_read(self) -> str:
        if self._has_tool("read_file"):
            return ": read it with read_file, offset and limit."
        if self._has_tool("run_shell"):
            return ": read parts of it with run_shell."
        return ", which none of your tools can read: ask for less."

    @property
    def note_chars(self) -> int:
        """Upper bound for the length of the truncation note."""
        return len(self.directory) + 320


class Spool:
    """Takes UTF-8 output in pieces of any size and saves it: in memory up to the cap, then in a file.

    Bytes that are not UTF-8 are replaced and NULs become `␀`, so the file is always text. How the output was split into pieces makes no
    difference.
    """

    def __init__(self, outputs: Outputs, label: str) -> None:
        self._outputs = outputs
        self._label = label
        self._hidden = outputs.hidden()
        self._held = ""
        """What may be the beginning of a key."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._chars = 0
        self._whole: list[str] = []
        self._is_over = False
        self._file: SpillFile | None = None

    def feed(self, data: bytes) -> str:
        """Add one piece; returns what could be decoded of it."""
        return self._add(self._without_keys(self._decoder.decode(data), is_end=False))

    def end(self) -> str:
        """After the last piece: returns what was held back of it. The file, if there is one, is complete."""
        rest = self._add(self._without_keys(self._decoder.decode(b"", final=True), is_end=True))
        if self._file is not None:
            self._file.finish()
        self._is_over = True
        return rest

    def save(self) -> tuple[str, str]:
        """Save everything so far: the file (empty if it could not be saved), and a sentence for the model."""
        if self._file is None:
            self._spill()
        assert self._file is not None
        return self._file.save(is_end=self._is_over)

    def discard(self) -> None:
        """Drop this output and delete its file."""
        if self._file is not None:
            self._file.discard()

    def _without_keys(self, text: str, *, is_end: bool) -> str:
        if self._hidden is None:
            return text
        said, self._held = self._hidden.split(self._held + text, is_end=is_end)
        return said

    def _add(self, text: str) -> str:
        text = text.replace("\0", "␀")
        if not text:
            return text
        self._chars += len(text)
        if self._file is not None:
            self._file.write(text.encode())
            return text
        self._whole.append(text)
        if self._chars > self._outputs.max_chars:
            self._spill()
        elif len(self._whole) > 1000:
            self._whole = ["".join(self._whole)]
        return text

    def _spill(self) -> None:
        self._file = self._outputs.new_file(self._label)
        self._file.write("".join(self._whole).encode())
        self._whole.clear()


# --- head, note, tail ---------------------------------------------------------------------------------------------------


def _join_with_note(head: str, tail: str, chars: int, saved: tuple[str, str]) -> CappedText:
    dropped = chars - len(head) - len(tail)
    path, note = saved
    return CappedText(f"{head}\n[{dropped:,} characters left out here. {note}]\n{tail}", path, dropped)


class _Tail:
    """The last bytes, at most `room`, of the added text."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._pieces: list[bytes] = []
        self._size = 0
        self.dropped = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        # Joining copies, so it is done only now and then.
        if self._size > 2 * self._room + 65_536 or len(self._pieces) > 20_000:
            self._pieces = [self.last()]

    def last(self) -> bytes:
        """Drops everything before it."""
        joined = b"".join(self._pieces)
        excess = max(0, len(joined) - self._room)
        self.dropped += excess
        self._size = len(joined) - excess
        self._pieces = [joined[excess:]]
        return self._pieces[0]


# --- the file that holds the whole --------------------------------------------------------------------------------------


class SpillFile:
    """Saves text in a new file of at most `max_bytes`; of longer text the head and the tail. An I/O error ends saving and is reported."""

    def __init__(self, directory: str, label: str, max_bytes: int, how_to_read: str) -> None:
        self._how_to_read = how_to_read
        tail_bytes = min(max_bytes // 2, _FILE_TAIL_BYTES)
        self._head_bytes = max(0, max_bytes - tail_bytes - _FILE_NOTE_BYTES)
        self._tail = _Tail(tail_bytes)
        self._head_is_full = False
        self._bytes = 0
        self._problem = ""
        self._path = ""
        self._file: BinaryIO | None = None
        try:
            with open_directory(directory, create=True, mode=0o700) as opened:
                require_unshared(directory, opened.status())
                name = f"{_safe_label(label)}-{os.urandom(8).hex()}.txt"
                self._file = os.fdopen(opened.create(name, 0o600), "wb")
                self._path = os.path.join(directory, name)
        except OSError as error:
            self._give_up(error)

    def write(self, data: bytes) -> None:
        """Takes whole characters, as UTF-8."""
        start = self._bytes
        self._bytes += len(data)
        if self._file is None:
            return
        if self._head_is_full:
            self._tail.add(data)
            return
        fitting = _char_start(data, self._head_bytes - start)
        if fitting < len(data):
            self._head_is_full = True
            self._tail.add(data[fitting:])
        try:
            self._file.write(data[:fitting])
        except OSError as error:
            self._give_up(error)

    def finish(self) -> tuple[str, str]:
        """The path (empty if not saved), and a sentence for the model."""
        return self.save(is_end=True)

    def save(self, *, is_end: bool = False) -> tuple[str, str]:
        """The same for what has come so far. The tail of a long output is written at the end."""
        if self._file is not None:
            try:
                if is_end:
                    self._write_tail(self._file)
                self._file.flush()
                if is_end:
                    self._file.close()
                    self._file = None
            except OSError as error:
                self._give_up(error)
        if self._problem:
            return "", f"The whole output could not be kept: {self._problem}."
        what = "Its beginning and end are" if self._tail.dropped else "The whole output is"
        return self._path, f"{what} in {self._path}{self._how_to_read}"

    def discard(self) -> None:
        if self._file is not None:
            self._give_up(OSError(0, "discarded"))
        elif self._path and not self._problem:
            _remove(self._path)

    def _write_tail(self, file: BinaryIO) -> None:
        tail = self._tail.last()
        if self._tail.dropped:
            tail = tail[_next_char(tail) :]
            missing = self._bytes - file.tell() - len(tail)
            file.write(f"\n[{missing:,} bytes left out here: this file had reached its limit]\n".encode())
        file.write(tail)

    def _give_up(self, error: OSError) -> None:
        self._problem = (error.strerror or str(error))[:100]
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError:
            pass
        _remove(self._path)


def remove_outputs(directory: str, pid: int) -> None:
    """Remove a folder of saved outputs, if this is the process that made it: a forked child leaves it to its parent. Never raises."""
    if os.getpid() != pid:
        return
    try:
        remove_flat_folder(directory)
    except OSError:
        pass  # a link is in its place, or something that is not ours to remove


def _remove(path: str) -> None:
    try:
        unlink_beneath(path)
    except OSError:
        pass


def _safe_label(label: str) -> str:
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "_" for char in label[:40]) or "output"


def _char_start(data: bytes, position: int) -> int:
    """The last character boundary at or before `position`."""
    if position >= len(data):
        return len(data)
    position = max(0, position)
    while position > 0 and data[position] & 0xC0 == 0x80:
        position -= 1
    return position


def _next_char(data: bytes) -> int:
    """Offset of the first whole character."""
    position = 0
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position
