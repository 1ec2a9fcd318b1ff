"""Bytes and files a person puts into a prompt, as Blobs that carry their bytes until a store keeps them."""

from __future__ import annotations

import os
from mimetypes import guess_type
from os import PathLike
from stat import S_ISREG

from dragoman.base.words import say
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, Media

MAX_MEDIA_BYTES = 20_000_000
"""More than this, no service takes in one request."""
HEAD_BYTES = 64

_HEADS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_SOUNDS_AND_VIDEOS = (
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"FORM", "audio/aiff"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"FLV\x01", "video/x-flv"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {b"heic": "image/heic", b"heix": "image/heic", b"mif1": "image/heif", b"avif": "image/avif", b"M4A ": "audio/mp4",
           b"M4B ": "audio/mp4", b"qt  ": "video/quicktime", b"3gp4": "video/3gpp", b"3gp5": "video/3gpp"}  # fmt: skip
_KINDS = ("image/", "audio/", "video/", "application/pdf")


def media_type(head: bytes) -> str:
    """The media type of an image or PDF that models accept; empty for everything else. Decided by content, not by name."""
    mime = _RIFF.get(head[8:12], "") if head[:4] == b"RIFF" else next((mime for magic, mime in _HEADS if head.startswith(magic)), "")
    return "" if mime.startswith(("audio/", "video/")) else mime


def any_media_type(head: bytes, name: str = "") -> str:
    """The same for sounds and videos as well. The name's ending decides only between kinds that begin alike."""
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        mime = _BRANDS.get(head[8:12], "video/mp4")
    else:
        mime = next((mime for magic, mime in _HEADS + _SOUNDS_AND_VIDEOS if head.startswith(magic)), "")
    named = guess_type(name)[0] or ""
    return named if mime in ("video/mp4", "video/webm", "audio/ogg") and named.startswith(("audio/", "video/")) else mime


def read_media(given: Media | bytes | bytearray | PathLike[str]) -> Blob:
    """Raises InputError for bytes that are no medium, and for a file that is none, is too large or cannot be read."""
    if isinstance(given, PathLike):
        return read_file(given)
    media = given if isinstance(given, Media) else Media(bytes(given))
    if not isinstance(media.data, bytes | bytearray):
        raise InputError(say("values.media_not_bytes", given=type(media.data).__name__))
    mime = media.mime or any_media_type(bytes(media.data[:HEAD_BYTES]))
    if not mime:
        raise InputError(say("values.media_unknown"))
    return Blob.of(mime, bytes(media.data))


def read_file(path: PathLike[str] | str) -> Blob:
    """A file that a person named: it may be a link, but not a device or a pipe, which would be waited for."""
    shown = os.fspath(path)
    try:
        descriptor = os.open(os.path.expanduser(shown), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not S_ISREG(status.st_mode):
                raise InputError(say("values.media_no_file", path=shown))
            if status.st_size > MAX_MEDIA_BYTES:
                raise InputError(say("values.media_too_large", path=shown, size=status.st_size, most=MAX_MEDIA_BYTES))
            data = file.read(MAX_MEDIA_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(say("values.media_unreadable", path=shown, reason=getattr(error, "strerror", None) or str(error))) from None
    if not data:
        raise InputError(say("values.media_empty", path=shown))
    if not (mime := any_media_type(data[:HEAD_BYTES], shown)):
        raise InputError(say("values.media_not_media", path=shown))
    return Blob.of(mime, data)
