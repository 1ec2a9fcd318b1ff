"""`dragoman fleet work TASK --attempt N --epoch E --out DIR`: one attempt, from the copy of its workspace to its result.

A plain command that any scheduler can start. It knows nothing of who started it: DIR gets `result.json`, once, and meanwhile
`spent.jsonl`. A limiter is asked where the environment names one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman.app.connecting import choose_first_model, connect_model
from dragoman.app.opening import close_agent, open_agent, run_loop
from dragoman.app.options import Options
from dragoman.app.setup import Setup, catalog_of, set_up
from dragoman.base.beneath import outermost
from dragoman.base.found_files import read_found
from dragoman.base.private import make_directory
from dragoman.fleet.ending import GRACE_S, HANGING_S, Watchdog, adopt_orphans, commands_below, end_below, signal_below
from dragoman.fleet.files import MOST_LINE_BYTES, decode, make_folder
from dragoman.fleet.folder import FLEETS, is_fleet_folder, make_scratch, scratch_of
from dragoman.fleet.leased import AttemptMeter, FleetSpent, Leased
from dragoman.fleet.limiter_socket import VARIABLE, LimiterClient
from dragoman.fleet.placement import SOURCES, place_name
from dragoman.fleet.result import AttemptResult, Checked, Outcome, UsedTokens, write_result
from dragoman.fleet.task import Task, require_task, require_workspace, secret_stores
from dragoman.fleet.workspace import COPY, MOST_DIFF_BYTES, Snapshot, make_copy, remove_place, write_files
from dragoman.loop.options import Connector
from dragoman.policy.approvals import Unattended
from dragoman.policy.rules import Rule
from dragoman.policy.sandbox.cache_removal import remove_tree
from dragoman.providers.catalog import secret_variables
from dragoman.providers.redact import redact
from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import run_process
from dragoman.tools.shell import RunShell
from dragoman.values import errors
from dragoman.values.calls import Deny, Intent
from dragoman.values.errors import (
    BadRequest,
    BudgetExceeded,
    Cancelled,
    DragomanError,
    InputError,
    LoopDetected,
    OutputLimit,
    ProviderError,
    Refused,
    TurnLimit,
    UntrustedFolder,
)
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent
    from dragoman.loop.result import Result
    from dragoman.loop.run import Run
    from dragoman.values.contracts import BlobStore, Provider
    from dragoman.values.messages import ToolCall

MOST_OUTPUT_CHARS = 16_000
SETUP_FAILED = "SetupFailed"
DEADLINE = "DeadlineReached"
_LIMITS = (TurnLimit, BudgetExceeded, LoopDetected, OutputLimit)


class AttemptPlace(msgspec.Struct, frozen=True):
    """Where an attempt happens."""

    folder: str
    """Of everything that is removed afterwards."""
    sources: str
    """Of repositories, kept for others."""

    @property
    def copy(self) -> str:
        return os.path.join(self.folder, COPY)

    @property
    def snapshot(self) -> str:
        return os.path.join(self.folder, "snapshot")


def work(options: Options) -> int:
    """Carry out one attempt; the exit code is 0 where it passed. Raises InputError where the command itself is wrong."""
    task, out = _read_task(options), _out_folder(options.output)
    adopt_orphans()
    attempt, epoch = options.attempt or 1, options.epoch or 1
    scratch = os.path.realpath(options.scratch) if options.scratch else scratch_of(str(os.getuid()))
    if not options.scratch:  # anybody could foresee its name
        make_scratch(scratch)
    place = AttemptPlace(os.path.join(scratch, place_name(task, attempt, epoch)), os.path.join(scratch, SOURCES))
    working = AttemptWork(
        task,
        options,
        place,
        AttemptResult(task=task.id, task_hash=task.hash, attempt=attempt, epoch=epoch, outcome="cancelled"),
        out,
        hidden_paths((*options.hide, options.words[1], out)),
    )
    try:
        result = run_loop(working.run)
    finally:
        end_below()
        remove_place(os.path.dirname(place.folder), os.path.basename(place.folder))
    write_result(out, result)
    return 0 if result.outcome == "passed" else 130 if result.outcome == "cancelled" else 1


def _read_task(options: Options) -> Task:
    if len(options.words) != 2 or not options.output:
        raise InputError(say("fleet.work_usage"))
    try:
        task = decode(read_found(options.words[1], MOST_LINE_BYTES), Task)
        require_task(task)
    except (OSError, msgspec.MsgspecError, InputError) as error:
        raise InputError(say("fleet.task_unreadable", path=options.words[1], reason=error)) from error
    return task


def _out_folder(path: str) -> str:
    """Where the result goes, by a path without links. A supervisor names no other: a link there was put in its way."""
    folder = os.path.abspath(path)
    if VARIABLE not in os.environ:
        make_directory(folder)
        return os.path.realpath(folder)
    try:
        make_folder(folder)
    except OSError as error:
        raise InputError(say("fleet.disk", path=folder, reason=error.strerror or error)) from error
    return folder


def hidden_paths(named: Iterable[str]) -> tuple[str, ...]:
    """Real paths that neither commands nor tools of an attempt may read: those named, and the folder of all fleets where one of them lies
    in a fleet. They tell how the work is checked, and what earlier attempts came to."""
    found: list[str] = []
    for path in map(os.path.realpath, named):
        folders = [path]
        while folders[-1] != os.path.dirname(folders[-1]):
            folders.append(os.path.dirname(folders[-1]))
        fleet = next((each for each in folders if is_fleet_folder(each)), "")
        beside = os.path.dirname(fleet) if os.path.basename(os.path.dirname(fleet)) == FLEETS else fleet
        found.append(beside or path)
    return outermost(found)


class WorkClock:
    """The time of work: it stands still while all there is to do is to wait for the service's limits."""

    def __init__(self, watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        self._limit_s: float | None = None
        self._began_s = self._since_s = time.monotonic()
        self._is_waiting = False
        self._waited_s = 0.0
        self.changed = asyncio.Event()

    def begin(self, limit_s: float) -> None:
        self._limit_s, self._began_s, self._waited_s = limit_s, time.monotonic(), 0.0
        self._since_s = self._began_s
        self._guard()

    def end(self) -> None:
        self._limit_s = None
        self._watchdog.set(None)

    def wait(self, is_waiting: bool) -> None:
        """Implements the meter's `on_wait`."""
        if is_waiting == self._is_waiting:
            return
        now_s = time.monotonic()
        if self._is_waiting:
            self._waited_s += now_s - self._since_s
        self._is_waiting, self._since_s = is_waiting, now_s
        self._guard()
        self.changed.set()

    @property
    def waited_s(self) -> float:
        return self._waited_s + (time.monotonic() - self._since_s if self._is_waiting else 0.0)

    @property
    def worked_s(self) -> float:
        return time.monotonic() - self._began_s - self.waited_s

    async def expire(self) -> None:
        """Returns when the time is up."""
        assert self._limit_s is not None
        while (left_s := self._limit_s - self.worked_s) > 0 or self._is_waiting:
            self.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._is_waiting else left_s):
                    await self.changed.wait()

    def _guard(self) -> None:
        if self._limit_s is not None:
            left_s = None if self._is_waiting else max(self._limit_s - self.worked_s, 0.0) + GRACE_S + HANGING_S
            self._watchdog.set(left_s, is_waiting=self._is_waiting)


