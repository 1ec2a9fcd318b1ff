"""Bytes from the terminal → keys. No input or output here: `feed` takes what was read, `rest` what stayed unclear for too long.

A key has tmux's and readline's kind of name: `a`, `enter`, `up`, `ctrl-c`, `alt-b`, `shift-tab`. Text that was pasted comes whole, as a
Paste: in brackets where the terminal marks it, and otherwise by its speed, because nobody types a line break in the middle of one read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

ESCAPE_S = 0.05
"""How long a lone Esc may be the beginning of another key."""
PASTE_S = 0.03
"""How long a paste without brackets may pause after a line,"""
LONG_PASTE_S = 0.15
"""and how long one that nobody types ahead: over a slow line it comes in pieces, and none of their ends may be taken for Enter."""
_LONG_CHARS = 200

ANSWER = b"\x1b[0n"
"""A terminal's answer that it is there (pace.py)."""
_PASTE_ON, _PASTE_OFF = b"\x1b[200~", b"\x1b[201~"
_CONTROLS = {
    0x00: "ctrl-space",
    0x08: "backspace",
    0x09: "tab",
    0x0A: "ctrl-j",
    0x0D: "enter",
    0x1B: "esc",
    0x1C: "ctrl-\\",
    0x1D: "ctrl-]",
    0x1E: "ctrl-^",
    0x1F: "ctrl-_",
    0x7F: "backspace",
}
_FINALS = {
    "A": "up", "B": "down", "C": "right", "D": "left", "F": "end", "H": "home", "Z": "shift-tab",
    "P": "f1", "Q": "f2", "R": "f3", "S": "f4",
}  # fmt: skip
_TILDES = {
    "1": "home", "2": "insert", "3": "delete", "4": "end", "5": "pageup", "6": "pagedown", "7": "home", "8": "end", "15": "f5", "17": "f6",
    "18": "f7", "19": "f8", "20": "f9", "21": "f10", "23": "f11", "24": "f12",
}  # fmt: skip
_KEYPAD = dict(zip(range(ord("j"), ord("y") + 1), "*+,-./0123456789", strict=True))
"""What keys of the keypad type where a program before us has left it in its other mode."""
_RXVT_ARROWS = {"a": "ctrl-up", "b": "ctrl-down", "c": "ctrl-right", "d": "ctrl-left"}
_UNICODE_KEYS = {9: "tab", 13: "enter", 27: "esc", 32: "space", 127: "backspace", 57414: "enter"}
_MODIFIERS = ((1, "shift"), (2, "alt"), (4, "ctrl"), (8, "alt"))
"""iTerm2 sends 8 for Option with an arrow."""
_JOINERS = "\u200c\u200d"
"""They are not printable, and typed: Persian words hold the one, joined emoji the other."""
_RELEASED = "3"


class Key(NamedTuple):
    """One key. `text` is what it types; empty for keys that type nothing."""

    name: str
    text: str = ""


class Paste(NamedTuple):
    """Text that was pasted, its line breaks as `\\n`."""

    text: str


