"""`dragoman fleet …`: run, resume and look at many tasks."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import partial

import msgspec

from dragoman import __version__
from dragoman.app.options import Options
from dragoman.base.found_files import read_found_text
from dragoman.base.text import did_you_mean, one_line
from dragoman.fleet.folder import Fleet, Lock, fleet_folder, make_fleet, make_scratch, new_fleet_id, open_fleet, scratch_of
from dragoman.fleet.harbor_tasks import is_harbor_folder, read_harbor_tasks
from dragoman.fleet.journal import BudgetSet, FleetJournal, Reopened, last_budget
from dragoman.fleet.limiter import LocalLimiter
from dragoman.fleet.limiter_socket import VARIABLE, LimiterServer
from dragoman.fleet.needs import Needs
from dragoman.fleet.ownership import remember_fleet, require_own
from dragoman.fleet.pages import diff, export, folder_of_fleet, show, status
from dragoman.fleet.placement import LocalPool, Placement
from dragoman.fleet.report import write_results
from dragoman.fleet.supervisor import FleetSupervisor
from dragoman.fleet.table import onlooker_for
from dragoman.fleet.task import MOST_TASK_BYTES, TaskTemplate, read_tasks
from dragoman.policy.sandbox.cache_removal import remove_tree
from dragoman.values.errors import Cancelled, DragomanError, InputError
from dragoman.words import say

MOST_TEMPLATE_BYTES = 1_000_000
USUAL_WORKERS = 4
Action = Callable[[Options], int]


def run_fleet(options: Options) -> int:
    """Carry out the action that the first word names; returns the exit code."""
    name = options.words[0] if options.words else ""
    actions: dict[str, Action] = {
        "run": start,
        "resume": resume,
        "retry": retry,
        "status": status,
        "show": show,
        "diff": diff,
        "export": export,
    }
    if name not in actions:
        known = (*actions, "work")
        raise InputError(say("fleet.unknown_action", name=one_line(name, 60), hint=did_you_mean(name, known), known=", ".join(known)))
    try:
        return actions[name](options)
    except OSError as error:
        raise InputError(say("fleet.disk", path=error.filename or "fleet", reason=error.strerror or error)) from error


# --- running ------------------------------------------------------------------------------------------------------------------------


def start(options: Options) -> int:
    """`fleet run TASKS`: everything that can be found wrong is, before anything starts."""
    if len(options.words) != 2:
        raise InputError(say("fleet.run_usage"))
    source, directory = options.words[1], os.path.abspath(options.directory or ".")
    path = "" if source == "-" else os.path.join(directory, os.path.expanduser(source))
    template = TaskTemplate(read_found_text(options.template, MOST_TEMPLATE_BYTES)) if options.template else None
    name = options.name or ("tasks" if source == "-" else os.path.splitext(os.path.basename(source.rstrip("/")))[0])
    fleet_id = new_fleet_id()
    settings = Lock(
        id=fleet_id,
        version=__version__,
        tasks=0,
        tasks_sha256="",
        attempts=options.attempts or 1,
        model=options.model,
        approval=options.approval,
        sandbox=options.sandbox,
        trust=options.trust,
        config=os.path.join(directory, os.path.expanduser(options.config)) if options.config else "",
        scratch=scratch_of(fleet_id),
        hidden=tuple(os.path.realpath(each) for each in (path or "/dev/stdin", options.template) if each and _is_kept(each)),
    )
    folder = fleet_folder(name, directory)
    needs = Needs(options, directory)

    def check() -> None:
        make_scratch(settings.scratch)
        needs.check_machine(settings.scratch, directory)

    def remember(lock: Lock, sha256: str) -> None:
        remember_fleet(lock, sha256, folder)

    try:
        if path and is_harbor_folder(path):
            fleet = make_fleet(folder, read_harbor_tasks(path, needs.check), settings, check, remember)
        else:
            with open(path, "rb") if path else nullcontext(sys.stdin.buffer) as lines:
                whole = iter(partial(lines.readline, MOST_TASK_BYTES + 1), b"")
                tasks = read_tasks(whole, os.path.dirname(path) or directory, template, needs.check)
                fleet = make_fleet(folder, tasks, settings, check, remember)
    except BaseException:
        with suppress(OSError):
            os.rmdir(settings.scratch)
        raise
    _show_hosts(needs)
    return supervise(fleet, options, is_new=True)


def _is_kept(path: str) -> bool:
    """Whether what the tasks are read from is still there when they run, which a pipe is not."""
    return os.path.isfile(path) or os.path.isdir(path)


def _show_hosts(needs: Needs) -> None:
    """Say which hosts the commands of tasks may reach, before any runs."""
    if needs.asked.hosts_line:
        print(needs.asked.hosts_line, flush=True)


def resume(options: Options) -> int:
    """`fleet resume NAME`: go on with what is not done."""
    fleet = open_fleet(folder_of_fleet(options), any_version=options.force)
    require_own(fleet, options)
    _require_needs(fleet, options)
    return supervise(fleet, options)


def retry(options: Options) -> int:
    """`fleet retry NAME --failed`, or with ids: set results aside and run these attempts again. Their costs stay counted."""
    fleet, ids = open_fleet(folder_of_fleet(options), any_version=options.force), set(options.words[2:])
    if not ids and not options.failed:
        raise InputError(say("fleet.retry_what", name=options.words[1]))
    if missing := ids - {task.id for task in fleet.tasks()}:
        raise InputError(say("fleet.no_such_task", id=sorted(missing)[0]))
    require_own(fleet, options)
    again = list(_named_again(fleet, ids))
    _require_needs(fleet, options, {number for number, _ in again})
    journal = FleetJournal(fleet.folder)
    try:
        for number, attempt in again:
            journal.write_now([Reopened(number, attempt)])
            fleet.reopen(fleet.task(number), attempt)
        return asyncio.run(_supervise(fleet, options, journal))
    finally:
        journal.close()


def _named_again(fleet: Fleet, ids: Collection[str]) -> Iterator[tuple[int, int]]:
    """The attempts that have a result and are to be run again: those of the tasks with these ids, or all that did not pass."""
    for number, task in enumerate(fleet.tasks()):
        for attempt in range(1, fleet.lock.attempts + 1):
            result = fleet.result(task, attempt)
            if result is not None and (task.id in ids or (not ids and result.outcome != "passed")):
                yield number, attempt


def _require_needs(fleet: Fleet, options: Options, runs_again: Collection[int] = ()) -> None:
    """Find what is not there any more, a key above all, before the tasks that are left find it one by one. Raises DragomanError."""
    lock, again = fleet.lock, Options(directory=options.directory, lang=options.lang, budget_usd=options.budget_usd, force=True)
    named = {"model": lock.model, "approval": lock.approval, "sandbox": lock.sandbox, "config": lock.config, "trust": lock.trust}
    needs, is_needed = Needs(msgspec.structs.replace(again, **named), os.path.abspath(options.directory or ".")), False
    for number, task in enumerate(fleet.tasks()):
        if fleet.is_done(task) and number not in runs_again:
            continue
        is_needed = True
        try:
            needs.check(task)
        except DragomanError as error:
            raise InputError(say("fleet.bad_task", id=one_line(task.id, 60), reason=error)) from error
    if is_needed:
        make_scratch(lock.scratch)
        needs.check_machine(lock.scratch, fleet.folder)
        _show_hosts(needs)


def supervise(fleet: Fleet, options: Options, *, is_new: bool = False) -> int:
    """`is_new`: nothing is left of it where there is no such place to run it, or Ctrl-C came while that was looked for."""
    journal = FleetJournal(fleet.folder)
    try:
        return asyncio.run(_supervise(fleet, options, journal))
    except (InputError, Cancelled):
        if is_new and fleet.is_untouched:
            fleet.remove()
            remove_tree(os.path.dirname(fleet.lock.scratch), os.path.basename(fleet.lock.scratch))
        raise
    finally:
        journal.close()


def _placement(options: Options, fleet: Fleet, env: Mapping[str, str], limiter: LocalLimiter) -> Placement:
    """Where the workers of a fleet run. Raises InputError for a place that there is not."""
    flags = [*fleet.lock.flags(), "--hide", os.path.dirname(fleet.folder)]
    flags += ["--lang", options.lang] if options.lang else []  # results say why in the language of this start
    if options.on == "ray" or options.on.startswith("ray://"):
        from dragoman.fleet.ray_placement import RayPlacement, WorkerResources

        resources = WorkerResources(options.cpus or 1.0, options.memory_mb or 0)
        return RayPlacement("" if options.on == "ray" else options.on, fleet, limiter, options.workers or 0, resources, flags)
    if options.on in ("", "local"):
        return LocalPool(options.workers or USUAL_WORKERS, fleet.lock.scratch, flags, env, mark=fleet.lock.id)
    raise InputError(say("fleet.no_such_place", name=one_line(options.on, 60)))


async def _supervise(fleet: Fleet, options: Options, journal: FleetJournal) -> int:
    scratch = fleet.lock.scratch
    make_scratch(scratch)
    limiter = LocalLimiter(options.budget_usd if options.budget_usd is not None else last_budget(fleet.folder))
    server = LimiterServer(limiter, os.path.join(scratch, "limiter"))
    env = {**os.environ, VARIABLE: os.path.join(scratch, "limiter")}
    pool = _placement(options, fleet, env, limiter)
    onlooker = onlooker_for(fleet, limiter, no_color=options.no_color)
    supervisor = FleetSupervisor(fleet, pool, limiter, journal, onlooker)
    loop = asyncio.get_running_loop()
    opening = asyncio.create_task(pool.open())  # before anything else: where there is none, nothing has happened

    def stop() -> None:
        opening.cancel()
        supervisor.stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it: the terminal may go, and the fleet goes on
            loop.add_signal_handler(number, stop)
    try:
        await opening
    except asyncio.CancelledError as error:
        raise Cancelled(say("cancelled")) from error
    try:
        supervisor.recover()
        if options.budget_usd is not None:
            await journal.write(BudgetSet(options.budget_usd))
        await server.open()
        onlooker.begin(supervisor)
        await supervisor.run()
    finally:
        await server.aclose()
        await pool.aclose()
    if supervisor.fault is None:
        write_results(fleet)
    if supervisor.is_done:
        remove_tree(os.path.dirname(scratch), os.path.basename(scratch))
    else:
        with suppress(OSError):  # what was fetched stays for a resume
            os.rmdir(scratch)
    return onlooker.finish(supervisor)
