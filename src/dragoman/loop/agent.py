"""The public entry point: puts session, models, tools and policy together, and starts runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from dragoman.base.words import say
from dragoman.loop.harness import Harness
from dragoman.loop.history import History
from dragoman.loop.model import Models
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
    approval_options,
    fallback_options,
    session_options,
    tool_options,
    workspace_options,
)
from dragoman.loop.result import Result, T
from dragoman.loop.run import Run
from dragoman.loop.session import open_session
from dragoman.policy.approvals import Approvals
from dragoman.policy.judge import Mode
from dragoman.tools.registry import Registry
from dragoman.tools.workspace import Workspace
from dragoman.values.contracts import BlobStore, Provider, Tool
from dragoman.values.errors import InputError
from dragoman.values.events import TurnEvent
from dragoman.values.messages import Content, Message, Settings, Text, Thought
from dragoman.values.parts import prompt_message
from dragoman.values.record import Entry

if TYPE_CHECKING:
    from typing import Unpack

    from dragoman.context.plan import Plan
    from dragoman.context.settings import ContextSettings
    from dragoman.loop.agent_signature import AgentOptions, RunArguments, SyncRunOptions
    from dragoman.loop.background import Background
    from dragoman.loop.budget import Account, Budget
    from dragoman.loop.compression import Compression
    from dragoman.loop.typed_answer import Wanted
    from dragoman.sessions.store import Store

U = TypeVar("U")
Named = str | Provider | Connector | None
Prompt = Content | Iterable[Content] | None


class Agent(Generic[T]):
    """A model with tools, a workspace and a conversation.

        with Agent("gemini/gemini-3.8-flash") as agent:
            print(agent.run_sync("What does this repository do?").text)

    By default the built-in tools are there, reads run, and writes and commands are put before a person; where nobody can be asked, they are
    refused and the model is told so. Each group of options has a short form: a list of your own tools, a folder, a mode, a folder of
    sessions.
    """

    @overload
    def __init__(self: Agent[str], model: Named, *, output: None = None, **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self: Agent[U], model: Named, *, output: type[U], **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self: Agent[U], model: Named, *, output: Callable[..., Awaitable[U]], **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self: Agent[U], model: Named, *, output: Callable[..., U], **options: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(self: Agent[Any], model: Named, *, output: Any, **options: Unpack[AgentOptions]) -> None: ...
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
    ) -> None:
        """`model` names one (`anthropic/claude-…`), or is a provider of your own; None: the one the resumed session used.

        `output` is what `result.output` becomes: a type, a JSON Schema, or a function that is called with the answer. None: the text.
        """
        tools, workspace, approval = tool_options(tools), workspace_options(workspace), approval_options(approval)
        session, fallback = session_options(session), fallback_options(fallback)
        check_options(
            system=system,
            tools=tools,
            workspace=workspace,
            approval=approval,
            session=session,
            settings=settings,
            limits=limits,
            context=context,
            fallback=fallback,
            budget=budget,
        )
        connector = model if isinstance(model, Connector) else None
        wanted = model.model if isinstance(model, Connector) else model
        given = wanted.blobs if isinstance(wanted, Provider) else None
        opened, self.notices = open_session(session, os.path.realpath(workspace.root), given)
        models = Models(connector, opened.blobs, tools.calling, tools.text)
        if isinstance(wanted, Provider):
            models.env = None  # whoever gives a provider has chosen who is talked to
        try:
            opened.model = models.use(wanted or opened.own_model(connector))
        except BaseException:
            opened.close()  # so that the next attempt does not find it in use
            raise
        self._harness = Harness(
            opened,
            models,
            workspace,
            tools,
            approval,
            system=system,
            settings=settings or Settings(),
            limits=limits or Limits(),
            context=context,
            fallback=fallback,
        )
        self._checks: list[Callable[[Any], Any]] = []
        self._wanted = _wanted(output)
        self._session = opened
        self._account: Account | None = None
        if budget is not None:
            from dragoman.loop.charging import Purse, account_of

            self._account = account_of(budget)
            opened.purse = Purse([self._account], opened.history)
        self._background: Background | None = None
        self._background_lock = threading.Lock()

    # --- asking it

    @overload
    def run(self, prompt: Prompt = None, *, output: None = None, **options: Unpack[RunArguments]) -> Run[T]: ...
    @overload
    def run(self, prompt: Prompt = None, *, output: type[U], **options: Unpack[RunArguments]) -> Run[U]: ...
    @overload
    def run(self, prompt: Prompt = None, *, output: Callable[..., Awaitable[U]], **options: Unpack[RunArguments]) -> Run[U]: ...
    @overload
    def run(self, prompt: Prompt = None, *, output: Callable[..., U], **options: Unpack[RunArguments]) -> Run[U]: ...
    @overload
    def run(self, prompt: Prompt = None, *, output: Any, **options: Unpack[RunArguments]) -> Run[Any]: ...
    def run(
        self,
        prompt: Prompt = None,
        *,
        output: Any = None,
        search: SearchMode | None = None,
        settings: Settings | None = None,
        budget: Budget | Account | None = None,
        instructions: str = "",
    ) -> Run[Any]:
        """Turns until the model has nothing left to call. Without a prompt: go on from where things stand, as after a failure.

        For this run alone: `output` is what `result.output` becomes (as for the agent), `search` says how the web is searched (see
        `WebAccess.search`), `settings` how answers are generated, `budget` what it may spend, in the place of `limits.budget` and beside
        the budget of the agent, and `instructions` are added to the system prompt.
        """
        check_options(budget=budget, instructions=instructions)
        message = None if prompt is None else prompt_message(prompt)
        if message is not None and not message.text.strip() and all(isinstance(part, Text | Thought) for part in message.parts):
            raise InputError(say("loop.empty_prompt"))
        if message is not None:
            self._session.keep_bytes(message.parts)
        if output is None and self._wanted is None and not self._checks:
            return Run(self._harness, message, RunOptions(search, settings, budget, instructions))
        from dragoman.loop.typed_answer import TypedAnswer

        checks = self._checks if output is None or self._wanted is None else ()
        typed = TypedAnswer(self._harness, _wanted(output) or self._wanted, checks)
        return Run(self._harness, message, RunOptions(search, settings, budget, instructions, typed.ask), typed)

    @overload
    def run_sync(self, prompt: Prompt = None, *, output: None = None, **options: Unpack[SyncRunOptions]) -> Result[T]: ...
    @overload
    def run_sync(self, prompt: Prompt = None, *, output: type[U], **options: Unpack[SyncRunOptions]) -> Result[U]: ...
    @overload
    def run_sync(self, prompt: Prompt = None, *, output: Callable[..., Awaitable[U]], **options: Unpack[SyncRunOptions]) -> Result[U]: ...
    @overload
    def run_sync(self, prompt: Prompt = None, *, output: Callable[..., U], **options: Unpack[SyncRunOptions]) -> Result[U]: ...
    @overload
    def run_sync(self, prompt: Prompt = None, *, output: Any, **options: Unpack[SyncRunOptions]) -> Result[Any]: ...
    def run_sync(
        self,
        prompt: Prompt = None,
        *,
        output: Any = None,
        settings: Settings | None = None,
        budget: Budget | Account | None = None,
        instructions: str = "",
    ) -> Result[Any]:
        """`run` for code that is not async. It works in a thread of its own, so it may be called from anywhere.

        `cancel()` from another thread ends it, with Cancelled; so does Ctrl-C, with KeyboardInterrupt.
        """
        options: Any = {"output": output, "settings": settings, "budget": budget, "instructions": instructions}
        return self._in_background().result_of(lambda: self.run(prompt, **options))

    def stream_sync(
        self,
        prompt: Prompt = None,
        *,
        output: Any = None,
        settings: Settings | None = None,
        budget: Budget | Account | None = None,
        instructions: str = "",
    ) -> Iterator[TurnEvent]:
        """The events of `run` for code that is not async. Leaving the loop early cancels the run."""
        options: Any = {"output": output, "settings": settings, "budget": budget, "instructions": instructions}
        return self._in_background().events_of(lambda: self.run(prompt, **options))

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

    # --- its context

    async def compress(self, focus: str = "") -> Compression:
        """Have the older part of the conversation summed up now, however long it is; `focus` says what matters. The record keeps it all."""
        from dragoman.loop.compressing import compress_now

        return await compress_now(self._harness, focus)

    def compress_sync(self, focus: str = "") -> Compression:
        """`compress` for code that is not async."""
        return self._in_background().value_of(lambda: self.compress(focus))

    def prune(self) -> int:
        """Prune every result that is outdated by the rule now, whatever the schedule. Returns how many there were."""
        self._session.work.require_none()
        return self._harness.upkeep.prune()

    def plan(self) -> Plan:
        """What the next request holds and what is left out of it, each with its size and the reason."""
        models = self._harness.models
        return self._harness.upkeep.plan(lambda deployment, model: models.profile_of(deployment, model).prices)

    # --- changing it

    def change_model(self, model: str | Provider) -> None:
        """The same conversation with another model, from the next answer on."""
        self._session.change_model(self._harness.models.use(model))

    def change_to_text(self, dialect: str = "") -> None:
        """Tools as text from the next request on, for a model or server that turns out to have no function calling."""
        self._session.change_model(self._harness.models.in_text(self._session.model, dialect))

    def add_directory(self, path: str | os.PathLike[str]) -> str:
        """Let the model work in another directory as well, at once; what lies in it is told with the next prompt. Returns its real path.

        Raises InputError where there is no such directory.
        """
        real = os.path.realpath(os.path.expanduser(path))
        if not os.path.isdir(real):
            raise InputError(say("loop.not_a_directory", path=os.fspath(path)))
        self._harness.add_directory(real)
        return real

    def undo(self, runs: int = 1, *, force: bool = False) -> tuple[str, ...]:
        """Put files back as they were before the last run, or the last few. Returns the paths that were changed by it.

        Only of a conversation that is kept (`session=`), and only what tools wrote: what a command did is not known. Raises InputError,
        having touched nothing, where somebody else has changed one of the files since, or one is guarded, unless it is forced. Files
        outside the workspace are left alone in any case, and so is what was done before the session was imported.
        """
        from dragoman.loop.going_back import undo

        self._session.work.require_none()
        return undo(self._harness, runs, force=force)

    def rewind(self, seq: int, *, files: bool = False, force: bool = False) -> tuple[str, ...]:
        """Go back to how things stood after entry `seq`; the record keeps everything. With `files`, what tools wrote since is undone first.

        Returns the paths of files that were put back. Raises InputError where there is no such entry, or as `undo` does.
        """
        from dragoman.loop.going_back import rewind

        self._session.work.require_none()
        changed = rewind(self._harness, seq, files=files, force=force)
        self._harness.look_again()
        return changed

    def clear(self) -> None:
        """Start afresh: the model sees nothing of what was said. The record keeps it, and `rewind` brings it back."""
        self._session.work.require_none()
        from dragoman.loop.replacing import clear

        clear(self._harness)

    def set_history(self, messages: Iterable[Message]) -> None:
        """Put these messages in the place of the conversation so far; the record keeps that. Raises InputError where a role is unknown.

        Calls without a result get one that says so, and results without a call are left out.
        """
        self._session.work.require_none()
        from dragoman.loop.replacing import set_history

        set_history(self._harness, messages)

    # --- what it holds

    @property
    def history(self) -> History:
        """The record so far, and what the model sees of it."""
        return self._session.history

    @property
    def session_id(self) -> str:
        return self._session.id

    @property
    def not_saved(self) -> str:
        """Why the session is not completely on disk; empty if it is, or is not kept at all. Final once the agent is closed."""
        return self._session.log.not_saved if self._session.log is not None else ""

    @property
    def provider(self) -> Provider:
        return self._session.model.provider

    @property
    def model(self) -> str:
        """The model's name, without who serves it."""
        return self._session.model.name

    @property
    def tools(self) -> Registry:
        return self._harness.registry

    @property
    def approvals(self) -> Approvals:
        return self._harness.approvals

    @property
    def workspace(self) -> Workspace:
        return self._harness.workspace

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories the model may work in, the workspace first."""
        return self._harness.directories

    @property
    def blobs(self) -> BlobStore:
        return self._session.blobs

    @property
    def limits(self) -> Limits:
        return self._harness.limits

    @property
    def settings(self) -> Settings:
        """How answers are generated; may be set between two runs."""
        return self._harness.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        check_options(settings=settings)
        self._harness.settings = settings

    @property
    def account(self) -> Account | None:
        """What all its runs may spend, and what has been spent; None without `budget`."""
        return self._account

    def cost_usd(self, entries: Iterable[Entry]) -> float | None:
        """What the answers and summaries among these cost, or None where the prices are not known."""
        return self._harness.bill.cost_usd(entries)

    # --- ending it

    async def aclose(self) -> None:
        """End what is going on, and close the session and the connections this agent opened. A provider that was given stays open."""
        if (worker := self._session.work.current) is not None:
            worker.cancel()
            await worker.finished()
        await self._harness.stop_connecting()
        self._session.close()
        await self._harness.models.aclose()

    def close(self) -> None:
        """`aclose` for code that is not async; it also ends the thread of `run_sync`."""
        if self._session.work.current is not None and not (self._background is not None and self._background.is_busy):
            self._session.work.require_none()  # what runs in a loop of the caller's own is ended there
        self._in_background().close(self.aclose)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
