"""The tables of the configuration: every key, its kind and its default; and what was read, with where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dragoman.context.settings import ContextSettings, Schedule
from dragoman.http.clients import HttpClient
from dragoman.loop.options import Limits, SearchMode, ToolCalling, WebAccess
from dragoman.providers.retry import RetryPolicy

if TYPE_CHECKING:
    from dragoman.policy.rules import Rule

_RETRY, _LIMITS, _WEB, _CONTEXT = RetryPolicy(), Limits(), WebAccess(), ContextSettings()
"""The library's own defaults are those of the configuration too."""

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
CountOrOff = Annotated[int, Meta(ge=0, le=1_000_000)]
AnswerSize = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Share = Annotated[float, Meta(ge=0, le=1)]
Approval = Literal["plan", "default", "auto-edit", "auto"]


class SettingsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Generation settings. None: the service's own default."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Count | None = None
    max_output_tokens: Count | None = None
    thinking: Literal["off", "low", "medium", "high", "max"] | None = None


class RetryTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Retries of failed requests."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = _RETRY.attempts
    first_delay_s: Seconds = _RETRY.first_delay_s
    max_delay_s: Seconds = _RETRY.max_delay_s
    deadline_s: Seconds = _RETRY.deadline_s


class AnswersTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often an empty or unreadable answer is requested again, and how long an answer may be."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = _LIMITS.answers.attempts
    delay_s: Seconds = _LIMITS.answers.delay_s
    temperature: Annotated[float, Meta(ge=0, le=2)] = _LIMITS.answers.temperature
    max_chars: AnswerSize = _LIMITS.answers.max_chars
    max_events: AnswerSize = _LIMITS.answers.max_events


class BudgetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one run may spend. None: any amount."""

    usd: Annotated[float, Meta(gt=0)] | None = None
    tokens: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    requests: Count | None = None
    tool_calls: CountOrOff | None = None
    seconds: Annotated[float, Meta(gt=0)] | None = None


class LoopGuardTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a run is stopped because the model repeats itself; 0 turns a check off."""

    same_call: CountOrOff = _LIMITS.loop.same_call
    cycle_length: Annotated[int, Meta(ge=0, le=100)] = _LIMITS.loop.cycle_length
    cycle_repeats: Annotated[int, Meta(ge=0, le=1_000)] = _LIMITS.loop.cycle_repeats
    failing_call: CountOrOff = _LIMITS.loop.failing_call
    text_window: Annotated[int, Meta(ge=0, le=10_000)] = _LIMITS.loop.text_window
    text_repeats: Annotated[int, Meta(ge=0, le=10_000)] = _LIMITS.loop.text_repeats
    polled: tuple[str, ...] = _LIMITS.loop.polled


class ToolsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tools there are, and their limits."""

    disabled: tuple[str, ...] = ()
    max_output_chars: Annotated[int, Meta(ge=1_000, le=10_000_000)] = _LIMITS.max_output_chars
    shell_timeout_s: Annotated[float, Meta(ge=1, le=86_400)] = _LIMITS.shell_timeout_s
    discover: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    """Tools of installed packages: names of entry points in `dragoman.tools`, or `module:name`."""


class TextToolsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tool calls as text, for models without function calling. The defaults are those of text_tools.options.TextOptions."""

    mode: ToolCalling = "auto"
    dialect: str = ""
    preserve_context: bool = True
    no_think: Literal["", "/no_think", "<no_think>"] = ""
    mapping: dict[str, dict[str, str]] = {}
    model_mapping: dict[str, dict[str, dict[str, str]]] = {}


class WebTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Web search and fetch."""

    search: SearchMode = _WEB.search
    search_model: str = _WEB.search_model
    searxng: str = _WEB.searxng
    fetch: bool = _WEB.fetch
    allow_hosts: tuple[str, ...] = ()
    only_hosts: tuple[str, ...] = ()


class HttpTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which HTTP client is used."""

    client: HttpClient = _WEB.client


class LocalTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Models on this machine: whether weights are pulled without asking, and whether servers are looked for if no model is configured."""

    pull: Literal["ask", "yes", "no"] = "ask"
    find_servers: bool = True


class SandboxTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The boundary around commands: which kind, and what it lets through."""

    level: Literal["auto", 1, 2, 3, "off", "external"] = "auto"
    unix_sockets: bool = False
    writable: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    run_unasked: bool = False


class SessionsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether sessions are stored, and for how long. Nothing is deleted unless one of the limits is set."""

    keep: bool = True
    max_age_days: Annotated[float, Meta(gt=0)] | None = None
    max_count: Count | None = None


class PruneTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tool results are pruned, and when."""

    schedule: Schedule = _CONTEXT.prune.schedule
    tools: tuple[str, ...] = _CONTEXT.prune.rule.tools
    age_minutes: Annotated[float, Meta(ge=0, le=525_600)] = _CONTEXT.prune.rule.age_ms / 60_000
    keep: CountOrOff = _CONTEXT.prune.rule.keep
    strict_stderr: bool = _CONTEXT.prune.rule.strict_stderr
    by_content: bool = _CONTEXT.prune.rule.by_content
    superseded: bool = _CONTEXT.prune.rule.superseded
    placeholder: Annotated[str, Meta(max_length=200)] = _CONTEXT.prune.placeholder
    pressure: Share = _CONTEXT.prune.pressure
    overhead: Share = _CONTEXT.prune.overhead
    share: Share = _CONTEXT.prune.share
    overdraft: Share = _CONTEXT.prune.overdraft


class CompressTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When old messages are replaced by a summary."""

    enabled: bool = _CONTEXT.compress.enabled
    threshold: Share = _CONTEXT.compress.threshold
    threshold_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000)] = _CONTEXT.compress.threshold_tokens
    keep: Share = _CONTEXT.compress.keep


class ContextTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the conversation is kept within the window."""

    prune: PruneTable = PruneTable()
    compress: CompressTable = CompressTable()


class RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule in full, with examples that are checked when it is read."""

    decision: Literal["allow", "ask", "deny"]
    tool: str = ""
    pattern: str = ""
    reason: str = ""
    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()


class RulesTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which commands and calls run, ask, or are refused."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rule: tuple[RuleTable, ...] = ()


class OtherRulesTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose rules are read beside ours, from their own files."""

    claude: bool = True
    codex: bool = True
    gemini: bool = True
    opencode: bool = True


class NetworkTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which hosts may be reached unasked in the mode auto."""

    hosts: tuple[str, ...] = ()


class SourcesTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose MCP servers, hooks, skills, commands, subagents and plugins are read; `agents`: the folder .agents."""

    agents: bool = True
    claude: bool = True
    codex: bool = True
    gemini: bool = True
    opencode: bool = True


class PluginsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What installed Python packages bring, beside tools and models."""

    hooks: tuple[str, ...] = ()
    """Names of entry points in `dragoman.hooks`, or `module:name`."""


class McpTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """MCP servers, by name."""

    servers: dict[str, Any] = {}
    """Read by mcp_client/configured.py, which names what is wrong and goes on."""


class HookTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One command at an event, or several with the same matcher. What it means: extensions/hooks/definitions.py."""

    matcher: str = ""
    command: str = ""
    args: tuple[str, ...] | None = None
    timeout: Annotated[float, Meta(gt=0, le=3_600)] | None = None
    hooks: tuple[dict[str, object], ...] = ()


class UiTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The conversation in the terminal."""

    mode: Literal["auto", "plain"] = "auto"
    theme: Literal["auto", "dark", "light", "16", "mono"] = "auto"
    notify: Literal["auto", "bell", "off"] = "auto"
    vim: bool = False
    title: bool = True
    keys: dict[str, str] = {}
    """Key → action (tui/bindings.py)."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be configured, with its defaults."""

    model: str = ""
    fallback: tuple[str, ...] = ()
    approval: Approval = "default"
    max_turns: Count = _LIMITS.max_turns
    lang: Literal["en", "zh"] = "en"
    color: Literal["auto", "always", "never"] = "auto"
    system_file: str = ""
    settings: SettingsTable = SettingsTable()
    retry: RetryTable = RetryTable()
    answers: AnswersTable = AnswersTable()
    budget: BudgetTable = BudgetTable()
    loop_guard: LoopGuardTable = LoopGuardTable()
    tools: ToolsTable = ToolsTable()
    text_tools: TextToolsTable = TextToolsTable()
    web: WebTable = WebTable()
    http: HttpTable = HttpTable()
    local: LocalTable = LocalTable()
    sandbox: SandboxTable = SandboxTable()
    sessions: SessionsTable = SessionsTable()
    context: ContextTable = ContextTable()
    rules: RulesTable = RulesTable()
    other_rules: OtherRulesTable = OtherRulesTable()
    network: NetworkTable = NetworkTable()
    sources: SourcesTable = SourcesTable()
    plugins: PluginsTable = PluginsTable()
    mcp: McpTable = McpTable()
    hooks: dict[str, tuple[HookTable, ...]] = {}
    ui: UiTable = UiTable()
    deployments: dict[str, dict[str, object]] = {}


class ConfigSource(msgspec.Struct, frozen=True):
    """Where a value comes from."""

    kind: Literal["default", "user", "project", "env", "flag"] = "default"
    name: str = ""
    """The file, the variable or the option."""


class ConfigFile(msgspec.Struct, frozen=True):
    """One configuration file, and whether it was read."""

    path: str
    kind: Literal["user", "project"]
    state: Literal["read", "absent", "ignored", "unreachable"]
    """`unreachable`: whether it exists is not known, for a folder above it cannot be entered."""
    text: str = ""


class LoadedConfig(msgspec.Struct, frozen=True):
    """The configuration in effect, and which file or option set each value."""

    config: Config
    sources: dict[str, ConfigSource]
    """Dotted key → where it was set. Keys that were not set are missing."""
    files: tuple[ConfigFile, ...]
    rules: tuple[Rule, ...] = ()
    """Of every file and option, each with where it stands."""

    def source(self, key: str) -> ConfigSource:
        return self.sources.get(key, ConfigSource())


class FolderTrust(msgspec.Struct, frozen=True):
    """Whether the folder that is opened may configure us: what the user has said about it (trust.py)."""

    state: Literal["trusted", "refused", "unasked", "too_wide", "doubted"]
    """`doubted`: it was trusted, and since then a command may have changed files that would be read."""
    folder: str
    """What the decision is, or would be, about: the workspace, or its repository."""
    root: str = ""
    """From here down to the workspace memory files are read, if it is trusted."""
    files: tuple[str, ...] = ()
    """What would be read if it were trusted, relative to the workspace."""
    by: Literal["", "flag", "saved", "answer"] = ""
    problem: str = ""
    """Why an answer could not be remembered."""
    doubted: tuple[str, ...] = ()
    """Which files a command may have made or changed, relative to the workspace."""

    @property
    def is_trusted(self) -> bool:
        return self.state == "trusted"


def keys(table: type[msgspec.Struct] = Config, prefix: str = "") -> Iterator[str]:
    """Every key, dotted."""
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
