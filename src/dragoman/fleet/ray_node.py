"""What runs on the nodes of Ray: one attempt as a task, and the limiter as an actor. Nothing here decides about results.

The worker is the same command as everywhere. It asks a limiter on a socket beside it, which passes the questions on; when that socket
closes, because Ray has ended the task, the worker ends itself and everything it has started.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import suppress
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.base.found_files import read_found
from dragoman.base.places import find_places
from dragoman.base.private import make_directory
from dragoman.fleet.limiter import Ask, HolderSpending, Lease, LocalLimiter, RefusalNews, SpendingNews
from dragoman.fleet.limiter_socket import VARIABLE, LimiterServer
from dragoman.fleet.placement import LOG_FILE, AttemptOrder, LocalPool
from dragoman.fleet.ray_tree import unpack_tree
from dragoman.fleet.result import RESULT_FILE, SPENT_FILE, TASK_FILE, AttemptSpending, read_result
from dragoman.fleet.task import ARCHIVES, Task
from dragoman.policy.sandbox.cache_removal import remove_tree

SESSION_FILE = "session.jsonl"
ORDERS = "orders"
"""The tasks under way on a node, apart from the copies that their commands see."""
MOST_FILE_BYTES = 64_000_000
MOST_LOG_BYTES = 64_000
TELL_S = 0.5
"""How often it is told what an attempt has spent."""
IDLE_S = 900.0
"""A limiter that no supervisor has spoken to for so long ends."""


class RayOrder(msgspec.Struct, frozen=True):
    """One start of an attempt, for a node."""

    task: Task
    """Its workspace is the driver's: where a tree comes with the order, that is used."""
    attempt: int
    epoch: int
    holder: str
    out: str
    """The folder of the epoch on the driver's machine: a name here."""
    fleet: str
    """The fleet's id."""
    flags: tuple[str, ...]
    tree: str = ""
    """The hash of the workspace; empty: none comes with it."""
    config: str = ""
    """The text of the configuration file, if one was named."""


def node_facts() -> tuple[str, str]:
    """Which Dragoman and Python there are."""
    return __version__, f"{sys.version_info[0]}.{sys.version_info[1]}"


def carry_out(order: bytes, tree: list[Any], limiter: Any) -> dict[str, bytes]:
    """Carry out one start of an attempt; returns the files it left. `tree` holds a reference to the workspace, fetched where it is not
    here yet."""
    return asyncio.run(_carry_out(msgspec.json.decode(order, type=RayOrder), tree, limiter))


def clean_up(fleet: str) -> None:
    """Remove what a fleet has left on this node."""
    folder = node_folder()
    remove_tree(folder, fleet)


def node_folder() -> str:
    """Where everything of fleets lies on a node, for us alone."""
    folder = os.path.join(os.path.realpath(tempfile.gettempdir()), f"dragoman-ray-{os.getuid()}")
    make_directory(folder)
    status = os.lstat(folder)
    if status.st_uid != os.getuid() or not os.path.isdir(folder) or os.path.islink(folder):
        raise PermissionError(f"{folder} is not ours")
    return folder


async def _carry_out(order: RayOrder, tree: list[Any], limiter: Any) -> dict[str, bytes]:
    home = os.path.join(node_folder(), order.fleet)
    make_directory(home)
    task = order.task
    if tree:
        task = msgspec.structs.replace(task, workspace=await asyncio.to_thread(_unpacked, home, order.tree, tree[0]))
    orders = os.path.join(home, ORDERS)
    make_directory(orders)
    folder = tempfile.mkdtemp(prefix="a-", dir=orders)
    out = os.path.join(folder, "out")
    os.mkdir(out, 0o700)
    _write(os.path.join(folder, TASK_FILE), msgspec.json.encode(task))
    flags = [*order.flags, "--scratch", os.path.join(home, "work"), "--hide", orders]
    if order.config:
        _write(os.path.join(folder, "config.toml"), order.config.encode())
        flags += ["--config", os.path.join(folder, "config.toml")]
    relay = Relay(limiter, order, out)
    server = LimiterServer(relay, os.path.join(folder, "limiter"))
    env = {**os.environ, VARIABLE: os.path.join(folder, "limiter")}
    pool = LocalPool(1, os.path.join(home, "work"), flags, env, mark=f"ray-{order.fleet}")
    telling = asyncio.create_task(relay.keep_telling())
    try:
        await server.open()
        await pool.run(AttemptOrder(task, order.attempt, order.epoch, out))
        return await asyncio.to_thread(_left, out)
    finally:
        telling.cancel()
        await server.aclose()
        with suppress(Exception):
            relay.tell()
        remove_tree(orders, os.path.basename(folder))


