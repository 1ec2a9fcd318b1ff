"""Text as a terminal may show it: links name their real target, and no character hides or reorders others.

For words that a model or a page wrote. Nothing is fetched: an image is shown as the link that it is.
"""

from __future__ import annotations

import re
import unicodedata

from dragoman.base.visible import SHAPING, visible

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


def shown_text(text: str) -> str:
    """`[label](url)` becomes `label (url)`; hosts are ASCII; control, bidirectional and invisible characters are spelled out."""
    pieces: list[str] = []
    done = 0
    for found in _PARTS.finditer(text):
        pieces.append(_seen(text[done : found.start()]))
        pieces.append(_part(found))
        done = found.end()
    return "".join([*pieces, _seen(text[done:])])


def shown_url(url: str) -> str:
    """A URL that says where it leads: the host in ASCII (`xn--…`), and of a user name before it only that there is one."""
    found = _AUTHORITY.fullmatch(url)
    if found is None:
        return visible(url, one_line=True)
    user, at, host = found["authority"].rpartition("@")
    name, colon, port = host.partition(":") if not host.startswith("[") else (host, "", "")
    shown = "".join([found["scheme"] or "", "//", "…@" if at and user else "", _ascii(name), colon, port, found["rest"]])
    return visible(shown, one_line=True)


def _part(found: re.Match[str]) -> str:
    if found["code"] is not None:
        return _seen(found[0])
    if found["url"] is not None:
        return shown_url(found["url"])
    target = found["target"].strip("<>")
    if not _ABSOLUTE.match(target):
        return _seen(found[0])
    url, label = shown_url(target), _seen(found["label"]).strip()
    mark = "image: " if found["image"] else ""
    return f"{mark}{url}" if not label or _bare(label) == _bare(url) else f"{mark}{label} ({url})"


def _bare(url: str) -> str:
    return re.sub(r"^https?://", "", url, flags=re.IGNORECASE).rstrip("/")


def _ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return "".join(char if char.isascii() else f"<U+{ord(char):04X}>" for char in host)


def _seen(text: str) -> str:
    if not SHAPING.intersection(text):
        return visible(text)
    kept = {at for at in range(1, len(text)) if text[at] in SHAPING and _can_be_shaped(text[at - 1 : at], text[at - 2 : at - 1])}
    pieces: list[str] = []
    done = 0
    for at in sorted(kept):
        pieces += [visible(text[done:at]), text[at]]
        done = at + 1
    return "".join([*pieces, visible(text[done:])])


def _can_be_shaped(char: str, before: str) -> bool:
    if char == "\ufe0f":  # a picture in colour, joined to the next
        return unicodedata.category(before or " ") == "So"
    return not char.isascii() and unicodedata.category(char)[0] in "LMS" and char not in SHAPING
