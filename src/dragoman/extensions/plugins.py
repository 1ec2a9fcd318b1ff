"""Plugins: folders with skills, commands, MCP servers, hooks and subagents.

Agent Plugins 1.0 (`plugin.json`, `skills/`, `mcp.json`), those of Claude Code (`.claude-plugin/plugin.json`; its list of what is installed
is read) and extensions of gemini-cli (`gemini-extension.json`). Only what is installed is found; nothing is run here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.extensions import located_json
from dragoman.extensions.files import SearchFolder, SourceProblem, Unreadable, read_text
from dragoman.extensions.sources import ROOT_VARIABLES, ProgramFolder
from dragoman.values.origin import Origin, Program
from dragoman.words import say

MAX_MANIFEST_BYTES = 1_000_000
MAX_PLUGINS = 200
Format = Literal["agent-plugins", "claude", "gemini"]
Kind = Literal["skills", "commands", "agents", "hooks", "mcp", "memory"]


class Plugin(msgspec.Struct, frozen=True):
    """One plugin, and where its parts are."""

    name: str
    path: str
    """Its folder: what `${CLAUDE_PLUGIN_ROOT}`, `${PLUGIN_ROOT}` and `${extensionPath}` stand for."""
    origin: Origin
    """Its manifest."""
    format: Format
    version: str = ""
    description: str = ""
    skills: tuple[str, ...] = ()
    """Folders, each with folders of skills. This and the next ones exist."""
    commands: tuple[str, ...] = ()
    """Folders, or single files."""
    agents: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    """JSON files whose key `hooks` has them; the manifest itself, if they stand in it."""
    mcp: tuple[str, ...] = ()
    """JSON files whose key `mcpServers` has them, or that are nothing but such a table; the manifest itself, if they stand in it."""
    memory: tuple[str, ...] = ()
    """Files whose text the model gets."""
    excluded_tools: tuple[str, ...] = ()
    settings: Mapping[str, str] = {}
    """Variables that an extension of gemini-cli declares, for its servers: what the user gave when installing it, empty where that is kept
    in a keyring."""
    project: str = ""
    """The project's folder it lies in; empty for one that the user installed."""

    @property
    def speaks(self) -> Program:
        """Which program's names for events and tools it uses, wherever it was found."""
        return "gemini" if self.format == "gemini" else "claude"

    @property
    def variables(self) -> dict[str, str]:
        """What its files may name its folder by."""
        return dict.fromkeys(ROOT_VARIABLES, self.path)

    def search_folders(self, kind: Kind) -> tuple[SearchFolder, ...]:
        return tuple(SearchFolder(self.origin.program, self.origin.tier, path, self.path, self.name) for path in getattr(self, kind))


class _Listed(msgspec.Struct, frozen=True):
    """Where a plugin lies, and what Claude Code's lists say about it."""

    place: SearchFolder
    name: str = ""
    """What it is installed as: a plugin may have no manifest, and its folder is called by its version."""
    catalogue: str = ""
    """The `marketplace.json` that it comes from."""


class FoundPlugins(msgspec.Struct, frozen=True):
    """The plugins that are installed."""

    found: tuple[Plugin, ...] = ()
    problems: tuple[SourceProblem, ...] = ()


def find_plugins(folders: Sequence[ProgramFolder], workspace: str = "") -> FoundPlugins:
    """What is installed in these folders, and not switched off in the workspace. Of several with one name the first counts."""
    plugins: dict[str, Plugin] = {}
    problems: list[SourceProblem] = []
    listed = list(dict.fromkeys(each for folder in folders for each in _plugin_folders(folder, folders, workspace, problems)))
    for each in listed[:MAX_PLUGINS]:
        plugin = _read_plugin(each, problems)
        if plugin is not None:
            plugins.setdefault(plugin.name, plugin)
    if len(listed) > MAX_PLUGINS:
        beyond = listed[MAX_PLUGINS].place
        problems.append(SourceProblem(beyond.origin(beyond.path), say("skills.too_many_plugins", most=MAX_PLUGINS)))
    return FoundPlugins(tuple(plugins.values()), tuple(problems))


# --- where they are