def _unpacked(home: str, name: str, ref: Any) -> str:
    """The workspace as a folder or archive of this node, made once, whoever comes first."""
    import ray

    place = os.path.join(home, f"tree-{name}")
    if os.path.lexists(place):
        return place
    aside = tempfile.mkdtemp(prefix="tree-new-", dir=home)
    made, data = os.path.join(aside, "tree"), ray.get(ref)
    if name.endswith(ARCHIVES):
        _write(made, data)
    else:
        unpack_tree(data, made)
    try:
        os.rename(made, place)
    except OSError:  # another task was faster
        if not os.path.lexists(place):
            raise
    remove_tree(home, os.path.basename(aside))
    return place


def _write(path: str, data: bytes) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(data)


def _left(out: str) -> dict[str, bytes]:
    """What the worker left, and its session."""
    found: dict[str, bytes] = {}
    for name, most in ((RESULT_FILE, MOST_FILE_BYTES), (SPENT_FILE, MOST_FILE_BYTES), (LOG_FILE, MOST_FILE_BYTES)):
        with suppress(OSError):
            found[name] = read_found(os.path.join(out, name), most)
    found[LOG_FILE] = found.get(LOG_FILE, b"")[-MOST_LOG_BYTES:]
    result = read_result(out)
    if result is not None and result.session_id:
        with suppress(OSError):
            found[SESSION_FILE] = read_found(_session_path(result.session_id), MOST_FILE_BYTES)
    return found


def _session_path(session_id: str) -> str:
    from dragoman.sessions.projects import log_name

    sessions = find_places(os.environ).sessions
    for folder in os.scandir(sessions):
        path = os.path.join(folder.path, log_name(session_id))
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(session_id)


class Relay:
    """Stands in for the limiter on a node: passes questions on to the actor, and tells it what is spent meanwhile."""

    def __init__(self, limiter: Any, order: RayOrder, out: str) -> None:
        self._limiter = limiter
        self._order = order
        self._path = os.path.join(out, SPENT_FILE)
        self._told = b""

    async def lease(self, ask: Ask) -> Lease:
        asked = msgspec.structs.replace(ask, holder=self._order.holder)  # the worker's task has another workspace, so another hash
        return msgspec.json.decode(await self._limiter.ask.remote(msgspec.json.encode(asked)), type=Lease)

    async def refuse(self, refused: RefusalNews) -> None:
        await self._limiter.refuse.remote(msgspec.json.encode(msgspec.structs.replace(refused, holder=self._order.holder)))

    def spent(self, news: SpendingNews) -> None:
        self.tell()

    async def keep_telling(self) -> None:
        while True:
            await asyncio.sleep(TELL_S)
            self.tell()

    def tell(self) -> None:
        """Tell the last line of what the worker has spent, if it is another."""
        try:
            line = read_found(self._path, MOST_FILE_BYTES).rpartition(b"\n")[0].rpartition(b"\n")[2]
        except OSError:
            return
        if line and line != self._told:
            self._told = line
            self._limiter.note.remote(self._order.holder, self._order.out, line)


class SharedLimiter:
    """The limiter of a fleet as an actor, on the head. What it knows is lost with it: leases and the supervisor tell it again."""

    def __init__(self, budget_usd: float | None) -> None:
        self._limiter = LocalLimiter(budget_usd)
        self._spent: dict[str, tuple[str, bytes]] = {}
        """Of those under way: the folder of the epoch on the driver's machine, and what it last told."""
        self._gone: set[str] = set()
        self._ending: asyncio.TimerHandle | None = None

    async def ask(self, data: bytes) -> bytes:
        ask = msgspec.json.decode(data, type=Ask)
        if ask.holder in self._gone:  # it was given up, and another start has its place
            return msgspec.json.encode(Lease(is_spent=True))
        return msgspec.json.encode(self._limiter.lease(ask))

    async def refuse(self, data: bytes) -> None:
        self._limiter.refuse(msgspec.json.decode(data, type=RefusalNews))

    async def note(self, holder: str, out: str, line: bytes) -> None:
        self._spent[holder] = (out, line)
        with suppress(msgspec.MsgspecError):
            self._limiter.spent(SpendingNews(holder, msgspec.json.decode(line, type=AttemptSpending).as_spending))

    async def sync(self, ended_usd: float, live: dict[str, HolderSpending], gone: list[str]) -> dict[str, tuple[str, bytes]]:
        """Take over what the supervisor knows: what has ended, who is under way and has spent how much, who was given up. Returns what
        is known here of those under way."""
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(IDLE_S, _end_this_actor)
        self._gone.update(gone)
        self._limiter.restate(ended_usd, live)
        self._spent = {holder: told for holder, told in self._spent.items() if holder in live}
        return dict(self._spent)

    async def all_spent(self) -> dict[str, tuple[str, bytes]]:
        """What was told by all that were under way when the last supervisor spoke, or since."""
        return dict(self._spent)


def _end_this_actor() -> None:
    import ray

    ray.kill(ray.get_runtime_context().current_actor)
