"""Text files as bytes and back: which encoding, which line endings, text at all? What is read and written again stays as it was."""

from __future__ import annotations

import msgspec

from dragoman.tools.names import size_shown
from dragoman.tools.workspace import Refused

SNIFFED_BYTES = 8192
"""How much of a file's beginning decides whether it is text: a NUL there makes it binary."""


class Encoding(msgspec.Struct, frozen=True):
    codec: str
    bom: bytes = b""
    """The bytes that stand before the text and are no part of it."""

    @property
    def note(self) -> str:
        """What the model should know of it; empty for plain UTF-8."""
        match self.codec:
            case "utf-8":
                return ""
            case "cp1252" | "latin-1":
                return f"not UTF-8: read as {self.codec}, characters may be wrong"
            case _:
                return f"encoded in {self.codec}"


UTF_8 = Encoding("utf-8")

# The longer mark first: UTF-32 begins as UTF-16 does.
_MARKED = (
    Encoding("utf-8", b"\xef\xbb\xbf"),
    Encoding("utf-32-le", b"\xff\xfe\x00\x00"),
    Encoding("utf-32-be", b"\x00\x00\xfe\xff"),
    Encoding("utf-16-le", b"\xff\xfe"),
    Encoding("utf-16-be", b"\xfe\xff"),
)
# What western texts that are not UTF-8 are nearly always in; latin-1 takes any byte. Both give back the bytes they took.
_UNMARKED = (UTF_8, Encoding("cp1252"), Encoding("latin-1"))

_MEDIA = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"))
_BINARY_TYPES = (
    (b"\x7fELF", "ELF program"),
    (b"PK\x03\x04", "zip archive or document"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\x00asm", "WebAssembly"),
    (b"MZ", "Windows program"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program"),
)


def media_type(head: bytes) -> str:
    """The type of an image or PDF that models can look at; empty for everything else. Its bytes decide, not its name."""
    for magic, mime in _MEDIA:
        if head.startswith(magic):
            return mime
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if head.startswith(b"%PDF-") else ""


def encodings_of(head: bytes) -> tuple[Encoding, ...]:
    """The encodings to try in turn. Empty where the file is not text."""
    for encoding in _MARKED:
        if head.startswith(encoding.bom):
            return (encoding,)
    return () if b"\0" in head[:SNIFFED_BYTES] else _UNMARKED


def binary_refusal(shown: str, head: bytes, size_bytes: int) -> Refused:
    kind = media_type(head) or next((name for magic, name in _BINARY_TYPES if head.startswith(magic)), "unknown type")
    if marked := encodings_of(head):
        kind = f"damaged {marked[0].codec} text"
    size = size_shown(size_bytes)
    return Refused(
        f"{shown} is a binary file ({kind}, {size}): use run_shell to look at it (file, strings, xxd | head) or to change it", "binary"
    )


class TextFile(msgspec.Struct, frozen=True):
    """The whole text of a file, line endings as they are, and what it takes to write it again."""

    text: str
    encoding: Encoding

    def encode(self, text: str) -> bytes:
        """Another text for the same file. Raises UnicodeEncodeError where its encoding cannot hold it."""
        return self.encoding.bom + text.encode(self.encoding.codec)


def decode(data: bytes) -> TextFile | None:
    """The text that bytes stand for; None where they are not text."""
    for encoding in encodings_of(data):
        try:
            return TextFile(data[len(encoding.bom) :].decode(encoding.codec), encoding)
        except UnicodeDecodeError:
            continue
    return None


def folded(text: str) -> str:
    """With LF for every CRLF, as the model is shown it."""
    return text.replace("\r\n", "\n")


def is_crlf(text: str) -> bool:
    """Whether every line ends in CRLF."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")
