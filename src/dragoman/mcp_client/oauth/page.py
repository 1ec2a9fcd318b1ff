"""The page that the browser shows when it comes back, in both languages: nobody knows which one the browser's user reads.

Nothing of the request stands in it, and it loads nothing.
"""

from __future__ import annotations

from html import escape

from dragoman.words import in_language, say

_LANGUAGES = ("en", "zh")


def page(key: str, status: str) -> bytes:
    """A whole HTTP answer that says one sentence."""
    sentences = [(language, escape(in_language(say(key), language))) for language in _LANGUAGES]
    paragraphs = "".join(f'<p lang="{language}">{text}</p>' for language, text in sentences)
    body = f"<!doctype html><html><head><meta charset=utf-8><title>Dragoman</title></head><body>{paragraphs}</body></html>\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "content-security-policy: default-src 'none'; frame-ancestors 'none'\r\nreferrer-policy: no-referrer\r\n"
        "x-content-type-options: nosniff\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
