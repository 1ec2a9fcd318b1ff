"""What an element's attributes mean: whether it is hidden, and where it links to."""

from __future__ import annotations

import re
from urllib.parse import urljoin

MAX_URL_CHARS = 2_000
_DROPPED = {
    "audio", "canvas", "datalist", "head", "iframe", "map", "noembed", "noframes", "object", "script", "select", "style", "svg",
    "template", "video",
}  # fmt: skip
"""Elements whose content is not text for reading."""
_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0*)?\s*(?:;|$|!)|font-size\s*:\s*0", re.IGNORECASE)


def is_hidden(name: str, attributes: dict[str, str]) -> bool:
    if name in _DROPPED or "hidden" in attributes or attributes.get("aria-hidden", "").lower() == "true":
        return name != "title"
    return _UNSEEN.search(attributes.get("style", "")[:2_000]) is not None


def link(base: str, href: str) -> str:
    """An absolute http or mailto URL; empty for other links and for links within the page."""
    href = href.strip().replace("\n", "").replace("\t", "").replace(" ", "%20") if len(href) <= MAX_URL_CHARS else ""
    if not href or href.startswith("#"):
        return ""
    url = absolute(base, href)
    if not url.lower().startswith(("http://", "https://", "mailto:")):
        return ""
    return url.replace("(", "%28").replace(")", "%29").replace("<", "%3C").replace(">", "%3E")


def absolute(base: str, href: str) -> str:
    try:
        return urljoin(base, href)
    except ValueError:
        return ""
