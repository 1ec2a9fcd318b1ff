"""Workers on the nodes of a Ray cluster: one task of Ray for each start of an attempt. Ray knows of no retries: the supervisor decides.

Results reach the disk by this process alone, so a node that was given up, and works on, can neither replace a result nor double it. It
is fenced as well: the limiter, an actor on the head, lets no attempt send anything that was given up. Nothing secret passes through Ray:
nodes have their keys in their own environment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from dragoman import __version__
from dragoman.base.found_files import read_found, read_found_text
from dragoman.base.private import write_whole
from dragoman.base.text import one_line
from dragoman.fleet import files
from dragoman.fleet.ending import GRACE_S, HANGING_S
from dragoman.fleet.folder import Fleet
from dragoman.fleet.limiter import HolderSpending, LocalLimiter
from dragoman.fleet.placement import AttemptOrder, WorkerEnd
from dragoman.fleet.ray_node import RayOrder, SharedLimiter, carry_out, clean_up, node_facts
from dragoman.fleet.ray_tree import digest_of, pack_tree
from dragoman.fleet.result import RESULT_FILE, SPENT_FILE, AttemptResult, AttemptSpending, read_spent, write_result
from dragoman.fleet.task import GitSource, Task, require_workspace, secret_stores
from dragoman.fleet.workspace import fetch_revision
from dragoman.values.errors import InputError
from dragoman.words import say

OLDEST = (2, 41)
NAMESPACE = "dragoman"
SYNC_S = 0.5
"""How often supervisor and limiter tell each other what they know."""
PLACE_ERRORS = ("NodeDiedError", "ActorDiedError", "ActorUnavailableError", "ObjectLostError", "OwnerDiedError")
"""What Ray raises where a machine or its raylet went, and not the one process that a task ran in."""
ANSWER_S = 10.0
STOPPING_S = GRACE_S + HANGING_S + 4.0
MOST_CONFIG_BYTES = 1_000_000
MOST_ARCHIVE_BYTES = 4_000_000_000


class WorkerResources(NamedTuple):
    """What Ray keeps free for each worker."""

    cpus: float = 1.0
    memory_mb: int = 0

    @property
    def options(self) -> dict[str, float]:
        """As Ray calls them."""
        return {"num_cpus": self.cpus} | ({"memory": self.memory_mb * 1_000_000} if self.memory_mb else {})


class _Tree(NamedTuple):
    """A workspace in the object store."""

    name: str
    """Its hash."""
    ref: Any


class RayPlacement:
    """Implements `Placement`."""

    def __init__(
        self, address: str, fleet: Fleet, limiter: LocalLimiter, workers: int, resources: WorkerResources, flags: Sequence[str]
    ) -> None:
        """An empty address is `RAY_ADDRESS`, or the cluster of this machine; 0 workers are as many as the cluster has room for."""
        self.workers = workers or 1
        self._address = address
        self._fleet = fleet
        self._limiter = limiter
        self._is_elastic = not workers
        self._resources = resources
        self._flags = _flags_for_nodes(flags)
        self._config = read_found_text(fleet.lock.config, MOST_CONFIG_BYTES) if fleet.lock.config else ""
        self._ray: Any = None
        self._actor: Any = None
        self._task: Any = None
        self._trees: dict[str, _Tree] = {}
        self._by_hash: dict[str, Any] = {}
        self._packing = asyncio.Lock()
        self._live: dict[str, str] = {}
        """Attempts under way → the folders of their epochs."""
        self._gone: list[str] = []
        self._syncing: asyncio.Task[None] | None = None

    # --- the cluster

    async def open(self) -> None:
        # In a thread: where it is the main one, Ray takes SIGTERM for itself. One that nobody waits for: Ray may never give up.
        await _in_thread_of_its_own(self._connect)
        await self._take_over()
        self._actor = self._start_limiter()
        await self._sync()
        self._syncing = asyncio.create_task(self._keep_syncing())

    def _connect(self) -> None:
        try:
            import ray
        except ImportError as error:
            raise InputError(say("fleet.ray_missing")) from error
        if tuple(int(part) for part in ray.__version__.split(".")[:2]) < OLDEST:
            raise InputError(say("fleet.ray_too_old", version=ray.__version__))
        self._ray = ray
        address = self._address or os.environ.get("RAY_ADDRESS") or "auto"
        require_answer(address)
        try:
            with warnings.catch_warnings(action="ignore"):
                # No runtime_env: it would be written down, and copied to every node.
                ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.FATAL)
        except Exception as error:
            raise InputError(say("fleet.ray_not_there", address=one_line(address, 100), reason=one_line(str(error), 300))) from error
        self._task = ray.remote(carry_out)
        self._require_equal_nodes()
        self._count_room()

    def _require_equal_nodes(self) -> None:
        """Every node must have this very version: it is asked before anything starts."""
        try:
            told = self._on_every_node(node_facts)
        except Exception as error:
            raise InputError(say("fleet.ray_node_without", reason=one_line(str(error), 300))) from error
        for node, (version, _) in told.items():
            if version != __version__:
                raise InputError(say("fleet.ray_other_version", node=node, theirs=version, ours=__version__))

    def _on_every_node(self, function: Callable[..., Any], *arguments: Any, within_s: float = 120.0) -> dict[str, Any]:
        remote = self._ray.remote(function)
        refs = {
            node["NodeManagerAddress"] + "/" + node["NodeID"][:8]: remote.options(
                num_cpus=0, max_retries=0, scheduling_strategy=self._at(node["NodeID"])
            ).remote(*arguments)
            for node in self._nodes()
        }
        return dict(zip(refs, self._ray.get(list(refs.values()), timeout=within_s), strict=True))

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def _at(self, node_id: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node_id, soft=False)

    def _count_room(self) -> None:
        if self._is_elastic:
            resources = self._ray.cluster_resources()
            room = resources.get("CPU", 0.0) / self._resources.cpus
            if self._resources.memory_mb:
                room = min(room, resources.get("memory", 0.0) / (self._resources.memory_mb * 1_000_000))
            self.workers = max(int(room), 1)

    async def aclose(self) -> None:
        if self._syncing is not None:
            self._syncing.cancel()
        if self._ray is None or not self._ray.is_initialized():
            return
        with suppress(Exception):
            await asyncio.to_thread(self._on_every_node, clean_up, self._fleet.lock.id, within_s=30.0)
        with suppress(Exception):
            self._ray.kill(self._actor)
        await asyncio.to_thread(self._ray.shutdown)

    # --- the limiter

    @property
    def _actor_name(self) -> str:
        return f"limiter-{self._fleet.lock.id}"

    async def _take_over(self) -> None:
        """A supervisor that was killed left its limiter, which knows what the attempts under way had spent."""
        try:
            left = self._ray.get_actor(self._actor_name)
        except ValueError:
            return
        with suppress(Exception):
            async with asyncio.timeout(30):
                for out, line in (await left.all_spent.remote()).values():
                    self._write_spent(out, line)
        self._ray.kill(left)
        until_s = time.monotonic() + 30
        while time.monotonic() < until_s:  # its name is free once it is gone
            try:
                self._ray.get_actor(self._actor_name)
            except ValueError:
                return
            await asyncio.sleep(0.05)

    def _start_limiter(self) -> Any:
        head = [node["NodeID"] for node in self._nodes() if "node:__internal_head__" in node["Resources"]]
        place = {"scheduling_strategy": self._at(head[0])} if head else {}
        # Detached: it outlives this process, so that a resume learns from it what was spent.
        made = self._ray.remote(SharedLimiter).options(
            name=self._actor_name, lifetime="detached", num_cpus=0, max_restarts=-1, max_task_retries=-1, max_concurrency=1_000, **place
        )
        return made.remote(self._limiter.budget_usd)

    async def _keep_syncing(self) -> None:
        while True:
            await asyncio.sleep(SYNC_S)
            with suppress(Exception):  # it is being restarted
                await self._sync()
            with suppress(Exception):
                self._count_room()

    async def _sync(self) -> None:
        live = self._spending()
        spent = await self._actor.sync.remote(self._limiter.ended_usd, live, self._gone)
        for holder, (_, line) in spent.items():
            if (out := self._live.get(holder)) is not None:
                self._write_spent(out, line)
        self._limiter.restate(self._limiter.ended_usd, self._spending())

    def _spending(self) -> dict[str, HolderSpending]:
        return {holder: read_spent(out).as_spending for holder, out in self._live.items()}

    def _write_spent(self, out: str, line: bytes) -> None:
        """Note what an attempt has spent, as a worker of this machine does itself."""
        inside = os.path.realpath(self._fleet.folder) + os.sep
        if not os.path.isdir(out) or not os.path.realpath(out).startswith(inside) or os.path.lexists(os.path.join(out, RESULT_FILE)):
            return
        with suppress(msgspec.MsgspecError, OSError):
            if msgspec.json.decode(line, type=AttemptSpending) != read_spent(out):
                files.append(os.path.join(out, SPENT_FILE), line + b"\n")

    # --- attempts

    async def clear(self) -> None: ...  # nodes remove it themselves

    async def run(self, order: AttemptOrder) -> WorkerEnd:
        try:
            tree = await self._tree_of(order.task)
        except InputError as error:  # of this task alone: a worker would have found it
            await asyncio.to_thread(_refuse, order, error)
            return WorkerEnd(1)
        self._live[order.holder] = order.out
        task = self._task.options(name=one_line(order.task.id, 60), max_retries=0, **self._resources.options)
        ref = task.remote(self._order(order, tree), [tree.ref] if tree else [], self._actor)
        del tree
        try:
            left = await ref
            await asyncio.to_thread(_keep, order, left)
        except asyncio.CancelledError:
            await self._stop(ref)
            raise
        except self._ray.exceptions.RayTaskError as error:
            return WorkerEnd(-1, one_line(str(error.cause or error), 300))
        except self._ray.exceptions.LocalRayletDiedError as error:
            # It is this process that lost its cluster: every start from now on would end so, and ten such ends are a result.
            raise InputError(say("fleet.ray_lost")) from error
        except self._ray.exceptions.RayError as error:
            self._gone.append(order.holder)
            with suppress(Exception):
                await self._sync()
            return WorkerEnd(-signal.SIGKILL, f"Ray: {type(error).__name__}", is_place_lost=type(error).__name__ in PLACE_ERRORS)
        finally:  # from here the supervisor counts what it has spent, before anything else is done
            self._live.pop(order.holder, None)
        return WorkerEnd(0)

    async def _stop(self, ref: Any) -> None:
        """End a task: as a worker of this machine is, and where it does not end, with its process."""
        for force in (False, True):
            with suppress(Exception):
                self._ray.cancel(ref, force=force)
            with suppress(Exception):
                async with asyncio.timeout(STOPPING_S):
                    await ref
                return

    def _order(self, order: AttemptOrder, tree: _Tree | None) -> bytes:
        told = RayOrder(
            order.task,
            order.attempt,
            order.epoch,
            order.holder,
            order.out,
            self._fleet.lock.id,
            tuple(self._flags),
            tree.name if tree else "",
            self._config,
        )
        return msgspec.json.encode(told)

    # --- workspaces

    async def _tree_of(self, task: Task) -> _Tree | None:
        """The task's workspace in the object store, put there once for all tasks that have the same. None: the node gets it by itself."""
        require_workspace(task)
        left_out = (*secret_stores(), *self._fleet.lock.hidden)
        match task.workspace:
            case None:
                return None
            case GitSource(git=url) as source:
                if not os.path.isabs(url):
                    return None
                name, make = (
                    f"{url}\0{source.rev}",
                    lambda: pack_tree(fetch_revision(source, os.path.join(self._fleet.lock.scratch, "sources"))),
                )
            case str() as path:
                name, make = path, lambda: pack_tree(path, left_out) if os.path.isdir(path) else read_found(path, MOST_ARCHIVE_BYTES)
        async with self._packing:
            if (found := self._trees.get(name)) is None:
                data = await asyncio.to_thread(make)
                digest = digest_of(data) + _suffix(task)
                if digest not in self._by_hash:
                    self._by_hash[digest] = await asyncio.to_thread(self._ray.put, data)
                found = self._trees[name] = _Tree(digest, self._by_hash[digest])
        return found


