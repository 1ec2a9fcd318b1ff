"""Images, PDFs, sounds and videos that a person names in a prompt with `@` (`@shot.png`, `@"my talk.pdf"`, `@https://example.org/a.png`),
or that come through standard input.

A drop or a paste names them by their whole path, so they may lie outside the workspace; a link inside it that leads out is not followed.
"""

from __future__ import annotations

import os
import urllib.parse

from dragoman.base.beneath import is_inside
from dragoman.tools.workspace import ToolRefusal, Workspace
from dragoman.values.errors import InputError
from dragoman.values.media import read_file
from dragoman.values.media_types import HEAD_BYTES, any_media_type
from dragoman.values.messages import Blob, FileRef
from dragoman.words import say

_ADDRESSES = ("https://", "http://", "gs://")


def is_address(name: str) -> bool:
    return name.startswith(_ADDRESSES)


def local_path(name: str, workspace: str) -> str:
    """The path that a name stands for: relative to the workspace, below the home, or as a `file:` URL."""
    if name.startswith("file://"):
        name = urllib.parse.unquote(urllib.parse.urlsplit(name).path)
    return os.path.join(workspace, os.path.expanduser(name))


def read_media(name: str, workspace: Workspace) -> Blob | FileRef:
    """What the name stands for. Raises InputError where it cannot or may not be read."""
    if is_address(name):
        return FileRef.of(name)
    path = local_path(name, workspace.root)
    real = os.path.realpath(path)
    if is_inside(os.path.normpath(path), workspace.root):
        try:
            workspace.resolve(real)
        except ToolRefusal as refused:
            if refused.error_type == "outside":
                raise InputError(say("prompt_file_not_read", name=name, reason=say("prompt_file_outside"))) from None
    if os.path.isfile(path) and not workspace.may_read(real):
        raise InputError(say("prompt_file_denied", name=name))
    return read_file(path, shown=name)


def media_in(data: bytes) -> list[Blob]:
    """An image, a PDF, a sound or a video, by how it begins; empty for anything else. A text may begin like a sound: it stays a text."""
    mime = any_media_type(data[:HEAD_BYTES])
    return [Blob.of(mime, data)] if mime and (mime == "application/pdf" or not _is_text(data)) else []


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
