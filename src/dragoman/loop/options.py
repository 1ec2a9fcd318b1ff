"""How an agent is set up: the groups of options an embedder can give, each with its defaults."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.base import late_types
from dragoman.http.clients import HttpClient
from dragoman.loop.history import History
from dragoman.policy.grants import Grants
from dragoman.policy.judge import Mode
from dragoman.tools.web import HostRules
from dragoman.values.calls import Ask, AskUser, Tool
from dragoman.values.contracts import BlobStore, Provider
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import Settings, ToolSpec
from dragoman.values.partial import MAX_ANSWER_CHARS, MAX_ANSWER_EVENTS
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.budget import Account, Budget
    from dragoman.policy.rules import Rule
    from dragoman.providers.catalog import Catalog
    from dragoman.sessions.stores import Store
    from dragoman.text_tools.options import TextOptions
    from dragoman.values.hooks import Hooks
else:
    Account, Budget = late_types("dragoman.loop.budget", "Account", "Budget")
    (Rule,) = late_types("dragoman.policy.rules", "Rule")
    (Catalog,) = late_types("dragoman.providers.catalog", "Catalog")
    (Store,) = late_types("dragoman.sessions.stores", "Store")
    (TextOptions,) = late_types("dragoman.text_tools.options", "TextOptions")
    (Hooks,) = late_types("dragoman.values.hooks", "Hooks")

Path = str | os.PathLike[str]
Connect = Callable[[str, BlobStore], Provider]
"""From a model's name to a provider that finds the bytes of images and files in the store given."""
SearchMode = Literal["off", "tool", "grounding"]
ToolCalling = Literal["auto", "native", "text"]
"""How calls are made: natively, as text, or as the model's profile says (a model nobody knows is watched)."""


AskFor = Callable[[tuple[ToolSpec, ...], Settings], tuple[tuple[ToolSpec, ...], Settings]]


class Connector(msgspec.Struct, frozen=True):
    """How models are connected by name, and the one to begin with; empty: the one the resumed session used."""

    connect: Connect
    model: str = ""
    catalog: Catalog | None = None
    """The services it knows, for the prices of models that were used before; None: the built-in ones."""
    env: Mapping[str, str] | None = None
    """Where the keys of those services are, so that another one can be asked to search the web; None: no other is asked."""
    otherwise: Callable[[], str] | None = None
    """Names the model where a resumed session does not: its log is damaged there, or nothing was asked in it yet."""


class FallbackOptions(msgspec.Struct, frozen=True):
    """Which models go on, in this order, where a service keeps refusing: rate limits after all attempts, a used-up quota, an overload."""

    models: Sequence[str | Provider] = ()
    """One that has no key is skipped, and the user is told so. The first that answers is kept for the session."""
    on_persistent_429: Callable[[Any], str | bool | Awaitable[str | bool | None] | None] | None = None
    """Asked first where the refusal is a 429, by a function or an async one: returns the name of a model, True to ask the same model again
    at once (only once in a run), or False or None to go by `models`."""

    @property
    def is_set(self) -> bool:
        return bool(self.models) or self.on_persistent_429 is not None


class WebAccess(msgspec.Struct, frozen=True):
    """What an agent may do on the web."""

    search: SearchMode = "tool"
    """tool: the model calls google_web_search. grounding: the service searches by itself while it answers, where it can."""
    search_model: str = ""
    """The model that searches: `gemini/gemini-3.8-flash`. Empty: the chat model, or, where it cannot, one of another service there is a key
    for. `none`: the chat model or nobody."""
    searxng: str = ""
    """The URL of a SearXNG server: it needs no key, and is used before any model."""
    fetch: bool = True
    rules: HostRules = HostRules()
    client: HttpClient = "own"
    """The HTTP client that fetches pages and asks SearXNG; models have their own connection."""


