"""Configuration: defaults, the user's file, the project's (where trusted), the environment, flags. Later wins.

The Struct tree below is the whole of what can be set; docs/configuration.md says what each key means, and a test compares the two.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dragoman.app.options import Options
from dragoman.base.places import Places
from dragoman.base.words import say
from dragoman.values.errors import ConfigError

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
CountOrOff = Annotated[int, Meta(ge=0, le=1_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Share = Annotated[float, Meta(ge=0, le=1)]
Approval = Literal["plan", "default", "auto-edit", "auto"]


class SettingsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the model generates. None: the service's own default."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Count | None = None
    max_output_tokens: Count | None = None
    thinking: Literal["off", "low", "medium", "high", "max"] | None = None


class RetryTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a service fails. The defaults are those of providers.retry.RetryPolicy."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = 3
    first_delay_s: Seconds = 5.0
    max_delay_s: Seconds = 30.0
    deadline_s: Seconds = 60.0


class AnswersTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When an answer is none. The defaults are those of loop.chat.AnswerPolicy."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = 2
    delay_s: Seconds = 0.5
    temperature: Annotated[float, Meta(ge=0, le=2)] = 1.0


class LoopGuardTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a model goes in circles; 0 turns a check off. The defaults are those of loop.loop_guard.LoopLimits."""

    same_call: CountOrOff = 5
    cycle_length: Annotated[int, Meta(ge=0, le=100)] = 5
    cycle_repeats: Annotated[int, Meta(ge=0, le=1_000)] = 4
    failing_call: CountOrOff = 3
    text_window: Annotated[int, Meta(ge=0, le=10_000)] = 50
    text_repeats: Annotated[int, Meta(ge=0, le=10_000)] = 10


class ToolsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    disabled: tuple[str, ...] = ()
    max_output_chars: Annotated[int, Meta(ge=1_000, le=10_000_000)] = 40_000
    shell_timeout_s: Annotated[float, Meta(ge=1, le=86_400)] = 120.0
    discover: tuple[str, ...] = ()
    call: tuple[str, ...] = ()


class TextToolsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tools as text, for models without function calling. The defaults are those of text_tools.wrapper.TextOptions."""

    mode: Literal["auto", "native", "text"] = "auto"
    dialect: str = ""
    preserve_context: bool = True
    no_think: Literal["", "/no_think", "<no_think>"] = ""
    mapping: dict[str, dict[str, str]] = {}


class WebTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Searching and fetching. The defaults are those of loop.web.Web."""

    search: Literal["off", "tool", "grounding"] = "tool"
    search_model: str = ""
    searxng: str = ""
    fetch: bool = True
    allow_hosts: tuple[str, ...] = ()
    only_hosts: tuple[str, ...] = ()


class HttpTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which HTTP client is used. The default is that of http.clients."""

    client: Literal["own", "httpx"] = "own"


class LocalTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Models on this machine: whether weights are pulled unasked, and whether servers are looked for where no model is set."""

    pull: Literal["ask", "yes", "no"] = "ask"
    find_servers: bool = True


class SessionsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether conversations are kept, and for how long. Nothing is ever deleted unless one of the limits is set."""

    keep: bool = True
    max_age_days: Annotated[float, Meta(gt=0)] | None = None
    max_count: Count | None = None


class PruneTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which results of tools leave the context, and when. The defaults are those of context.settings."""

    schedule: Literal["auto", "request", "turn", "economic", "off"] = "auto"
    tools: tuple[str, ...] = ("run_shell", "run_shell_command", "terminal-execute", "bash", "shell")
    age_minutes: Annotated[float, Meta(ge=0, le=525_600)] = 15.0
    keep: CountOrOff = 5
    strict_stderr: bool = True
    placeholder: Annotated[str, Meta(max_length=200)] = ""
    pressure: Share = 0.5
    overhead: Share = 0.02


class CompressTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When old messages are replaced by a summary. The defaults are those of context.settings."""

    enabled: bool = True
    threshold: Share = 0.7
    threshold_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0
    keep: Share = 0.3


class ContextTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prune: PruneTable = PruneTable()
    compress: CompressTable = CompressTable()


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str = ""
    approval: Approval = "default"
    max_turns: Count = 100
    lang: Literal["en", "zh"] = "en"
    color: Literal["auto", "always", "never"] = "auto"
    system_file: str = ""
    settings: SettingsTable = SettingsTable()
    retry: RetryTable = RetryTable()
    answers: AnswersTable = AnswersTable()
    loop_guard: LoopGuardTable = LoopGuardTable()
    tools: ToolsTable = ToolsTable()
    text_tools: TextToolsTable = TextToolsTable()
    web: WebTable = WebTable()
    http: HttpTable = HttpTable()
    local: LocalTable = LocalTable()
    sessions: SessionsTable = SessionsTable()
    context: ContextTable = ContextTable()
    deployments: dict[str, dict[str, object]] = {}


class Source(msgspec.Struct, frozen=True):
    """Where a value came from."""

    kind: Literal["default", "user", "project", "env", "flag"] = "default"
    name: str = ""
    """The file, the variable or the option."""


class ConfigFile(msgspec.Struct, frozen=True):
    path: str
    kind: Literal["user", "project"]
    state: Literal["read", "absent", "ignored"]
    text: str = ""


class Loaded(msgspec.Struct, frozen=True):
    config: Config
    sources: dict[str, Source]
    """Dotted key → where it was set. Keys that nobody set are not in it."""
    files: tuple[ConfigFile, ...]
    notices: tuple[str, ...] = ()

    def source(self, key: str) -> Source:
        return self.sources.get(key, Source())


MAX_FILE_BYTES = 1_000_000
PROJECT_FILE = os.path.join(".dragoman", "config.toml")
VARIABLES = {"DRAGOMAN_MODEL": "model", "DRAGOMAN_APPROVAL": "approval", "DRAGOMAN_MAX_TURNS": "max_turns", "DRAGOMAN_LANG": "lang"}
FLAGS = {"model": "--model", "approval": "--approval", "max_turns": "--max-turns", "lang": "--lang"}
NOT_FOR_PROJECTS = ("deployments", "system_file", "tools.discover", "tools.call", "sessions", "web", "http", "local")
"""What a folder may not set, trusted or not: where requests go and with what key, what is read from elsewhere, what runs by itself, and
what is kept, deleted or downloaded of the user's own."""
_LOOSER = {"plan": 0, "default": 1, "auto-edit": 2, "auto": 3}


def load(options: Options, env: Mapping[str, str], places: Places, workspace: str) -> Loaded:
    """Everything that is set, and where. Raises ConfigError, naming file, line and key, where something cannot be used."""
    layers: list[tuple[Source, dict[str, Any]]] = []
    user = _user_file(options, places, workspace)
    layers.append((Source("user", user.path), _checked(user)))
    project, notices = _project_file(options, user, workspace)
    layers.append((Source("project", project.path), _checked_project(project, layers[0][1])))
    layers += _from_environment(env)
    layers += _from_flags(options)
    merged: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for source, values in layers:
        _overlay(merged, values)
        sources |= dict.fromkeys(_leaves(values), source)
    return Loaded(_converted(merged, ConfigFile("", "user", "read")), sources, (user, project), notices)


# --- files ----------------------------------------------------------------------------------------------------------------------


def _user_file(options: Options, places: Places, workspace: str) -> ConfigFile:
    if options.config:
        return _read(os.path.join(workspace, os.path.expanduser(options.config)), "user")
    if not os.path.lexists(places.config_file):
        return ConfigFile(places.config_file, "user", "absent")
    return _read(places.config_file, "user")


def _project_file(options: Options, user: ConfigFile, workspace: str) -> tuple[ConfigFile, tuple[str, ...]]:
    path = os.path.join(workspace, PROJECT_FILE)
    if not os.path.lexists(path) or _same(path, user.path):
        return ConfigFile(path, "project", "absent"), ()
    if not options.trust:
        return ConfigFile(path, "project", "ignored"), (say("project_config_ignored", path=path),)
    return _read(path, "project"), ()


