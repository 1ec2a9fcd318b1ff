"""Which files configure MCP servers, and what they say. Of several servers with one name the first wins: ours, then the nearest file's.
But a project's server never replaces one of the user's own, because the user's rules are about that name.

A file or entry with an error is reported with its line, and everything else is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base.visible import escape_hidden
from dragoman.extensions import located_json
from dragoman.extensions.sources import ProgramFolder
from dragoman.mcp_client.configured import (
    ConfiguredServer,
    Reader,
    WrongEntry,
    hash_of,
    read_claude,
    read_codex,
    read_entry,
    read_gemini,
    read_opencode,
    read_own,
)
from dragoman.mcp_client.contracts import StdioServer
from dragoman.mcp_client.filling import FillFrom
from dragoman.mcp_client.naming import server_part
from dragoman.values.origin import Origin, Tier
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.extensions.plugins import Plugin

ReadText = Callable[[str], str]
"""The text of a file. Raises OSError or ValueError with why it cannot be read."""
Path = tuple[str, ...]


class OwnConfigFile(msgspec.Struct, frozen=True):
    """A configuration file of ours that was read already."""

    path: str
    tier: Tier
    text: str


class FoundServers(msgspec.Struct, frozen=True):
    """The servers that files configure, and what is wrong in them."""

    servers: tuple[ConfiguredServer, ...] = ()
    problems: tuple[str, ...] = ()

    def get(self, name: str) -> ConfiguredServer | None:
        return next((each for each in self.servers if each.name == name), None)


def candidates(folder: ProgramFolder) -> tuple[str, ...]:
    """The files in which a program keeps its servers. They need not exist."""
    join, path, project = os.path.join, folder.path, folder.project
    match folder.program:
        case "claude" if project:
            return (join(project, ".mcp.json"),)
        case "claude":
            # With CLAUDE_CONFIG_DIR it lies in that folder, without beside ~/.claude.
            is_usual = os.path.basename(path) == ".claude"
            return (join(os.path.dirname(path) if is_usual else path, ".claude.json"),)
        case "codex":
            return (join(path, "config.toml"),)
        case "gemini":
            return (join(path, "settings.json"),)
        case "opencode":
            names = ("opencode.jsonc", "opencode.json")
            return (*(join(project, name) for name in names if project), *(join(path, name) for name in names))
        case _:
            return ()


def find_servers(
    folders: Sequence[ProgramFolder],
    own: Sequence[OwnConfigFile],
    workspaces: Sequence[str],
    around: FillFrom,
    read_text: ReadText,
    plugins: Sequence[Plugin] = (),
) -> FoundServers:
    """Every server that the files configure. `workspaces`: the folder that is worked in and its repository, by which ~/.claude.json names
    the servers of a project that are the user's own."""
    finding = _Finding(around, read_text, workspaces)
    for file in own:
        finding.add_own(file)
    users = [folder for folder in folders if folder.program == "claude" and folder.tier == "user"]
    for folder in users:
        finding.add_users_for_project(folder)
    for folder in folders:
        finding.add_folder(folder)
        if folder.program == "claude":
            finding.add_switches(folder)
    for plugin in plugins:
        finding.add_plugin(plugin)
    finding.leave_out_namesakes()
    servers = (_off(each) if finding.is_off(each) else each for each in finding.servers.values())
    return FoundServers(tuple(servers), tuple(finding.problems))


def _off(server: ConfiguredServer) -> ConfiguredServer:
    return msgspec.structs.replace(server, is_enabled=False)


