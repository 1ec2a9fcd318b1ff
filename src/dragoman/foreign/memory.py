"""Memory that other programs keep outside of the usual files: the user's own (`~/.claude/CLAUDE.md` …), files that settings of gemini-cli
name (`context.fileName`), rules of Claude Code (`.claude/rules`) and `instructions` of opencode.

Loaded only where one of them is there.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dragoman.base.text import one_line
from dragoman.extensions import located_json
from dragoman.extensions.files import SearchFolder, Unreadable, Walk, read_text, search_folder
from dragoman.extensions.frontmatter import read_frontmatter
from dragoman.extensions.sources import ProgramFolder
from dragoman.words import say

MAX_BYTES = 100_000
MAX_FILES = 50
_USERS = {"claude": ("CLAUDE.md",), "codex": ("AGENTS.override.md", "AGENTS.md"), "gemini": ("GEMINI.md",), "opencode": ("AGENTS.md",)}
"""What programs call the user's own memory. Of several names the first that is there counts."""


class OtherMemory(msgspec.Struct, frozen=True):
    """Memory that other programs keep, and notices about what could not be read."""

    users: tuple[str, ...] = ()
    """Paths of the user's own files."""
    names: tuple[str, ...] = ()
    """What memory files are called besides the usual names."""
    texts: tuple[tuple[str, str], ...] = ()
    """Path and text of what goes to the model unchanged."""
    notices: tuple[str, ...] = ()


def find_other_memory(folders: Sequence[ProgramFolder]) -> OtherMemory:
    """Never raises: what cannot be read is named."""
    finding = _Finding()
    for folder in folders:
        if folder.program == "gemini":
            finding.add_names(folder)
    for folder in folders:
        if folder.tier == "user":
            finding.add_users(folder)
        if folder.program == "claude":
            finding.add_rules(folder)
        elif folder.program == "opencode":
            finding.add_instructions(folder)
    return OtherMemory(tuple(finding.users), tuple(finding.names), tuple(finding.texts.items()), tuple(finding.notices))


class _Finding:
    def __init__(self) -> None:
        self.users: list[str] = []
        self.names: dict[str, None] = {}
        self.texts: dict[str, str] = {}
        self.notices: list[str] = []

    def add_names(self, folder: ProgramFolder) -> None:
        settings = self._settings(SearchFolder("gemini", folder.tier, folder.path, folder.within), "settings.json")
        context = settings.get("context")
        given = (context if isinstance(context, dict) else {}).get("fileName", settings.get("contextFileName"))
        for name in [given] if isinstance(given, str) else given if isinstance(given, list) else []:
            if isinstance(name, str) and name.strip() and name == os.path.basename(name) and name not in (".", ".."):
                self.names[name] = None

    def add_users(self, folder: ProgramFolder) -> None:
        names = _USERS.get(folder.program, ())
        more = tuple(self.names) if folder.program == "gemini" else ()
        paths = [os.path.join(folder.path, name) for name in names]
        first = next((path for path in paths if os.path.lexists(path)), "")
        self.users += [path for path in (first, *(os.path.join(folder.path, name) for name in more)) if path and os.path.lexists(path)]

    def add_rules(self, folder: ProgramFolder) -> None:
        """Those with `paths` say which files they are about."""
        place = search_folder(folder, "rules")
        if not os.path.isdir(place.path) or not place.holds(place.path):
            return
        found = [os.path.join(path, name) for path, _, files in Walk(place) for name in files if name.endswith(".md")]
        for path in sorted(found)[:MAX_FILES]:
            self._add(place, path)

    def add_instructions(self, folder: ProgramFolder) -> None:
        base = folder.project or folder.path
        place = SearchFolder("opencode", folder.tier, base, folder.within)
        for name in ("opencode.jsonc", "opencode.json"):
            given = self._settings(place, name).get("instructions")
            for written in given if isinstance(given, list) else ():
                if isinstance(written, str) and "://" not in written:
                    for path in _matches(base, written):
                        self._add(place, path)

    def _add(self, place: SearchFolder, path: str) -> None:
        if path in self.texts:
            return
        try:
            head = read_frontmatter(read_text(place, path, MAX_BYTES))
        except Unreadable as error:
            self.notices.append(say("memory_unreadable", name=path, reason=error))
            return
        about = ", ".join(head.words("paths", ","))
        if body := head.body.strip():
            self.texts[path] = f"(This is about files that match {one_line(about, 300)}.)\n{body}" if about else body

    def _settings(self, place: SearchFolder, name: str) -> dict[str, Any]:
        """The code that reads the servers in them reports broken files."""
        path = os.path.join(place.path, name)
        if not os.path.isfile(path):
            return {}
        try:
            values = located_json.decode(read_text(place, path, 1_000_000))
        except (Unreadable, located_json.WrongJson):
            return {}
        return values if isinstance(values, dict) else {}


def _matches(base: str, written: str) -> Sequence[str]:
    pattern = os.path.join(base, os.path.expanduser(written))
    return sorted(_first(glob.iglob(pattern, recursive=True)))


def _first(paths: Iterator[str]) -> list[str]:
    return [path for path, _ in zip(paths, range(MAX_FILES), strict=False) if os.path.isfile(path)]