class KeyReader:
    """Takes bytes in any pieces."""

    def __init__(self) -> None:
        self._bytes = b""
        self._pasted: bytearray | None = None
        """Inside brackets: what came so far."""
        self._burst: str | None = None
        """A paste without brackets, while more may come."""
        self.on_sign: Callable[[], None] | None = None
        """Called when the terminal answers that it is there (pace.py)."""

    @property
    def waits_s(self) -> float:
        """After how long `rest` is to be called if nothing more comes; 0 if nothing is unclear."""
        if self._burst is not None:
            return LONG_PASTE_S if len(self._burst) > _LONG_CHARS else PASTE_S
        return ESCAPE_S if self._bytes and self._pasted is None else 0

    def feed(self, data: bytes) -> list[Key | Paste]:
        self._bytes += data
        events: list[Key | Paste] = []
        if self._pasted is None and self._burst is None and _is_fast(data):
            self._burst = ""
        while self._bytes:
            if self._pasted is not None:
                if not self._take_pasted(events):
                    break
            elif not self._take_one(events):
                break
        return events

    def rest(self) -> list[Key | Paste]:
        """Nothing came for a while: what stayed unclear is what it looks like."""
        events: list[Key | Paste] = []
        if self._pasted is not None:
            return events
        self._end_burst(events)
        waiting, self._bytes = self._bytes, b""
        if len(waiting) == 2 and waiting[1] in b"[]OP":  # Alt with one of the characters that may begin more
            return [*events, Key(f"alt-{chr(waiting[1])}")]
        if waiting.startswith(b"\x1b"):
            events.append(Key("esc"))
            waiting = waiting[1:]
        text = waiting.decode("utf-8", "replace")
        return [*events, *(Key(char, char) for char in text if is_typed(char))]

    # --- pastes

    def _take_pasted(self, events: list[Key | Paste]) -> bool:
        end = self._bytes.find(_PASTE_OFF)
        if self._pasted is None:
            return True
        if end < 0:
            keep = next((size for size in range(5, 0, -1) if self._bytes.endswith(_PASTE_OFF[:size])), 0)
            cut = len(self._bytes) - keep
            self._pasted += self._bytes[:cut]
            self._bytes = self._bytes[cut:]
            return False
        self._pasted += self._bytes[:end]
        self._bytes = self._bytes[end + len(_PASTE_OFF) :]
        text, self._pasted = self._pasted.replace(ANSWER, b"").decode("utf-8", "replace"), None
        events.append(Paste(_with_line_feeds(text)))
        return True

    def _end_burst(self, events: list[Key | Paste]) -> None:
        text, self._burst = self._burst, None
        if text:
            events.append(Paste(_with_line_feeds(text)))

    # --- keys

    def _take_one(self, events: list[Key | Paste]) -> bool:
        """False if more bytes are needed."""
        data = self._bytes
        if data.startswith(_PASTE_ON):
            self._end_burst(events)
            self._bytes, self._pasted = data[len(_PASTE_ON) :], bytearray()
            return True
        if data.startswith(ANSWER):
            self._bytes = data[len(ANSWER) :]
            if self.on_sign is not None:
                self.on_sign()
            return True
        if data[0] == 0x1B:
            self._end_burst(events)
            size, key = _escape_key(data)
        elif self._burst is not None and (data[0] >= 0x20 or data[0] in b"\r\n\t") and data[0] != 0x7F:
            return self._take_burst()
        elif data[0] < 0x20 or data[0] == 0x7F:
            self._end_burst(events)
            size, key = 1, Key(_CONTROLS.get(data[0]) or f"ctrl-{chr(data[0] + 0x60)}")
        else:
            size, key = _character(data)
        if not size:
            return False
        self._bytes = data[size:]
        if key is not None:
            events.append(key)
        return True

    def _take_burst(self) -> bool:
        """All text up to the next control character in one piece: a paste of a megabyte is not taken character by character."""
        data = self._bytes
        end = next(
            (at for at, byte in enumerate(data) if byte == 0x1B or byte == 0x7F or (byte < 0x20 and byte not in b"\r\n\t")), len(data)
        )
        piece = data[:end]
        text = piece.decode("utf-8", "ignore")
        cut = 0 if end < len(data) else _unfinished(piece)
        if cut:
            text = piece[:-cut].decode("utf-8", "replace")
        self._burst = (self._burst or "") + text
        self._bytes = data[end - cut :]
        return end < len(data)


