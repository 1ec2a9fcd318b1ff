"""The files that the page is made of, read from beside this module: no build step, and nothing from elsewhere."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from dragoman.base import jsontext
from dragoman.words import chosen_language, sentences

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
WORDS = "words.json"
PREFIX = "viewer.page_"
"""How the keys of sentences begin that the page itself says."""
_MIMES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    mime: str
    data: bytes

    @property
    def packed(self) -> bytes:
        """The same, compressed."""
        return _pack(self.data)


def asset(path: str) -> Asset | None:
    """A file of the page by its path in the address, or None: nothing outside the folder is ever read."""
    if path == WORDS:
        return Asset("application/json; charset=utf-8", jsontext.encode(page_words()))
    return _assets().get(path)


@cache
def _assets() -> Mapping[str, Asset]:
    found: dict[str, Asset] = {}
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            mime = _MIMES.get(os.path.splitext(name)[1])
            if mime is not None:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, FOLDER).replace(os.sep, "/")] = Asset(mime, file.read())
    return found


@cache
def _pack(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


def page_words() -> dict[str, Any]:
    """The page's own sentences in the chosen language, with the language."""
    words = {key.removeprefix(PREFIX): text for key, text in sentences("viewer").items() if key.startswith(PREFIX)}
    return {"lang": chosen_language(), "words": words}
