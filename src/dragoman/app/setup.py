"""The setup of a command: options, configuration, folders, and the chosen model once it is final."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.app.config import load, own_files
from dragoman.app.config_tables import Config, FolderTrust, LoadedConfig
from dragoman.app.options import Options
from dragoman.base.found_files import read_found
from dragoman.base.places import Places, find_places
from dragoman.loop.memory import MEMORY_FILES, folders_between
from dragoman.loop.surroundings import repository_root
from dragoman.providers.catalog import builtin_catalog
from dragoman.values.errors import ConfigError, InputError
from dragoman.words import choose_language, say

if TYPE_CHECKING:
    from dragoman.app.trust import AskTrust
    from dragoman.foreign.rules import OtherRules
    from dragoman.mcp_client.configured import ConfiguredServer
    from dragoman.providers.catalog import Catalog

_SERVER_FILES = (
    ".mcp.json",
    "opencode.json",
    "opencode.jsonc",
    os.path.join(".codex", "config.toml"),
    os.path.join(".gemini", "settings.json"),
)
_HOOK_FILES = ("settings.json", "settings.local.json", "hooks.json", os.path.join(".codex", "config.toml"))
"""Where other programs define hooks."""
_LOOKED_AT_BYTES = 1_000_001


class Choice(msgspec.Struct, frozen=True):
    """The model, and why it was chosen."""

    model: str
    reason: str
    """The option, file or variable that names it, or the server that serves it."""
    kind: Literal["set", "key", "stored", "server", "local"] = "set"

    @property
    def why(self) -> str:
        return say(f"because_{self.kind}", reason=self.reason)


class Setup(msgspec.Struct, frozen=True):
    """Everything a command needs to know before it starts."""

    options: Options
    env: Mapping[str, str]
    places: Places
    workspace: str
    loaded: LoadedConfig
    trust: FolderTrust = FolderTrust("unasked", "")
    choice: Choice | None = None
    """The model, once it is final (first_use.py); until then `choose_model` chooses it at every call."""
    notices: tuple[str, ...] = ()
    """What the user should know about the folder and about how the model was chosen."""
    pause: Callable[[float], Awaitable[None]] | None = None
    """Waits between two attempts, where a front end may cut that short."""
    wrong_files: tuple[str, ...] = ()
    """Those of the notices that are about files of other programs as a whole, for lists of what they bring."""
    servers: tuple[ConfiguredServer, ...] = ()
    """MCP servers that no file configures: an editor names them for a session."""

    @property
    def config(self) -> Config:
        return self.loaded.config


def set_up(options: Options, env: Mapping[str, str] | None = None, *, ask_trust: AskTrust | None = None) -> Setup:
    """Read the configuration; that of the folder only where it is trusted, which `ask_trust` may be asked. Raises InputError or
    ConfigError, and EOFError if the user leaves at that question."""
    env = os.environ if env is None else env
    workspace = require_directory(options.directory or _working_directory(), "-C")
    places = find_places(env)
    real = os.path.realpath(workspace)
    project = repository_root(real) or real
    has_decisions = options.trust or os.path.lexists(places.trust_file)
    if not has_decisions and not own_files(real, project, places.config_file):  # nothing to trust it with
        loaded = load(options, env, places, workspace)
        choose_language(loaded.config.lang)
        return _with_other_rules(Setup(options, env, places, workspace, loaded, FolderTrust("unasked", project, project)))
    from dragoman.app.trust import ask_once, find_trust, trust_notices

    before = find_trust(options, env, places, workspace)
    loaded = load(options, env, places, workspace, trusted=before.is_trusted)
    choose_language(loaded.config.lang)
    trust = ask_once(before, env, places, workspace, ask_trust)
    if trust.is_trusted and not before.is_trusted:
        loaded = load(options, env, places, workspace, trusted=True)
        choose_language(loaded.config.lang)
    return _with_other_rules(Setup(options, env, places, workspace, loaded, trust, notices=trust_notices(trust)))


def _with_other_rules(setup: Setup) -> Setup:
    """With the rules of other programs, where there are any."""
    missed = tuple(say("config_not_reached", path=file.path) for file in setup.loaded.files if file.state == "unreachable")
    setup = msgspec.structs.replace(setup, notices=(*setup.notices, *missed)) if missed else setup
    home = setup.env.get("HOME") or os.path.expanduser("~")
    named = [
        os.path.join(setup.env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "settings.json"),
        os.path.join(setup.env.get("CODEX_HOME") or os.path.join(home, ".codex"), "rules"),
        *(os.path.join(home, ".gemini", name) for name in ("settings.json", "policies")),
        *(os.path.join(setup.env.get("CODEX_HOME") or os.path.join(home, ".codex"), name) for name in ("hooks.json", "config.toml")),
        *_opencode(setup),
    ]
    in_project = setup.trust.is_trusted and any(
        os.path.basename(name) not in (*MEMORY_FILES, "config.toml") or ".codex" in name for name in setup.trust.files
    )
    if in_project or any(map(os.path.lexists, named)):
        from dragoman.app.extensions import folders_around, folders_of, switched_off
        from dragoman.foreign.rules import find_other_rules
        from dragoman.foreign.wrong_files import find_wrong_files

        wrong = find_wrong_files(folders_of(setup))
        setup = msgspec.structs.replace(setup, notices=(*setup.notices, *wrong), wrong_files=wrong)
        # From the repository's root down to the workspace, as hooks and servers are. `[sources]` does not count: rules have a table.
        folders = folders_around(setup, switched_off(setup.config.other_rules))
        setup = _with_rules(setup, find_other_rules(folders, setup.workspace, is_trusted=setup.trust.is_trusted))
    if may_have(setup, "extensions"):
        from dragoman.app.plugins import plugins_of
        from dragoman.foreign.rules import rules_of_plugins

        setup = _with_rules(setup, rules_of_plugins(plugins_of(setup).found))
    return setup


def _with_rules(setup: Setup, found: OtherRules) -> Setup:
    loaded = msgspec.structs.replace(setup.loaded, rules=(*setup.loaded.rules, *found.rules))
    return msgspec.structs.replace(setup, loaded=loaded, notices=(*setup.notices, *found.notices))


def catalog_of(setup: Setup) -> Catalog:
    """The catalog, with the user's own deployments added."""
    catalog = builtin_catalog()
    rows = setup.config.deployments
    if not rows:
        return catalog
    from dragoman.app.config_faults import place_row_error

    for name, row in rows.items():
        try:
            catalog = catalog.with_rows({name: row}, "")
        except ConfigError as error:
            raise ConfigError(place_row_error(error, name, setup.loaded.files)) from error
    return catalog