def _is_fast(data: bytes) -> bool:
    """Whether one read holds a line break with more text behind it: too fast for a person."""
    at = data.find(b"\r")
    return 0 <= at < len(data) - 1 and 0x1B not in data[: at + 2] and data[at + 1] not in b"\x03\x04"


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unfinished(data: bytes) -> int:
    """How many bytes at the end begin a character that is not complete."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < size else 0
        if byte < 0x80:
            return 0
    return 0


def _character(data: bytes) -> tuple[int, Key | None]:
    first = data[0]
    size = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if len(data) < size:
        return 0, None
    text = data[:size].decode("utf-8", "replace")
    name = "space" if text == " " else text
    return size, Key(name, text) if is_typed(text) else None


def is_typed(text: str) -> bool:
    """Whether a key may type it."""
    return text.isprintable() or text in _JOINERS


def _escape_key(data: bytes) -> tuple[int, Key | None]:
    """0 bytes: more may come. A key of None: a report of the terminal, or a key without a name."""
    if len(data) < 2:
        return 0, None
    second = data[1]
    if second == 0x5B:  # [
        return _control_sequence(data)
    if second == 0x4F:  # O, as some terminals send arrows
        return _keypad_key(data)
    if second == 0x1B:
        return _after_second_escape(data)
    if second in (0x5D, 0x50):  # a report that ends with BEL or ST
        ends = [at for at in (data.find(b"\x07"), data.find(b"\x1b\\", 2) + 1) if at > 0]
        return (min(ends) + 1, None) if ends else (0, None)
    if second < 0x20 or second == 0x7F:
        return 2, Key(f"alt-{_CONTROLS.get(second) or f'ctrl-{chr(second + 0x60)}'}")
    size, key = _character(data[1:])
    return (size + 1, Key(f"alt-{key.name}") if key is not None else None) if size else (0, None)


def _keypad_key(data: bytes) -> tuple[int, Key | None]:
    if len(data) < 3:
        return 0, None
    if data[2] in b"2345678":  # modifiers, as old terminals send them
        if len(data) < 4:
            return 0, None
        name = _FINALS.get(chr(data[3]))
        return 4, Key(_modifiers(chr(data[2])) + name) if name else None
    if data[2] == 0x4D:
        return 3, Key("enter")
    if typed := _KEYPAD.get(data[2]):
        return 3, Key(typed, typed)
    name = _FINALS.get(chr(data[2])) or _RXVT_ARROWS.get(chr(data[2]))
    return 3, Key(name) if name else None


def _after_second_escape(data: bytes) -> tuple[int, Key | None]:
    """Esc twice; or Alt and a key that is a sequence itself, where the terminal puts an Esc before it."""
    if len(data) > 3 and data[2] in b"[O" and data[:8] != b"\x1b" + _PASTE_ON[:7]:
        size, key = _escape_key(data[1:])
        if size and key is not None and not key.text and "-" not in key.name:
            return size + 1, Key(f"alt-{key.name}")
    return 1, Key("esc")


def _control_sequence(data: bytes) -> tuple[int, Key | None]:
    if data[2:3] == b"[":  # function keys of the Linux console
        return (4, Key(f"f{data[3] - 0x40}") if 0x41 <= data[3] <= 0x45 else None) if len(data) > 3 else (0, None)
    end = next((at for at in range(2, len(data)) if 0x40 <= data[at] <= 0x7E), 0)
    if not end:
        return (0, None) if len(data) < 64 else (1, Key("esc"))
    if data[2:3] == b"M":  # the mouse, as the oldest terminals report it: three bytes follow
        return (6, None) if len(data) >= 6 else (0, None)
    body, final = data[2:end].decode("ascii", "replace"), chr(data[end])
    if body[:1] in ("?", ">", "<", "="):
        return end + 1, None
    numbers = body.split(";")
    modifiers = _modifiers(numbers[1]) if len(numbers) > 1 else ""
    if len(numbers) > 1 and numbers[1].partition(":")[2] == _RELEASED:
        return end + 1, None
    name = ""
    if final == "~":
        name = _TILDES.get(numbers[0], "")
        if numbers[0] == "27" and len(numbers) > 2:  # xterm's modifyOtherKeys
            name = _unicode_name(numbers[2])
    elif final == "u":
        code, _, shifted = numbers[0].partition(":")
        name = _unicode_name(shifted.partition(":")[0] if shifted and modifiers == "shift-" else code)
    elif final != "Z" or not modifiers:
        name = _FINALS.get(final, "")
    if modifiers == "shift-" and (len(name) == 1 or name == "space"):  # a capital letter is typed with Shift
        modifiers, name = "", name.upper() if name != "space" and len(name.upper()) == 1 else name
    return end + 1, _named(modifiers + name) if name else None


def _named(name: str) -> Key:
    """A key that a terminal reports with its code types what it would have typed without that."""
    return Key("space", " ") if name == "space" else Key(name, name if len(name) == 1 else "")


def _unicode_name(number: str) -> str:
    if not number.isdecimal() or not 0 < int(number) < 0x110000:
        return ""
    code = int(number)
    char = chr(code)
    return _UNICODE_KEYS.get(code) or (char if char.isprintable() else "")


def _modifiers(number: str) -> str:
    number = number.partition(":")[0]
    bits = int(number) - 1 if number.isdecimal() and int(number) > 0 else 0
    found = [name for bit, name in _MODIFIERS if bits & bit]
    return "".join(f"{name}-" for name in ("ctrl", "alt", "shift") if name in found)