class AttemptWork:
    """One attempt under way."""

    def __init__(
        self, task: Task, options: Options, place: AttemptPlace, blank: AttemptResult, out: str, hidden: Sequence[str] = ()
    ) -> None:
        self._task, self._options, self._place, self._out, self._hidden = task, options, place, out, hidden
        self._result = blank
        self._watchdog = Watchdog(out)
        self._clock = WorkClock(self._watchdog)
        self._meter: AttemptMeter | None = None
        self._main: asyncio.Task[object] | None = None
        self._is_cancelled = False
        self._is_overdue = False
        self._secrets: tuple[str, ...] = ()
        self._refused = 0

    async def run(self) -> AttemptResult:
        """Raises nothing: whatever goes wrong is the result."""
        self._main = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._cancel)
        try:
            await self._go_through()
        except asyncio.CancelledError:
            self._set("cancelled", say("cancelled"))
        except Exception as error:
            self._fail(error)
        return self._finished()

    def _cancel(self) -> None:
        if self._main is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._main.cancel()

    # --- the way of an attempt

    async def _go_through(self) -> None:
        task = self._task
        limiter = await self._open_limiter()
        self._meter = AttemptMeter(self._holder, self._out, self._place.copy, limiter, self._clock.wait)
        remove_tree(os.path.dirname(self._place.folder), os.path.basename(self._place.folder))
        require_workspace(task)
        left_out = (*secret_stores(), *(path for path in self._hidden if os.path.basename(path) != FLEETS))
        await asyncio.to_thread(make_copy, task, self._place.copy, self._place.sources, left_out)
        setup = self._set_up()
        agent = (await open_agent(setup, ask=Unattended(self._deny), connector=self._connector(setup))).agent
        try:
            self._change(session_id=agent.session_id, model=f"{agent.provider.name}/{agent.model}")
            if (shell := agent.tools.get("run_shell")) is not None and isinstance(shell, RunShell):
                shell.give_variables(task.env)
            if task.setup and not await self._prepare(agent):
                return
            snapshot = await self._take_snapshot()
            await self._let_work(agent)
        finally:
            await close_agent(agent)
        await asyncio.to_thread(end_below)
        await self._find_changes(snapshot)
        if task.check and self._result.outcome in ("passed", "agent limit"):
            await self._check(agent)

    async def _prepare(self, agent: Agent) -> bool:
        done = await self._run_command(agent, self._task.setup)
        if done.exit_code == 0:
            return True
        reason = say("fleet.setup_failed", code=done.exit_code, output=_tail(done.output, 500))
        self._change(outcome="infrastructure", reason=reason, error_type=SETUP_FAILED, retryable=True, check=None)
        return False

    async def _let_work(self, agent: Agent) -> None:
        self._clock.begin(self._task.limits.seconds)
        run = agent.run(self._task.prompt)
        ending = asyncio.create_task(self._end_in_time(run))
        try:
            async with run:
                async for _ in run:
                    pass
        finally:
            self._change(seconds=round(self._clock.worked_s, 3), waited_s=round(self._clock.waited_s, 3))
            self._clock.end()
            ending.cancel()
            self._take_result(run.result)

    async def _end_in_time(self, run: Run) -> None:
        """At the deadline nothing more is asked, commands get TERM, and what is left after a grace ends with the run."""
        await self._clock.expire()
        assert self._meter is not None
        self._is_overdue = self._meter.is_closed = True
        until_s = time.monotonic() + GRACE_S
        signal_below(signal.SIGTERM)
        while self._meter.under_way == 0 and commands_below() and time.monotonic() < until_s:  # noqa: ASYNC110  nothing tells of their ends
            await asyncio.sleep(0.05)
        run.cancel()

    async def _check(self, agent: Agent) -> None:
        write_files(self._place.copy, self._task.check_files)
        agent._harness.commands = None  # those of the agent have ended with it
        began_s = time.monotonic()
        try:
            done = await self._run_command(agent, self._task.check)
        finally:
            if (starter := agent._harness.commands) is not None:
                starter.close()
        checked = Checked(done.exit_code, self._shown(done.output), done.timed_out, round(time.monotonic() - began_s, 3))
        self._change(check=checked)
        if done.exit_code == 0 and not done.timed_out:
            self._change(outcome="passed")
        elif self._result.outcome == "passed":
            key = "fleet.check_timed_out" if done.timed_out else "fleet.check_failed"
            self._change(outcome="failed", reason=say(key, code=done.exit_code, seconds=self._task.limits.check_seconds))

    async def _run_command(self, agent: Agent, command: str) -> _Done:
        """Run a command in the copy, in the sandbox of the agent's own commands, for as long as a check may take."""
        tail, limits = _LastOutput(), self._task.limits
        self._watchdog.set(limits.check_seconds + GRACE_S + HANGING_S)
        done = await run_process(
            [os.environ.get("DRAGOMAN_FLEET_SHELL", "/bin/sh"), "-c", command],
            directory=self._place.copy,
            env=child_environment(self._task.env, secret_variables(agent._harness.models.catalog)),
            take_stdout=tail.take,
            take_stderr=tail.take,
            timeout_s=limits.check_seconds,
            launch=agent._harness.starter,
            streams="merged",
        )
        self._watchdog.set(None)
        return _Done(124 if done.timed_out else done.code, tail.text, done.timed_out)

    async def _take_snapshot(self) -> Snapshot | None:
        try:
            return await asyncio.to_thread(Snapshot, self._place.copy, self._place.snapshot)
        except InputError:  # no git: there is no diff
            return None

    async def _find_changes(self, snapshot: Snapshot | None) -> None:
        if snapshot is None:
            return
        with suppress(InputError):
            patch = await asyncio.to_thread(snapshot.diff)
            self._change(diff=redact(patch.decode("utf-8", "replace"), self._secrets), is_diff_cut=len(patch) == MOST_DIFF_BYTES)

    # --- setting up

    @property
    def _holder(self) -> str:
        return f"{self._result.task_hash}.{self._result.attempt}.{self._result.epoch}"

    async def _open_limiter(self) -> LimiterClient | None:
        if not (path := os.environ.get(VARIABLE, "")):
            return None
        client = LimiterClient(path, self._cancel)
        try:
            await client.open()
        except OSError as error:  # whoever started this is gone
            raise asyncio.CancelledError from error
        return client

    def _set_up(self) -> Setup:
        task, options = self._task, self._options
        setup = set_up(
            Options(
                model=task.model or options.model,
                approval=task.approval or options.approval or "auto",
                sandbox=options.sandbox,
                max_turns=task.limits.turns,
                trust=options.trust,
                directory=self._place.copy,
                config=os.path.abspath(options.config) if options.config else "",
                lang=options.lang,
            )
        )
        if setup.trust.is_trusted and not options.trust:
            raise UntrustedFolder(say("fleet.scratch_is_trusted", path=self._place.folder))
        self._secrets = tuple(filter(None, (os.environ.get(name) for name in secret_variables(catalog_of(setup)))))
        config, limits = setup.config, task.limits
        budget = msgspec.structs.replace(config.budget, usd=limits.usd or config.budget.usd, tokens=limits.tokens or config.budget.tokens)
        network = msgspec.structs.replace(config.network, hosts=(*config.network.hosts, *task.network))
        sandbox = msgspec.structs.replace(config.sandbox, environment=(*config.sandbox.environment, *task.env))
        config = msgspec.structs.replace(config, budget=budget, network=network, sandbox=sandbox)
        rules = (*setup.loaded.rules, *(Rule("deny", f"{path}/**", "read_file", origin="fleet") for path in self._hidden))
        setup = msgspec.structs.replace(setup, loaded=msgspec.structs.replace(setup.loaded, config=config, rules=rules))
        return choose_first_model(setup, None)

    def _connector(self, setup: Setup) -> Connector:
        meter = self._meter
        assert meter is not None
        assert setup.choice is not None
        model = setup.choice.model

        def connect(model: str, blobs: BlobStore) -> Provider:
            connection = connect_model(setup, blobs, model)
            connection.provider = Leased(connection.provider, meter)
            return connection

        return Connector(connect, model, catalog_of(setup), setup.env, lambda: model)

    async def _deny(self, call: ToolCall, intent: Intent) -> Deny:
        return Deny(say("refused_to_model", name=call.name, why=f" ({intent.why})" if intent.why else ""))

    # --- what comes of it

    def _take_result(self, result: Result) -> None:
        self._change(turns=result.turns, tool_calls=result.tool_calls, answer=self._shown(result.text))
        if self._is_overdue:
            self._set("agent limit", say("fleet.deadline", seconds=self._task.limits.seconds), DEADLINE)
        elif not result.exit_code:
            self._set("passed", "")
        else:
            self._set(_outcome_of(result.error_type), result.error, result.error_type, _is_retryable(result.error_type))

    def _fail(self, error: Exception) -> None:
        name = type(error).__name__
        retryable = error.retryable if isinstance(error, ProviderError) else not isinstance(error, DragomanError)
        reason = str(error) if isinstance(error, DragomanError) else f"{name}: {error}"
        self._set(_outcome_of(name, error), reason, name, retryable)

    def _set(self, outcome: Outcome, reason: str, error_type: str = "", retryable: bool = False) -> None:
        self._change(outcome=outcome, reason=self._shown(reason), error_type=error_type, retryable=retryable)

    def _change(self, **changed: object) -> None:
        self._result = msgspec.structs.replace(self._result, **changed)

    def _finished(self) -> AttemptResult:
        if self._meter is not None:
            spent = self._meter.spent
            self._change(
                requests=spent.requests,
                request_hash=spent.request_hash,
                tokens=UsedTokens(spent.input, spent.cache_read, spent.output),
                cost_usd=spent.usd,
                estimated_usd=spent.estimated_usd,
                is_cost_least=spent.is_least,
            )
        return self._result

    def _shown(self, text: str) -> str:
        return _tail(redact(text, self._secrets), MOST_OUTPUT_CHARS)


