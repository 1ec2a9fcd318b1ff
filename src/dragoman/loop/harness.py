"""Everything a run works with, put together once for an agent: session, models, tools, limits and settings.

The agent makes it and keeps it; a run, its preparation and the web tools use it. Nothing here runs by itself.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from weakref import ref

from dragoman.base import jsontext
from dragoman.base.beneath import is_inside
from dragoman.base.places import find_places
from dragoman.context.settings import ContextSettings
from dragoman.context.shown import Placeholders
from dragoman.loop.model import Model, Models, is_doubtful
from dragoman.loop.options import ApprovalOptions, FallbackOptions, Limits, Sandboxing, SearchMode, ToolOptions, WorkspaceOptions, own_tools
from dragoman.loop.result import Bill
from dragoman.loop.session import SaidBoundary, Session
from dragoman.loop.small_model import advise_only
from dragoman.loop.surroundings import Orientation
from dragoman.loop.web import Searcher, unmet_search, web_tools
from dragoman.policy.approvals import Approvals, reaches_person
from dragoman.policy.judge import Law
from dragoman.providers.catalog import secret_variables
from dragoman.tools.builtin import ToolDependencies, builtin_tools
from dragoman.tools.job import call_at_work
from dragoman.tools.output import HidesKeys, Outputs
from dragoman.tools.registry import Registry
from dragoman.tools.scheduler import Scheduler
from dragoman.tools.workspace import Workspace
from dragoman.values import tracing
from dragoman.values.calls import Decide, Intent, Ledger, MeantCall, PendingCall, Tool
from dragoman.values.events import NoticeGiven, SavingChanged, TurnEvent
from dragoman.values.messages import Message, Settings, ToolCall, ToolSpec
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.budget import Account
    from dragoman.loop.changed_files import FileNews
    from dragoman.loop.commands import CommandStarter
    from dragoman.loop.kept_work import KeptWork
    from dragoman.loop.own_keys import OwnKeys
    from dragoman.loop.upkeep import Upkeep
    from dragoman.policy.denied_reads import DeniedReads
    from dragoman.policy.discarding import Discarded
    from dragoman.policy.rules import Rule
    from dragoman.policy.sandbox.detection import Detected
    from dragoman.policy.secret_stores import SecretStores
    from dragoman.tools.background import BackgroundCommands
    from dragoman.values.hooks import HookCaller
    from dragoman.values.record import FileChange

Emit = Callable[[TurnEvent], None]


class Harness:
    """What a run uses. Everything in it lasts as long as the agent."""

    deps: Any = None
    """What the embedder's own tools work with."""
    name: str = ""
    """The agent's name, for the record, events and traces; empty: it has none."""
    commands: CommandStarter | None = None
    """How commands are started; None before the first."""
    before_commands: Callable[[], None] | None = None
    """Called in a thread of its own before the first command."""
    template: Harness | None = None
    """The harness that this one was copied from."""
    called_by: Harness | None = None
    """The agent that this one runs inside of."""
    kept_model: Model | None = None
    """The model it goes on with when it has the conversation again; None while it has it."""
    account: Account | None = None
    """What all runs together may spend."""
    hooks: HookCaller | None = None
    inner_requests: int = 0
    """How often a model was asked by agents called as tools."""
    asked: Message | None = None
    """The last prompt that was taken."""
    has_new_directories: bool = False
    _holder: Harness | None = None
    _connecting: asyncio.Task[None] | None = None
    _ledger: Ledger | None = None
    _upkeep: Upkeep | None = None
    _own_keys: OwnKeys | None = None
    _secret: tuple[str, ...] | None = None

    def __init__(
        self,
        session: Session,
        models: Models,
        workspace: WorkspaceOptions,
        tools: ToolOptions,
        approval: ApprovalOptions,
        *,
        system: str | None,
        settings: Settings,
        limits: Limits,
        context: ContextSettings | None,
        fallback: FallbackOptions,
    ) -> None:
        self.session = session
        self.models = models
        self.bill = Bill(session.history, models)
        self.fallback = fallback
        self.refused: set[str] = set()
        """Models whose service has refused in this session: others of the chain come first."""
        self.told: set[tuple[str, str]] = set()
        """Which settings of which model the user has had a notice about."""
        self.limits = limits
        self.settings = settings
        self.system = system if system is not None or tools.builtin else ""
        """The system prompt; None for the one that goes with the built-in tools, in the form that suits the model."""
        self.context = context
        self.further_secrets: list[Callable[[], Iterable[str]]] = []
        """Further secrets beside the keys of models, which results must not show either."""
        self.outputs = Outputs(session.outputs, limits.max_output_chars, has_tool=self.has_builtin, hidden=self._hidden_keys)
        self.workspace = _workspace_of(workspace, session, approval.rules)
        self.directories = tuple(dict.fromkeys((self.workspace.root, *(os.path.realpath(path) for path in workspace.include))))
        self.memory_file = os.fspath(workspace.memory_file)
        self._guarded = tuple(os.fspath(path) for path in workspace.guarded)
        self._temporary = (os.fspath(workspace.temporary),) if workspace.temporary else ()
        self._sandbox, self._passed_variables, self._rules = tools.sandbox, tuple(tools.pass_env), approval.rules
        self.boundary = SaidBoundary(tools.sandbox)
        dependencies = self._tool_dependencies(approval)
        self.seen = dependencies.seen
        self.web = tools.web
        self.searcher = Searcher(tools.web, session, models) if tools.web is not None else None
        ours = [*builtin_tools(dependencies, tools.builtin), *self._web_tools()]
        self.registry = Registry([*ours, *own_tools(tools)])
        self._builtin = {tool.spec.name: tool for tool in ours}
        self.unchosen = frozenset(tool.spec.name for tool in ours) if tools.builtin is True else frozenset[str]()
        """Tools that are there by default: nobody chose them."""
        self.approvals = self._approvals_of(approval)
        self.workspace.was_judged, self.workspace.was_shown = self._was_judged, self._was_shown
        self.orientation = _orientation_of(workspace, has_builtin=bool(tools.builtin))
        self._tells_of_files = workspace.describe is not False
        self.made_with = (workspace, tools, approval)
        self.depth_left = limits.max_depth
        """How deep agents called as tools may call others."""
        self.takers: dict[str, Harness] = {}
        """The agents this conversation was handed over to, by their names."""

    def _tool_dependencies(self, approval: ApprovalOptions) -> ToolDependencies:
        catalog = self.models.catalog
        return ToolDependencies(
            self.workspace,
            self.session.blobs,
            self.outputs,
            approval.ask_user,
            self.limits.shell_timeout_s,
            secret_variables=lambda: secret_variables(catalog),
            passed_variables=self._passed_variables,
            memory_file=self.memory_file,
            launch=self._launch if self.has_launcher() else None,
            background=self._background,
            reach_of=lambda call_id: self.approvals.reach_of(call_id),
            writing=lambda: self.approvals,
            outside_run=(lambda call_id: self.approvals.outside_run(call_id)) if self.confines is not None else None,
            before_writing=self._keep_before_writing,
            discarded_by=lambda call_id: self.approvals.discarded_by(call_id),
            has_person=reaches_person(approval.ask),
        )

    def _approvals_of(self, options: ApprovalOptions) -> Approvals:
        return Approvals(
            self.registry.get,
            options.mode,
            options.ask,
            grants=options.grants,
            session=self.session.id if self.session.log is not None else "",
            is_own=self._is_own,
            trusted=_is_trusted,
            doubted=is_doubtful,
            law=lambda: self._law_of(options),
            has_sandbox=lambda: self.has_launcher() and self._launch().is_sandbox,
            describe_sandbox=lambda: self._launch().words if self.has_launcher() else str(say("policy.sandbox_level_0")),
            known_sandbox=self._known_sandbox,
            lost_by=self._lost_by,
        )

    def _lost_by(self, intent: Intent) -> Discarded | None:
        from dragoman.loop.discarded_work import find_lost  # only where a command may throw something away

        return find_lost(intent, self.kept_work, self.directories)

    def _was_judged(self, path: str) -> bool:
        at_work = call_at_work.get()
        return at_work is None or self.approvals.was_judged(at_work[0].id, path)

    def _was_shown(self, preview: str) -> bool:
        at_work = call_at_work.get()
        return at_work is None or self.approvals.was_shown(at_work[0].id, preview)

    def _law_of(self, options: ApprovalOptions) -> Law:
        """Looked up at each call: directories may be added while a session goes on."""
        if self._secret is None:
            from dragoman.policy.own_files import secret_places  # not needed before a tool is called
            from dragoman.policy.secret_stores import find_homes, stores_in

            self._secret = (*secret_places(find_places(), self.workspace.root), *stores_in(find_homes(self.workspace.root)))
        return Law(
            tuple(options.rules), self.directories, self._secret, tuple(options.hosts), options.run_sandboxed, self._written_by_commands
        )

    @property
    def _written_by_commands(self) -> tuple[str, ...]:
        """Folders besides the workspace that commands in the sandbox write: those of the options, and ours for their caches."""
        named = () if isinstance(self._sandbox, bool) else self._sandbox.writable
        return (*self._temporary, *(os.path.realpath(os.path.expanduser(path)) for path in named), find_places().cache)

    @property
    def holder(self) -> Harness:
        """Who has the conversation: this one, unless it was handed over."""
        return self._holder or self

    def let_hold(self, taker: Harness) -> None:
        """Let another have the conversation, with its own model."""
        before = self.holder
        if taker is before:
            return
        before.kept_model, self.session.model, taker.kept_model = self.session.model, taker.own_model, None
        taker.asked = before.asked
        self._holder = None if taker is self else taker

    @property
    def own_model(self) -> Model:
        return self.kept_model or self.session.model

    def take_tools_of(self, other: Harness) -> None:
        """Have the same tools: those that the embedder added or removed since included, those of a run of its own not."""
        for name in self._builtin:
            if name not in other.registry:
                self.registry.remove(name)
        for tool in other.registry:
            if not other.has_builtin(tool.spec.name) and not getattr(tool, "is_for_one_run", False):
                self.registry.register(tool, replace=True)

    @property
    def upkeep(self) -> Upkeep:
        """Loaded when first needed: before a first answer there is nothing to prune."""
        if self._upkeep is None:
            from dragoman.loop.upkeep import Upkeep

            self._upkeep = Upkeep(self.session, self.context or ContextSettings(), self.seen, has_fallback=self.fallback.is_set)
            self._upkeep.room.hooks = self.hooks
        return self._upkeep

    @property
    def writable(self) -> tuple[str, ...]:
        """The folders that commands may write to: the workspace first."""
        return (*self.directories, *self._temporary)

    def has_launcher(self) -> bool:
        """Else commands are started directly. A program that holds its own interpreter has none to start a launcher with."""
        if sys.platform == "darwin":
            return self._sandbox is True or (self._sandbox is not False and self._sandbox.level != "off")
        return sys.platform == "linux" and bool(sys.executable) and not getattr(sys, "frozen", False)

    @property
    def confines(self) -> Sandboxing | None:
        """The sandbox of ours that commands are to run in, by the options; None: none. Whether it works here is found out at the first
        command."""
        wanted = Sandboxing() if self._sandbox is True else self._sandbox or None
        return wanted if wanted is not None and wanted.level not in ("off", "external") and self.has_launcher() else None

    def _launch(self) -> CommandStarter:
        if self.commands is None:
            from dragoman.loop.commands import CommandStarter

            own = (*self._guarded, *self._session_paths(), *filter(None, [self.memory_file]))  # an empty path would be the current folder
            self.commands = CommandStarter(
                self.writable,
                self._sandbox,
                own=own,
                readable=(self.session.outputs,),
                environment=self._passed_variables,
                rules=self._rules,
                approvals=_approvals_while_there(self),
                before=self._find_before_commands(),
                within=self.called_by._launch if self.called_by is not None else None,
                said=self.boundary,
            )
        return self.commands

    @property
    def starter(self) -> CommandStarter | None:
        """What starts commands; None where they are started directly."""
        return self._launch() if self.has_launcher() else None

    def _known_sandbox(self) -> Detected | None:
        starter = self.starter if self.boundary.is_known else self.commands
        return starter.known_sandbox if starter is not None and self._sandbox is not False else None

    def turn_sandbox(self, *, on: bool) -> None:
        """Turn the sandbox off for this session, or on again. The mode auto, which needs one, is left for default."""
        self.boundary.is_turned_off = not on
        if not on and self.approvals.mode == "auto":
            self.approvals.mode = "default"

    def _find_before_commands(self) -> Callable[[], None] | None:
        """What this agent calls before its first command, or the one it runs inside of."""
        harness: Harness | None = self
        while harness is not None and harness.before_commands is None:
            harness = harness.called_by
        return harness.before_commands if harness is not None else None

    def _background(self) -> BackgroundCommands:
        if self.session.background is None:
            from dragoman.loop.background_commands import open_commands

            self.session.background = open_commands(self.session, self.outputs)
        return self.session.background

    def tell_ended_commands(self, emit: Emit) -> None:
        """Tell the model and the user which background commands have ended since, by entries of the record."""
        if self.session.background is not None or self.session.is_resumed:
            from dragoman.loop.background_commands import tell_ended

            tell_ended(self.session, emit)

    async def find_file_news(self) -> FileNews | None:
        """What happened to files that the model knows since it was last told; None before it knows any, or where it is told nothing."""
        if not self._tells_of_files or not self.session.history.view.messages:
            return None
        from dragoman.loop.changed_files import files_to_check, find_news

        history, workspace = self.session.history, self.workspace
        check = files_to_check(history.view, history.entries)
        if not check.known and not check.undone and not check.redone:
            return None
        return await asyncio.to_thread(find_news, check, self.session.blobs, workspace.may_look_at, workspace.display_path)

    @property
    def placeholders(self) -> Placeholders:
        """What stands for pruned results in a new session: what is set, else a few words in the language that was chosen."""
        if self.context is not None and self.context.prune.placeholder:
            return Placeholders(self.context.prune.placeholder)
        return Placeholders(str(say("loop.placeholder")), str(say("loop.other_placeholder", tool="{tool}")))

    @property
    def side_requests(self) -> int:
        """How often a model was asked beside the conversation: for summaries, by the web tools, and by agents called as tools."""
        summaries = self._upkeep.requests if self._upkeep is not None else 0
        return self.inner_requests + summaries + (self.searcher.requests if self.searcher is not None else 0)

    @property
    def ledger(self) -> Ledger:
        """Where calls are recorded: with what they did to files, where the session is kept and they can be undone."""
        if self._ledger is None:
            if self.session.log is None:
                return self.session.history
            from dragoman.sessions.checkpoints import Checkpoints

            session, log = self.session, self.session.log
            self._ledger = Checkpoints(
                session.history,
                session.blobs,
                self._writes,
                keep=session.keep_bytes,
                on_fault=self._report_not_kept,
                note_folders=log.note_folders,
                watch=self._watch_of,
                noted=self._note_edits,
            )
        return self._ledger

    def _hidden_keys(self) -> HidesKeys | None:
        if self._own_keys is None:
            from dragoman.loop.own_keys import OwnKeys

            self._own_keys = OwnKeys(self.models, self.further_secrets)
        return self._own_keys.hidden()

    def scheduler(self, emit: Emit, decide: Decide | None = None) -> Scheduler:
        """`decide` in the place of hooks and approvals, where a person has decided already."""
        purse, hooks = self.session.purse, self.hooks if decide is None else None
        decide = decide or self.approvals.decide
        decide = decide if hooks is None else hooks.decide(self.approvals, decide)
        decide = decide if purse is None else purse.watch(decide)
        make = Scheduler if tracing.active is None else tracing.active.scheduler
        scheduler = make(self.registry, self.ledger, decide, emit, align=self._align, outputs=self.outputs)
        if self.session.model.profile.small is not None:
            scheduler.reword = self._advise
        if self.hooks is not None:
            scheduler.before, scheduler.around = hooks.before if hooks is not None else None, self.hooks.around
        return scheduler

    def _advise(self, refusal: str) -> str:
        return advise_only(refusal, [spec.name for spec in self.session.history.view.tools], self.registry.names)

    def leave_pending(self) -> tuple[PendingCall, ...]:
        """The calls that wait when a batch has ended, and the run with it."""
        if not self.session.history.view.postponed:
            return ()
        from dragoman.loop.pending import leave_pending

        return leave_pending(self.session)

    def require_none_pending(self) -> None:
        """Raises InputError where calls wait."""
        if self.session.history.view.postponed:
            from dragoman.loop.pending import refuse_pending

            refuse_pending(self.session.history.view)

    async def ask_hooks_about(self, prompt: Message | None) -> None:
        """Before a prompt is taken. A hook that refuses it raises."""
        if self.hooks is not None:
            await self.hooks.before_prompt(self, prompt)

    def add_directory(self, real: str) -> None:
        if real not in self.directories:
            self.workspace.add(real)
            if self.commands is not None:
                self.commands.add_folder(real)
            self.directories += (real,)
            self.has_new_directories = True
            if self.orientation is not None:
                self.orientation.add(real)

    def look_again(self) -> None:
        """What was said may no longer be in the model's context: then files must be read again, and the surroundings described again."""
        from dragoman.loop.files_in_context import files_in_context

        self.asked = None
        if self.takers:  # whoever had the conversation then has it again
            self.let_hold(self.takers.get(self.session.history.view.agent, self))
        for path in set(self.seen.paths) - files_in_context(self.session.history.view, self.session.history.entries):
            self.seen.forget(path)
        if self.orientation is not None:
            self.orientation.look_again()

    async def connect_early(self) -> None:
        """The connection opens while the request is being made."""
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self.session.model.provider.preconnect())
            await asyncio.sleep(0)  # so that it has begun before anything else is done

    async def stop_connecting(self) -> None:
        connecting, self._connecting = self._connecting, None
        if connecting is not None and connecting.get_loop() is asyncio.get_running_loop():
            connecting.cancel()
            await asyncio.wait({connecting})

    def tell_left_out(self, emit: Emit, search: SearchMode | None = None) -> None:
        """Tell the user which of their settings the model is not sent, and that it does not search as it should, once for each model.
        `search` is what was said for this run."""
        if unmet := unmet_search(search, self.session, self.searcher):
            self._tell_once("search", unmet, emit)
        settings = self.session.history.view.settings  # those of this run
        if settings.stop or not (settings.temperature is settings.top_p is settings.top_k is settings.thinking is None):
            from dragoman.loop.left_out import left_out

            for name, message in left_out(self.session.model, settings, self.session.history.view.tools, self.models.no_think):
                self._tell_once(name, message, emit)

    def _tell_once(self, name: str, message: str, emit: Emit) -> None:
        if (told := (self.session.model.full_name, name)) not in self.told:
            self.told.add(told)
            emit(NoticeGiven("settings", message))

    def has_builtin(self, name: str) -> bool:
        """A tool of the embedder's own may have the same name, and reads something else."""
        tool = self.registry.get(name)
        return tool is not None and tool is self._builtin.get(name)

    def _web_tools(self) -> list[Tool]:
        if self.web is None or self.searcher is None:
            return []
        return web_tools(self.web, self.searcher, self.outputs, lambda spec, host: self.approvals.forbids_host(spec, host))

    def _align(self, call: ToolCall, args: Mapping[str, Any], specs: Sequence[ToolSpec]) -> MeantCall | None:
        from dragoman.loop.meant import meant_call

        return meant_call(call, args, specs, self.models.mapping_for(self.session.model))

    def _writes(self, call: ToolCall, arguments: str) -> tuple[str, ...]:
        tool = self.registry.get(call.name)
        return tool.intend(jsontext.decode_object(arguments or call.arguments) or {}).writes if tool is not None else ()

    def _watch_of(self, call: ToolCall) -> KeptWork | None:
        """Who looks at the files around a call that may write any: a command, unless the workspace is read-only for it."""
        tool = self.registry.get(call.name)
        if tool is None or tool.spec.kind != "execute" or self.approvals.reach_of(call.id) == "read-only":
            return None
        return self.kept_work

    @property
    def kept_work(self) -> KeptWork | None:
        """The work that git does not hold, which agents in the same folders share; None where the session is not kept."""
        if self.called_by is not None and self.called_by.session.log is not None and self.called_by.directories == self.directories:
            return self.called_by.kept_work
        if self.session.log is None or os.name != "posix":
            return None
        if self.session.kept_work is None:
            from dragoman.loop.kept_work import KeptWork  # not needed before a command
            from dragoman.policy.guarded_files import is_guarded

            self.session.kept_work = KeptWork(
                lambda: self.directories,
                is_guarded,
                self.session.blobs,
                refuse_copy=self._refuse_copy,
                goes_on=self.session.has_running_commands,
                tell=self._report_not_kept,
            )
        return self.session.kept_work

    def _refuse_copy(self, path: str, data: bytes) -> Literal["", "hidden", "key"]:
        if not self.workspace.may_read(path):
            return "hidden"
        keys = self._hidden_keys()
        return "key" if keys is not None and keys.is_in(data) else ""

    async def _keep_before_writing(self, call: ToolCall) -> None:
        """A command that ran with the workspace read-only runs again, and may write."""
        if (watch_command := getattr(self.ledger, "watch_command", None)) is not None:
            watch_command(call)
            await self.ledger.sync()

    def _note_edits(self, files: Sequence[FileChange]) -> None:
        harness: Harness | None = self
        while harness is not None:
            if harness.session.kept_work is not None:
                harness.session.kept_work.note_edits(files)
            harness = harness.called_by

    async def settle(self) -> None:
        """Wait until what ended commands changed is on the record."""
        if (settle := getattr(self._ledger, "settle", None)) is not None:
            await settle()

    def _is_own(self, path: str) -> bool:
        """Whether a file that would be written is one of our own: configuration, approvals, keys, sessions, caches."""
        from dragoman.policy.own_files import OwnFiles  # not needed before something is written

        further = (*self._guarded, *(self.session.log.own_paths if self.session.log is not None else ()))
        return OwnFiles((find_places(),), further, workspace=self.workspace.root).hold(path)

    def _session_paths(self) -> list[str]:
        """Where sessions are saved, which commands must not change. A folder around the workspace does not count."""
        paths = self.session.log.own_paths if self.session.log is not None else ()
        return [path for path in paths if not is_inside(self.workspace.root, os.path.realpath(path))]

    def _report_not_kept(self, message: str) -> None:
        self.session.work.tell(SavingChanged(True, str(message)))