def is_from_package(model: str, catalog: Catalog) -> bool:
    """Whether a model's service is one that an installed package brings."""
    if "/" not in model or model.partition("/")[0] in catalog.deployments:
        return False
    from dragoman.providers import outside

    return outside.is_from_package(model, catalog)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:  # somebody deleted it
        raise InputError(say("no_working_directory", reason=error.strerror)) from error


def require_directory(path: str, named_by: str) -> str:
    path = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(path):
        return path
    raise InputError(say("no_such_directory" if not os.path.lexists(path) else "not_a_directory", path=path, named_by=named_by))


# --- whether something that others bring may be there: only names are looked at, and nothing is loaded for those who have none


def may_have(setup: Setup, *names: str) -> bool:
    """Whether a folder of one of these names lies where what others bring is looked for. Nothing is loaded for those who have none."""
    home = setup.env.get("HOME") or os.path.expanduser("~")
    roots = [home, *(folders_between(setup.trust.root or setup.workspace, setup.workspace) if setup.trust.is_trusted else ())]
    programs = (".agents", ".claude", ".codex", ".dragoman", ".gemini", ".opencode")
    folders = [os.path.join(root, program) for root in roots for program in programs]
    elsewhere = (setup.env.get(name, "") for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"))
    opencode = os.path.join(setup.env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode")
    folders += [setup.places.config, opencode, *filter(None, elsewhere)]
    return any(os.path.isdir(os.path.join(folder, name)) for folder in folders for name in names)


def may_have_plugins(setup: Setup) -> bool:
    return may_have(setup, "plugins", "extensions")


def has_server_files(setup: Setup) -> bool:
    """Whether some file may configure MCP servers."""
    if setup.servers or setup.config.mcp.servers or may_have_plugins(setup):
        return True
    home = setup.env.get("HOME") or os.path.expanduser("~")
    config = setup.env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    files = (
        os.path.join(setup.env.get("CLAUDE_CONFIG_DIR") or home, ".claude.json"),
        os.path.join(setup.env.get("CODEX_HOME") or os.path.join(home, ".codex"), "config.toml"),
        os.path.join(home, ".gemini", "settings.json"),
        *(os.path.join(config, "opencode", name) for name in ("opencode.json", "opencode.jsonc")),
    )
    return any(map(os.path.lexists, files)) or (setup.trust.is_trusted and any(name.endswith(_SERVER_FILES) for name in setup.trust.files))


def may_have_memory(setup: Setup) -> bool:
    """Whether other programs may keep memory outside of the usual files."""
    home = setup.env.get("HOME") or os.path.expanduser("~")
    claude = setup.env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    opencode = os.path.join(setup.env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode")
    named = [
        *(os.path.join(claude, name) for name in ("CLAUDE.md", "rules")),
        os.path.join(setup.env.get("CODEX_HOME") or os.path.join(home, ".codex"), "AGENTS.md"),
        *(os.path.join(home, ".gemini", name) for name in ("GEMINI.md", "settings.json")),
        *(os.path.join(opencode, name) for name in ("AGENTS.md", "opencode.json", "opencode.jsonc")),
    ]
    if setup.trust.is_trusted:
        in_project = (".gemini/settings.json", "opencode.json", "opencode.jsonc", ".claude/rules")
        named += [os.path.join(setup.workspace, name) for name in setup.trust.files if name.endswith(in_project)]
    return any(map(os.path.lexists, named))


def may_exclude_tools(setup: Setup) -> bool:
    """Whether settings or extensions of gemini-cli may take tools away."""
    named = [os.path.join(setup.env.get("HOME") or os.path.expanduser("~"), ".gemini", "settings.json")]
    if setup.trust.is_trusted:
        named += [os.path.join(setup.workspace, name) for name in setup.trust.files if name.endswith(".gemini/settings.json")]
    return any(_says(path, b'"tools"', b'Tools"') for path in named) or may_have(setup, "extensions")


def _says(path: str, *words: bytes) -> bool:
    try:
        text = read_found(path, _LOOKED_AT_BYTES, cut=True)
    except OSError:
        return False
    return any(word in text for word in words)


def may_have_hooks(setup: Setup) -> bool:
    """Whether a file names hooks that may be read. Cheap: mostly there is none, and nothing is loaded for it."""
    if setup.config.hooks or may_have_plugins(setup):
        return True
    home = setup.env.get("HOME") or os.path.expanduser("~")
    named = [
        os.path.join(setup.env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "settings.json"),
        *(os.path.join(setup.env.get("CODEX_HOME") or os.path.join(home, ".codex"), name) for name in ("hooks.json", "config.toml")),
        os.path.join(home, ".gemini", "settings.json"),
    ]
    if setup.trust.is_trusted:
        named += [os.path.join(setup.workspace, name) for name in setup.trust.files if name.endswith(_HOOK_FILES)]
    return any(map(_names_hooks, named))


def _names_hooks(path: str) -> bool:
    try:
        if not os.path.isfile(path) or path.endswith("hooks.json"):
            return os.path.lexists(path)  # what is wrong with it is said by whoever reads it
        return (b"hooks" if path.endswith(".toml") else b'"hooks"') in read_found(path, _LOOKED_AT_BYTES, cut=True)
    except OSError:
        return True


def may_have_subagents(setup: Setup) -> bool:
    return any(map(os.path.isdir, _agent_folders(setup))) or may_have_plugins(setup) or any(_says(f, b'"agent"') for f in _opencode(setup))


def _opencode(setup: Setup) -> list[str]:
    """Its configuration files."""
    config = setup.env.get("XDG_CONFIG_HOME") or os.path.join(setup.env.get("HOME") or os.path.expanduser("~"), ".config")
    names = ("opencode.json", "opencode.jsonc")
    in_project = [name for name in setup.trust.files if name.endswith(names)] if setup.trust.is_trusted else []
    return [*(os.path.join(config, "opencode", name) for name in names), *(os.path.join(setup.workspace, name) for name in in_project)]


def _agent_folders(setup: Setup) -> list[str]:
    """Where definitions of subagents may be."""
    home, names = setup.env.get("HOME") or os.path.expanduser("~"), ("agents", "agent")
    config = setup.env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    users = [setup.places.config, setup.env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), os.path.join(home, ".gemini")]
    users += [setup.env.get("CODEX_HOME") or os.path.join(home, ".codex"), os.path.join(config, "opencode")]
    paths = [os.path.join(folder, name) for folder in users for name in names]
    in_project = setup.trust.files if setup.trust.is_trusted else ()
    return paths + [os.path.join(setup.workspace, file) for file in in_project if os.path.basename(file) in names]
