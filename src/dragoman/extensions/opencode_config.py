"""What opencode.json and opencode.jsonc define besides servers: agents and commands, each a table by its name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dragoman.extensions import located_json
from dragoman.extensions.files import SearchFolder, Unreadable, read_text
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Origin

MAX_BYTES = 1_000_000
_FILE = re.compile(r"\{file:([^}]+)\}")


class DefinedTable(msgspec.Struct, frozen=True):
    """An agent or a command that opencode.json defines."""

    name: str
    values: dict[str, Any]
    origin: Origin
    place: SearchFolder
    """Where the files lie that it may name."""

    def text(self, key: str) -> str:
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def long_text(self, key: str) -> str:
        """With what files say where `{file:./prompt.md}` stands. Raises Unreadable."""
        return _FILE.sub(self._content, self.text(key))

    def _content(self, found: re.Match[str]) -> str:
        folder = os.path.dirname(self.origin.path)
        return read_text(self.place, os.path.normpath(os.path.join(folder, os.path.expanduser(found[1].strip()))), MAX_BYTES).strip()


def defined_tables(folders: Iterable[ProgramFolder], *keys: str) -> Iterator[DefinedTable]:
    """Those under one of these keys. The code that reads the servers reports a broken file."""
    for folder in folders:
        if folder.program != "opencode":
            continue
        for base in dict.fromkeys(filter(None, (folder.project, folder.path))):
            place = SearchFolder("opencode", folder.tier, base, folder.within)
            for name in ("opencode.jsonc", "opencode.json"):
                yield from _tables_in(place, os.path.join(base, name), keys)


def _tables_in(place: SearchFolder, path: str, keys: tuple[str, ...]) -> Iterator[DefinedTable]:
    if not os.path.isfile(path):
        return
    try:
        text = read_text(place, path, MAX_BYTES)
        values = located_json.decode(text)
    except (Unreadable, located_json.WrongJson):
        return
    for key in keys:
        table = values.get(key) if isinstance(values, dict) else None
        rows = {name: row for name, row in table.items() if isinstance(row, dict)} if isinstance(table, dict) else {}
        lines = located_json.lines_of(text, [(key, name) for name in rows])
        for name, row in rows.items():
            yield DefinedTable(name, row, place.origin(path, lines.get((key, name), 0)), place)
