"""Output that may be long: what the model is given of it, and where the whole is kept.

Text within the cap stays as it is. Of longer text the model gets head and tail, and between them one line that says how much is
missing and which file holds the whole. Keeping is a service, not a promise: on a full disk that line says so, and nothing raises.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from dragoman.base.jsontext import valid_unicode
from dragoman.base.private import create_file, make_directory, require_unshared

Measure = Callable[[str], int]
"""What a text costs, in the unit of the cap: `len`, or its length once it is written as JSON."""

_STEP_CHARS = 1_000_000
"""How much of a long text is encoded at a time."""
_FILE_TAIL_BYTES = 2_000_000
"""The most that is held back in memory for the end of a file that reached its own cap."""
_FILE_NOTE_BYTES = 200


class Capped(msgspec.Struct, frozen=True):
    """What the model is given of a text."""

    text: str
    output_file: str = ""
    """Where the whole lies; empty where nothing was left out, or where it could not be kept."""
    dropped_chars: int = 0


class Outputs:
    """Caps what tools put out, and keeps the whole of it in `directory`.

    The directory is made when first needed, for its owner alone, and so are its files; their names cannot be guessed.
    """

    def __init__(self, directory: str | os.PathLike[str], max_chars: int = 40_000, max_file_bytes: int = 100_000_000) -> None:
        self.directory = os.path.abspath(directory)
        self.max_chars = max_chars
        self.max_file_bytes = max_file_bytes

    def cap(self, text: str, label: str) -> Capped:
        """The text, or its head and tail: `max_chars` characters and a note. Writes up to `max_file_bytes`; never raises."""
        text = valid_unicode(text)
        if len(text) <= self.max_chars:
            return Capped(text)
        file = _SpillFile(self.directory, label, self.max_file_bytes)
        for start in range(0, len(text), _STEP_CHARS):
            file.write(text[start : start + _STEP_CHARS].encode())
        head_chars = self.max_chars // 2
        tail_chars = self.max_chars - head_chars
        return _joined(text[:head_chars], text[len(text) - tail_chars :], len(text), file)

    def spool(self, label: str) -> Spool:
        """The same for output that arrives in pieces."""
        return Spool(self, label)

    @property
    def note_chars(self) -> int:
        """No note about missing text is longer than this."""
        return len(self.directory) + 320


class Spool:
    """Takes UTF-8 output in pieces of any size, and holds no more of it in memory than its cap.

    Bytes that are no UTF-8 are replaced, NULs become `␀`: whatever comes, the result is text, and so is the file. How the output
    was cut into pieces makes no difference to the result.
    """

    def __init__(self, outputs: Outputs, label: str) -> None:
        self._outputs = outputs
        self._label = label
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._chars = 0
        self._whole: list[str] = []
        self._head = ""
        self._head_chars = outputs.max_chars // 2
        self._tail_chars = outputs.max_chars - self._head_chars
        self._tail = _End(4 * self._tail_chars)
        self._file: _SpillFile | None = None

    def feed(self, data: bytes) -> str:
        """Take one piece; returns what could be decoded so far."""
        return self._add(self._decoder.decode(data))

    def need(self, measure: Measure = len) -> int:
        """What the whole costs, once the last piece was fed. Beyond the cap it is only known to be more than the cap."""
        self._add(self._decoder.decode(b"", final=True))
        if self._file is not None:
            return max(self._chars, self._outputs.max_chars + 1)
        return sum(map(measure, self._whole))

    def finish(self, room: int | None = None, measure: Measure = len) -> Capped:
        """All of it where it costs no more than `room` (the cap, if not told), else head and tail that fit, and a note besides."""
        self._add(self._decoder.decode(b"", final=True))
        room = self._outputs.max_chars if room is None else min(room, self._outputs.max_chars)
        if self._file is not None:
            return _parted(self._head, self._tail.last_chars(self._tail_chars), self._chars, self._file, room, measure)
        whole = "".join(self._whole)
        if measure(whole) <= room:
            return Capped(whole)
        self._spill()
        assert self._file is not None
        return _parted(whole, whole, self._chars, self._file, room, measure)

    def discard(self) -> None:
        """Nobody will be told of this output: leave no file behind."""
        if self._file is not None:
            self._file.discard()

    def _add(self, text: str) -> str:
        text = text.replace("\0", "␀")
        if not text:
            return text
        self._chars += len(text)
        if self._file is not None:
            data = text.encode()
            self._file.write(data)
            self._tail.add(data)
            return text
        self._whole.append(text)
        if self._chars > self._outputs.max_chars:
            self._spill()
        elif len(self._whole) > 1000:
            self._whole = ["".join(self._whole)]
        return text

    def _spill(self) -> None:
        whole = "".join(self._whole)
        self._whole.clear()
        self._file = _SpillFile(self._outputs.directory, self._label, self._outputs.max_file_bytes)
        self._file.write(whole.encode())
        self._head = whole[: self._head_chars]
        self._tail.add(whole[self._head_chars :].encode())


# --- head, note, tail ---------------------------------------------------------------------------------------------------


def _parted(head: str, tail: str, chars: int, file: _SpillFile, room: int, measure: Measure) -> Capped:
    """As much of both ends as fits, and the note between them."""
    return _joined(_longest_head(head, room // 2, measure), _longest_tail(tail, room - room // 2, measure), chars, file)


def _joined(head: str, tail: str, chars: int, file: _SpillFile) -> Capped:
    dropped = chars - len(head) - len(tail)
    path, note = file.finish()
    return Capped(f"{head}\n[{dropped:,} characters left out here. {note}]\n{tail}", path, dropped)


def _longest_head(text: str, room: int, measure: Measure) -> str:
    if measure(text) <= room:
        return text
    return text[: _longest(len(text), lambda size: measure(text[:size]) <= room)]


def _longest_tail(text: str, room: int, measure: Measure) -> str:
    if measure(text) <= room:
        return text
    return text[len(text) - _longest(len(text), lambda size: measure(text[len(text) - size :]) <= room) :]


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest size that fits, by halving: what is longer never costs less."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if fits(middle):
            least = middle
        else:
            most = middle - 1
    return least


class _End:
    """The last bytes, `room` at most, of the text that was added."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._pieces: list[bytes] = []
        self._size = 0
        self.dropped = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        # Joining costs a copy, so some more is let in before it is done again.
        if self._size > 2 * self._room + 65_536 or len(self._pieces) > 20_000:
            self._pieces = [self.last()]

    def last(self) -> bytes:
        """Forgets what came before it."""
        joined = b"".join(self._pieces)
        excess = max(0, len(joined) - self._room)
        self.dropped += excess
        self._size = len(joined) - excess
        self._pieces = [joined[excess:]]
        return self._pieces[0]

    def last_chars(self, count: int) -> str:
        """The last characters; fewer, where a quarter of `room` is less."""
        last = self.last()
        return last[_next_char(last) :].decode()[-count:] if count else ""