class Sandboxing(msgspec.Struct, frozen=True):
    """The boundary around commands: they write in the workspace only, read no stored secrets and have no network."""

    level: Literal["auto", 1, 2, 3, "off", "external"] = "auto"
    """1: namespaces of our own. 2: bubblewrap. 3: Landlock alone. auto: the first that works here, if one does. off: none.
    external: none of ours, because a container or a virtual machine is the boundary: the mode auto is allowed."""
    unix_sockets: bool = False
    """Let commands make UNIX sockets."""
    writable: Sequence[Path] = ()
    """Further folders that commands may write."""
    environment: Sequence[str] = ()
    """Names of further variables that commands get: in the sandbox they have a short list."""
    gate_port: int = 61080
    """Levels 1 and 2: where commands find the gate to the network, on their own loopback interface; 0: none. It is made where hosts are
    allowed (`ApprovalOptions.hosts`, rules) or somebody can be asked."""
    hide_process: bool = False
    """From the first command on, no other process of the user reads the memory and the environment of this one; debuggers neither."""


class ToolOptions(msgspec.Struct, frozen=True):
    """Which tools the model has, and how it calls them."""

    own: Sequence[Tool | Callable[..., Any]] = ()
    """Your own: tools, and plain functions, which become tools that may change something."""
    builtin: bool | Collection[str] = False
    """All built-in tools, none, or those named. `coding_agent` gives them all."""
    web: WebAccess | None = None
    calling: ToolCalling = "auto"
    text: TextOptions | None = None
    """How tools are put into text, where they are."""
    pass_env: Collection[str] = ()
    """Names of variables that commands get, though their names look like those of secrets (`*KEY*`, `*TOKEN*` …)."""
    sandbox: Sandboxing | bool = False
    """Run commands in a sandbox, if one works here (Linux)."""


class WorkspaceOptions(msgspec.Struct, frozen=True):
    """The folders the agent works in, and what the model is told of them."""

    root: Path = "."
    include: Sequence[Path] = ()
    """Further directories it may work in."""
    describe: bool | None = None
    """Tell the model with the first message the date, the system and what lies in the folders. None: where it has built-in tools, which
    work in them, or memory files."""
    memory: Sequence[tuple[str, str]] = ()
    """Memory files, each with its path and what it says: told with the first message."""
    memory_file: Path = ""
    """The file `save_memory` adds to; empty: the tool is not offered."""
    guarded: Sequence[Path] = ()
    """Further files and folders that no tool writes unasked, beside our own configuration, approvals, logs and caches."""
    temporary: Path = ""
    """The project's temporary folder: the model is told of it and may write in it; it is made with mode 0700. Empty: the system's."""


class ApprovalOptions(msgspec.Struct, frozen=True):
    """What may run unasked, and who is asked about the rest. Without `ask`, the rest is refused, and the model is told so."""

    mode: Mode = "default"
    ask: Ask | None = None
    ask_user: AskUser | None = None
    """Answers the model's own questions; without it the tool `ask_user` is not offered."""
    grants: Grants | None = None
    """What has been allowed for good."""
    rules: Sequence[Rule] = ()
    """Which commands and calls run, ask, or are refused, whatever the mode: see `dragoman.rules`."""
    hosts: Sequence[str] = ()
    """Which hosts web tools may reach unasked in the mode auto; hosts below them too."""
    run_sandboxed: bool = False
    """Whether commands inside a sandbox run unasked and write in the workspace in the other modes too."""


class SessionOptions(msgspec.Struct, frozen=True):
    """Where the conversation is kept, and how it begins."""

    store: Store | Path | None = None
    """The folder of sessions, or a store (`dragoman.stores`); None: it is kept in memory only."""
    resume: str = ""
    """The session to go on with: `latest`, its id, or a beginning (four characters or more) of its random part that no other has."""
    history: History | None = None
    """A record to go on from, where there is no store."""
    blobs: BlobStore | None = None
    outputs: str = ""
    """The folder for tool output too long for the model."""
    key: str = ""
    """Your own name for the session, such as `user-42`: the one with this key is opened, or created at once if there is none. Where
    another process has it open, that is InUse."""
    id: str = ""
    """The id of a new session, made by the store's `new_id`, where it was told before the session was opened."""


