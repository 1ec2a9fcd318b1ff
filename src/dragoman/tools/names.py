"""Escaping file names for users and models: one line, valid Unicode, nothing invisible, and reversible."""

from __future__ import annotations

import os

MAX_SHOWN_CHARS = 300
"""A longer path is truncated in the middle; systems accept at most 4,096 bytes."""

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_BACKSLASH_IS_PLAIN = os.sep != "\\"


def escape_name(name: str) -> str:
    """Escape newlines, control and invisible characters, bytes that are not UTF-8, and spaces at the ends.

    `unescape_name` reverses it; so a backslash is doubled, unless it separates directories.
    """
    if name.isprintable() and "\\" not in name and name == name.strip(" "):
        return name
    inner = name.strip(" ")
    before, after = name[: len(name) - len(name.lstrip(" "))], name[len(name.rstrip(" ")) :] if inner else ""
    return "\\x20" * len(before) + "".join(map(_escape, inner)) + "\\x20" * len(after)


def escape_relative_path(name: str) -> str:
    """Escape a relative path so that no program takes it for an option or a home directory."""
    shown = escape_name(name)
    return f"./{shown}" if shown.startswith(("-", "~/")) or shown == "~" else shown


def truncate_path(text: str) -> str:
    """A path for a message, truncated in the middle if it is very long."""
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    half = MAX_SHOWN_CHARS // 2
    return f"{text[:half]}…{text[-half:]}"


def unescape_name(shown: str) -> str:
    """Reverse `escape_name`. Anything that is not one of its escapes stays as it is."""
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


def format_size(size_bytes: int) -> str:
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
    if 0xDC80 <= code <= 0xDCFF:  # Python's surrogateescape of a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _unescape(shown: str, position: int) -> tuple[bytes, int] | None:
    """The bytes that the escape at `position` stands for and its length, or None if it is not an escape."""
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
    except (ValueError, OverflowError):  # not a character, or half a surrogate pair
        return None