# --- the file that holds the whole --------------------------------------------------------------------------------------


class _SpillFile:
    """Text in a new file of at most `max_bytes`: beyond that its beginning and its end. Faults end the keeping, and are told."""

    def __init__(self, directory: str, label: str, max_bytes: int) -> None:
        tail_bytes = min(max_bytes // 2, _FILE_TAIL_BYTES)
        self._head_bytes = max(0, max_bytes - tail_bytes - _FILE_NOTE_BYTES)
        self._tail = _End(tail_bytes)
        self._head_is_full = False
        self._bytes = 0
        self._problem = ""
        self._path = ""
        self._file: BinaryIO | None = None
        try:
            make_directory(directory)
            require_unshared(directory)
            self._path = os.path.join(directory, f"{_plain(label)}-{os.urandom(8).hex()}.txt")
            self._file = os.fdopen(create_file(self._path), "wb")
        except OSError as error:
            self._give_up(error)

    def write(self, data: bytes) -> None:
        """Take whole characters, as UTF-8."""
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
        """Where it lies (empty: nowhere), and a sentence for the model."""
        if self._file is not None:
            try:
                self._write_tail(self._file)
                self._file.close()
                self._file = None
            except OSError as error:
                self._give_up(error)
        if self._problem:
            return "", f"The whole output could not be kept: {self._problem}."
        what = "Its beginning and end are" if self._tail.dropped else "The whole output is"
        return self._path, f"{what} in {self._path}: read it with read_file, offset and limit."

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


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _plain(label: str) -> str:
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "_" for char in label[:40]) or "output"


def _char_start(data: bytes, position: int) -> int:
    """The last place at or before `position` where no character is cut."""
    if position >= len(data):
        return len(data)
    position = max(0, position)
    while position > 0 and data[position] & 0xC0 == 0x80:
        position -= 1
    return position


def _next_char(data: bytes) -> int:
    """Where the first whole character begins."""
    position = 0
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position
