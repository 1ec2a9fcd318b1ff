"""Media in a prompt: the path of an image, PDF, sound or video that is pasted or dropped becomes a word such as `@picture.png`."""

from __future__ import annotations

import os
import re
import urllib.parse

from dragoman.tui.composer import MEDIA_ENDINGS


def as_word(pasted: str, workspace: str) -> str:
    """`@path` for the path of a medium as terminals paste one that is dropped on them (quoted, with backslashes, as a URL); else empty."""
    text = pasted.strip()
    if not text or "\n" in text or len(text) > 4_000 or not text.strip("'\"").lower().endswith(MEDIA_ENDINGS):
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