class _Finding:
    def __init__(self, around: FillFrom, read_text: ReadText, workspaces: Sequence[str]) -> None:
        self.servers: dict[str, ConfiguredServer] = {}
        self.problems: list[str] = []
        self.switched_off: set[str] = set()
        """Names that another file switches off."""
        self._around = around
        self._read_text = read_text
        self._workspaces = workspaces
        self._decoded: dict[str, tuple[str, dict[str, Any]] | None] = {}
        self._allowed_by_gemini: frozenset[str] = frozenset()
        self._switched_off_by_hand: frozenset[str] = frozenset()
        self._denied: list[dict[str, Any]] = []
        self._allowed: list[list[dict[str, Any]]] = []
        """Of each file that has a list of those that may be used."""

    def add_own(self, file: OwnConfigFile) -> None:
        import tomllib

        values = tomllib.loads(file.text)  # it was read before, and is right
        self._add(values, ("mcp", "servers"), read_own, Origin("dragoman", file.tier, file.path), _toml_lines(file.text))

    def add_users_for_project(self, folder: ProgramFolder) -> None:
        for path in candidates(folder):
            decoded = self._json(path)
            projects = decoded[1].get("projects") if decoded else None
            if decoded is None or not isinstance(projects, dict):
                continue
            for workspace in self._workspaces:
                entry = projects.get(workspace)
                if isinstance(entry, dict):
                    place = ("projects", workspace, "mcpServers")
                    self._add(decoded[1], place, read_claude, Origin("claude", "user", path), _json_lines(decoded[0]))
                    for key in ("disabledMcpServers", "disabledMcpjsonServers"):
                        self.switched_off |= set(_names(entry.get(key)))

    def add_switches(self, folder: ProgramFolder) -> None:
        """What settings of Claude Code say of servers: names, commands and addresses that are not used. None of them is a yes."""
        names = ("settings.json", "settings.local.json") if folder.project else ("settings.json",)
        for path in (os.path.join(folder.path, name) for name in names):
            decoded = self._json(path) if not folder.leads_out(path) else None
            if decoded is None:
                continue
            self.switched_off |= set(_names(decoded[1].get("disabledMcpjsonServers")))
            self._denied += _entries(decoded[1].get("deniedMcpServers"))
            if isinstance(decoded[1].get("allowedMcpServers"), list):
                self._allowed.append(_entries(decoded[1]["allowedMcpServers"]))

    def _disabled_by_gemini(self, path: str) -> frozenset[str]:
        """The servers that `gemini mcp disable` has switched off, by their names in small letters."""
        decoded = self._decode(path, any_name=True)
        rows = decoded[1].items() if decoded else ()
        return frozenset(name for name, row in rows if isinstance(row, dict) and row.get("enabled") is False)

    def is_off(self, server: ConfiguredServer) -> bool:
        if server.origin.program == "gemini" and server.name.rpartition(":")[2].lower() in self._switched_off_by_hand:
            return True
        if server.name in self.switched_off or any(_is_meant(each, server) for each in self._denied):
            return True
        return not all(any(_is_meant(each, server) for each in listed) for listed in self._allowed)

    def add_folder(self, folder: ProgramFolder) -> None:
        for path in candidates(folder):
            if folder.leads_out(path):
                continue
            origin = Origin(folder.program, folder.tier, path)
            if folder.program == "codex":
                self._add_codex(path, origin)
            elif decoded := self._json(path):
                text, values = decoded
                for place, read in _places(folder.program, values):
                    self._add(values, place, read, origin, _json_lines(text))
                if folder.program == "gemini":
                    self._switch_off_gemini(values)
        if folder.program == "gemini" and folder.tier == "user":
            self._switched_off_by_hand = self._disabled_by_gemini(os.path.join(folder.path, "mcp-server-enablement.json"))

    def add_plugin(self, plugin: Plugin) -> None:
        """Add a plugin's servers, named `plugin:NAME:SERVER` as in Claude Code, so that they replace no other server."""
        for path in plugin.mcp:
            if (decoded := self._decode(path, any_name=True)) is None:
                continue
            text, values = decoded
            place: Path = ("mcpServers",) if "mcpServers" in values or path == plugin.origin.path else ()
            read = read_gemini if plugin.format == "gemini" else read_claude
            here = {"workspacePath": self._workspaces[0] if self._workspaces else ""}
            around = msgspec.structs.replace(
                self._around, env={**self._around.env, **plugin.variables, **here, **self._settings_of(plugin)}
            )
            inner = _Finding(around, lambda path: "", ())
            inner._add(_with_signs(values), place, read, Origin(plugin.origin.program, plugin.origin.tier, path), _json_lines(text))
            self.problems += inner.problems
            for server in inner.servers.values():
                self._add_of_plugin(plugin, server)

    def _add_of_plugin(self, plugin: Plugin, server: ConfiguredServer) -> None:
        name = f"plugin:{plugin.name}:{server.name}"
        if plugin.format == "gemini" and self._is_off_by_gemini(server.name):
            self.switched_off.add(name)
        program = server.server
        if isinstance(program, StdioServer):
            program = msgspec.structs.replace(program, env={**plugin.variables, **self._settings_of(plugin), **program.env})
        # The same words mean another program in another folder.
        made = hash_of([server.hash, plugin.path])
        self.servers.setdefault(name, msgspec.structs.replace(server, name=name, server=program, hash=made))

    def _settings_of(self, plugin: Plugin) -> dict[str, str]:
        """With the user's own variables where nothing else is set."""
        given = {name: value or self._around.env.get(name, "") for name, value in plugin.settings.items()}
        return {name: value for name, value in given.items() if value}

    def _is_off_by_gemini(self, name: str) -> bool:
        return name in self.switched_off or bool(self._allowed_by_gemini and name not in self._allowed_by_gemini)

    def _add_codex(self, path: str, origin: Origin) -> None:
        text = self._text(path)
        if text is None or "mcp_servers" not in text:
            return
        import tomllib

        try:
            values = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            from dragoman.base.toml_lines import place_of_fault

            return self.problems.append(say("mcp_servers.wrong_file", where=place_of_fault(path, error), reason=error))
        self._add(values, ("mcp_servers",), read_codex, origin, _toml_lines(text))

    def _switch_off_gemini(self, values: dict[str, Any]) -> None:
        table = values.get("mcp")
        inner = table if isinstance(table, dict) else {}
        self.switched_off |= {*_names(inner.get("excluded")), *_names(values.get("excludeMCPServers"))}
        allowed = (*_names(inner.get("allowed")), *_names(values.get("allowMCPServers")))
        if allowed and "*" not in allowed:
            self._allowed_by_gemini = frozenset(allowed)
            self.switched_off |= {name for name, each in self.servers.items() if each.origin.program == "gemini" and name not in allowed}

    def _add(
        self, values: dict[str, Any], place: Path, read: Reader, origin: Origin, lines: Callable[[Sequence[Path]], dict[Path, int]]
    ) -> None:
        table: Any = values
        for key in place:
            table = table.get(key) if isinstance(table, dict) else None
        if table is None or table == {}:
            return
        if not isinstance(table, dict):
            line = lines([place]).get(place, 0)
            where = msgspec.structs.replace(origin, line=line)
            return self.problems.append(say("mcp_servers.wrong_file", where=where, reason=say("mcp_servers.not_a_table")))
        at = lines([(*place, name) for name in table])
        for name, entry in table.items():
            self._add_entry(name, entry, read, msgspec.structs.replace(origin, line=at.get((*place, name), 0)), (*place, name), lines)

    def _add_entry(
        self, name: str, entry: Any, read: Reader, origin: Origin, path: Path, lines: Callable[[Sequence[Path]], dict[Path, int]]
    ) -> None:
        before = self.servers.get(name)
        if before is not None and (before.origin.tier == "user" or origin.tier == "project"):
            if before.origin.tier == "user" and origin.tier == "project":
                self.problems.append(say("mcp_servers.name_taken", where=origin, name=name, taken=before.origin))
            return
        if read is read_opencode and isinstance(entry, dict) and set(entry) <= {"enabled", "disabled"}:
            return  # it only switches a server of somewhere else on or off
        if read is read_own and isinstance(entry, dict) and set(entry) == {"enabled"}:
            if entry["enabled"] is False:
                self.switched_off.add(name)
            return
        try:
            server = read_entry(name, entry, origin, read, self._around)
        except WrongEntry as error:
            exact = (*path, error.key)
            where = msgspec.structs.replace(origin, line=lines([exact]).get(exact, origin.line) if error.key else origin.line)
            shown, reason = (escape_hidden(text, one_line=True) for text in (name[:100], str(error)))
            self.problems.append(say("mcp_servers.wrong_entry", where=where, name=shown, reason=reason))
            return
        if server.problem and server.is_enabled:
            self.problems.append(
                say("mcp_servers.wrong_entry", where=origin, name=name, reason=escape_hidden(server.problem, one_line=True))
            )
        if before is not None:
            self._tell_taken(before, server)
        self.servers[name] = server

    def leave_out_namesakes(self) -> None:
        """Servers of a project whose tools would have the names of those of the user's own."""
        users = {server_part(each.name): each for each in self.servers.values() if each.origin.tier == "user"}
        for server in [each for each in self.servers.values() if each.origin.tier == "project" and server_part(each.name) in users]:
            self._tell_taken(server, users[server_part(server.name)])
            del self.servers[server.name]

    def _tell_taken(self, projects: ConfiguredServer, users: ConfiguredServer) -> None:
        if projects.hash != users.hash:
            self.problems.append(say("mcp_servers.name_taken", where=projects.origin, name=projects.name, taken=users.origin))

    def _json(self, path: str) -> tuple[str, dict[str, Any]] | None:
        """The text and the object of a file; None if no such file could name servers, or it cannot be read."""
        if path in self._decoded:
            return self._decoded[path]
        self._decoded[path] = found = self._decode(path)
        return found

    def _decode(self, path: str, *, any_name: bool = False) -> tuple[str, dict[str, Any]] | None:
        """`any_name`: the file may be nothing but a table of servers."""
        text = self._text(path)
        if text is None or not (any_name or "mcp" in text.lower() or path.endswith(".mcp.json")):
            return None
        try:
            values = located_json.decode(text)
        except located_json.WrongJson as error:
            self.problems.append(say("mcp_servers.wrong_file", where=f"{path}:{error.line}", reason=error))
            return None
        if not isinstance(values, dict):
            self.problems.append(say("mcp_servers.wrong_file", where=path, reason=say("mcp_servers.not_a_table")))
            return None
        return text, values

    def _text(self, path: str) -> str | None:
        if not os.path.lexists(path):
            return None
        try:
            return self._read_text(path)
        except (OSError, ValueError) as error:
            self.problems.append(say("mcp_servers.wrong_file", where=path, reason=error))
            return None