def require_answer(address: str) -> None:
    """Raises InputError where nobody answers at this address: Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").partition("?")[0].rpartition(":")
    if "://" in host or not port.isdigit():  # `auto`, or what only Ray knows
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(say("fleet.ray_not_there", address=one_line(address, 100), reason=one_line(str(error), 300))) from error


async def _in_thread_of_its_own(function: Callable[[], None]) -> None:
    """Like `asyncio.to_thread`, but the program may end before the thread does."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)
        with suppress(RuntimeError):  # nobody waits any more
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, daemon=True).start()
    await done.wait()
    if raised:
        raise raised[0]


def _suffix(task: Task) -> str:
    """Of an archive, which the worker unpacks itself: by its name it knows what it is."""
    from dragoman.fleet.task import ARCHIVES

    path = task.workspace if isinstance(task.workspace, str) and not os.path.isdir(task.workspace) else ""
    return next((each for each in ARCHIVES if path.endswith(each)), "")


def _flags_for_nodes(flags: Sequence[str]) -> list[str]:
    """What every worker is called with, without what names files of this machine."""
    left_out = {"--scratch", "--config"}
    return [flag for number, flag in enumerate(flags) if flag not in left_out and (number == 0 or flags[number - 1] not in left_out)]


def _keep(order: AttemptOrder, left: dict[str, bytes]) -> None:
    """Write what came back into the folder of the epoch. The result's identity is that of the order: its worker knew another workspace."""
    for name, data in left.items():
        if name != RESULT_FILE and name == os.path.basename(name):
            with files.write_aside(os.path.join(order.out, name)) as descriptor:
                write_whole(descriptor, data)
    with suppress(msgspec.MsgspecError):
        result = msgspec.json.decode(left.get(RESULT_FILE, b""), type=AttemptResult)
        own = {"task": order.task.id, "task_hash": order.task.hash, "attempt": order.attempt, "epoch": order.epoch}
        write_result(order.out, msgspec.structs.replace(result, **own))


def _refuse(order: AttemptOrder, error: InputError) -> None:
    """Write the result that a worker of this machine would have left."""
    task, name = order.task, type(error).__name__
    identity = {"task": task.id, "task_hash": task.hash, "attempt": order.attempt, "epoch": order.epoch}
    write_result(order.out, AttemptResult(**identity, outcome="refused input", reason=str(error), error_type=name, model=task.model))
