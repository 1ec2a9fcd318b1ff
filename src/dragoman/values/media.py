"""Bytes and files a person puts into a prompt, as Blobs that carry their bytes until a store keeps them."""

from __future__ import annotations

import os
from os import PathLike

from dragoman.base.found_files import NotRegularFile, TooLargeFile, read_found
from dragoman.values.errors import InputError
from dragoman.values.media_types import HEAD_BYTES, any_media_type
from dragoman.values.messages import Blob, Media
from dragoman.words import say

MAX_MEDIA_BYTES = 20_000_000
"""More than this, no service takes in one request."""


def read_media(given: Media | bytes | bytearray | PathLike[str]) -> Blob:
    """Raises InputError for bytes that are no medium, and for a file that is none, is too large or cannot be read."""
    if isinstance(given, PathLike):
        return read_file(given)
    media = given if isinstance(given, Media) else Media(bytes(given))
    if not isinstance(media.data, bytes | bytearray):
        raise InputError(say("values.media_not_bytes", given=type(media.data).__name__))
    if not media.data:
        raise InputError(say("values.media_no_bytes"))
    mime = media.mime or any_media_type(bytes(media.data[:HEAD_BYTES]))
    if not mime:
        raise InputError(say("values.media_unknown"))
    return Blob.of(mime, bytes(media.data))


def read_file(path: PathLike[str] | str, *, shown: str = "") -> Blob:
    """A file that a person named: it may be a link, but not a device or a pipe, which would be waited for."""
    shown = shown or os.fspath(path)
    path = os.path.expanduser(os.fsdecode(path))
    try:
        data = read_found(path, MAX_MEDIA_BYTES)
    except (NotRegularFile, IsADirectoryError):
        raise InputError(say("values.media_no_file", path=shown)) from None
    except TooLargeFile:
        raise InputError(say("values.media_too_large", path=shown, size=os.path.getsize(path), most=MAX_MEDIA_BYTES)) from None
    except (OSError, ValueError) as error:
        raise InputError(say("values.media_unreadable", path=shown, reason=getattr(error, "strerror", None) or str(error))) from None
    if not data:
        raise InputError(say("values.media_empty", path=shown))
    if not (mime := any_media_type(data[:HEAD_BYTES], shown)):
        raise InputError(say("values.media_not_media", path=shown))
    return Blob.of(mime, data)