class AnswerPolicy(msgspec.Struct, frozen=True):
    """How often an answer is requested in all, if it is empty or unreadable, and how long one may be."""

    attempts: int = 2
    delay_s: float = 0.5
    temperature: float = 1.0
    """What a retry is sampled at, to encourage another answer."""
    max_chars: int = MAX_ANSWER_CHARS
    """Longest answer, its thinking and the arguments of its calls included. A longer one is stopped: AnswerTooLong. 0: no bound."""
    max_events: int = MAX_ANSWER_EVENTS
    """The same for the pieces it comes in."""
    allow_empty_end: bool = False
    """Whether an empty answer right after tool results ends the run. By default it is requested once more with a word to go on, and then
    it is an error."""
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep


class LoopLimits(msgspec.Struct, frozen=True):
    """What counts as going in circles. 0 turns a check off."""

    same_call: int = 5
    """The same call this many times in a row."""
    cycle_length: int = 5
    cycle_repeats: int = 4
    """A cycle of up to `cycle_length` calls, this many times in a row."""
    failing_call: int = 3
    """The same call failing this often, whatever was done in between."""
    text_window: int = 50
    text_repeats: int = 10
    """The same stretch of `text_window` characters, this often within a short span of one answer."""
    polled: tuple[str, ...] = ()
    """Tools that may be called again and again with the same arguments, by name or pattern: `mcp__ci__*`. Your own say it themselves:
    `tool(polled=True)`."""


class RunOptions(msgspec.Struct, frozen=True):
    """What holds for one run alone; None: as the agent has it."""

    search: SearchMode | None = None
    settings: Settings | None = None
    """Laid over those of the agent: what they do not say is as the agent has it."""
    budget: Budget | Account | None = None
    """In the place of `Limits.budget`."""
    instructions: str = ""
    """Added to the system prompt."""
    ask_for: AskFor | None = None
    """Adds what asks the model for a value of a type; None: it is asked for text."""
    deps: Any = None
    """What the embedder's own tools work with."""


class Limits(msgspec.Struct, frozen=True):
    """How far a run may go."""

    max_turns: int = 100
    answers: AnswerPolicy = AnswerPolicy()
    loop: LoopLimits = LoopLimits()
    max_output_chars: int = 40_000
    """Longest result a tool may give the model. The whole is kept in a file."""
    shell_timeout_s: float = 120.0
    budget: Budget | None = None
    """Of each run."""
    output_tries: int = 2
    """How often a model is told that its answer does not fit the type asked for, and asked again."""
    max_depth: int = 3
    """How deep agents that are called as tools may call one another; 0: they are not called."""
    max_hand_overs: int = 10
    """How often a conversation may be handed over in one run."""


def tool_options(tools: Iterable[Tool | Callable[..., Any]] | ToolOptions) -> ToolOptions:
    if isinstance(tools, ToolOptions):
        return tools
    if isinstance(tools, Iterable) and not isinstance(tools, str | bytes):
        return ToolOptions(tuple(tools))
    raise InputError(say("loop.option_wrong", name="tools", expected=say("loop.option_list"), given=shown(tools)))


def own_tools(options: ToolOptions) -> list[Tool]:
    """The embedder's tools; plain functions among them become tools."""
    return [as_tool(each) for each in options.own]


def as_tool(tool: Tool | Callable[..., Any]) -> Tool:
    if isinstance(tool, Tool):
        return tool
    from dragoman.tools.function import FunctionTool

    return FunctionTool(tool)


def workspace_options(workspace: Path | WorkspaceOptions) -> WorkspaceOptions:
    return workspace if isinstance(workspace, WorkspaceOptions) else WorkspaceOptions(workspace)


def hook_list(hooks: Hooks | Sequence[Hooks]) -> tuple[Hooks, ...]:
    return tuple(hooks) if isinstance(hooks, Sequence) else (hooks,)


def approval_options(approval: Mode | ApprovalOptions) -> ApprovalOptions:
    return approval if isinstance(approval, ApprovalOptions) else ApprovalOptions(approval)


def fallback_options(fallback: Sequence[str | Provider] | FallbackOptions) -> FallbackOptions:
    return fallback if isinstance(fallback, FallbackOptions) else FallbackOptions((fallback,) if isinstance(fallback, str) else fallback)


def session_options(session: Path | Store | History | SessionOptions | None) -> SessionOptions:
    match session:
        case SessionOptions():
            return session
        case History():
            return SessionOptions(history=session)
        case _:
            return SessionOptions(session)