def _read(path: str, kind: Literal["user", "project"]) -> ConfigFile:
    from dragoman.app.text_files import FileProblem, read_text

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
    """What a file sets, each value fit for its key."""
    if not file.text.strip():
        return {}
    import tomllib

    try:
        values = tomllib.loads(file.text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(_syntax_error(file, error)) from error
    _converted(values, file)
    return values


def _checked_project(file: ConfigFile, user: dict[str, Any]) -> dict[str, Any]:
    values = _checked(file)
    for key in NOT_FOR_PROJECTS:
        if _lookup(values, key) is not None:
            raise ConfigError(_at(file, key.split("."), say("not_for_projects", key=key)))
    wanted, own = values.get("approval"), user.get("approval", Config().approval)
    if wanted is not None and _LOOSER[wanted] > _LOOSER[own]:
        raise ConfigError(_at(file, ["approval"], say("projects_tighten", value=wanted, own=own)))
    return values


# --- the environment, flags -----------------------------------------------------------------------------------------------------


def _from_environment(env: Mapping[str, str]) -> Iterator[tuple[Source, dict[str, Any]]]:
    for name, key in VARIABLES.items():
        text = env.get(name, "").strip()
        if not text:
            continue
        value: Any = int(text) if key == "max_turns" and text.isascii() and text.isdecimal() and len(text) < 10 else text
        values = {key: value}
        try:
            msgspec.convert(values, Config)
        except msgspec.ValidationError as error:
            from dragoman.app.config_faults import explain

            raise ConfigError(f"{name}: {explain(error, Config).message}") from error
        yield Source("env", name), values
    if env.get("NO_COLOR"):
        yield Source("env", "NO_COLOR"), {"color": "never"}


def _from_flags(options: Options) -> Iterator[tuple[Source, dict[str, Any]]]:
    for key, flag in FLAGS.items():
        value = getattr(options, key)
        if value:
            yield Source("flag", flag), {key: value}
    if options.no_color:
        yield Source("flag", "--no-color"), {"color": "never"}
    if options.text_tools:
        yield Source("flag", "--text-tools"), {"text_tools": {"mode": "text"}}


# --- values ---------------------------------------------------------------------------------------------------------------------


def keys(table: type[msgspec.Struct] = Config, prefix: str = "") -> Iterator[str]:
    """Every key there is, dotted."""
    for name, default in zip(table.__struct_fields__, _defaults(table), strict=True):
        if isinstance(default, msgspec.Struct):
            yield from keys(type(default), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def value_of(config: msgspec.Struct, key: str) -> Any:
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _defaults(table: type[msgspec.Struct]) -> list[Any]:
    plain = table()
    return [getattr(plain, name) for name in table.__struct_fields__]


def _converted(values: dict[str, Any], file: ConfigFile) -> Config:
    try:
        return msgspec.convert(values, Config)
    except msgspec.ValidationError as error:
        from dragoman.app.config_faults import explain

        fault = explain(error, Config)
        raise ConfigError(_at(file, fault.path, fault.message)) from error


def _at(file: ConfigFile, path: Sequence[str], message: str) -> str:
    from dragoman.app.toml_lines import line_of

    line = line_of(file.text, path)
    return f"{file.path}:{line}: {message}" if line else f"{file.path}: {message}"


def _syntax_error(file: ConfigFile, error: Exception) -> str:
    """tomllib says `… (at line 3, column 5)`; the line goes where lines are looked for."""
    import re

    said = str(error) or type(error).__name__
    place = re.search(r" \(at line (\d+), column (\d+)\)", said)
    if place:
        return f"{file.path}:{place.group(1)}:{place.group(2)}: {say('not_toml', reason=said[: place.start()])}"
    return f"{file.path}:{len(file.text.splitlines())}: {say('not_toml', reason=said)}"


def _overlay(base: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping):
            below = base.setdefault(key, {})
            _overlay(below, value)
        else:
            base[key] = value


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if prefix in ("deployments.", "text_tools.mapping."):
            yield f"{prefix}{key}"
            yield prefix.removesuffix(".")
        elif isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _lookup(values: Mapping[str, Any], key: str) -> Any:
    found: Any = values
    for name in key.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