def _orientation_of(options: WorkspaceOptions, *, has_builtin: bool) -> Orientation | None:
    describe = options.describe if options.describe is not None else has_builtin or bool(options.memory)
    return Orientation(options.memory, os.fspath(options.temporary)) if describe else None


def _workspace_of(options: WorkspaceOptions, session: Session, rules: Sequence[Rule]) -> Workspace:
    """The folders the tools work in. Long results may be read there too; what rules deny and the files of stored keys and tokens may not,
    wherever they lie."""
    temporary = (options.temporary,) if options.temporary else ()
    include = (*options.include, *temporary)
    denied: DeniedReads | None = None
    if any(rule.decision == "deny" for rule in rules):
        from dragoman.policy.denied_reads import deny_reads

        denied = deny_reads(rules, os.fspath(options.root))
    places, hides = find_places(), _hides_stores(os.fspath(options.root))
    secret = (*places.secret_files, places.prompt_history)
    return Workspace(options.root, include=include, readable=(session.outputs,), secret=secret, is_denied=denied, hides=hides)


def _hides_stores(root: str) -> Callable[[str, Sequence[str]], bool]:
    @cache
    def stores() -> SecretStores:
        from dragoman.policy.secret_stores import SecretStores, find_homes  # not needed before a tool is called

        return SecretStores(find_homes(root))

    return lambda path, folders: stores().holds(path, folders)


def _approvals_while_there(harness: Harness) -> Callable[[], Approvals | None]:
    """Held weakly: a background command keeps what started it, and must not keep an agent that was dropped."""
    held = ref(harness)

    def approvals() -> Approvals | None:
        there = held()
        return there.approvals if there is not None else None

    return approvals


def _is_trusted(tool: Tool) -> bool:
    """A function an embedder wrote runs unasked, unless it says that it edits files or runs commands; so do tools of servers that their
    code names, and an agent, whose own calls are decided one by one."""
    if getattr(tool, "decides_within", False) or getattr(tool, "is_trusted", False):
        return True
    from dragoman.tools.function import FunctionTool  # not needed before a tool is called

    return isinstance(tool, FunctionTool) and tool.spec.kind not in ("edit", "execute")
