"""Images and files as services take them, and the placeholder text for those they cannot take."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator

from dragoman.base import jsontext
from dragoman.providers.wire import Destination
from dragoman.values.messages import Blob, FileRef, Part, Text, ToolResult
from dragoman.values.parts import NO_OUTPUT, text_of
from dragoman.values.profile import Profile

EMPTY_MESSAGE = "(empty message)"
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_IMAGE_HEADS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def media_placeholder(part: Blob | FileRef, to: Destination, *, refused: tuple[str, ...] = (), fetches: tuple[str, ...] = ()) -> str | None:
    """The text sent in place of media that the destination cannot take; None where it can take it.

    refused: media types this service rejects for every model. fetches: URL prefixes it can fetch.
    """
    if isinstance(part, FileRef):
        if not can_take(part, to.profile) or part.mime.startswith(refused):
            return media_note(part, "this model cannot be shown it")
        return None if part.uri.startswith(fetches) else media_note(part, "this service cannot fetch it")
    data = blob_data(part, to)
    if not data:
        return media_note(part, "its content is no longer there")
    if part.mime.startswith("text/"):
        return jsontext.valid_unicode(data.decode(errors="replace"))
    if not can_take(part, to.profile) or part.mime.startswith(refused):
        return media_note(part, "this model cannot be shown it")
    return None


def user_pieces(part: Part, text: Callable[[str], bytes], media: Callable[[Blob | FileRef], bytes]) -> list[bytes]:
    """A part of a user message, rendered for a protocol. Blank text and parts that only providers read render to nothing."""
    match part:
        case Text(text=said):
            return [text(said)] if said.strip() else []
        case Blob() | FileRef():
            return [media(part)]
        case _:
            return []


def blob_data(blob: Blob, to: Destination) -> bytes:
    """The blob's bytes; empty if they are lost."""
    if blob.data is not None:
        return blob.data
    return (to.blobs.get(blob.sha256) or b"") if to.blobs is not None else b""


def image_type(data: bytes, mime: str) -> str:
    """The media type according to the image's first bytes, whatever it was labelled; `mime` if they are not recognised."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((found for head, found in _IMAGE_HEADS.items() if data.startswith(head)), mime)


def base64(data: bytes) -> bytes:
    return b64encode(data)


def media_note(part: Blob | FileRef, why: str) -> str:
    what = part.uri if isinstance(part, FileRef) else f"{part.size} bytes"
    return f"[{part.mime}, {what}: {why}]"


def can_take(part: Blob | FileRef, profile: Profile) -> bool:
    """Whether the model accepts this media type at all."""
    if part.mime in IMAGE_TYPES:
        return profile.images
    if part.mime == "application/pdf":
        return profile.pdfs
    return part.mime.startswith("audio/") and profile.audio


def result_text(result: ToolResult) -> str:
    """The text of a result, or a sentence where it has only media or nothing."""
    text = text_of(result.content)
    if text.strip():
        return text
    others = [part for part in result.content if not isinstance(part, Text)]
    if not others:
        return NO_OUTPUT
    return f"Binary content of type {others[0].mime} was processed." if len(others) == 1 else "Tool execution succeeded."


def attachments(result: ToolResult) -> Iterator[Blob | FileRef]:
    return (part for part in result.content if not isinstance(part, Text))
