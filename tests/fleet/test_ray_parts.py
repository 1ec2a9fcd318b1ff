"""What runs on Ray without Ray: a workspace as bytes, and the limiter that is an actor there."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from dragoman.fleet.folder import Lock, make_fleet
from dragoman.fleet.limiter import Ask, HolderSpending, Lease, LocalLimiter
from dragoman.fleet.placement import AttemptOrder
from dragoman.fleet.ray_node import SharedLimiter
from dragoman.fleet.ray_placement import RayPlacement, WorkerResources, require_answer
from dragoman.fleet.ray_tree import digest_of, pack_tree, unpack_tree
from dragoman.fleet.task import Task
from dragoman.values.errors import InputError
from fleet.fleets import run_fleet, task, write_tasks
from program import Place, Service


def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "leads-out").symlink_to("/etc/hostname")
    (folder / "nowhere").symlink_to("../gone")
    (folder / "字.txt").write_bytes(b"\0\xff")
    (folder / "closed").mkdir(mode=0o500)
    os.mkfifo(folder / "pipe")
    packed = pack_tree(str(folder))
    assert digest_of(pack_tree(str(folder))) == digest_of(packed)
    unpack_tree(packed, str(tmp_path / "copy"))
    assert {path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*")} == {
        *(".git", ".git/HEAD", ".git/hooks", "run.sh", "leads-out", "nowhere", "字.txt", "closed")
    }
    assert os.readlink(tmp_path / "copy" / "leads-out") == "/etc/hostname"
    assert (tmp_path / "copy" / "字.txt").read_bytes() == b"\0\xff"
    assert (tmp_path / "copy" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "copy" / "run.sh").stat().st_mtime == int((folder / "run.sh").stat().st_mtime)


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "link/out", ".", "a//b"])
def test_nothing_of_it_lands_outside(tmp_path: Path, name: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        member = tarfile.TarInfo(name)
        member.size = 3
        archive.addfile(member, io.BytesIO(b"out"))
    with pytest.raises(OSError, match=r"inside|symbolic|directory|Not a"):
        unpack_tree(packed.getvalue(), str(tmp_path / "copy"))
    assert not (tmp_path / "out").exists()


def ask(limiter: SharedLimiter, holder: str, usd: float = 0.0) -> Lease:
    asked = msgspec.json.encode(Ask(holder, "anthropic/m", spending=HolderSpending(usd)))
    return msgspec.json.decode(asyncio.run(limiter.ask(asked)), type=Lease)


def test_an_attempt_that_was_given_up_may_send_nothing_more() -> None:
    limiter = SharedLimiter(None)
    assert ask(limiter, "a.1.1").requests > 0
    asyncio.run(limiter.sync(0.0, {}, ["a.1.1"]))
    assert ask(limiter, "a.1.1").is_spent
    assert ask(limiter, "a.1.2").requests > 0


def test_a_limiter_that_was_lost_learns_what_was_spent_from_the_supervisor_and_from_leases() -> None:
    limiter = SharedLimiter(1.0)
    asyncio.run(limiter.sync(0.4, {"a.1.1": HolderSpending(0.3)}, []))
    assert ask(limiter, "b.1.1", usd=0.2).requests > 0
    assert ask(limiter, "a.1.1", usd=0.5).is_spent, "0.4 ended, 0.2 and 0.5 under way"


def test_what_nodes_tell_counts_before_anybody_asks_again() -> None:
    limiter = SharedLimiter(1.0)
    assert ask(limiter, "a.1.1").requests > 0
    asyncio.run(limiter.note("a.1.1", "/out", b'{"requests":1,"usd":1.0}'))
    assert ask(limiter, "b.1.1").is_spent


def test_what_was_under_way_is_known_until_the_supervisor_says_that_it_has_ended() -> None:
    limiter = SharedLimiter(None)
    asyncio.run(limiter.note("a.1.1", "/out", b'{"requests":1}'))
    assert asyncio.run(limiter.sync(0.0, {"a.1.1": HolderSpending()}, [])) == {"a.1.1": ("/out", b'{"requests":1}')}
    assert asyncio.run(limiter.sync(0.1, {}, [])) == {}
    assert asyncio.run(limiter.all_spent()) == {}


class LostRay:
    """A cluster whose every task ends with an error of Ray's."""

    class RayError(Exception): ...

    class RayTaskError(RayError): ...

    class LocalRayletDiedError(RayError): ...

    class NodeDiedError(RayError): ...

    def __init__(self, error: type[Exception]) -> None:
        self.exceptions, self._error = type(self), error

    def options(self, **options: object) -> LostRay:
        return self

    def remote(self, *arguments: object) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_exception(self._error())
        return done


def test_a_supervisor_that_lost_its_own_node_stops_and_spends_no_starts(tmp_path: Path) -> None:
    """Ten starts of each task would come to nothing, and count as results."""
    (tmp_path / "fleet").mkdir()
    settings = Lock(id="0123456789ab", version="", tasks=0, tasks_sha256="", scratch=str(tmp_path))
    fleet = make_fleet(str(tmp_path / "fleet" / "x"), [Task("one", "p")], settings)
    placement = RayPlacement("", fleet, LocalLimiter(), 1, WorkerResources(), [])
    order = AttemptOrder(fleet.task(0), 1, 1, fleet.make_epoch(fleet.task(0), 1, 1))
    placement._ray = placement._task = LostRay(LostRay.NodeDiedError)
    assert asyncio.run(placement.run(order)).is_place_lost
    placement._ray = placement._task = LostRay(LostRay.LocalRayletDiedError)
    with pytest.raises(InputError, match="the Ray node of this machine is gone"):
        asyncio.run(placement.run(order))


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nobody_answers_is_found_at_once(scheme: str) -> None:
    """Ray itself tries for many minutes, and hears no Ctrl-C meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{scheme}127.0.0.1:{server.getsockname()[1]}"
        require_answer(address)
    with pytest.raises(InputError, match=r"no Ray cluster can be reached at .*refused"):
        require_answer(address)
    require_answer("auto")


def test_where_ray_is_not_installed_that_is_said_before_anything_starts(place: Place, serve: Callable[..., Service]) -> None:
    try:
        import ray  # noqa: F401
    except ImportError:
        service = serve("text: never asked")
        write_tasks(place, [task("one")])
        assert "Ray is not installed" in run_fleet(place, "--on", "ray").complaint(42)
        assert service.requests == []
    else:
        pytest.skip("Ray is installed here")
