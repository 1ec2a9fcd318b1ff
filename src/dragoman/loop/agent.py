"""The public entry point: puts session, models, tools and policy together, and starts runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import GenericAlias, MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, overload

from msgspec import UNSET

from dragoman.base import late_types
from dragoman.loop.assembly import assemble
from dragoman.loop.conversation import BetweenRuns
from dragoman.loop.history import History
from dragoman.loop.option_checks import check_options
from dragoman.loop.options import (
    ApprovalOptions,
    Connector,
    FallbackOptions,
    Limits,
    RunOptions,
    SearchMode,
    SessionOptions,
    ToolOptions,
    WorkspaceOptions,
)
from dragoman.loop.result import Result, T
from dragoman.loop.run import Run
from dragoman.loop.web import require_search
from dragoman.policy.judge import Mode
from dragoman.values.calls import Allow, Deny, Tool
from dragoman.values.contracts import Provider
from dragoman.values.errors import InputError
from dragoman.values.events import TurnEvent
from dragoman.values.messages import Content, Settings, Text, Thought
from dragoman.values.parts import prompt_message
from dragoman.words import say

if TYPE_CHECKING:
    from typing import Unpack

    from dragoman.context.settings import ContextSettings
    from dragoman.loop.agent_signature import AgentOptions, RunArguments, SyncRunOptions
    from dragoman.loop.background import Background
    from dragoman.loop.budget import Account, Budget
    from dragoman.loop.compression import Compression
    from dragoman.loop.searching import WebSearchResult
    from dragoman.loop.subagents import AgentTool
    from dragoman.loop.typed_answer import TypedAnswer, Wanted
    from dragoman.sessions.stores import Store
    from dragoman.values.hooks import Hooks
else:
    (ContextSettings,) = late_types("dragoman.context.settings", "ContextSettings")
    Account, Budget = late_types("dragoman.loop.budget", "Account", "Budget")
    (Compression,) = late_types("dragoman.loop.compression", "Compression")
    (WebSearchResult,) = late_types("dragoman.loop.searching", "WebSearchResult")
    (AgentTool,) = late_types("dragoman.loop.subagents", "AgentTool")
    (Store,) = late_types("dragoman.sessions.stores", "Store")
    (Hooks,) = late_types("dragoman.values.hooks", "Hooks")

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", default=None)
    Deps = TypeVar("Deps", default=None)
    U = TypeVar("U", default=str)
else:
    from typing import TypeVar

    D, Deps, U = TypeVar("D"), TypeVar("Deps"), TypeVar("U")
_AGENTS: Any = UNSET
"""In the place of dependencies that were not given: those of the agent."""
Named = str | Provider | Connector | None
Prompt = Content | Iterable[Content] | None
Decisions = Mapping[str, Allow | Deny]
Results = Mapping[str, Any]


class Agent(BetweenRuns, Generic[D, T]):
    """A model with tools, a workspace and a conversation.

        with Agent("gemini/gemini-3.8-flash") as agent:
            print(agent.run_sync("What does this repository do?").text)

    It has the tools you give it and no others, and the model is told what you tell it: no prompt, no folder and no date of ours.
    `coding_agent` gives one that can read and edit files and run commands. Each group of options has a short form: a list of your own
    tools, a folder, a mode, a folder of sessions.
    """

    def __class_getitem__(cls, types: Any) -> GenericAlias:
        return GenericAlias(cls, types)  # `Agent[Deps]` too: defaults of type variables came with Python 3.13

    @overload
    def __init__(self, model: Named, *, deps: D = ..., output: None = None, **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self, model: Named, *, deps: D = ..., output: type[T], **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self, model: Named, *, deps: D = ..., output: Callable[..., Awaitable[T]], **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self, model: Named, *, deps: D = ..., output: Callable[..., T], **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self: Agent[None, Any], model: Named, *, output: Any, **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self: Agent[Deps, Any], model: Named, *, deps: Deps, output: Any, **options: Unpack[AgentOptions]) -> None: ...
    def __init__(
        self,
        model: Named,
        *,
        system: str | None = None,
        output: Any = None,
        tools: Iterable[Tool | Callable[..., Any]] | ToolOptions = (),
        workspace: str | os.PathLike[str] | WorkspaceOptions = ".",
        approval: Mode | ApprovalOptions = "default",
        session: str | os.PathLike[str] | Store | History | SessionOptions | None = None,
        settings: Settings | None = None,
        limits: Limits | None = None,
        context: ContextSettings | None = None,
        fallback: Sequence[str | Provider] | FallbackOptions = (),
        budget: Budget | Account | None = None,
        deps: Any = None,
        hooks: Hooks | Sequence[Hooks] = (),
        name: str = "",
    ) -> None:
        """`model` names one (`anthropic/claude-…`), or is a provider of your own; None: the one the resumed session used.

        `output` is what `result.output` becomes: a type, a JSON Schema, or a function that is called with the answer. None: the text.
        `deps` is what your tools and hooks work with: they find it in their ToolContext. `hooks` are called at fixed points of a run.
        `name` is what the record, events and traces call it, where there are several agents.
        """
        self._harness, self.notices = assemble(
            model, system=system, deps=deps, tools=tools, workspace=workspace, approval=approval, session=session, settings=settings,
            limits=limits, context=context, fallback=fallback, budget=budget, hooks=hooks, name=name,
        )  # fmt: skip
        self._checks: list[Callable[[Any], Any]] = []
        self._wanted = _wanted(output)
        self._session = self._harness.session
        self._background: Background | None = None
        self._has_closed_hooks = False
        self._background_lock = threading.Lock()
        self.beside: dict[str, Any] = {}
        """What a program has put beside it, by name, such as MCP servers. What has an `aclose` is closed with it."""

    # --- asking it

    @overload
    def run(self, prompt: Prompt = None, *, deps: D = ..., output: None = None, **options: Unpack[RunArguments]) -> Run[T]: ...
    @overload
    def run(self, prompt: Prompt = None, *, deps: D = ..., output: type[U], **options: Unpack[RunArguments]) -> Run[U]: ...
    @overload
    def run(
        self, prompt: Prompt = None, *, deps: D = ..., output: Callable[..., Awaitable[U]], **options: Unpack[RunArguments]
    ) -> Run[U]: ...
    @overload
    def run(self, prompt: Prompt = None, *, deps: D = ..., output: Callable[..., U], **options: Unpack[RunArguments]) -> Run[U]: ...
    @overload
    def run(self, prompt: Prompt = None, *, deps: D = ..., output: Any, **options: Unpack[RunArguments]) -> Run[Any]: ...
    def run(
        self,
        prompt: Prompt = None,
        *,
        deps: Any = _AGENTS,
        output: Any = None,
        search: SearchMode | None = None,
        settings: Settings | None = None,
        budget: Budget | Account | None = None,
        instructions: str = "",
    ) -> Run[Any]:
        """Turns until the model has nothing left to call. Without a prompt: go on from where things stand, as after a failure.

        For this run alone: `deps` is what your tools work with, `output` what `result.output` becomes (both as for the agent), `search`
        says how the web is searched (see `WebAccess.search`; an agent without web access may be told `grounding`, where its model can),
        `settings` how answers are generated (what they do not say is as the agent has it), `budget` what it may spend, in the place of
        `limits.budget` and beside the budget of the agent, and `instructions` are added to the system prompt.
        """
        check_options(settings=settings, budget=budget, instructions=instructions, search=search)
        if self._harness.web is None:
            require_search(search, self._harness.session.model, self._harness.registry.specs)
        deps = self._harness.deps if deps is _AGENTS else deps
        message = None if prompt is None else prompt_message(prompt)
        if message is not None and not message.text.strip() and all(isinstance(part, Text | Thought) for part in message.parts):
            raise InputError(say("loop.empty_prompt"))
        if message is not None and message.results:
            raise InputError(say("loop.prompt_of_results", results=", ".join(each.name or each.call_id for each in message.results)))
        if message is not None:
            message = self._session.take_media(message)
        typed = self._typed_answer(output)
        options = RunOptions(search, settings, budget, instructions, typed.ask if typed is not None else None, deps)
        return Run(self._harness, message, options, typed)

    @overload
    def run_sync(self, prompt: Prompt = None, *, deps: D = ..., output: None = None, **options: Unpack[SyncRunOptions]) -> Result[T]: ...
    @overload
    def run_sync(self, prompt: Prompt = None, *, deps: D = ..., output: type[U], **options: Unpack[SyncRunOptions]) -> Result[U]: ...
    @overload
    def run_sync(
        self, prompt: Prompt = None, *, deps: D = ..., output: Callable[..., Awaitable[U]], **options: Unpack[SyncRunOptions]
    ) -> Result[U]: ...
    @overload
    def run_sync(
        self, prompt: Prompt = None, *, deps: D = ..., output: Callable[..., U], **options: Unpack[SyncRunOptions]
    ) -> Result[U]: ...
    @overload
    def run_sync(self, prompt: Prompt = None, *, deps: D = ..., output: Any, **options: Unpack[SyncRunOptions]) -> Result[Any]: ...
    def run_sync(
        self,
        prompt: Prompt = None,
        *,
        deps: Any = _AGENTS,
        output: Any = None,
        search: SearchMode | None = None,
        settings: Settings | None = None,
        budget: Budget | Account | None = None,
        instructions: str = "",
    ) -> Result[Any]:
        """`run` for code that is not async. It works in a thread of its own, so it may be called from anywhere.

        `cancel()` from another thread ends it, with Cancelled; so does Ctrl-C, with KeyboardInterrupt.
        """
        options: Any = {"deps": deps, "output": output, "search": search, "settings": settings, "budget": budget}
        return self._in_background().result_of(lambda: self.run(prompt, instructions=instructions, **options))

    @overload
    def resume(
        self, decisions: Decisions = ..., results: Results = ..., *, deps: D = ..., output: None = None, **options: Unpack[RunArguments]
    ) -> Run[T]: ...
    @overload
    def resume(
        self, decisions: Decisions = ..., results: Results = ..., *, deps: D = ..., output: type[U], **options: Unpack[RunArguments]
    ) -> Run[U]: ...
    @overload
    def resume(
        self,
        decisions: Decisions = ...,
        results: Results = ...,
        *,
        deps: D = ...,
        output: Callable[..., Awaitable[U]],
        **options: Unpack[RunArguments],
    ) -> Run[U]: ...
    @overload
    def resume(
        self,
        decisions: Decisions = ...,
        results: Results = ...,
        *,
        deps: D = ...,
        output: Callable[..., U],
        **options: Unpack[RunArguments],
    ) -> Run[U]: ...
    @overload
    def resume(
        self, decisions: Decisions = ..., results: Results = ..., *, deps: D = ..., output: Any, **options: Unpack[RunArguments]
    ) -> Run[Any]: ...
    def resume(
        self,
        decisions: Decisions = MappingProxyType({}),
        results: Results = MappingProxyType({}),
        *,
        output: Any = None,
        search: SearchMode | None = None,
        settings: Settings | None = None,
        budget: Budget | Account | None = None,
        instructions: str = "",
        deps: Any = _AGENTS,
    ) -> Run[Any]:
        """Go on with the calls that wait (`pending`), in this process or another: `decisions` for those that wait for a person, `results`
        for those whose result comes from outside (what a tool may return, or a ToolOutput), by the ids of the calls.

        What is not decided goes on waiting, and the run ends as pending again. The rest is as for `run`. Awaiting it raises InputError
        for an id that is unknown, a call that is over, and one that was decided before; then nothing has happened.
        """
        check_options(settings=settings, budget=budget, instructions=instructions, search=search)
        if self._harness.web is None:
            require_search(search, self._harness.session.model, self._harness.registry.specs)
        from dragoman.loop.resuming import ResumedRun

        typed = self._typed_answer(output)
        deps = self._harness.deps if deps is _AGENTS else deps
        options = RunOptions(search, settings, budget, instructions, typed.ask if typed is not None else None, deps)
        return ResumedRun(self._harness, options, typed, decisions, results)

    @overload
    def resume_sync(
        self, decisions: Decisions = ..., results: Results = ..., *, deps: D = ..., output: None = None, **options: Unpack[SyncRunOptions]
    ) -> Result[T]: ...
    @overload
    def resume_sync(
        self, decisions: Decisions = ..., results: Results = ..., *, deps: D = ..., output: type[U], **options: Unpack[SyncRunOptions]
    ) -> Result[U]: ...
    @overload
    def resume_sync(
        self,
        decisions: Decisions = ...,
        results: Results = ...,
        *,
        deps: D = ...,
        output: Callable[..., Awaitable[U]],
        **options: Unpack[SyncRunOptions],
    ) -> Result[U]: ...
    @overload
    def resume_sync(
        self,
        decisions: Decisions = ...,
        results: Results = ...,
        *,
        deps: D = ...,
        output: Callable[..., U],
        **options: Unpack[SyncRunOptions],
    ) -> Result[U]: ...
    @overload
    def resume_sync(
        self, decisions: Decisions = ..., results: Results = ..., *, deps: D = ..., output: Any, **options: Unpack[SyncRunOptions]
    ) -> Result[Any]: ...
    def resume_sync(
        self, decisions: Decisions = MappingProxyType({}), results: Results = MappingProxyType({}), *, output: Any = None, **options: Any
    ) -> Result[Any]:
        """`resume` for code that is not async: see `run_sync`."""
        return self._in_background().result_of(lambda: self.resume(decisions, results, output=output, **options))

    def stream_sync(
        self,
        prompt: Prompt = None,
        *,
        deps: D = _AGENTS,
        output: Any = None,
        search: SearchMode | None = None,
        settings: Settings | None = None,
        budget: Budget | Account | None = None,
        instructions: str = "",
    ) -> Iterator[TurnEvent]:
        """The events of `run` for code that is not async. Leaving the loop early cancels the run."""
        options: Any = {"deps": deps, "output": output, "search": search, "settings": settings, "budget": budget}
        return self._in_background().events_of(lambda: self.run(prompt, instructions=instructions, **options))

    def cancel(self) -> bool:
        """End what is going on: a run, however it was started, or a compression. May be called from any thread, and returns at once.

        False where nothing is going on.
        """
        worker = self._session.work.current
        if worker is None:
            return False
        worker.cancel()
        return True

    def check(self, function: Callable[[T], U]) -> Callable[[T], U]:
        """A decorator: have each output checked, by a function that is async or not. It returns the output, another one in its place, or
        None to leave it; raises ValueError with words for the model, which is then asked again. Any other error ends the run.

        A run with an `output` of its own is checked only if the agent has none.
        """
        self._checks.append(function)
        return function

    def as_tool(self, name: str, description: str, *, side_by_side: bool = True) -> AgentTool:
        """A tool for other agents: each call is a fresh conversation with this agent's model, system prompt, tools and settings. Its own
        conversation is not touched. The agent must not be closed as long as the tool is used.

        Calls run side by side, also with calls that write; with `side_by_side=False` each waits for those before it, unless this agent
        has only tools that read. Raises InputError where the name is not one for a tool.
        """
        from dragoman.loop.subagents import AgentTool, Template

        return AgentTool(Template(self._harness, self._wanted, self._checks), name, description, runs_beside=side_by_side)

    def compress_sync(self, focus: str = "", *, force: bool = True) -> Compression:
        """`compress` for code that is not async."""
        return self._in_background().value_of(lambda: self.compress(focus, force=force))

    def search_sync(self, query: str) -> WebSearchResult:
        """`search` for code that is not async."""
        return self._in_background().value_of(lambda: self.search(query))

    # --- ending it

    async def aclose(self) -> None:
        """End what is going on, and close the session and the connections this agent opened. A provider that was given stays open.

        All of that is done even if the caller is cancelled meanwhile.
        """
        from dragoman.loop.ending import end

        beside = [each.aclose for each in self.beside.values() if hasattr(each, "aclose")]
        await end(self._harness, [*beside, self.close_hooks])

    async def close_hooks(self) -> None:
        """Call the hooks for the end, once: `aclose` does."""
        if self._harness.hooks is not None and not self._has_closed_hooks:
            self._has_closed_hooks = True
            await self._harness.hooks.close()

    def close(self) -> None:
        """`aclose` for code that is not async; it also ends the thread of `run_sync`."""
        if self._session.work.current is not None and not (self._background is not None and self._background.is_busy):
            self._session.work.require_none()  # what runs in a loop of the caller's own is ended there
        self._in_background().close(self.aclose)

    def __reduce__(self) -> NoReturn:
        raise TypeError(say("loop.not_copied"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _typed_answer(self, output: Any) -> TypedAnswer[Any] | None:
        if output is None and self._wanted is None and not self._checks:
            return None
        from dragoman.loop.typed_answer import TypedAnswer

        checks = self._checks if output is None or self._wanted is None else ()
        return TypedAnswer(self._harness.holder, _wanted(output) or self._wanted, checks)

    def _in_background(self) -> Background:
        with self._background_lock:  # two threads may ask first at the same time
            if self._background is None:
                from dragoman.loop.background import Background

                self._background = Background()
            return self._background


def _wanted(output: Any) -> Wanted | None:
    if output is None:
        return None
    from dragoman.loop.typed_answer import Wanted

    return Wanted(output)
