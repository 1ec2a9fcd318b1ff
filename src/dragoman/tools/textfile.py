"""Decoding and encoding text files: encoding, line endings, binary detection. Reading and writing back changes nothing."""

from __future__ import annotations

import msgspec

from dragoman.tools.names import format_size
from dragoman.tools.workspace import ToolRefusal

SNIFFED_BYTES = 8192
"""Size of the head that decides whether a file is text: a NUL in it makes it binary."""


class Encoding(msgspec.Struct, frozen=True):
    codec: str
    bom: bytes = b""
    """The byte order mark, which is not part of the text."""

    @property
    def note(self) -> str:
        """A note for the model; empty for plain UTF-8."""
        match self.codec:
            case "utf-8":
                return ""
            case "cp1252" | "latin-1":
                return f"not UTF-8: read as {self.codec}, characters may be wrong"
            case _:
                return f"encoded in {self.codec}"


UTF_8 = Encoding("utf-8")

# The longer mark first: UTF-32's begins like UTF-16's.
_MARKED = (
    Encoding("utf-8", b"\xef\xbb\xbf"),
    Encoding("utf-32-le", b"\xff\xfe\x00\x00"),
    Encoding("utf-32-be", b"\x00\x00\xfe\xff"),
    Encoding("utf-16-le", b"\xff\xfe"),
    Encoding("utf-16-be", b"\xfe\xff"),
)
# The usual encodings of western texts that are not UTF-8; latin-1 accepts any byte. Both round-trip.
_UNMARKED = (UTF_8, Encoding("cp1252"), Encoding("latin-1"))

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


def encodings_of(head: bytes) -> tuple[Encoding, ...]:
    """The encodings to try in turn. Empty if the file is not text."""
    for encoding in _MARKED:
        if head.startswith(encoding.bom):
            return (encoding,)
    return () if b"\0" in head[:SNIFFED_BYTES] else _UNMARKED


def binary_refusal(shown: str, head: bytes, size_bytes: int) -> ToolRefusal:
    what = f"{shown} is a binary file ({_binary_kind(head)}, {format_size(size_bytes)})"
    return ToolRefusal(f"{what}: use run_shell to look at it (file, strings, xxd | head) or to change it", "binary")


def replacing_refusal(shown: str, data: bytes) -> ToolRefusal | None:
    """Why text does not take the place of this content; None if that is text too. A PDF may look like text, an image never does."""
    from dragoman.values.media_types import media_type

    if not media_type(data) and decode(data) is not None:
        return None
    what = f"{shown} is a binary file ({_binary_kind(data)}, {format_size(len(data))}), which text would replace"
    return ToolRefusal(f"{what}: write to another name, or remove it first with run_shell if that is meant", "binary")


def _binary_kind(head: bytes) -> str:
    from dragoman.values.media_types import media_type

    if mime := media_type(head):
        return mime
    if marked := encodings_of(head):
        return f"damaged {marked[0].codec} text"
    return next((name for magic, name in _BINARY_TYPES if head.startswith(magic)), "unknown type")


class TextFile(msgspec.Struct, frozen=True):
    """The whole text of a file with its original line endings, and the encoding to write it back."""

    text: str
    encoding: Encoding

    def encode(self, text: str) -> bytes:
        """Encode another text for the same file. Raises UnicodeEncodeError if its encoding cannot represent it."""
        return self.encoding.bom + text.encode(self.encoding.codec)


def decode(data: bytes) -> TextFile | None:
    """The decoded text; None if the bytes are not text."""
    for encoding in encodings_of(data):
        try:
            return TextFile(data[len(encoding.bom) :].decode(encoding.codec), encoding)
        except UnicodeDecodeError:
            continue
    return None


def to_lf(text: str) -> str:
    """Replace CRLF by LF, as shown to the model."""
    return text.replace("\r\n", "\n")


def is_crlf(text: str) -> bool:
    """Whether every line ends in CRLF."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")
