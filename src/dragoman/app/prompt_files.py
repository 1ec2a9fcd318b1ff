"""Files and folders that a person names in a prompt with `@`: `@src/a.py`, `@a.py:10-40`, `@"my notes.md"`, `@docs/`.

They are read as the model reads them, by its own tools: the same bounds, rules, hooks and secrets, and what was read counts as seen.
Images, PDFs, sounds and videos: prompt_media.py. A word that names nothing stays as it stands.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from dragoman.app.prompt_media import is_address, local_path, read_media
from dragoman.base import jsontext
from dragoman.base.ids import new_session_id
from dragoman.loop.agent import Agent
from dragoman.loop.outside_calls import decide_outside, run_outside
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import Allow, ToolOutput
from dragoman.values.errors import InputError
from dragoman.values.media_types import type_of_name
from dragoman.values.messages import Attached, Blob, Content, Text, ToolCall
from dragoman.values.record import FileVersion
from dragoman.words import say

MAX_FILES = 20
MAX_CHARS = 200_000
"""Of all that one prompt names, together."""

# A name begins a word, also behind an opening bracket and a comma, and between characters of languages that write no blanks.
_WORD = re.compile(r'(?<![^\s(\[{<,;"\'`\u2018-\u201d\u3000-\u9fff\uac00-\ud7af\uff00-\uffef])@(?:"([^"\n]+)"|([^\s@"][^\s"]*))')
_ENDS = ".,;:!?)]}>'`\u2019\u201d"
_GOES_ON = re.compile("[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef]|(?<=[^\\w])@")
"""Where a name may end: before a character of a language that writes no blanks, or before the next name."""
_MOST_ENDS = 40
_LINES = re.compile(r"(?::|#L?)(\d{1,7})(?:(-)L?(\d{1,7})?)?\Z")
_COUNTED = re.compile(r"(\d+)(?: of (\d+))?")
_LOOKS_LIKE_A_FILE = re.compile(r"[^/]\.[A-Za-z][A-Za-z0-9]{0,5}\Z")


class NamedFile(msgspec.Struct, frozen=True):
    """A file as it is named."""

    name: str
    """What stands behind the `@`."""
    path: str
    """Real and absolute."""
    first: int = 0
    """Lines, from 1; 0: from the beginning, or to the end."""
    last: int = 0
    refused: str = ""
    """Why it may not be read."""
    is_media: bool = False
    """An image, a PDF, a sound or a video, by its name."""


class NamedContent(msgspec.Struct):
    """What a prompt names."""

    parts: list[Content] = []
    attached: list[str] = []
    """A line for each part."""
    shortened: list[str] = []
    """Those of the lines that are of files and folders of which only the beginning is sent."""
    problems: list[str] = []
    """A sentence for each that cannot be read or sent."""
    notices: list[str] = []


async def attach(agent: Agent, text: str) -> NamedContent:
    """Read what the text names, in the order in which it does."""
    found = NamedContent()
    chars = 0
    for number, named in enumerate(list(_names(agent, text, found))):
        if number >= MAX_FILES or chars >= MAX_CHARS:
            found.problems.append(say("prompt_files_too_many", name=named.name, files=MAX_FILES, chars=MAX_CHARS))
            continue
        if named.refused:
            found.problems.append(say("prompt_file_not_read", name=named.name, reason=named.refused))
            continue
        parts = await (_read_media(agent, named, found) if named.is_media else _read(agent, named, found))
        chars += sum(len(part.text) for part in parts if isinstance(part, Text))
        found.parts += parts
    return found


async def _read_media(agent: Agent, named: NamedFile, found: NamedContent) -> list[Content]:
    """The image, PDF, sound or video behind a line with its name, so that the model can tell several apart."""
    try:
        part = await asyncio.to_thread(read_media, named.name, agent.workspace)
    except InputError as error:
        found.problems.append(str(error))
        return []
    if fault := agent.provider.media_fault(part, agent.model):
        found.problems.append(say("media_not_sent", name=named.name, reason=fault))
        return []
    found.attached.append(say("prompt_media_attached", name=f"@{named.name}", mime=part.mime))
    return [Text(f"\n\n--- {named.name} ---\n", attached=Attached(f"@{named.name}", named.path)), part]


def _names(agent: Agent, text: str, found: NamedContent) -> Iterator[NamedFile]:
    servers = agent.beside.get("mcp")
    told: set[tuple[str, int, int]] = set()
    at = 0
    while (match := _WORD.search(text, at)) is not None:
        quoted, plain = match.groups(default="")
        at = match.end()
        if servers is not None and servers.names_resource(quoted or plain):
            continue
        named = _find(agent, quoted, plain)
        if named is not None:
            at -= len(plain) - len(named.name) if plain else 0
            if (key := (named.path, named.first, named.last)) not in told:
                told.add(key)
                yield named
            continue
        at = match.start() + 1  # another name may begin in the middle of what names nothing
        words = _candidates(quoted, plain)
        if media := next((word for word in words if _is_media(word)), ""):
            yield NamedFile(media, media, is_media=True)
        elif missing := quoted or next((word for word in words if _LOOKS_LIKE_A_FILE.search(_LINES.sub("", word))), ""):
            found.notices.append(say("prompt_file_missing", name=missing))


def _candidates(quoted: str, plain: str) -> list[str]:
    """What may be the name, the longest first. The word may go on behind it: with what ends a sentence, with the next name, or with a
    language without blanks."""
    if quoted:
        return [quoted]
    ends = [match.start() for match in _GOES_ON.finditer(plain)][:_MOST_ENDS]
    found = (each for end in (len(plain), *reversed(ends)) for each in (plain[:end], plain[:end].rstrip(_ENDS)))
    return [word for word in dict.fromkeys(found) if word]


def _find(agent: Agent, quoted: str, plain: str) -> NamedFile | None:
    """What is there under that name."""
    for word in _candidates(quoted, plain):
        if _is_media(word):
            path = word if is_address(word) else local_path(word, str(agent.workspace.root))
            if is_address(word) or ("\0" not in path and os.path.lexists(path)):
                return NamedFile(word, path, is_media=True)
            continue
        ranged = _LINES.search(word)
        if (named := _there(agent, word, word, 0, 0)) is not None:
            return named
        if ranged is not None:
            first = int(ranged[1])
            last = int(ranged[3]) if ranged[3] else 0 if ranged[2] else first
            if (named := _there(agent, word, word[: ranged.start()], first, last)) is not None:
                return named
    return None


def _is_media(word: str) -> bool:
    """By its name, without what ends a sentence: `shot.png?` would be an address with a query."""
    return word[-1:] not in _ENDS and bool(type_of_name(word))


def _there(agent: Agent, name: str, path: str, first: int, last: int) -> NamedFile | None:
    workspace = agent.workspace
    try:
        real = workspace.resolve(path)
    except ToolRefusal as refused:
        outside = os.path.join(str(workspace.root), os.path.expanduser(path))
        is_there = "\0" not in path and os.path.lexists(outside)
        words = {"outside": say("prompt_file_outside"), "secret": say("prompt_file_secret")}
        return NamedFile(name, path, first, last, refused=words.get(refused.error_type, refused.message)) if is_there else None
    return NamedFile(name, real, first, last) if os.path.lexists(real) else None


async def _read(agent: Agent, named: NamedFile, found: NamedContent) -> list[Content]:
    """By the tool that the model has for it: rules, hooks and a person decide as about the model's own call."""
    harness = agent._harness
    call = _call_for(named)
    tool = harness.registry.get(call.name)
    try:
        if tool is None:
            raise ToolRefusal(say("prompt_file_no_tool", tool=call.name), "refused")
        decision = await decide_outside(harness, call)
        if not isinstance(decision, Allow):
            raise ToolRefusal(getattr(decision, "reason", "") or say("prompt_file_undecided"), "refused")
        output = await run_outside(harness, tool, call)
        if output.is_error:
            raise ToolRefusal("".join(part.text for part in output.content if isinstance(part, Text)), output.error_type)
    except ToolRefusal as error:
        found.problems.append(say("prompt_file_not_read", name=named.name, reason=error.message))
        return []
    return _parts(agent, named, output, found)


