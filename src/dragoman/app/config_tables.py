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
    """How answers are generated. Not set: the service's own default."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """How freely an answer is sampled."""
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Sample from the most likely tokens with this total probability."""
    top_k: Count | None = None
    """Sample from this many most likely tokens."""
    max_output_tokens: Count | None = None
    """The longest answer, in tokens."""
    thinking: Literal["off", "low", "medium", "high", "max"] | None = None
    """How much the model thinks, where it can be told."""


class RetryTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How failed requests are tried again."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = _RETRY.attempts
    """How often a request is tried when the service fails: 429, 5xx, a cut connection."""
    first_delay_s: Seconds = _RETRY.first_delay_s
    """The first wait. It doubles with each attempt, ±30 %."""
    max_delay_s: Seconds = _RETRY.max_delay_s
    """The longest single wait, unless the service asks for more."""
    deadline_s: Seconds = _RETRY.deadline_s
    """The longest total wait for one answer. A service that asks for more is not waited for."""


class AnswersTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to an empty or unreadable answer, and how long an answer may be."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = _LIMITS.answers.attempts
    """How often an answer is requested that comes empty or cannot be read."""
    delay_s: Seconds = _LIMITS.answers.delay_s
    """The wait before it is requested again."""
    temperature: Annotated[float, Meta(ge=0, le=2)] = _LIMITS.answers.temperature
    """The temperature of that repeated request."""
    max_chars: AnswerSize = _LIMITS.answers.max_chars
    """The longest answer in characters, thinking and arguments of calls included. A longer one is stopped with exit code 59, and what
    came is kept. 0: no limit."""
    max_events: AnswerSize = _LIMITS.answers.max_events
    """The same, counted in pieces of the stream."""


class BudgetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one run may spend. Not set: any amount."""

    usd: Annotated[float, Meta(gt=0)] | None = None
    """US dollars. The run ends with exit code 60 when they are used up, and `go on` starts another."""
    tokens: Count | None = None
    """Tokens, input and output together."""
    input_tokens: Count | None = None
    """Input tokens."""
    output_tokens: Count | None = None
    """Output tokens."""
    requests: Count | None = None
    """Requests to models, including failed attempts, summaries and searches."""
    tool_calls: CountOrOff | None = None
    """Calls of tools."""
    seconds: Annotated[float, Meta(gt=0)] | None = None
    """Seconds. What is under way then is ended."""


class LoopGuardTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a run is stopped because the model repeats itself; 0 turns a check off."""

    same_call: CountOrOff = _LIMITS.loop.same_call
    """The same call this often in a row."""
    cycle_length: Annotated[int, Meta(ge=0, le=100)] = _LIMITS.loop.cycle_length
    """A cycle of up to this many calls …"""
    cycle_repeats: Annotated[int, Meta(ge=0, le=1_000)] = _LIMITS.loop.cycle_repeats
    """… repeated this often."""
    failing_call: CountOrOff = _LIMITS.loop.failing_call
    """The same call failing this often."""
    text_window: Annotated[int, Meta(ge=0, le=10_000)] = _LIMITS.loop.text_window
    """A passage of this many characters …"""
    text_repeats: Annotated[int, Meta(ge=0, le=10_000)] = _LIMITS.loop.text_repeats
    """… written this often in one answer."""
    polled: tuple[str, ...] = _LIMITS.loop.polled
    """Tools that may be called again and again with the same arguments, by name or pattern: `["mcp__ci__*"]`. `max_turns` still ends
    the run."""


class ToolsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tools there are, and their limits."""

    disabled: tuple[str, ...] = ()
    """Built-in tools that are not offered to the model: `["run_shell"]`."""
    max_output_chars: Annotated[int, Meta(ge=1_000, le=10_000_000)] = _LIMITS.max_output_chars
    """The longest result that the model is shown, and never more characters than its window has tokens. The whole result is kept in a
    file. What commands print is cut earlier."""
    shell_timeout_s: Annotated[float, Meta(ge=1, le=86_400)] = _LIMITS.shell_timeout_s
    """How long a command may run."""
    discover: tuple[str, ...] = ()
    """A command of yours, word by word, that prints a JSON list of further tools."""
    call: tuple[str, ...] = ()
    """The command that runs such a tool. It gets the tool's name as its last word and the arguments as JSON on standard input."""
    pass_env: tuple[str, ...] = ()
    """Variables that commands get though their names look like secrets: `["NPM_TOKEN"]`."""
    load: tuple[str, ...] = ()
    """Tools of installed packages: names of entry points in the group `dragoman.tools`, or `module:name` (a tool, a function, or a list
    of them). What is not read-only asks before it runs."""


class TextToolsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tool calls as text, for models without function calling."""

    mode: ToolCalling = "auto"
    """How the model is told of tools. `auto`: natively, or as text where the catalog says so. `--text-tools` is `text`."""
    dialect: str = ""
    """How calls are written as text. Empty: as the catalog says for the model, else our own dialect."""
    preserve_context: bool = True
    """Whether what the model says next to its calls stays in the conversation."""
    no_think: Literal["", "/no_think", "<no_think>"] = ""
    """What is added to the prompt where thinking is off, with native tools too."""
    mapping: dict[str, dict[str, str]] = {}
    """Names that a model uses for parameters of tools: `[text_tools.mapping.run_shell]` with `cmd = "command"`. `"*"` is any tool, `""`
    holds names of tools. Native calls are read by it too."""
    model_mapping: dict[str, dict[str, dict[str, str]]] = {}
    """The same for single models, by a pattern for `model` or `deployment/model`: `[text_tools.model_mapping."qwen*".run_shell]`. Used
    before `text_tools.mapping`."""


class WebTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Web search and fetch."""

    search: SearchMode = _WEB.search
    """`tool`: the model calls `google_web_search`. `grounding`: the service searches by itself, where it can."""
    search_model: str = _WEB.search_model
    """The model that searches: `gemini/gemini-3.8-flash`. Empty: the one you talk to or, where it cannot search (Chat Completions), the
    cheapest default model of another service whose key is set. `none`: no other."""
    searxng: str = _WEB.searxng
    """The URL of a SearXNG server, which searches without a key."""
    fetch: bool = _WEB.fetch
    """Whether the model may ask to fetch pages."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts and domains that may be fetched wherever they are, also in your own network."""
    only_hosts: tuple[str, ...] = ()
    """Where set, only these are fetched."""


class HttpTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which HTTP client is used."""

    client: HttpClient = _WEB.client
    """The HTTP client. `httpx` also speaks HTTP/2 and to SOCKS proxies, and needs the extra `httpx`."""


class LocalTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Models on this machine."""

    pull: Literal["ask", "yes", "no"] = "ask"
    """What happens when the weights of a model on this machine are missing. `--yes` agrees once."""
    find_servers: bool = True
    """Whether Ollama, llama.cpp, LM Studio and vLLM are looked for on this machine where neither a model nor a key is set."""


class SandboxTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The boundary around commands: which kind, and what it lets through."""

    level: Literal["auto", 1, 2, 3, "off", "external"] = "auto"
    """`1`: namespaces of our own, `2`: bubblewrap, `3`: Landlock alone, `auto`: the first that works here, `external`: none, because a
    container or VM is the boundary. `--sandbox LEVEL` sets it for one start."""
    unix_sockets: bool = False
    """Let commands in the sandbox create UNIX sockets."""
    writable: tuple[str, ...] = ()
    """Further folders that commands in the sandbox may write: `["~/venvs"]`."""
    environment: tuple[str, ...] = ()
    """Names of further variables that commands in the sandbox get."""
    run_unasked: bool = False
    """`true`: commands in the sandbox write in the workspace unasked, in `default` and `auto-edit` too. `false`: they run with the
    workspace read-only, and ask before they write."""


class SessionsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether sessions are stored, and for how long. Not set: nothing is deleted."""

    keep: bool = True
    """Whether conversations are kept on disk."""
    max_age_days: Annotated[float, Meta(gt=0)] | None = None
    """Delete sessions that were not used for this long. Nothing is deleted where the clock seems to have jumped."""
    max_count: Count | None = None
    """Delete sessions of a folder beyond this many of the newest."""


class PruneTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tool results are pruned, and when."""

    schedule: Schedule = _CONTEXT.prune.schedule
    """When outdated results leave what the model sees: when that is cheap, before every request, with every prompt, when it has paid
    off, never."""
    tools: tuple[str, ...] = _CONTEXT.prune.rule.tools
    """Whose results may go. `["*"]`: those of all tools."""
    age_minutes: Annotated[float, Meta(ge=0, le=525_600)] = _CONTEXT.prune.rule.age_ms / 60_000
    """A result may go when it is older than this."""
    keep: CountOrOff = _CONTEXT.prune.rule.keep
    """This many of the newest results stay in any case. Errors stay too, and are not counted."""
    strict_stderr: bool = _CONTEXT.prune.rule.strict_stderr
    """Whether a command that wrote to stderr counts as failed though its exit code is 0."""
    by_content: bool = _CONTEXT.prune.rule.by_content
    """Results of tools with other names may go too, where they are a JSON object with `stdout`, `stderr` or `exitCode`."""
    superseded: bool = _CONTEXT.prune.rule.superseded
    """A file that was read may go too, whatever its age, when the same part was read again or all of it was written since."""
    placeholder: Annotated[str, Meta(max_length=200)] = _CONTEXT.prune.placeholder
    """What stands in the place of a result that is gone. Empty: a few words in the chosen language. Fixed when a session starts."""
    pressure: Share = _CONTEXT.prune.pressure
    """`auto`: when this much of the model's window is full, all that may go goes at once."""
    overhead: Share = _CONTEXT.prune.overhead
    """`auto`: how much more than never pruning it may have cost at any moment …"""
    share: Share = _CONTEXT.prune.share
    """… unless outdated results make up more of the request than this: they go together as soon as that pays for itself. 1: the share
    does not matter."""
    overdraft: Share = _CONTEXT.prune.overdraft
    """`auto`: how much more than never pruning it may have cost at any moment for the sake of that share."""


class CompressTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When old messages are replaced by a summary."""

    enabled: bool = _CONTEXT.compress.enabled
    """Whether old messages are replaced by a summary when the conversation gets long."""
    threshold: Share = _CONTEXT.compress.threshold
    """… when this much of the model's window is full."""
    threshold_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000)] = _CONTEXT.compress.threshold_tokens
    """The same in tokens. 0: go by the share."""
    keep: Share = _CONTEXT.compress.keep
    """How much of the conversation, from its end, stays as it is."""


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
    """What runs without asking: `"pytest *"`, `"edit src/**"`, `"web_fetch example.org"`."""
    ask: tuple[str, ...] = ()
    """What is asked about each time."""
    deny: tuple[str, ...] = ()
    """What is refused. A refusal wins, whoever wrote it."""
    rule: tuple[RuleTable, ...] = ()
    """`[[rules.rule]]`: one rule in full, with `decision`, `tool`, `pattern`, `reason`, and examples in `match` and `no_match`, which
    are checked when the file is read."""


class OtherRulesTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose rules are read too, from their own files."""

    claude: bool = True
    """Those of Claude Code."""
    codex: bool = True
    """Those of Codex."""
    gemini: bool = True
    """Those of gemini-cli."""
    opencode: bool = True
    """Those of opencode."""


class NetworkTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which hosts commands in the sandbox may reach."""

    hosts: tuple[str, ...] = ()
    """Hosts, with those below them, that commands in the sandbox may reach, and the web tools without asking in the mode `auto`.
    `example.org` means ports 80 and 443; `example.org:8080` names another."""


class SourcesTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose MCP servers, hooks, skills, commands, subagents, plugins and memory files are read."""

    agents: bool = True
    """The folder `.agents`: skills and plugins that belong to no program."""
    claude: bool = True
    """Those of Claude Code."""
    codex: bool = True
    """Those of Codex."""
    gemini: bool = True
    """Those of gemini-cli."""
    opencode: bool = True
    """Those of opencode."""


class PluginsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What installed Python packages bring, apart from tools and models."""

    hooks: tuple[str, ...] = ()
    """Hooks of installed packages: names of entry points in the group `dragoman.hooks`, or `module:name` (a `dragoman.hooks.Hooks`, a
    list of them, or a function that returns either)."""


class McpTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """MCP servers, by name."""

    servers: dict[str, Any] = {}
    """`[mcp.servers.NAME]` with `command`, `args`, `env`, `pass_env`, `cwd`, or `url`, `headers`, `transport`, `oauth`; and `enabled`,
    `timeout_s`, `startup_timeout_s`, `tools`, `exclude_tools`. One that a project configures needs your yes."""


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
    """With a live region, or line by line (`plain`), for screen readers. `TERM=dumb` and a pipe always get the plain one."""
    theme: Literal["auto", "dark", "light", "16", "mono"] = "auto"
    """Colours: for a dark or a light background, with 16 colours, or without."""
    notify: Literal["auto", "bell", "off"] = "auto"
    """How a question, and the end of a run of more than 10 s, reaches you in another window: as a notice of the desktop where the
    terminal is known to have them, else by the bell. Neither comes within 10 s of a key: you are looking."""
    vim: bool = False
    """vim's keys in the prompt: Esc with something written leads to normal mode, `i` back."""
    title: bool = True
    """Whether the session's title is shown in the title of the terminal's window. It is put back when you leave."""
    keys: dict[str, str] = {}
    """Key → action, as in `"ctrl-e" = "editor"`. `none` takes a key away."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be configured, with its defaults."""

    model: str = ""
    """The model to use, as `deployment/model`. Empty: the first service there is a key for (Gemini, Anthropic, OpenAI, then the others
    of the catalog), else a model server on this machine, which is offered first, else a model in the process."""
    fallback: tuple[str, ...] = ()
    """Models to go on with, in this order, where the model's service keeps refusing: rate limits or overload after all attempts, a
    used-up quota, an empty account, a wait beyond `retry.deadline_s`. One without a key is skipped."""
    approval: Approval = "default"
    """What runs without asking. A project may only tighten it."""
    max_turns: Count = _LIMITS.max_turns
    """Answers of the model in one run."""
    lang: Literal["en", "zh"] = "en"
    """The program's language. Not set: Chinese where the locale is that of Simplified Chinese."""
    color: Literal["auto", "always", "never"] = "auto"
    """Colours in the terminal."""
    system_file: str = ""
    """A file whose text replaces the built-in system prompt. A relative path counts from the file that says so."""
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
    """`[[hooks.PreToolUse]]`: commands at fixed points of a run, with `matcher`, `command`, `args` and `timeout` in seconds. One that a
    project configures needs your yes."""
    ui: UiTable = UiTable()
    deployments: dict[str, dict[str, object]] = {}
    """`[deployments.NAME]`: services of your own, or single fields of known ones."""


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
