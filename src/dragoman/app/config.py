"""Configuration: defaults, the user's file, the project's (where trusted), the environment, flags. Later wins.

The Structs of config_tables.py define every setting; docs/reference/configuration.md is made of them (checks/configuration.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.app.config_tables import Config, ConfigFile, ConfigSource, LoadedConfig, keys
from dragoman.app.options import SEARCH_NOW, Options
from dragoman.base.places import Places
from dragoman.loop.memory import MEMORY_FILES, folders_between
from dragoman.providers.catalog import builtin_catalog
from dragoman.values.errors import ConfigError
from dragoman.words import LOCALE_VARIABLES, language_of, say

if TYPE_CHECKING:
    from dragoman.policy.rules import Rule

MAX_FILE_BYTES = 1_000_000
ADMIN_FILE = "/etc/dragoman/rules.toml"
"""Rules of whoever looks after the machine. They outrank the user's."""
PROJECT_FILE = os.path.join(".dragoman", "config.toml")
EXTENSION_FILES = (
    ".mcp.json",
    "opencode.json",
    "opencode.jsonc",
    *(os.path.join(".dragoman", name) for name in ("agents", "commands", "plugins", "skills")),
    *(os.path.join(".agents", name) for name in ("plugins", "skills")),
    *(os.path.join(".claude", name) for name in ("agents", "commands", "rules", "settings.json", "settings.local.json", "skills")),
    *(os.path.join(".codex", name) for name in ("agents", "config.toml", "hooks.json", "rules", "skills")),
    *(os.path.join(".gemini", name) for name in ("agents", "commands", "extensions", "settings.json", "skills")),
    *(os.path.join(".opencode", name) for name in ("opencode.json", "opencode.jsonc")),
    *(os.path.join(".opencode", name) for name in ("agent", "agents", "command", "commands", "skill", "skills")),
)
"""What else is read in a trusted project, relative to each of its folders from the repository's root down to where the user is."""
VARIABLES = {
    "DRAGOMAN_MODEL": "model",
    "DRAGOMAN_FALLBACK": "fallback",
    "DRAGOMAN_APPROVAL": "approval",
    "DRAGOMAN_MAX_TURNS": "max_turns",
    "DRAGOMAN_LANG": "lang",
}
PLAIN_VARIABLE = "DRAGOMAN_UI"
"""`plain`: the conversation without a live region, for screen readers."""
FLAGS = {"model": "--model", "fallback": "--fallback", "approval": "--approval", "max_turns": "--max-turns", "lang": "--lang"}
FOR_PROJECTS = (
    *("model", "fallback", "approval", "max_turns", "lang", "color"),
    *("settings", "retry", "answers", "loop_guard", "text_tools", "context"),
    *("tools.disabled", "tools.max_output_chars", "tools.shell_timeout_s"),
    *("rules.ask", "rules.deny", "rules.rule"),
    "mcp.servers",  # each needs a yes of the user's
    "hooks",  # each needs a yes of the user's
)
"""What a trusted project's file may set; a key that is not here it may not. Never: where requests go and with which key or header, the
environment, files read from elsewhere, commands that run without asking, what is stored, deleted or downloaded for the user, what may be
spent, and what is read beside it."""
_LOOSER = {"plan": 0, "default": 1, "auto-edit": 2, "auto": 3}


def load(options: Options, env: Mapping[str, str], places: Places, workspace: str, *, trusted: bool = False) -> LoadedConfig:
    """The merged configuration and the source of each value. Raises ConfigError, naming file, line and key, for an invalid value.

    The project's file is opened only where the folder is `trusted`.
    """
    user = _user_file(options, places, workspace)
    of_user = _checked(user)
    project = _project_file(user, workspace, trusted=trusted)
    of_project = _checked_project(project, of_user)
    layers = [*_from_locale(env), (ConfigSource("user", user.path), of_user), (ConfigSource("project", project.path), of_project)]
    layers += _from_environment(env)
    layers += _from_flags(options)
    merged: dict[str, Any] = {}
    sources: dict[str, ConfigSource] = {}
    for source, values in layers:
        _overlay(merged, _with_rules_of(merged, values))
        sources |= dict.fromkeys(_leaves(values), source)
    rules = _rules(options, (user, of_user), (project, of_project))
    return LoadedConfig(_converted(merged, ConfigFile("", "user", "read")), sources, (user, project), rules)