def _plugin_folders(
    folder: ProgramFolder, folders: Sequence[ProgramFolder], workspace: str, problems: list[SourceProblem]
) -> Iterator[_Listed]:
    if folder.program == "gemini":
        yield from _below(folder, "extensions", workspace, _disabled_extensions(folder, workspace))
        return
    if folder.program == "claude" and folder.tier == "user":
        yield from _installed_by_claude(folder, folders, workspace, problems)
    if folder.program in ("agents", "dragoman"):
        yield from _below(folder, "plugins", workspace)


def _place(folder: ProgramFolder, path: str, workspace: str) -> SearchFolder:
    """Where to search. A plugin installed from inside the workspace counts as the project's: others, and the model, may write it."""
    real = os.path.realpath(path)
    if folder.tier == "user" and workspace and is_inside(real, workspace) and not is_inside(real, os.path.realpath(folder.path)):
        return SearchFolder(folder.program, "project", path, workspace)
    return SearchFolder(folder.program, folder.tier, path, folder.project)


def _below(folder: ProgramFolder, name: str, workspace: str, without: frozenset[str] = frozenset()) -> Iterator[_Listed]:
    """The folders that lie in one, if they have a manifest."""
    path = os.path.join(folder.path, name)
    try:
        names = sorted(os.listdir(path))[: 10 * MAX_PLUGINS]
    except OSError:
        return
    for each in names:
        inside = os.path.join(path, each)
        if folder.program == "gemini" and folder.tier == "user":
            inside = _linked(folder, inside)
        if each not in without and _manifest_of(inside):
            yield _Listed(_place(folder, inside, workspace))


def _installed_by_claude(
    folder: ProgramFolder, folders: Sequence[ProgramFolder], workspace: str, problems: list[SourceProblem]
) -> Iterator[_Listed]:
    """The plugins in Claude Code's list of installed plugins: the user's, and those of the current projects."""
    listed = _read_json(folder, os.path.join(folder.path, "plugins", "installed_plugins.json"), problems).get("plugins")
    if not isinstance(listed, dict):
        return
    switched_off = _switched_off(folders, problems)
    projects = {os.path.realpath(each.project) for each in folders if each.project}
    markets = _read_json(folder, os.path.join(folder.path, "plugins", "known_marketplaces.json"), [])
    for name, installs in listed.items():
        if name in switched_off:
            continue
        for install in installs if isinstance(installs, list) else [installs]:
            if not isinstance(install, dict) or not isinstance(path := install.get("installPath"), str):
                continue
            project = install.get("projectPath")
            if install.get("scope", "user") == "user" or (isinstance(project, str) and os.path.realpath(project) in projects):
                own, _, market = name.rpartition("@")
                yield _Listed(_place(folder, path, workspace), own, _catalogue_of(markets.get(market)))
                break


def _catalogue_of(market: Any) -> str:
    """The file that lists a marketplace's plugins; empty where it is not known."""
    path = market.get("installLocation") if isinstance(market, dict) else None
    if not isinstance(path, str) or not os.path.isabs(path):
        return ""
    return path if path.endswith(".json") else os.path.join(path, ".claude-plugin", "marketplace.json")


def _switched_off(folders: Sequence[ProgramFolder], problems: list[SourceProblem]) -> frozenset[str]:
    """Plugins of Claude Code that its settings name as not enabled; what stands nearest to the work decides."""
    enabled: dict[str, bool] = {}
    for folder in folders:
        for name in ("settings.local.json", "settings.json") if folder.program == "claude" else ():
            table = _read_json(folder, os.path.join(folder.path, name), []).get("enabledPlugins")
            for plugin, is_on in table.items() if isinstance(table, dict) else ():
                enabled.setdefault(plugin, is_on is not False)
    return frozenset(name for name, is_on in enabled.items() if not is_on)


def _linked(folder: ProgramFolder, path: str) -> str:
    """The real folder of a linked extension: the installed folder only holds a note that points to it."""
    note = _read_json(folder, os.path.join(path, ".gemini-extension-install.json"), [])
    source = note.get("source")
    return source if note.get("type") == "link" and isinstance(source, str) and os.path.isabs(source) else path


