"""Images, PDFs, sounds and videos that a person names in a prompt with `@`: `@shot.png`, `@"my talk.pdf"`, `@https://example.org/a.png`.

Other `@` words are left as they stand.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Callable, Iterator

from dragoman.values.contracts import Provider
from dragoman.values.errors import InputError
from dragoman.values.media import read_file
from dragoman.values.media_types import type_of_name
from dragoman.values.messages import Blob, FileRef
from dragoman.words import say

_WORD = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_ENDS = ".,;:!?)]}>'\"。，；：！？）】》”’"
"""What ends a sentence and is no part of a name."""
_ADDRESSES = ("https://", "http://", "gs://")


def read_named_media(
    text: str, workspace: str, provider: Provider, model: str, may_read: Callable[[str], bool] = lambda path: True
) -> tuple[list[Blob | FileRef], list[str]]:
    """What a prompt names and the model can be sent; and a sentence for each that cannot be read or sent. `may_read`: whether rules let a
    file be read, by its real path."""
    media: list[Blob | FileRef] = []
    problems: list[str] = []
    for name in _names(text):
        try:
            part = _read(name, workspace, may_read)
        except InputError as error:
            problems.append(str(error))
            continue
        if fault := provider.media_fault(part, model):
            problems.append(say("media_not_sent", name=name, reason=fault))
        elif part not in media:
            media.append(part)
    return media, problems


def local_path(name: str, workspace: str) -> str:
    """The path that a name stands for: relative to the workspace, below the home, or as a `file:` URL."""
    if name.startswith("file://"):
        name = urllib.parse.unquote(urllib.parse.urlsplit(name).path)
    return os.path.join(workspace, os.path.expanduser(name))


def _names(text: str) -> Iterator[str]:
    for quoted, plain in _WORD.findall(text):
        name = quoted or plain.rstrip(_ENDS)
        if type_of_name(name):
            yield name


def _read(name: str, workspace: str, may_read: Callable[[str], bool]) -> Blob | FileRef:
    if name.startswith(_ADDRESSES):
        return FileRef.of(name)
    path = local_path(name, workspace)
    if os.path.isfile(path) and not may_read(os.path.realpath(path)):
        raise InputError(say("prompt_file_denied", name=name))
    return read_file(path, shown=name)
