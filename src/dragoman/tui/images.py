"""Images in a prompt: `@picture.png` is sent with it, and the path of one that is pasted or dropped becomes such a word."""

from __future__ import annotations

import os
import re
import urllib.parse

from dragoman.base.found_files import read_found
from dragoman.base.words import say
from dragoman.tui.composer import IMAGE_ENDINGS
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Blob

MOST_BYTES = 10_000_000
_WORD = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def as_word(pasted: str, workspace: str) -> str:
    """`@path` for the path of an image as terminals paste one that is dropped on them (quoted, with backslashes, as a URL); else empty."""
    text = pasted.strip()
    if not text or "\n" in text or len(text) > 4_000 or not text.strip("'\"").lower().endswith(IMAGE_ENDINGS):
        return ""
    if text[0] in "'\"" and text[-1] == text[0]:
        path = text[1:-1]
    elif text.startswith("file://"):
        path = urllib.parse.unquote(urllib.parse.urlsplit(text).path)
    else:
        path = re.sub(r"\\(.)", r"\1", text)
    full = os.path.join(workspace, os.path.expanduser(path))
    if not os.path.isabs(os.path.expanduser(path)) or not os.path.isfile(full):
        return ""
    inside = os.path.relpath(full, workspace)
    shown = full if inside.startswith("..") else inside
    return f'@"{shown}" ' if " " in shown else f"@{shown} "


def read_images(text: str, workspace: str, blobs: BlobStore) -> tuple[list[Blob], list[str]]:
    """The images that a prompt names, kept with the session; and what is to be said about those that could not be taken."""
    images: list[Blob] = []
    problems: list[str] = []
    for quoted, plain in _WORD.findall(text):
        name = quoted or plain
        path = os.path.join(workspace, os.path.expanduser(name))
        if not name.lower().endswith(IMAGE_ENDINGS) or not os.path.isfile(path):
            continue
        try:
            data = read_found(path, MOST_BYTES + 1, cut=True)
        except OSError as error:
            problems.append(say("conversation.image_unreadable", name=name, reason=error.strerror or error))
            continue
        mime = _type_of(data)
        if not mime:
            problems.append(say("conversation.not_an_image", name=name))
        elif len(data) > MOST_BYTES:
            problems.append(say("conversation.image_too_large", name=name, most=MOST_BYTES // 1_000_000))
        else:
            images.append(blobs.put(mime, data))
    return images, problems


def _type_of(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for beginning, mime in _BEGINNINGS.items() if data.startswith(beginning)), "")