def _disabled_extensions(folder: ProgramFolder, workspace: str) -> frozenset[str]:
    """gemini-cli writes down in which folders an extension is switched on or off (`!/home/me/work/*`); the last that fits decides."""
    table = _read_json(folder, os.path.join(folder.path, "extensions", "extension-enablement.json"), [])
    return frozenset(name for name, row in table.items() if isinstance(row, dict) and _is_off(_texts(row.get("overrides")), workspace))


def _is_off(overrides: Sequence[str], workspace: str) -> bool:
    is_off = False
    for each in overrides:
        place = each.removeprefix("!").removesuffix("*").rstrip("/")
        if workspace.rstrip("/") == place or (each.endswith("*") and workspace.startswith(place + "/")) or place == "":
            is_off = each.startswith("!")
    return is_off


def _read_json(folder: ProgramFolder, path: str, problems: list[SourceProblem]) -> Mapping[str, Any]:
    """Empty if there is no such file."""
    if not os.path.lexists(path):
        return {}
    place = SearchFolder(folder.program, folder.tier, path, folder.within)
    found = _read_manifest(place, path, problems)
    return found if found is not None else {}


# --- what is in one


def _manifest_of(path: str) -> tuple[str, Format] | None:
    manifests: tuple[tuple[str, Format], ...] = (
        ("plugin.json", "agent-plugins"),
        (os.path.join(".claude-plugin", "plugin.json"), "claude"),
        ("gemini-extension.json", "gemini"),
    )
    for name, form in manifests:
        if os.path.lexists(os.path.join(path, name)):  # what is wrong with it is said by whoever reads it
            return os.path.join(path, name), form
    return None


def _read_plugin(listed: _Listed, problems: list[SourceProblem]) -> Plugin | None:
    place = listed.place
    found = _manifest_of(place.path)
    if found is None:  # a plugin of Claude Code may do without
        found = (listed.catalogue or place.path, "claude")
        if not os.path.isdir(place.path):
            problems.append(SourceProblem(place.origin(place.path), say("skills.plugin_gone")))
            return None
        manifest: Mapping[str, Any] | None = {}
    else:
        manifest = _read_manifest(place, found[0], problems)
    if manifest is None:
        return None
    path, form = found
    told = _told_by_marketplace(listed)
    is_theirs = told.get("strict") is False  # then it is the marketplace that says what the plugin has
    manifest = {**manifest, **told} if is_theirs else {**told, **manifest}
    return _Parts(place, {"name": listed.name, **manifest}, path, form, is_theirs).plugin()


def _told_by_marketplace(listed: _Listed) -> Mapping[str, Any]:
    """What the marketplace says of a plugin. Tables are left out: servers and hooks are read, and shown, with a file of its own."""
    if not listed.catalogue or not os.path.lexists(listed.catalogue):
        return {}
    place = SearchFolder(listed.place.program, listed.place.tier, listed.catalogue)
    rows = (_read_manifest(place, listed.catalogue, []) or {}).get("plugins")
    own = [row for row in rows if isinstance(row, dict) and row.get("name") == listed.name] if isinstance(rows, list) else []
    return {key: value for key, value in own[0].items() if not isinstance(value, dict)} if own else {}


def _read_manifest(place: SearchFolder, path: str, problems: list[SourceProblem]) -> Mapping[str, Any] | None:
    try:
        text = read_text(place, path, MAX_MANIFEST_BYTES)
    except Unreadable as error:
        problems.append(SourceProblem(place.origin(path), str(error)))
        return None
    try:
        found = located_json.decode(text)
    except located_json.WrongJson as error:
        problems.append(SourceProblem(place.origin(path, error.line), say("skills.not_json", reason=str(error))))
        return None
    if isinstance(found, dict):
        return found
    problems.append(SourceProblem(place.origin(path), say("skills.not_a_table")))
    return None


