"""What the live checks send: the same bytes every time, so that a recording can be replayed."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from dragoman.base import jsontext
from dragoman.values.messages import ToolSpec

WEATHER = ToolSpec.of(
    "get_weather",
    "The current weather of one city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The name of the city."}},
        "required": ["city"],
        "additionalProperties": False,
    },
    read_only=True,
)
CLOCK = ToolSpec.of(
    "get_time",
    "The local time of one city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
    read_only=True,
)
CITY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "river": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "rating": {"type": "integer", "minimum": 1, "maximum": 5},
        "distances_km": {"type": "object", "additionalProperties": {"type": "number"}},
    },
    "required": ["city", "river", "rating", "distances_km"],
    "additionalProperties": False,
}
"""With a union, bounds and a map: the three that services treat most differently."""
_CHARS_PER_TOKEN = 5
"""More than in any tokenizer for English text, so a prefix is never too short."""


def schema_text() -> str:
    return jsontext.dumps(CITY_SCHEMA)


def red_square(side: int = 64) -> bytes:
    """A PNG of one colour. Larger than the smallest image that services take."""
    row = b"\x00" + b"\xe0\x10\x10" * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(row * side, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def one_page_pdf(words: str = "The secret number is 4217.") -> bytes:
    """A PDF with one line of text."""
    content = f"BT /F1 18 Tf 40 100 Td ({words}) Tj ET".encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    data = b"%PDF-1.4\n"
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    return data + b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        count,
        table,
        count,
        len(data),
    )


def long_prefix(tokens: int) -> str:
    """Instructions of at least so many tokens, for the prompt cache."""
    lines: list[str] = ["You keep a long list of shelves. Answer with one word.", ""]
    length = 0
    number = 0
    while length < tokens * _CHARS_PER_TOKEN:
        number += 1
        lines.append(f"Shelf {number} holds the books about subject {number * 7 % 1000} and is painted in colour {number * 13 % 97}.")
        length += len(lines[-1]) + 1
    return "\n".join(lines)
