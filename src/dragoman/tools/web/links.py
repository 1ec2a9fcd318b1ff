"""Making text safe for a terminal: links show their real target, and no character hides or reorders others.

For text written by a model or a web page. Nothing is fetched: an image is shown as a link.
"""

from __future__ import annotations

import re
import unicodedata

from dragoman.base.visible import SHAPING, escape_hidden

_LABEL = r"\[(?P<label>[^\[\]\n]{0,1000})\]"
_TARGET = r"(?P<target><[^<>\n]{1,4000}>|(?:[^()\s<>]|\([^()\s<>]{0,1000}\)){1,4000})"
_TITLE = r"(?:[ \t]{1,10}(?:\"[^\"\n]{0,1000}\"|'[^'\n]{0,1000}'))?"
_PARTS = re.compile(
    r"(?P<code>```.*?(?:```|\Z)|`[^`\n]{1,2000}`)"
    rf"|(?P<image>!?){_LABEL}\({_TARGET}{_TITLE}\)"
    r"|(?P<url>(?:https?|ftp)://[^\s<>()\[\]\"'`]{1,4000})",
    re.DOTALL | re.IGNORECASE,
)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]{0,30}:|//|www\.", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}:)?[/\\]{2}(?P<authority>[^/\\?#]*)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)


def display_text(text: str) -> str:
    """`[label](url)` becomes `label (url)`; hosts become ASCII; control, bidirectional and invisible characters are escaped."""
    pieces: list[str] = []
    done = 0
    for found in _PARTS.finditer(text):
        pieces.append(_escape_invisible(text[done : found.start()]))
        pieces.append(_display_part(found))
        done = found.end()
    return "".join([*pieces, _escape_invisible(text[done:])])


def display_url(url: str) -> str:
    """A URL that shows where it leads: the host in ASCII (`xn--…`), a user name before it abbreviated to `…@`."""
    found = _AUTHORITY.fullmatch(url)
    if found is None:
        return escape_hidden(url, one_line=True)
    user, at, host = found["authority"].rpartition("@")
    name, colon, port = host.partition(":") if not host.startswith("[") else (host, "", "")
    shown = "".join([found["scheme"] or "", "//", "…@" if at and user else "", _ascii(name), colon, port, found["rest"]])
    return escape_hidden(shown, one_line=True)


def _display_part(found: re.Match[str]) -> str:
    if found["code"] is not None:
        return _escape_invisible(found[0])
    if found["url"] is not None:
        return display_url(found["url"])
    target = found["target"].strip("<>")
    if not _ABSOLUTE.match(target):
        return _escape_invisible(found[0])
    url, label = display_url(target), _escape_invisible(found["label"]).strip()
    mark = "image: " if found["image"] else ""
    return f"{mark}{url}" if not label or _without_scheme(label) == _without_scheme(url) else f"{mark}{label} ({url})"


def _without_scheme(url: str) -> str:
    return re.sub(r"^https?://", "", url, flags=re.IGNORECASE).rstrip("/")


def _ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return "".join(char if char.isascii() else f"<U+{ord(char):04X}>" for char in host)


def _escape_invisible(text: str) -> str:
    if not SHAPING.intersection(text):
        return escape_hidden(text)
    kept = {at for at in range(1, len(text)) if text[at] in SHAPING and _can_be_shaped(text[at - 1 : at], text[at - 2 : at - 1])}
    pieces: list[str] = []
    done = 0
    for at in sorted(kept):
        pieces += [escape_hidden(text[done:at]), text[at]]
        done = at + 1
    return "".join([*pieces, escape_hidden(text[done:])])


def _can_be_shaped(char: str, before: str) -> bool:
    if char == "\ufe0f":  # emoji variation selector
        return unicodedata.category(before or " ") == "So"
    return not char.isascii() and unicodedata.category(char)[0] in "LMS" and char not in SHAPING