class _Parts:
    """Where the parts of a plugin are: in the usual folders and those the manifest names, never outside the plugin."""

    def __init__(self, place: SearchFolder, manifest: Mapping[str, Any], path: str, form: Format, is_listed_whole: bool = False) -> None:
        self._place = place
        self._manifest = manifest
        self._path = path
        self._format: Format = form
        self._is_listed_whole = is_listed_whole

    def plugin(self) -> Plugin:
        name = self._manifest.get("name")
        version, description = self._manifest.get("version"), self._manifest.get("description")
        excluded = self._manifest.get("excludeTools")
        is_portable = self._format == "agent-plugins" and not os.path.isdir(os.path.join(self._place.path, ".claude-plugin"))
        return Plugin(
            name=_plain_name(name) or _plain_name(os.path.basename(self._place.path)) or "plugin",
            path=self._place.path,
            origin=self._place.origin(self._path),
            format=self._format,
            version=version if isinstance(version, str) else "",
            description=description if isinstance(description, str) else "",
            skills=self._existing("skills", "skills") or self._only_skill(),
            commands=() if is_portable else self._existing("commands", "commands"),
            agents=() if is_portable else self._existing("agents", "agents"),
            hooks=() if is_portable else self._existing("hooks", os.path.join("hooks", "hooks.json")),
            mcp=self._existing("mcpServers", "mcp.json" if is_portable else ".mcp.json"),
            memory=self._memory(),
            excluded_tools=tuple(each for each in excluded if isinstance(each, str)) if isinstance(excluded, list) else (),
            settings=self._settings(),
            project=self._place.within,
        )

    def _settings(self) -> dict[str, str]:
        rows = self._manifest.get("settings")
        if self._format != "gemini" or self._place.tier != "user" or not isinstance(rows, list):
            return {}
        names = [name for row in rows if isinstance(row, dict) and isinstance(name := row.get("envVar"), str)]
        path = os.path.join(self._place.path, ".env")
        try:
            text = read_text(self._place, path, MAX_MANIFEST_BYTES) if os.path.isfile(path) else ""
        except Unreadable:
            text = ""
        given = {name.strip(): value.strip() for name, sign, value in (line.partition("=") for line in text.splitlines()) if sign}
        return {name: _unquoted(given.get(name, "")) for name in names}

    def _existing(self, key: str, usual: str) -> tuple[str, ...]:
        named = self._manifest.get(key) if self._format != "agent-plugins" or key != "skills" else None
        if key == "commands" and isinstance(named, dict):  # each with the file it is in
            named = [each["source"] for each in named.values() if isinstance(each, dict) and isinstance(each.get("source"), str)]
        # In Claude Code, commands and agents that a manifest names take the place of those in the usual folder; the rest is added to it.
        is_instead = named is not None and self._format == "claude" and (key in ("commands", "agents") or self._is_listed_whole)
        paths = [*([usual] if usual and not is_instead else []), *_texts(named)]
        found = [os.path.normpath(os.path.join(self._place.path, path)) for path in paths]
        own = SearchFolder(self._place.program, self._place.tier, self._place.path, self._place.path)
        existing = [path for path in dict.fromkeys(found) if os.path.lexists(path) and own.holds(path)]
        return (*existing, self._path) if isinstance(named, dict) else tuple(existing)

    def _only_skill(self) -> tuple[str, ...]:
        """A plugin of Claude Code that is one skill, with its SKILL.md in the plugin's own folder."""
        is_one = self._format == "claude" and "skills" not in self._manifest and os.path.isfile(os.path.join(self._place.path, "SKILL.md"))
        return (self._place.path,) if is_one else ()

    def _memory(self) -> tuple[str, ...]:
        if self._format != "gemini":
            return ()
        named = self._manifest.get("contextFileName")
        return tuple(
            path
            for path in self._existing("contextFileName", "GEMINI.md")
            if not named or not path.endswith(os.sep + "GEMINI.md") or "GEMINI.md" in _texts(named)
        )


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _plain_name(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    return text if 0 < len(text) <= 64 and all(char.isalnum() or char in "._-" for char in text) else ""


def search_folders(
    folders: Iterable[ProgramFolder], plugins: Iterable[Plugin], kind: Kind, names: Mapping[str, Sequence[str]]
) -> list[SearchFolder]:
    """Where one kind of thing is looked for: in the folders that `names` has by program, then in plugins."""
    own = [
        SearchFolder(folder.program, folder.tier, os.path.join(folder.path, name), folder.within)
        for folder in folders
        for name in names.get(folder.program, ())
    ]
    return [*own, *(each for plugin in plugins for each in plugin.search_folders(kind))]
