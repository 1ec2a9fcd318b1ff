"""File names as people and models read them: one line, valid Unicode, nothing invisible, and still a way back to the file."""

from __future__ import annotations

import os

MAX_SHOWN_CHARS = 300
"""A path longer than this is shown by its ends; systems take at most 4,096 bytes."""

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_BACKSLASH_IS_PLAIN = os.sep != "\\"


def escaped(name: str) -> str:
    """A name with everything odd written out: newlines, control and invisible characters, bytes that are not UTF-8, spaces at the ends.

    `unescaped` undoes it; so a backslash of its own is doubled, where it does not part directories.
    """
    if name.isprintable() and "\\" not in name and name == name.strip(" "):
        return name
    inner = name.strip(" ")
    before, after = name[: len(name) - len(name.lstrip(" "))], name[len(name.rstrip(" ")) :] if inner else ""
    return "\\x20" * len(before) + "".join(map(_escape, inner)) + "\\x20" * len(after)


def as_path(name: str) -> str:
    """A name relative to a directory, escaped, that no program takes for an option or a home directory."""
    shown = escaped(name)
    return f"./{shown}" if shown.startswith(("-", "~/")) or shown == "~" else shown


def clipped(text: str) -> str:
    """A path for a message: its ends, where it is monstrous."""
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    half = MAX_SHOWN_CHARS // 2
    return f"{text[:half]}…{text[-half:]}"


def unescaped(shown: str) -> str:
    """The name that `escaped` showed. What is no escape of ours stays as it is."""
    if "\\" not in shown or not _BACKSLASH_IS_PLAIN:
        return shown
    name = bytearray()
    position = 0
    while position < len(shown):
        char = shown[position]
        taken = _unescape(shown, position) if char == "\\" else None
        name += taken[0] if taken else os.fsencode(char)
        position += taken[1] if taken else 1
    return os.fsdecode(bytes(name))


def size_shown(size_bytes: int) -> str:
    if size_bytes < 1000:
        return "1 byte" if size_bytes == 1 else f"{size_bytes} bytes"
    size = float(size_bytes)
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def _escape(char: str) -> str:
    if char == "\\":
        return "\\\\" if _BACKSLASH_IS_PLAIN else char
    if char.isprintable():
        return char
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _unescape(shown: str, position: int) -> tuple[bytes, int] | None:
    """The bytes that the escape at `position` stands for and the length of the escape, or None where it is none."""
    kind = shown[position + 1 : position + 2]
    if kind in _UNESCAPES:
        return _UNESCAPES[kind], 2
    digits = _HEX_DIGITS.get(kind, 0)
    code_text = shown[position + 2 : position + 2 + digits]
    if not digits or len(code_text) < digits or not all(char in "0123456789abcdefABCDEF" for char in code_text):
        return None
    code = int(code_text, 16)
    if digits == 2:
        return bytes([code]), 4
    try:
        return chr(code).encode(), 2 + digits
    except (ValueError, OverflowError):  # no such character, or half of one
        return None