def _call_for(named: NamedFile) -> ToolCall:
    name = "list_directory" if os.path.isdir(named.path) else "read_file"
    arguments: dict[str, str | int] = {"path" if name == "list_directory" else "file_path": named.path}
    if name == "read_file" and named.first:
        arguments["offset"] = named.first
    if name == "read_file" and named.last:
        arguments["limit"] = max(named.last - max(named.first, 1) + 1, 1)
    return ToolCall(f"prompt-{new_session_id()}", name, jsontext.dumps(arguments))


def _parts(agent: Agent, named: NamedFile, output: ToolOutput, found: NamedContent) -> list[Content]:
    """A text part that says what it is, and a file's media beside it."""
    shown = agent.workspace.display_path(named.path)
    is_folder = os.path.isdir(named.path)
    parts: list[Content] = []
    for part in output.content:
        if not isinstance(part, Text):
            if fault := agent.provider.media_fault(part, agent.model):
                found.problems.append(say("media_not_sent", name=named.name, reason=fault))
                return []
            parts.append(part)
    text = "\n".join(part.text for part in output.content if isinstance(part, Text)).rstrip("\n")
    head = f"{shown}, a folder" if is_folder else f"{shown}, from line {named.first}" if named.first else shown
    said = f"\n\n--- {head} ---\n{text}\n--- end of {shown} ---"
    _tell(named, parts, output.display, found, is_folder=is_folder)
    read = next(iter(output.files), FileVersion(named.path))
    return [Text(said, attached=Attached(f"@{named.name}", named.path, read.digest, read.lines)), *parts]


def _tell(named: NamedFile, media: Sequence[Content], display: str, found: NamedContent, *, is_folder: bool) -> None:
    name = f"@{named.name}"
    if media and isinstance(media[0], Blob):
        return found.attached.append(say("prompt_media_attached", name=name, mime=media[0].mime))
    counted = _COUNTED.match(display)
    count, total = (int(number or 0) for number in counted.groups()) if counted else (0, 0)
    kind = "folder" if is_folder else "file"
    wanted = min(named.last or total, total) - max(named.first, 1) + 1
    if count >= wanted:
        return found.attached.append(say(f"prompt_{kind}_attached", name=name, count=count))
    found.attached.append(say(f"prompt_{kind}_part", name=name, count=count, total=total))
    return found.shortened.append(found.attached[-1])
