"""What is wrong with the files of other programs as a whole: syntax errors, and links that lead out of the project.

Whoever reads rules, hooks or servers looks only at files that mention them. Here each file is looked at once, so that a broken one is told
of whatever stands in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from dragoman.base.text_files import FileProblem, read_text
from dragoman.extensions import located_json
from dragoman.extensions.sources import ProgramFolder
from dragoman.words import say

MAX_FILE_BYTES = 1_000_000
_FILES = {
    "claude": ("settings.json", "settings.local.json"),
    "codex": ("hooks.json", "config.toml"),
    "gemini": ("settings.json",),
    "opencode": ("opencode.json", "opencode.jsonc"),
}
_BESIDE = {"claude": (".mcp.json",), "opencode": ("opencode.json", "opencode.jsonc")}
"""In the project itself, beside the program's folder."""
_PARTS = ("agent", "agents", "command", "commands", "extensions", "plugins", "rules", "skill", "skills")


def find_wrong_files(folders: Sequence[ProgramFolder]) -> tuple[str, ...]:
    """A notice for each, with its line where that is known. Never raises."""
    return tuple(notice for folder in folders for notice in _wrong_in(folder))


def _wrong_in(folder: ProgramFolder) -> Iterator[str]:
    beside = [os.path.join(folder.project, name) for name in _BESIDE.get(folder.program, ()) if folder.project]
    is_out = os.path.lexists(folder.path) and folder.leads_out()
    if is_out:
        yield _leads_out(folder, folder.path)
    files = [] if is_out else [os.path.join(folder.path, name) for name in _FILES.get(folder.program, ())]
    for path in filter(os.path.lexists, (*beside, *files)):
        if notice := _leads_out(folder, path) if folder.leads_out(path) else _syntax_error(path):
            yield notice
    for path in () if is_out or not folder.project else (os.path.join(folder.path, name) for name in _PARTS):
        if os.path.lexists(path) and folder.leads_out(path):
            yield _leads_out(folder, path)


def _leads_out(folder: ProgramFolder, link: str) -> str:
    target = os.path.realpath(link)
    known = (*_FILES.get(folder.program, ()), *_PARTS)
    inside = ", ".join(name for name in known if os.path.lexists(os.path.join(target, name))) if link == folder.path else ""
    return say("link_leads_out", link=link, target=target, folder=folder.within, inside=f" ({inside})" if inside else "")


def _syntax_error(path: str) -> str:
    """Empty if there is none."""
    try:
        text = read_text(path, MAX_FILE_BYTES)
    except FileProblem as problem:
        return say("file_not_used", place=path, reason=problem)
    if not text.strip():
        return ""
    return _toml_error(text, path) if path.endswith(".toml") else _json_error(text, path)


def _json_error(text: str, path: str) -> str:
    try:
        located_json.decode(text)
    except located_json.WrongJson as error:
        return say("file_not_used", place=f"{path}:{error.line}", reason=error)
    return ""


def _toml_error(text: str, path: str) -> str:
    import tomllib

    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        from dragoman.base.toml_lines import place_of_fault

        return say("file_not_used", place=place_of_fault(path, error), reason=error)
    return ""