class _Done(msgspec.Struct, frozen=True):
    exit_code: int
    output: str
    timed_out: bool


class _LastOutput:
    """The end of what a command prints."""

    def __init__(self) -> None:
        self._data = bytearray()

    def take(self, piece: bytes) -> None:
        self._data += piece
        if len(self._data) > 8 * MOST_OUTPUT_CHARS:
            del self._data[: -4 * MOST_OUTPUT_CHARS]

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")


def _tail(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[-most:]}"


def _error_class(name: str) -> type[Exception] | None:
    found = getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _outcome_of(name: str, error: Exception | None = None) -> Outcome:
    """What an error makes of an attempt."""
    kind = type(error) if error is not None else _error_class(name) or Exception
    if issubclass(kind, FleetSpent | Cancelled) or name == "FleetSpent":
        return "cancelled"
    if issubclass(kind, _LIMITS):
        return "agent limit"
    if issubclass(kind, Refused):
        return "failed"
    if issubclass(kind, InputError | BadRequest | UntrustedFolder):
        return "refused input"
    return "infrastructure"


def _is_retryable(name: str) -> bool:
    """Whether an error of this class may pass: a run tells no more than its name."""
    kind = _error_class(name)
    return kind.retryable if kind is not None and issubclass(kind, ProviderError) else kind is None
