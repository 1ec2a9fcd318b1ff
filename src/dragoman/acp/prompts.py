"""A prompt as the client sends it, block by block, as what a person would have written: text that names files, and media."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from dragoman.acp.incoming import GivenResource, PromptBlock
from dragoman.values.errors import InputError
from dragoman.values.media import MAX_MEDIA_BYTES
from dragoman.values.media_types import HEAD_BYTES, any_media_type
from dragoman.values.messages import Blob
from dragoman.words import say


def read_prompt(blocks: Sequence[PromptBlock], workspace: str) -> tuple[str, list[Blob]]:
    """Raises InputError for a block that cannot be sent. Files that are embedded stand behind the text that names them."""
    said: list[str] = []
    behind: list[str] = []
    media: list[Blob] = []
    for block in blocks:
        match block.type:
            case "text":
                said.append(block.text)
            case "image" | "audio":
                media.append(_blob(block.data, block.mime_type or ""))
            case "resource_link" if block.uri:
                said.append(name_of(block.uri, workspace))
            case "resource" if block.resource is not None:
                _embed(block.resource, workspace, said, behind, media)
            case _:
                raise InputError(say("acp.unknown_block", type=block.type[:40]))
    return "\n\n".join(filter(None, ("".join(said).strip(), *behind))), media


def name_of(uri: str, workspace: str) -> str:
    """As it is named in a prompt: a file by its path, as short as it goes, anything else by its address."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme != "file":
        return uri
    path = unquote(parts.path)
    inside = os.path.relpath(path, workspace) if os.path.isabs(path) else path
    shown = path if inside.startswith(os.pardir) else inside
    return f'@"{shown}"' if any(char.isspace() for char in shown) else f"@{shown}"


def _embed(resource: GivenResource, workspace: str, said: list[str], behind: list[str], media: list[Blob]) -> None:
    if resource.blob is not None:
        media.append(_blob(resource.blob, resource.mime_type or ""))
        return
    from dragoman.acp.calls import fenced

    name = name_of(resource.uri, workspace)
    said.append(name)
    text = resource.text or ""
    behind.append(f"{name}:\n{fenced(text) if len(text) <= MAX_TEXT_CHARS else say('acp.resource_too_long', count=len(text))}")


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
