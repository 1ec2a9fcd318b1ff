"""Images and files as services take them, and the placeholder text for those they cannot take."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from dragoman.base import jsontext
from dragoman.providers.wire import Destination
from dragoman.values.messages import Blob, FileRef, Part, Text, ToolResult
from dragoman.values.parts import NO_OUTPUT, text_of
from dragoman.values.profile import Profile
from dragoman.words import say

EMPTY_MESSAGE = "(empty message)"
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
FILE_ID = "file-"
"""How the id of a file begins that was uploaded to OpenAI."""
PHONE_IMAGES = ("image/heic", "image/heif")
_IMAGE_HEADS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class Carried(msgspec.Struct, frozen=True):
    """What a protocol can carry, whatever the model: by media types (`audio/`: all of them), and files by how their addresses begin."""

    data: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]


def why_not(part: Blob | FileRef, to: Destination, carried: Carried) -> Literal["", "model", "format", "address"]:
    """Why the destination cannot be sent it: this kind at all, this format of a sound, or from this address. Empty: it can."""
    if isinstance(part, FileRef):
        if not can_take(part, to.profile) or not (_is_among(part, carried.files) or _is_among(part, carried.data)):
            return "model"
        addresses = next((found for kind, found in carried.files.items() if _is_among(part, (kind,))), ())
        return "" if part.uri.startswith(addresses) else "address"
    if part.mime.startswith("text/"):
        return ""
    if can_take(part, to.profile) and _is_among(part, carried.data):
        return ""
    plays_others = part.mime.startswith("audio/") and any(kind.startswith("audio/") for kind in carried.data)
    return "format" if plays_others and can_take(part, to.profile) else "model"


def _is_among(part: Blob | FileRef, kinds: Iterable[str]) -> bool:
    return any(part.mime == kind or (kind.endswith("/") and part.mime.startswith(kind)) for kind in kinds)


def media_placeholder(part: Blob | FileRef, to: Destination, carried: Carried) -> str | None:
    """The text sent in place of media that the destination cannot take; None where it can take it."""
    data = b"" if isinstance(part, FileRef) else blob_data(part, to)
    if isinstance(part, Blob) and not data:
        return media_note(part, "its content is no longer there")
    if part.mime.startswith("text/") and isinstance(part, Blob):
        return jsontext.valid_unicode(data.decode(errors="replace"))
    match why_not(part, to, carried):
        case "":
            return None
        case "model":
            return media_note(part, "this model cannot be shown it")
        case "format":
            return media_note(part, "this service cannot play it")
        case "address":
            return media_note(part, "this service cannot fetch it")


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
    if part.mime in IMAGE_TYPES or part.mime in PHONE_IMAGES:
        return profile.images
    if part.mime == "application/pdf":
        return profile.pdfs
    if part.mime.startswith("video/"):
        return profile.video
    return part.mime.startswith("audio/") and profile.audio


def media_fault(part: Blob | FileRef, to: Destination, carried: Carried) -> str:
    """In words for a person why this destination cannot be sent it, with what it takes; empty where it can."""
    model = f"{to.deployment.name}/{to.model}"
    match why_not(part, to, carried):
        case "":
            return ""
        case "address":
            return say("providers.media_not_fetched", model=model, uri=part.uri if isinstance(part, FileRef) else "", mime=part.mime)
        case _:
            return say("providers.media_not_taken", model=model, mime=part.mime, takes=_kinds(to.profile, carried, part.mime))


def _kinds(profile: Profile, carried: Carried, refused: str) -> str:
    """What is taken, in words; of the kind of what was refused, the formats."""
    kinds = {"images": profile.images, "pdfs": profile.pdfs, "sounds": profile.audio, "videos": profile.video}
    beginnings = {"images": "image/", "pdfs": "application/pdf", "sounds": "audio/", "videos": "video/"}
    taken = []
    for kind, beginning in beginnings.items():
        formats = [each.removeprefix(beginning).upper() for each in carried.data if each.startswith(beginning)]
        if kinds[kind] and formats:
            named = f" ({', '.join(formats)})" if all(formats) and refused.startswith(beginning) else ""
            taken.append(say(f"providers.takes_{kind}") + named)
    return say("providers.takes_next").join(taken) or say("providers.takes_text")


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
