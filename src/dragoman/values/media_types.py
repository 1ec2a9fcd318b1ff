"""Media types: by how bytes begin, and by how a name ends. Tables of our own, because those of the system differ from one to the next."""

from __future__ import annotations

HEAD_BYTES = 64
ENDINGS = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".heic": "image/heic",
    ".heif": "image/heif",
    ".pdf": "application/pdf",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".aac": "audio/aac",
    ".aiff": "audio/aiff",
    ".m4a": "audio/mp4",
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
    ".mpeg": "video/mpeg",
    ".mpg": "video/mpeg",
    ".avi": "video/x-msvideo",
    ".flv": "video/x-flv",
    ".3gp": "video/3gpp",
}
"""Names of what models can be shown or played."""

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
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"FLV\x01", "video/x-flv"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
    b"3gp4": "video/3gpp",
    b"3gp5": "video/3gpp",
}
_AMBIGUOUS = ("video/mp4", "video/webm", "audio/ogg")
"""Containers of sounds as well as of videos."""


def media_type(head: bytes) -> str:
    """The media type of an image or PDF that models accept; empty for everything else. Decided by content, not by name."""
    mime = _RIFF.get(head[8:12], "") if head[:4] == b"RIFF" else _by_head(head, _HEADS)
    return "" if mime.startswith(("audio/", "video/")) else mime


def any_media_type(head: bytes, name: str = "") -> str:
    """The same for sounds and videos as well. The name decides only between kinds that begin alike."""
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], "")
    if head[:4] == b"FORM" and head[8:11] == b"AIF":
        return "audio/aiff"
    mime = _BRANDS.get(head[8:12], "video/mp4") if head[4:8] == b"ftyp" else _by_head(head, _HEADS + _SOUNDS_AND_VIDEOS)
    named = type_of_name(name)
    return named if mime in _AMBIGUOUS and named.startswith(("audio/", "video/")) else mime


def type_of_name(name: str, unknown: str = "") -> str:
    """The media type that the ending of a file's name or of an address tells."""
    path = name.partition("?")[0].partition("#")[0].lower()
    return ENDINGS.get(path[path.rfind(".") :], unknown) if "." in path else unknown


def _by_head(head: bytes, heads: tuple[tuple[bytes, str], ...]) -> str:
    return next((mime for magic, mime in heads if head.startswith(magic)), "")
