"""The agent: what an embedder holds in the hand, and the one place where the rooms are joined."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman import __version__
from dragoman.base import jsontext
from dragoman.context.tokens import MAX_SCALE
from dragoman.loop.calling import Calling, ToolsAs, is_echo
from dragoman.loop.chat import AnswerPolicy
from dragoman.loop.history import History, paid
from dragoman.loop.loop_guard import LoopLimits
from dragoman.loop.offering import offer
from dragoman.loop.run import Result, Run
from dragoman.loop.surroundings import Orientation, temporary_directory
from dragoman.policy.approvals import Approvals
from dragoman.policy.grants import Grants
from dragoman.policy.judge import Mode
from dragoman.tools.builtin import Bench, builtin_tools
from dragoman.tools.output import Outputs
from dragoman.tools.registry import Registry
from dragoman.tools.scheduler import Scheduler
from dragoman.tools.workspace import Workspace
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.contracts import Ask, AskUser, BlobStore, Ledger, Provider, Tool
from dragoman.values.errors import InputError
from dragoman.values.events import SavingChanged, ToolModeChanged, TurnEvent
from dragoman.values.messages import Content, Message, Settings, ToolCall, user
from dragoman.values.parts import to_parts
from dragoman.values.record import Entry

if TYPE_CHECKING:
    import asyncio

    from dragoman.context.plan import Plan
    from dragoman.context.settings import ContextSettings
    from dragoman.loop.background import Background
    from dragoman.loop.keeping import Keeping
    from dragoman.loop.upkeep import Compression, Upkeep
    from dragoman.loop.web import SearchMode, Web
    from dragoman.sessions.checkpoints import Checkpoints
    from dragoman.sessions.store import Store
    from dragoman.text_tools.wrapper import TextOptions

Connect = Callable[[str, BlobStore], Provider]
"""From a model's name to a provider that finds the bytes of images and files in the store given."""

VERSIONS = (f"dragoman {__version__}",)


class Limits(msgspec.Struct, frozen=True):
    """How far a run may go."""

    max_turns: int = 100
    answers: AnswerPolicy = AnswerPolicy()
    loop: LoopLimits = LoopLimits()
    max_output_chars: int = 40_000
    """Longest result a tool may give the model. The whole is kept in a file."""
    shell_timeout_s: float = 120.0


