"""A server's response as text for a model: detects the media type and the character set, whatever the headers claim."""

from __future__ import annotations

import codecs
import re

import msgspec

from dragoman.base.visible import strip_hidden
from dragoman.tools.names import format_size
from dragoman.tools.web.page import read_page
from dragoman.tools.worker import Stop, in_thread
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.media_types import media_type

_SNIFFED_BYTES = 4_096
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = re.compile(
    r"text/.*|application/(json|xml|javascript|ecmascript|x-javascript|yaml|x-yaml|toml|sql|graphql|x-sh|x-ndjson|rtf)|.*\+(json|xml)"
)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_DECLARED = re.compile(
    rb"<meta[^>]{0,1000}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{1,40})|<\?xml[^>]{0,200}encoding=[\"']([A-Za-z0-9._:-]{1,40})",
    re.IGNORECASE,
)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CODECS = re.compile(
    r"utf-8|utf-16(-[lb]e)?|utf-32(-[lb]e)?|iso8859-\d+|cp(125\d|866|874|932|949|950)|koi8-[rut]|gb2312|gbk|gb18030|hz|big5(hkscs)?|euc_(jp|kr)|"
    r"shift_jis(_2004|x0213)?|iso2022_(jp|kr)|tis-620|mac-(roman|cyrillic)|johab"
)
"""Character sets of the web. Only these: some of Python's other codecs decompress or evaluate their input."""
_HTML_START = re.compile(rb"\s*(<!doctype html|<html|<head|<body|<\?xml[^>]{0,200}>\s*<(!doctype html|html))", re.IGNORECASE)


class Content(msgspec.Struct, frozen=True):
    text: str
    kind: str
    """The detected media type: `text/html` …"""
    title: str = ""
    is_cut: bool = False


async def read_content(data: bytes, content_type: str, url: str) -> Content:
    """Raises ToolRefusal if it is not text. Long work runs in a thread, and a cancel ends it."""
    kind = _detect_kind(data, content_type)
    if kind == "application/pdf":
        from dragoman.tools.web.pdf import extract_pdf_text

        return Content(strip_hidden(await extract_pdf_text(data)), kind)
    if not _TEXT.fullmatch(kind):
        raise ToolRefusal(f"{url} is {kind}, {format_size(len(data))}: only text, HTML, JSON and PDF can be read", "not_text")
    return await in_thread(lambda stop: _read_text(data, content_type, kind, url, stop))


def _read_text(data: bytes, content_type: str, kind: str, url: str, stop: Stop) -> Content:
    text = decode_text(data, content_type, is_html=kind in _HTML)
    if kind not in _HTML:
        return Content(strip_hidden(text), kind)
    page = read_page(text, url, stop)
    return Content(strip_hidden(page.markdown), kind, strip_hidden(page.title), page.is_cut)


def _detect_kind(data: bytes, content_type: str) -> str:
    """The media type: by content, else by the server's header."""
    if media := media_type(data[:16]):
        return media
    kind = content_type.partition(";")[0].strip().lower()
    if kind in ("", "application/octet-stream", "unknown/unknown", "application/unknown", "*/*"):
        kind = "text/html" if _HTML_START.match(data[:_SNIFFED_BYTES]) else "text/plain"
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or "utf-16" in content_type.lower()
    if b"\0" in data[:_SNIFFED_BYTES] and not is_wide:
        return kind if not _TEXT.fullmatch(kind) else "binary data"
    return kind


def decode_text(data: bytes, content_type: str = "", *, is_html: bool = False) -> str:
    """Decode by byte order mark, the server's charset, the page's charset, else UTF-8 or Windows-1252.

    A charset that clearly does not fit is skipped for the next: servers are often wrong about it.
    """
    for bom, codec in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(codec, "replace")
    names = [found[1] for found in [_CHARSET.search(content_type)] if found is not None]
    if is_html and (found := _DECLARED.search(data[:_SNIFFED_BYTES])) is not None:
        names.append((found[1] or found[2]).decode("ascii"))
    fallback = ""
    for codec in dict.fromkeys(filter(None, map(_codec, [*names, "utf-8", "windows-1252"]))):
        text = data.decode(codec, "replace")
        if text.count("\ufffd") <= max(3, len(text) // 200):
            return text
        fallback = fallback or text
    return fallback


def _codec(name: str) -> str:
    """Python's name of a character set; empty if it is not a web charset."""
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    if codec in ("ascii", "iso8859-1"):
        return "cp1252"  # as browsers do
    return codec if _CODECS.fullmatch(codec) else ""
