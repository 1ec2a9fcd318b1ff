"""Adds MCP servers to our own configuration files, and takes them out again. The rest of a file stays as it is written."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman.base.atomic import replace_file
from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found
from dragoman.base.lock import hold_folder
from dragoman.base.private import make_directory
from dragoman.values.errors import InputError
from dragoman.words import say

MAX_FILE_BYTES = 1_000_000
NAME = re.compile(r"[A-Za-z0-9_-]{1,60}\Z")
_HEADER = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?\Z")


class ServerEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is written for a server."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    transport: str = ""
    headers: dict[str, str] = {}


def add_entry(path: str, name: str, entry: ServerEntry, *, within: str = "") -> None:
    """Raises InputError, and then the file is as it was. `within`: of a project's file, the folder that no link may lead it out of."""
    _require_within(path, within)
    with _alone(path):
        _add(path, name, entry)


def _add(path: str, name: str, entry: ServerEntry) -> None:
    text = _read(path)
    values = _parsed(path, text)
    if name in _servers(values):
        raise InputError(say("mcp_servers.exists", path=path, name=name))
    before = text if not text or text.endswith("\n") else f"{text}\n"
    after = f"{before}{chr(10) if before else ''}{render_entry(name, entry)}"
    wanted = {
        **values,
        "mcp": {**values.get("mcp", {}), "servers": {**_servers(values), name: msgspec.json.decode(msgspec.json.encode(entry))}},
    }
    if _parsed(path, after) != wanted:  # as where the file has the servers in an inline table
        raise InputError(say("mcp_servers.file_unwritable", path=path, reason=say("mcp_servers.not_a_table")))
    _write(path, after)


def remove_entry(path: str, name: str, *, within: str = "") -> None:
    """Raises InputError, and then the file is as it was. `within`: see `add_entry`."""
    _require_within(path, within)
    with _alone(path):
        _remove(path, name)


def _remove(path: str, name: str) -> None:
    text = _read(path)
    values = _parsed(path, text)
    rest = {each: entry for each, entry in _servers(values).items() if each != name}
    after = _without(text, ("mcp", "servers", name))
    if _servers(_parsed(path, after)) != rest or _without_servers(_parsed(path, after)) != _without_servers(values):
        raise InputError(say("mcp_servers.not_removed", name=name, path=path))
    _write(path, after)


def render_entry(name: str, entry: ServerEntry) -> str:
    lines = [f"[mcp.servers.{name}]"]
    for key, value in msgspec.to_builtins(entry).items():
        if isinstance(value, dict):
            lines.append(f"{key} = {{ {', '.join(f'{_quoted(each)} = {_quoted(text)}' for each, text in value.items())} }}")
        elif not isinstance(value, str):
            lines.append(f"{key} = [{', '.join(map(_quoted, value))}]")
        else:
            lines.append(f"{key} = {_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML string. JSON's escapes are TOML's, but for DEL."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")


def _without(text: str, path: tuple[str, ...]) -> str:
    """The text without the table of this name and those inside it."""
    kept: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line):
            is_inside = _parts(header[1])[: len(path)] == path
        if not is_inside:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return "".join(kept)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in re.findall(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""", dotted))


def _servers(values: dict[str, Any]) -> dict[str, Any]:
    table = values.get("mcp")
    servers = table.get("servers") if isinstance(table, dict) else None
    return servers if isinstance(servers, dict) else {}


def _without_servers(values: dict[str, Any]) -> dict[str, Any]:
    table = {key: value for key, value in values.get("mcp", {}).items() if key != "servers"}
    rest = {key: value for key, value in values.items() if key != "mcp"}
    return {**rest, "mcp": table} if table else rest


def _parsed(path: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(say("mcp_servers.file_unwritable", path=path, reason=error)) from error


def _read(path: str) -> str:
    try:
        return read_found(path, MAX_FILE_BYTES).decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or error
        raise InputError(say("mcp_servers.file_unwritable", path=path, reason=reason)) from error


def _require_within(path: str, folder: str) -> None:
    real = os.path.realpath(path)
    if folder and not is_inside(real, os.path.realpath(folder)):
        raise InputError(say("mcp_servers.file_unwritable", path=path, reason=say("policy.command_outside", path=real)))


@contextmanager
def _alone(path: str) -> Iterator[None]:
    """Two programs that add a server at the same time both do."""
    folder = os.path.dirname(os.path.realpath(path))
    try:
        make_directory(folder)
        with hold_folder(folder):
            yield
    except OSError as error:
        raise InputError(say("mcp_servers.file_unwritable", path=path, reason=error.strerror or error)) from error


def _write(path: str, text: str) -> None:
    real = os.path.realpath(path)  # it may be a link into a folder of dotfiles
    try:
        replace_file(real, text.encode(), mode=os.stat(real).st_mode & 0o777 if os.path.exists(real) else 0o600)
    except OSError as error:
        raise InputError(say("mcp_servers.file_unwritable", path=path, reason=error.strerror or error)) from error