class Agent:
    """A model with tools, a workspace and a conversation.

        agent = Agent("gemini/gemini-3.8-flash")
        print(agent.run_sync("What does this repository do?").text)

    `tools` are your own, `builtin` says which of the built-in ones come with them: all, none, or those named. By default reads run and
    writes and commands are put before `ask`; without it they are refused, and the model is told so. `memory` (where a text lies, what it
    says) is told with the first message; to a `memory_file` the model may add what is to be remembered.
    """

    def __init__(
        self,
        model: str | Provider | None,
        *,
        connect: Connect | None = None,
        system: str | None = None,
        tools: Iterable[Tool] = (),
        builtin: bool | Collection[str] = True,
        workspace: str | os.PathLike[str] = ".",
        include: Sequence[str | os.PathLike[str]] = (),
        approval: Mode = "default",
        ask: Ask | None = None,
        ask_user: AskUser | None = None,
        grants: Grants | None = None,
        settings: Settings | None = None,
        limits: Limits | None = None,
        history: History | None = None,
        sessions: Store | str | os.PathLike[str] | None = None,
        resume: str = "",
        environment: bool = True,
        memory: Sequence[tuple[str, str]] = (),
        memory_file: str | os.PathLike[str] = "",
        blobs: BlobStore | None = None,
        outputs: str = "",
        context: ContextSettings | None = None,
        web: Web | None = None,
        tools_as: ToolsAs = "auto",
        text: TextOptions | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.settings = settings or Settings()
        self._untold: list[SavingChanged] = []
        self._opened: list[Provider] = []
        """Providers this agent connected by itself, which it closes. One that it was given may serve other agents too."""
        self._running: Run | None = None
        self._keeping = self._kept(sessions, workspace, resume) if sessions is not None else None
        if self._keeping is not None:
            self.history, self.session_id = self._keeping.history, self._keeping.session_id
        else:
            self.history = history if history is not None else History()
            self.session_id = self.history.view.session_id or _new_id()
        kept = self._keeping.blobs if self._keeping is not None else None
        self.blobs: BlobStore = blobs or kept or getattr(model, "blobs", None) or MemoryBlobs()
        self._connect = connect or _connect
        self._calling = Calling(tools_as, text)
        self.provider, self.model = self._connected(self._own_model() if model is None else model)
        spill = outputs or (self._keeping.outputs if self._keeping is not None else _temporary_outputs())
        self.outputs = Outputs(spill, self.limits.max_output_chars)
        self.workspace = Workspace(workspace, include=include, readable=(spill,))
        self._directories = tuple(dict.fromkeys((self.workspace.root, *(os.path.realpath(path) for path in include))))
        bench = Bench(self.workspace, self.blobs, self.outputs, ask_user, self.limits.shell_timeout_s, memory_file=os.fspath(memory_file))
        self.seen = bench.seen
        ours = [*builtin_tools(bench, builtin), *self._web_tools(web)]
        self.registry = Registry([*ours, *tools])
        self._unchosen = frozenset(tool.spec.name for tool in ours) if builtin is True else frozenset[str]()
        """Tools that are there because nobody said otherwise."""
        self._web = web
        self.approvals = Approvals(self.registry.get, approval, ask, grants=grants, trusted=_is_own_function, doubted=is_echo)
        self._system = system
        self._orientation = Orientation(memory) if environment else None
        self._has_new_directories = False
        self._asked: Message | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._checkpoints: Checkpoints | None = None
        self._background: Background | None = None
        self._background_lock = threading.Lock()
        self._context = context
        self._upkeep: Upkeep | None = None
        self._is_compressing = False

    # --- asking it

    def run(self, prompt: Content | Iterable[Content] | None = None, *, search: SearchMode | None = None) -> Run:
        """Turns until the model has nothing left to call. Without a prompt: go on from where things stand, as after a failure.

        `search` says for this run alone how the web is searched: see `Web.search`.
        """
        message = None if prompt is None else Message("user", to_parts(prompt))
        if message is not None and not message.text.strip() and all(hasattr(part, "text") for part in message.parts):
            raise InputError("the prompt is empty: say what you want")
        return Run(self, message, search)

    def run_sync(self, prompt: Content | Iterable[Content] | None = None) -> Result:
        """`run` for code that is not async. It works in a thread of its own, so it may be called from anywhere."""
        return self._in_background().result_of(lambda: self.run(prompt))

    def stream_sync(self, prompt: Content | Iterable[Content] | None = None) -> Iterator[TurnEvent]:
        """The events of `run` for code that is not async. Leaving the loop early cancels the run."""
        return self._in_background().events_of(lambda: self.run(prompt))

    async def compress(self, focus: str = "") -> Compression:
        """Have the older part of the conversation summed up now, however long it is; `focus` says what matters. The record keeps it all."""
        self._require_idle()
        self._is_compressing = True
        try:
            if self.history.view.messages:
                self.history.close_interrupted()
            if not self.history.view.model:
                self._configure()
            done = await self.upkeep.compress(focus)
            await self.history.sync()
            return done
        finally:
            self._is_compressing = False

    def compress_sync(self, focus: str = "") -> Compression:
        """`compress` for code that is not async."""
        return self._in_background().value_of(lambda: self.compress(focus))

    def prune(self) -> int:
        """Let every result that is outdated by the rule go now, whatever the schedule. Returns how many there were."""
        self._require_idle()
        return self.upkeep.prune()

    def plan(self) -> Plan:
        """What the next request holds and what is left out of it, each with its size and the reason."""
        return self.upkeep.plan()

    def change_model(self, model: str | Provider) -> None:
        """The same conversation with another model, from the next answer on."""
        self.provider, self.model = provider, name = self._connected(model)
        if self.history.view.model:
            self.history.change_model(name, provider.name)

    def change_to_text(self, dialect: str = "") -> None:
        """Tools as text from the next request on, for a model or server that turns out to have no function calling."""
        self.provider = self._calling.in_text(self.provider, self.model, dialect)
        if self.history.view.model:
            self.history.change_model(self.model, self.provider.name)

    def add_directory(self, path: str | os.PathLike[str]) -> str:
        """Let the model work in another directory as well, at once; what lies in it is told with the next prompt. Returns its real path.

        Raises InputError where there is no such directory.
        """
        real = os.path.realpath(os.path.expanduser(path))
        if not os.path.isdir(real):
            raise InputError(f"{os.fspath(path)} is not a directory: name one that exists")
        if real not in self._directories:
            self.workspace.add(real)
            self._directories += (real,)
            self._has_new_directories = True
            if self._orientation is not None:
                self._orientation.add(real)
        return real

    def undo(self, runs: int = 1, *, force: bool = False) -> tuple[str, ...]:
        """Put files back as they were before the last run, or the last few. Returns the paths that were changed by it.

        Only of a conversation that is kept (`sessions=`), and only what tools wrote: what a command did is its own. Raises InputError,
        having touched nothing, where somebody else has changed one of the files since, unless it is forced.
        """
        from dragoman.loop.going_back import undo

        self._require_idle()
        return undo(self.history, self.blobs, runs, force=force)

    def rewind(self, seq: int, *, files: bool = False, force: bool = False) -> tuple[str, ...]:
        """Go back to how things stood after entry `seq`; the record keeps everything. With `files`, what tools wrote since is undone first.

        Returns the paths of files that were put back. Raises InputError where there is no such entry, or as `undo` does.
        """
        from dragoman.loop.going_back import rewind

        self._require_idle()
        return rewind(self.history, self.blobs, seq, files=files, force=force)

    def _require_idle(self) -> None:
        if self._running is not None or self._is_compressing:
            raise InputError("this agent is already running: wait for it, cancel it, or make another agent")

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know of the session that was resumed: what was damaged, what was set aside."""
        return self._keeping.notices if self._keeping is not None else ()

    def cost_usd(self, entries: Iterable[Entry]) -> float | None:
        """What the answers and summaries among these cost, or None where the prices are not known."""
        total = 0.0
        for model, usage in paid(entries):
            prices = self.provider.profile(model).prices
            if prices is None:
                return None
            total += prices.cost_usd(usage)
        return total

    async def aclose(self) -> None:
        """End what is going on, and close the session and the connections this agent opened. A provider that was given stays open."""
        if (run := self._running) is not None:
            run.cancel()
            await run.finished()
        await self._stop_connecting()
        if self._keeping is not None:
            self._keeping.close()
        for provider in self._opened:
            await provider.aclose()

    def close(self) -> None:
        """For code that is not async: end the thread of `run_sync`."""
        if self._background is not None:
            self._background.close(self.aclose)
            self._background = None

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # --- for a Run

    async def begin(self, prompt: Message | None, search: SearchMode | None = None) -> Entry | None:
        """What holds, where we are, and what is asked: on the record before anything is sent. Returns what stood before the prompt."""
        await self._connect_early()
        if self._keeping is not None:
            self._keeping.begin(self._directories, VERSIONS)
        self.history.close_interrupted()
        self._configure(search)
        before = None
        if prompt is not None and not self._is_asked_again(prompt):
            if told := self._to_tell():
                self.history.say(user(told))
            before = self.history.entries[-1]
            self.history.say(prompt)
            self._asked = prompt
        if not self.history.view.messages:
            raise InputError("there is nothing to go on from: give a prompt")
        return before

    @property
    def upkeep(self) -> Upkeep:
        if self._upkeep is None:
            from dragoman.context.settings import ContextSettings
            from dragoman.loop.upkeep import Upkeep

            self._upkeep = Upkeep(self, self._context or ContextSettings())
        return self._upkeep

    @property
    def summaries(self) -> int:
        """How often a model was asked for a summary."""
        return self._upkeep.requests if self._upkeep is not None else 0

    def settle_tools(self, emit: Callable[[TurnEvent], None]) -> None:
        """Where a call was found written as text though tools are known: go on with tools as text."""
        if dialect := self._calling.found:
            self.change_to_text(dialect)
            emit(ToolModeChanged("text", dialect))

    async def keep_up(self, emit: Callable[[TurnEvent], None]) -> None:
        """See to the context before the next request. Before a first answer there is nothing to leave out, and nothing is loaded for it."""
        view = self.history.view
        is_short = view.raw_tokens * MAX_SCALE < self.provider.profile(view.model).context_window
        if not is_short or any(item.message.role == "assistant" for item in view.items):
            await self.upkeep.before_request(emit)

    def scheduler(self, emit: Callable[[TurnEvent], None]) -> Scheduler:
        return Scheduler(self.registry, self.ledger, self.approvals.decide, emit, outputs=self.outputs)

    @property
    def ledger(self) -> Ledger:
        """Where calls are written down: with what they did to files, where that can be undone later."""
        if self._keeping is None:
            return self.history
        if self._checkpoints is None:
            from dragoman.sessions.checkpoints import Checkpoints

            self._checkpoints = Checkpoints(self.history, self.blobs, self._writes, on_fault=self._not_kept)
        return self._checkpoints

    def enter(self, run: Run) -> None:
        self._require_idle()
        self._running = run
        for event in self._untold:
            run.tell(event)
        self._untold.clear()

    def leave(self, run: Run) -> None:
        if self._running is run:
            self._running = None

    # --- joining the rooms

    def _connected(self, model: str | Provider) -> tuple[Provider, str]:
        provider = model
        if isinstance(provider, str):
            provider = self._connect(provider, self.blobs)
            self._opened.append(provider)
        name = getattr(provider, "model", "") or provider.name
        return self._calling.around(provider, name), name

    def _kept(self, sessions: Store | str | os.PathLike[str], workspace: str | os.PathLike[str], resume: str) -> Keeping:
        from dragoman.loop.keeping import Keeping
        from dragoman.sessions.store import Store

        store = sessions if isinstance(sessions, Store) else Store(sessions)
        return Keeping(store, os.path.realpath(workspace), _new_id(), resume, self._saving)

    def _saving(self, event: SavingChanged) -> None:
        if self._running is not None:
            self._running.tell(event)
        else:
            self._untold.append(event)  # told when the next run begins

    def _not_kept(self, message: str) -> None:
        self._saving(SavingChanged(True, message))

    def _own_model(self) -> str:
        """The model the conversation was held with."""
        view = self.history.view
        if not view.model:
            raise InputError("no model is named, and there is no conversation that had one: give a model")
        return f"{view.deployment}/{view.model}" if view.deployment else view.model

    def _writes(self, call: ToolCall, arguments: str) -> tuple[str, ...]:
        tool = self.registry.get(call.name)
        return tool.intend(jsontext.decode_object(arguments or call.arguments) or {}).writes if tool is not None else ()

    def _web_tools(self, web: Web | None) -> Sequence[Tool]:
        if web is None:
            return ()
        from dragoman.loop.web import web_tools

        return web_tools(web, self)

    def connect_also(self, model: str) -> tuple[Provider, str]:
        """Another model beside that of the conversation, for a tool; its connections are closed with the agent's."""
        provider = self._connect(model, self.blobs)
        self._opened.append(provider)
        return provider, getattr(provider, "model", "") or provider.name

    def _to_tell(self) -> str:
        """What the model is told of its surroundings. A small one takes the files it is told of for the files it is asked about."""
        if self._orientation is None or self.provider.profile(self.model).short_prompt:
            return ""
        return self._orientation.to_tell(self.history, self._directories)

    def _configure(self, search: SearchMode | None = None) -> None:
        """An entry only where something changed: a request without one extends the cached prefix of the last."""
        # As many characters as the window has tokens: a third of it at most. A file that fills a small window would end the run.
        self.outputs.max_chars = min(self.limits.max_output_chars, max(self.provider.profile(self.model).context_window, 1_000))
        view, specs = self.history.view, self.registry.specs
        search = None if self._web is None else search or self._web.search
        told = offer(self.provider, self.model, specs, self.settings, system=self._system, search=search, unchosen=self._unchosen)
        now = (self.model, self.provider.name, told.system, told.tools, told.settings)
        if now == (view.model, view.deployment, view.system, view.tools, view.settings) and not self._has_new_directories:
            return
        self._has_new_directories = False
        self.history.configure(
            self.model,
            told.system,
            told.tools,
            told.settings,
            session_id=self.session_id,
            # Fixed when the session starts: another later would change what was sent.
            placeholder=self._context.prune.placeholder if self._context is not None and not view.model else "",
            deployment=self.provider.name,
            directories=self._directories,
            versions=VERSIONS,
        )

    async def _connect_early(self) -> None:
        """The connection opens while the request is being made."""
        import asyncio

        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self.provider.preconnect())
            await asyncio.sleep(0)  # so that it has begun before anything else is done

    async def _stop_connecting(self) -> None:
        import asyncio

        connecting, self._connecting = self._connecting, None
        if connecting is not None and connecting.get_loop() is asyncio.get_running_loop():
            connecting.cancel()
            await asyncio.wait({connecting})

    def _is_asked_again(self, prompt: Message) -> bool:
        """The same prompt after a failure is no second prompt, though notes of ours may have come behind it."""
        for message in reversed(self.history.view.messages):
            if message == prompt:
                return True
            if prompt != self._asked or message.role != "user" or message.results:
                return False
        return False

    def _in_background(self) -> Background:
        from dragoman.loop.background import Background

        with self._background_lock:  # two threads may ask first at the same time
            if self._background is None:
                self._background = Background()
            return self._background


def _is_own_function(tool: Tool) -> bool:
    """A function an embedder wrote runs unasked, unless it says that it edits files or runs commands."""
    from dragoman.tools.function import FunctionTool  # not needed before a tool is called

    return isinstance(tool, FunctionTool) and tool.spec.kind not in ("edit", "execute")


def _connect(model: str, blobs: BlobStore) -> Provider:
    from dragoman.providers.connect import connect

    return connect(model, blobs=blobs, weights=find_weights, kept=_kept_prompts)


def find_weights(name: str) -> str | os.PathLike[str] | None:
    """Where the weights of a model that runs in this process lie."""
    from dragoman.local.weights import find

    return find(name)


def _kept_prompts() -> str:
    from dragoman.local.weights import weights_folder

    return str(weights_folder().with_name("prompts"))


def _temporary_outputs() -> str:
    return os.path.join(temporary_directory(), f"dragoman-{os.urandom(8).hex()}")


def _new_id() -> str:
    import time

    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + os.urandom(4).hex()
