"""A prompt as the client sends it, block by block, as what a person would have written: text that names files, and media."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from dragoman.acp.incoming import GivenResource, PromptBlock
from dragoman.values.errors import InputError
from dragoman.values.media import MAX_MEDIA_BYTES
from dragoman.values.media_types import HEAD_BYTES, any_media_type
from dragoman.values.messages import Attached, Blob, Text
from dragoman.words import say


def read_prompt(blocks: Sequence[PromptBlock], workspace: str) -> tuple[str, list[Text | Blob]]:
    """What is said, and what comes along: the content of embedded files, and media. Raises InputError for a block that cannot be sent."""
    said = ""
    along: list[Text | Blob] = []
    was_name = False
    for block in blocks:
        is_name = False
        match block.type:
            case "text":
                piece = block.text
            case "image" | "audio":
                along.append(_blob(block.data, block.mime_type or ""))
                continue
            case "resource_link" if block.uri:
                piece, is_name = _mention(*_named(block.uri, workspace)), True
            case "resource" if block.resource is not None and block.resource.blob is not None:
                along.append(_blob(block.resource.blob, block.resource.mime_type or ""))
                continue
            case "resource" if block.resource is not None:
                name = _quoted("".join(_named(block.resource.uri, workspace)[:2]))
                along.append(_embedded(name, block.resource))
                said, is_said = _unmarked(said, name)
                piece, is_name = "" if is_said else name, not is_said
            case _:
                raise InputError(say("acp.unknown_block", type=block.type[:40]))
        said += f" {piece}" if _would_touch(said, was_name, piece, is_name) else piece
        was_name = is_name if piece else was_name
    return said.strip(), along


def in_words(said: str, along: Sequence[Text | Blob]) -> tuple[str, list[Blob]]:
    """As one text, with embedded files behind it: for commands and for what steers a run, which are words alone."""
    texts = [part.text.strip() for part in along if isinstance(part, Text)]
    return "\n\n".join(filter(None, (said, *texts))), [part for part in along if isinstance(part, Blob)]


def _named(uri: str, workspace: str) -> tuple[str, str, bool]:
    """A file by its path, as short as it goes, and its lines; anything else by its address. Whether it is a file."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri, "", False
    if parts.scheme != "file" and not uri.startswith("/"):
        return uri, "", False
    path = unquote(parts.path) if parts.scheme else uri  # some editors write the bare path
    inside = os.path.relpath(path, workspace) if os.path.isabs(path) else path
    lines = _LINES.fullmatch(parts.fragment) if parts.scheme else None
    ranged = f":{lines[1]}-{lines[2] or lines[1]}" if lines is not None else ""
    return path if inside.startswith(os.pardir) else inside, ranged, True


def _mention(name: str, lines: str, is_file: bool) -> str:
    """A link names a file that is read when it is sent."""
    return f"@{_quoted(name + lines)}" if is_file else name


def _quoted(name: str) -> str:
    return f'"{name}"' if any(char.isspace() for char in name) else name


def _embedded(name: str, resource: GivenResource) -> Text:
    """The text as the editor has it, which may differ from the file's. Nothing in it is taken for a name that the person wrote."""
    from dragoman.acp.calls import fenced

    text = resource.text or ""
    shown = fenced(text) if len(text) <= MAX_TEXT_CHARS else say("acp.resource_too_long", count=len(text))
    return Text(f"\n\n{name}:\n{shown}", attached=Attached(name))


def _unmarked(said: str, name: str) -> tuple[str, bool]:
    """Without the `@` of a name that the text has already: what it names comes along, and is not read from the disk too. Whether it has."""
    found, count = re.subn(rf"@(?={re.escape(name)}(?![\w/-]|\.\w))", "", said)
    return found, count > 0


def _would_touch(said: str, was_name: bool, piece: str, is_name: bool) -> bool:
    """Whether a name and what stands beside it would be read as one word. Some editors put no blank between their blocks."""
    if not said or not piece or said[-1].isspace() or piece[0].isspace():
        return False
    return (is_name and said[-1] not in _OPENS) or (was_name and (is_name or piece[0].isalnum() or piece[0] in "_/@"))


_LINES = re.compile(r"L?(\d{1,7})(?:[:-]L?(\d{1,7}))?")
"""`#L3:7`, `#L3-L7`: as editors write them."""
_OPENS = "([{<\"'`"
MAX_TEXT_CHARS = 400_000


def _blob(data: str, mime: str) -> Blob:
    try:
        found = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(say("acp.not_base64")) from error
    if not found or len(found) > MAX_MEDIA_BYTES:
        raise InputError(say("acp.media_size", size=len(found), most=MAX_MEDIA_BYTES))
    # The bytes tell what it is: some clients name another type.
    kind = any_media_type(found[:HEAD_BYTES]) or mime
    if not kind:
        raise InputError(say("values.media_unknown"))
    return Blob.of(kind, found)
