"""Files and folders that a person names in a prompt with `@`: `@src/a.py`, `@a.py:10-40`, `@"my notes.md"`, `@docs/`.

They are read as the model reads them, by its own tools: the same bounds, rules, hooks and secrets, and what was read counts as seen.
Images, PDFs, sounds and videos: prompt_media.py. A word that names nothing stays as it stands.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator

import msgspec

from dragoman.app.prompt_media import read_named_media
from dragoman.base import jsontext
from dragoman.base.ids import new_session_id
from dragoman.loop.agent import Agent
from dragoman.loop.outside_calls import decide_outside, run_outside
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import Allow, ToolOutput
from dragoman.values.media_types import type_of_name
from dragoman.values.messages import Attached, Content, Text, ToolCall
from dragoman.words import say

MAX_FILES = 20
MAX_CHARS = 200_000
"""Of all that one prompt names, together."""

# A name begins a word, also behind an opening bracket and between characters of languages that write no blanks.
_WORD = re.compile(r'(?<![^\s(\[{<"\'`\u2018-\u201d\u3000-\u9fff\uac00-\ud7af\uff00-\uffef])@(?:"([^"\n]+)"|([^\s@"][^\s"]*))')
_ENDS = ".,;:!?)]}>'`\u2019\u201d"
_UNSPACED = re.compile("[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef]")
"""Characters of languages that write no blanks: a name may end before one."""
_MOST_ENDS = 40
_LINES = re.compile(r"(?::|#L?)(\d{1,7})(?:(-)L?(\d{1,7})?)?\Z")
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


class NamedContent(msgspec.Struct):
    """What a prompt names."""

    parts: list[Content] = []
    attached: list[str] = []
    """A line for each part."""
    problems: list[str] = []
    """A sentence for each that cannot be read or sent."""
    notices: list[str] = []


async def attach(agent: Agent, text: str) -> NamedContent:
    """Read what the text names."""
    found = NamedContent()
    await _attach_media(agent, text, found)
    chars = 0
    files = list(_names(agent, text, found))
    for number, named in enumerate(files):
        if number >= MAX_FILES or chars >= MAX_CHARS:
            found.problems.append(say("prompt_files_too_many", name=named.name, files=MAX_FILES, chars=MAX_CHARS))
            continue
        if named.refused:
            found.problems.append(say("prompt_file_not_read", name=named.name, reason=named.refused))
            continue
        parts = await _read(agent, named, found)
        chars += sum(len(part.text) for part in parts if isinstance(part, Text))
        found.parts += parts
    return found


async def _attach_media(agent: Agent, text: str, found: NamedContent) -> None:
    workspace = agent.workspace
    media, problems = await asyncio.to_thread(read_named_media, text, str(workspace.root), agent.provider, agent.model, workspace.may_read)
    found.parts += media
    found.problems += problems
    if media:
        are_images = all(part.mime.startswith("image/") for part in media)
        found.attached.append(say("prompt_images_sent" if are_images else "prompt_files_sent", count=len(media)))


def _names(agent: Agent, text: str, found: NamedContent) -> Iterator[NamedFile]:
    servers = agent.beside.get("mcp")
    told: set[tuple[str, int, int]] = set()
    for quoted, plain in _WORD.findall(text):
        if servers is not None and servers.names_resource(quoted or plain):
            continue
        named = _find(agent, quoted, plain)
        if named is None:
            word = quoted or plain.rstrip(_ENDS)
            if quoted or _LOOKS_LIKE_A_FILE.search(_LINES.sub("", word)):
                found.notices += [] if type_of_name(word) else [say("prompt_file_missing", name=word)]
        elif not type_of_name(named.name) and (key := (named.path, named.first, named.last)) not in told:
            told.add(key)
            yield named


def _find(agent: Agent, quoted: str, plain: str) -> NamedFile | None:
    """What is there under that name. A word may go on behind it: with what ends a sentence, or with one of a language without blanks."""
    ends = [match.start() for match in _UNSPACED.finditer(plain)][:_MOST_ENDS]
    words = [quoted] if quoted else [each for end in (len(plain), *reversed(ends)) for each in (plain[:end], plain[:end].rstrip(_ENDS))]
    for word in dict.fromkeys(words):
        ranged = _LINES.search(word)
        if word and (named := _there(agent, word, word, 0, 0)) is not None:
            return named
        if ranged is not None:
            first = int(ranged[1])
            last = int(ranged[3]) if ranged[3] else 0 if ranged[2] else first
            if (named := _there(agent, word, word[: ranged.start()], first, last)) is not None:
                return named
    return None


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
    counted = re.match(r"\d+", output.display)
    about = "prompt_files_sent" if parts else "prompt_folder_attached" if is_folder else "prompt_file_attached"
    found.attached.append(say(about, name=f"@{named.name}", count=int(counted[0]) if counted and not parts else len(parts)))
    return [Text(said, attached=Attached(f"@{named.name}", named.path)), *parts]