def _rules(options: Options, *files: tuple[ConfigFile, dict[str, Any]]) -> tuple[Rule, ...]:
    """The rules of all files and options together; none replaces another. Loaded only if there are any."""
    has_admin_file = os.path.lexists(ADMIN_FILE)
    if not (has_admin_file or options.allow or options.deny or any("rules" in values for _, values in files)):
        return ()
    from dragoman.app.config_rules import admin_rules, rules_of_file, rules_of_options

    read = [rule for file, values in files for rule in rules_of_file(file, values, file.kind)]
    return (*read, *rules_of_options(options), *(admin_rules(ADMIN_FILE) if has_admin_file else ()))


def _with_rules_of(merged: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A file's rules are added to those before it: a list of the project must not replace one of the user."""
    before, now = merged.get("rules"), values.get("rules")
    if not before or not now:
        return values
    return {**values, "rules": {key: [*before.get(key, ()), *now.get(key, ())] for key in {**before, **now}}}


# --- files ----------------------------------------------------------------------------------------------------------------------


def _user_file(options: Options, places: Places, workspace: str) -> ConfigFile:
    if options.config:
        return _read(os.path.join(workspace, os.path.expanduser(options.config)), "user")
    try:
        os.lstat(places.config_file)
    except PermissionError:  # its rules would be missed, so it is told; a container's user may have no home to enter
        return ConfigFile(places.config_file, "user", "unreachable")
    except (OSError, ValueError):
        return ConfigFile(places.config_file, "user", "absent")
    return _read(places.config_file, "user")


def _project_file(user: ConfigFile, workspace: str, *, trusted: bool) -> ConfigFile:
    path = os.path.join(workspace, PROJECT_FILE)
    if not os.path.lexists(path) or _same(path, user.path):
        return ConfigFile(path, "project", "absent")
    return _read(path, "project") if trusted else ConfigFile(path, "project", "ignored")


def own_files(workspace: str, root: str, users_file: str) -> tuple[str, ...]:
    """What would be read in a folder if it were trusted from `root` down, relative to it. Nothing is opened.

    The user's own configuration may lie there too: it is read in any case.
    """
    paths = [os.path.join(workspace, PROJECT_FILE)]
    paths += [os.path.join(folder, name) for folder in folders_between(root, workspace) for name in (*EXTENSION_FILES, *MEMORY_FILES)]
    return tuple(os.path.relpath(path, workspace) for path in paths if os.path.lexists(path) and not _same(path, users_file))


def _read(path: str, kind: Literal["user", "project"]) -> ConfigFile:
    from dragoman.base.text_files import FileProblem, read_text

    try:
        return ConfigFile(path, kind, "read", read_text(path, MAX_FILE_BYTES))
    except FileProblem as problem:
        raise ConfigError(say("config_unreadable", path=path, reason=problem)) from problem


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _checked(file: ConfigFile) -> dict[str, Any]:
    """The values of a file, validated."""
    if not file.text.strip():
        return {}
    import tomllib

    try:
        values = tomllib.loads(file.text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(_syntax_error(file, error)) from error
    config = _converted(values, file)
    if config.network.hosts:
        from dragoman.policy.host_rules import is_host

        for host in (host for host in config.network.hosts if not is_host(host)):
            raise ConfigError(_at(file, ["network", "hosts"], say("not_a_host", key="network.hosts", text=repr(host))))
    return values


def _checked_project(file: ConfigFile, user: dict[str, Any]) -> dict[str, Any]:
    values = _checked(file)
    tables = frozenset(key.rpartition(".")[0] for key in keys()) if values else frozenset[str]()
    for key in _set_keys(values, tables):
        if not any(key == allowed or key.startswith(f"{allowed}.") for allowed in FOR_PROJECTS):
            raise ConfigError(_at(file, key.split("."), say("not_for_projects", key=key)))
    if any(rule.get("decision") == "allow" for rule in values.get("rules", {}).get("rule", ())):
        raise ConfigError(_at(file, ["rules", "rule"], say("not_for_projects", key="rules.rule with decision allow")))
    _refuse_models_of_projects(file, values, user)
    wanted, own = values.get("approval"), user.get("approval", Config().approval)
    if wanted is not None and _LOOSER[wanted] > _LOOSER[own]:
        raise ConfigError(_at(file, ["approval"], say("projects_tighten", value=wanted, own=own)))
    return values


def _refuse_models_of_projects(file: ConfigFile, values: dict[str, Any], user: dict[str, Any]) -> None:
    """A project names models of services that the catalog or the user knows: `module:name/…` would import and call code, and a path a
    file of weights from anywhere."""
    for key, names in (("model", [values.get("model", "")]), ("fallback", values.get("fallback", ()))):
        for name in names:
            service, slash, rest = name.partition("/")
            if not slash:
                continue
            known = builtin_catalog().deployments
            is_file = service in known and known[service].in_process and ("/" in rest or os.sep in rest or rest.endswith(".gguf"))
            if is_file or not (service in known or service in user.get("deployments", {})):
                raise ConfigError(_at(file, [key], say("not_a_projects_model", name=name)))


# --- the environment, flags -----------------------------------------------------------------------------------------------------


def _from_locale(env: Mapping[str, str]) -> Iterator[tuple[ConfigSource, dict[str, Any]]]:
    """The system's language, where no file names one."""
    if not env.get("DRAGOMAN_LANG", "").strip() and (language := language_of(env)):
        variable = next(name for name in LOCALE_VARIABLES if env.get(name))
        yield ConfigSource("env", variable), {"lang": language}


def _from_environment(env: Mapping[str, str]) -> Iterator[tuple[ConfigSource, dict[str, Any]]]:
    for name, key in VARIABLES.items():
        text = env.get(name, "").strip()
        if not text:
            continue
        value: Any = int(text) if key == "max_turns" and text.isascii() and text.isdecimal() and len(text) < 10 else text
        if key == "fallback":
            value = [name.strip() for name in text.split(",") if name.strip()]
        values = {key: value}
        try:
            msgspec.convert(values, Config)
        except msgspec.ValidationError as error:
            from dragoman.app.config_faults import explain

            raise ConfigError(say("config_in", where=name, problem=explain(error, Config).message)) from error
        yield ConfigSource("env", name), values
    if env.get(PLAIN_VARIABLE, "").strip() == "plain":
        yield ConfigSource("env", PLAIN_VARIABLE), {"ui": {"mode": "plain"}}
    if env.get("NO_COLOR"):
        yield ConfigSource("env", "NO_COLOR"), {"color": "never"}


def _from_flags(options: Options) -> Iterator[tuple[ConfigSource, dict[str, Any]]]:
    for key, flag in FLAGS.items():
        value = getattr(options, key)
        if value:
            yield ConfigSource("flag", flag), {key: value}
    if options.sandbox:
        level = int(options.sandbox) if options.sandbox.isdecimal() else options.sandbox
        yield ConfigSource("flag", "--sandbox"), {"sandbox": {"level": level}}
    if options.no_color:
        yield ConfigSource("flag", "--no-color"), {"color": "never"}
    if options.search not in ("", SEARCH_NOW):
        yield ConfigSource("flag", "--search"), {"web": {"search": options.search}}
    if options.text_tools:
        yield ConfigSource("flag", "--text-tools"), {"text_tools": {"mode": "text"}}


# --- values ---------------------------------------------------------------------------------------------------------------------


def _converted(values: dict[str, Any], file: ConfigFile) -> Config:
    try:
        return msgspec.convert(values, Config)
    except msgspec.ValidationError as error:
        from dragoman.app.config_faults import explain

        fault = explain(error, Config)
        raise ConfigError(_at(file, fault.path, fault.message)) from error


def _at(file: ConfigFile, path: Sequence[str], message: str) -> str:
    from dragoman.base.toml_lines import line_of

    line = line_of(file.text, path)
    return say("config_in", where=f"{file.path}:{line}" if line else file.path, problem=message)


def _syntax_error(file: ConfigFile, error: Exception) -> str:
    """tomllib writes `… (at line 3, column 5)`; the position is moved behind the file name, where editors look for it."""
    said = str(error) or type(error).__name__
    place = re.search(r" \(at line (\d+), column (\d+)\)", said)
    if place:
        where = f"{file.path}:{place.group(1)}:{place.group(2)}"
        return say("config_in", where=where, problem=say("not_toml", reason=said[: place.start()]))
    return say("config_in", where=f"{file.path}:{len(file.text.splitlines())}", problem=say("not_toml", reason=said))


def _overlay(base: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping):
            below = base.setdefault(key, {})
            _overlay(below, value)
        else:
            base[key] = value


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if prefix in ("deployments.", "mcp.servers.", "text_tools.mapping.", "text_tools.model_mapping."):
            yield f"{prefix}{key}"
            yield prefix.removesuffix(".")
        elif isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _set_keys(values: Mapping[str, Any], tables: frozenset[str], prefix: str = "") -> Iterator[str]:
    """The dotted keys that a file sets, down to the tables that are free in form."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name in tables:
            yield from _set_keys(value, tables, f"{name}.")
        else:
            yield name
