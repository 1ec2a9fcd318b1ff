"""The page and one session in one file that opens from disk, without a network: the same page, its scripts by their hashes, the data in it.

What it holds is what the log holds: keys were taken out before anything was written. Headers of requests are redacted as
`dragoman context --request` shows them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

from dragoman.base import jsontext
from dragoman.conversation.blocks import join_events
from dragoman.conversation.events import Renderer
from dragoman.conversation.session_page.assets import asset, page_words
from dragoman.conversation.session_page.costs import CostReader
from dragoman.conversation.session_page.files import changed_files, file_texts
from dragoman.conversation.session_page.reading import show_entries
from dragoman.conversation.types import ViewEvent
from dragoman.sessions.last_run import words_for_file
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import DragomanError
from dragoman.values.profile import ProtocolName
from dragoman.values.record import Entry, Said
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.pages.context_command import ContextCommand

MODULES = (
    "preact.js",
    "words.js",
    "source.js",
    "blocks.js",
    "windowed.js",
    "markdown.js",
    "diff.js",
    "rows.js",
    "request.js",
    "context.js",
    "files.js",
    "session.js",
    "list.js",
    "compare.js",
    "main.js",
)
"""In the order in which they need each other."""
MOST_REQUEST_BYTES = 200_000_000
"""So much of requests is prepared for one file: those of a session grow with its square."""
_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_EXPORTS = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def write_page(command: ContextCommand, entries: Sequence[Entry], stored: BlobStore, *, is_held: bool | None = None) -> str:
    """The whole file."""
    from dragoman import __version__

    session_id = command.summary.session_id
    renderer = Renderer()
    blocks = join_events(show_entries(entries, renderer, CostReader(command.prices)))
    last_run = str(words_for_file(renderer.run, is_held=is_held))
    found = {"id": command.short_id, "session_id": session_id, "title": command.summary.title, "last_run": last_run}
    found |= {"children": list[str](), "damaged": 0}
    files = changed_files(entries)
    data = {
        "version": __version__,
        "words": page_words(),
        "first": session_id,
        "missing": str(say("viewer.not_in_file")),
        "sessions": {session_id: found | {"blocks": blocks, "seq": 0, "generation": 1, "files": files}},
        "looks": {session_id: _looks(command, entries, files, stored)},
        "images": dict(_images(stored, blocks)),
    }
    return _page(jsontext.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


# --- the data


def _looks(command: ContextCommand, entries: Sequence[Entry], files: Sequence[dict[str, Any]], stored: BlobStore) -> dict[str, Any]:
    """What the page asks for part by part, by its question as the page writes it."""
    from dragoman.conversation.pages.context_simulate import run_simulation

    looks: dict[str, Any] = {"files": {"": files}, "requests": _requests(command, entries)} | _items(command, entries)
    texts = {(file["seq"], file["path"]): file_texts(entries, stored, file["seq"], file["path"]) for file in files}
    looks["file"] = [{"seq": seq, "path": path} | found for (seq, path), found in texts.items()]
    try:
        looks["simulate"] = {"": run_simulation(command, entries).to_json()}
    except DragomanError:
        pass  # nothing was called: there is nothing to simulate
    return looks


def _answers(entries: Sequence[Entry]) -> list[int]:
    return [entry.seq for entry in entries if isinstance(entry, Said) and entry.message.role != "user"]


_OWN = ("tokens", "whole", "cached", "usd")
"""What an item has of its own in each request."""


def _items(command: ContextCommand, entries: Sequence[Entry]) -> dict[str, Any]:
    """The items of each request. Most are those of the request before it: what stays the same of an item is there once, in `item_parts`."""
    parts: dict[str, int] = {}
    found = dict(_items_by_request(command, entries))
    for each in found.values():
        each["items"] = [_item_row(item, parts) for item in each["items"]]
    return {"items": found, "item_parts": [jsontext.decode(part.encode()) for part in parts], "item_own": _OWN}


def _item_row(item: dict[str, Any], parts: dict[str, int]) -> list[Any]:
    own = [round(value, 8) if isinstance(value := item.pop(name), float) else value for name in _OWN]
    return [parts.setdefault(jsontext.dumps(item), len(parts)), *own]


def _items_by_request(command: ContextCommand, entries: Sequence[Entry]) -> Iterator[tuple[str, Any]]:
    from dragoman.conversation.session_page.requests import items_before

    left = MOST_REQUEST_BYTES // 1000
    for seq in reversed(_answers(entries)):
        found = items_before(command, entries, seq)
        left -= len(found["items"])
        if left < 0:
            return
        yield f"seq={seq}", found


def _requests(command: ContextCommand, entries: Sequence[Entry]) -> dict[str, Any]:
    """By protocol: each request as what it adds to the one before it. A request is a prefix of the next, mostly."""
    from dragoman.conversation.session_page.requests import request_before

    found: dict[str, Any] = {}
    left = MOST_REQUEST_BYTES
    for wanted in ("", *get_args(ProtocolName)):
        before, changes = "", list[dict[str, Any]]()
        for seq in _answers(entries):
            try:
                request = request_before(command, entries, seq, wanted)
            except DragomanError:
                continue
            body = request.pop("body")
            left -= len(body)
            if left < 0:
                break
            changes.append({"seq": seq, "head": request} | change_of_text(before, body))
            before = body
        found[wanted] = changes
    return found


def change_of_text(before: str, after: str) -> dict[str, Any]:
    """What makes one text the other: how much of its beginning stays, what comes then, and how much of its end stays. Counted as
    JavaScript counts, in UTF-16, so that no character is cut."""
    most = min(len(before), len(after))
    keep = next((place for place in range(0, most, 4096) if before[place : place + 4096] != after[place : place + 4096]), most)
    while keep < most and before[keep] == after[keep]:
        keep += 1
    end = 0
    while end < most - keep and before[len(before) - 1 - end] == after[len(after) - 1 - end]:
        end += 1
    middle = after[keep : len(after) - end]
    return {"keep": _utf16(before[:keep]), "text": middle, "end": _utf16(before[len(before) - end :]) if end else 0}


def _utf16(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _images(stored: BlobStore, blocks: Sequence[ViewEvent]) -> Iterator[tuple[str, str]]:
    for block in blocks:
        for each in block.data.get("attachments", ()):
            if each.get("mime") in _IMAGES and (data := stored.get(each.get("sha256", ""))) is not None:
                yield each["sha256"], f"data:{each['mime']};base64,{base64.b64encode(data).decode()}"


# --- the page


def _page(data: str) -> str:
    styles = [_text("vendor/uplot.css"), _text("style.css")]
    libraries = [_text("vendor/htm-preact.js"), _text("vendor/uplot.js")]
    own = one_module()
    scripts = "".join(f"<script>{text}</script>\n" for text in libraries)
    allowed = " ".join(map(_hash_of, (*libraries, own)))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {' '.join(map(_hash_of, styles))}; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        "<title>Dragoman</title>\n" + "".join(f"<style>{text}</style>\n" for text in styles) + '</head>\n<body><div id="page"></div>\n'
        f'<script type="application/json" id="session-data">{data}</script>\n{scripts}<script type="module">{own}</script>\n'
        "</body>\n</html>\n"
    )


def one_module() -> str:
    """Our modules as one: their imports and exports name each other, and nothing else."""
    parts: list[str] = []
    for name in MODULES:
        text = _IMPORT.sub("", _text(name))
        names = _EXPORT.findall(text)
        parts.append(_EXPORTS.sub("", text))
        if name == "source.js":  # the others name it as a whole
            parts.append(f"const source = {{ {', '.join(names)} }};\n")
    return "\n".join(parts)


def _text(name: str) -> str:
    found = asset(name)
    assert found is not None, name
    return found.data.decode()


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