def _places(program: str, values: dict[str, Any]) -> Iterator[tuple[Path, Reader]]:
    if program == "claude":
        yield ("mcpServers",), read_claude
    elif program == "gemini":
        yield ("mcpServers",), read_gemini
    elif program == "opencode":
        table = values.get("mcp")
        servers = table.get("servers") if isinstance(table, dict) else None
        # Version 2 keeps them one table deeper. A server could be called so, but it would have a type or a command.
        is_deeper = isinstance(servers, dict) and not {"type", "command", "url", "enabled"} & set(servers)
        yield ("mcp", "servers") if is_deeper else ("mcp",), read_opencode


def _with_signs(value: Any) -> Any:
    """With the sign between folders where extensions of gemini-cli write `${/}`."""
    if isinstance(value, str):
        return value.replace("${/}", os.sep).replace("${pathSeparator}", os.sep)
    if isinstance(value, dict):
        return {name: _with_signs(each) for name, each in value.items()}
    return [_with_signs(each) for each in value] if isinstance(value, list) else value


def _entries(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _is_meant(entry: dict[str, Any], server: ConfiguredServer) -> bool:
    """By its name, its command with all arguments, or its address with `*`."""
    if (name := entry.get("serverName")) is not None:
        return name == server.name
    spec = server.server
    if isinstance(spec, StdioServer):
        return entry.get("serverCommand") == [spec.command, *spec.args]
    url = entry.get("serverUrl")
    return isinstance(url, str) and bool(re.fullmatch(".*".join(map(re.escape, url[:500].split("*"))), spec.url))


def _names(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _json_lines(text: str) -> Callable[[Sequence[Path]], dict[Path, int]]:
    return lambda paths: located_json.lines_of(text, paths)


def _toml_lines(text: str) -> Callable[[Sequence[Path]], dict[Path, int]]:
    def lines(paths: Sequence[Path]) -> dict[Path, int]:
        from dragoman.base.toml_lines import line_of

        return {path: line for path in paths if (line := line_of(text, path))}

    return lines
