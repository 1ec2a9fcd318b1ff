"""What a tool of a server answered, as a result for the model: text, images, sounds, resources and links to them."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from typing import Any

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.mcp_client.contracts import CallResult
from dragoman.values.calls import ToolOutput
from dragoman.values.messages import Blob, Text

Keep = Callable[[str, bytes], Blob]
"""Has the session keep bytes of a media type."""
Part = Text | Blob
MAX_MEDIA_BYTES = 20_000_000
_SHOWN_CHARS = 300
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,40}/[a-z0-9][a-z0-9.+-]{0,80}\Z")
_HEADS = {"image": (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF"), "application/pdf": (b"%PDF-",)}


def output_of(result: CallResult, keep: Keep) -> ToolOutput:
    parts = list(parts_of(result.content, keep))
    says_something = any(isinstance(part, Blob) or part.text.strip() for part in parts)
    if result.structured is not None and not says_something:
        parts = [Text(jsontext.dumps(result.structured))]
    shown = next((part.text for part in parts if isinstance(part, Text) and part.text.strip()), "")
    return ToolOutput(
        tuple(parts),
        display=clip(" ".join(shown.split()), _SHOWN_CHARS),
        is_error=result.is_error,
        error_type="server_error" if result.is_error else "",
    )


def parts_of(blocks: Iterable[dict[str, Any]], keep: Keep) -> Iterable[Part]:
    """Texts stand on lines of their own."""
    is_first = True
    for block in blocks:
        part = part_of(block, keep)
        yield Text(f"\n{part.text}") if isinstance(part, Text) and not is_first else part
        is_first = False


def part_of(block: dict[str, Any], keep: Keep) -> Part:
    kind = block.get("type")
    if kind == "text":
        return Text(_text(block, "text"))
    if kind in ("image", "audio"):
        return _media(_text(block, "data"), _text(block, "mimeType") or f"{kind}/{'png' if kind == 'image' else 'wav'}", keep)
    if kind == "resource_link":
        return Text(_link(block))
    if kind == "resource" and isinstance(resource := block.get("resource"), dict):
        return resource_part(resource, keep)
    return Text(f"[content of a kind that is not known: {clip(str(kind), 60)}]")


def resource_part(resource: dict[str, Any], keep: Keep) -> Part:
    """The content of a resource, with its address where it is text."""
    uri = _text(resource, "uri")
    if isinstance(text := resource.get("text"), str):
        return Text(f"[{uri}]\n{text}" if uri else text)
    return _media(_text(resource, "blob"), _text(resource, "mimeType") or "application/octet-stream", keep)


def _media(data: str, mime: str, keep: Keep) -> Part:
    try:
        decoded = b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return Text(f"[{_shown(mime)}: its bytes could not be read]")
    mime = mime.partition(";")[0].strip().lower()
    if mime.startswith("text/"):  # as any other text: kept in bounds, and without keys
        return Text(jsontext.valid_unicode(decoded.decode("utf-8", "replace")))
    if problem := _problem(mime, decoded):
        return Text(f"[{_shown(mime)}: {problem}]")
    return keep(mime, decoded)


def _problem(mime: str, data: bytes) -> str:
    """Why bytes are not passed on as media: a service refuses a request with a broken image, and with it the whole conversation."""
    if not _MIME.match(mime):
        return "there is no such kind of media"
    if len(data) > MAX_MEDIA_BYTES:
        return f"{len(data):,} bytes are too many to be shown"
    heads = _HEADS.get("image" if mime.startswith("image/") else mime)
    return "it is not what it is called" if heads is not None and not data.startswith(heads) else ""


def _shown(mime: str) -> str:
    return clip(escape_hidden(mime, one_line=True), 60)


def _link(block: dict[str, Any]) -> str:
    words = [f"[resource {_text(block, 'uri')}]", _text(block, "title") or _text(block, "name"), _text(block, "description")]
    mime = _text(block, "mimeType")
    return " ".join(filter(None, (*words, f"({mime})" if mime else "")))


def _text(block: dict[str, Any], key: str) -> str:
    value = block.get(key)
    return jsontext.valid_unicode(value) if isinstance(value, str) else ""
