"""E1: many agents on one connection, under every fault there is: each gets the answer to its own question, and nothing is left behind.

`DRAGOMAN_REQUESTS=100000` for the long run (`make many`).
"""

from __future__ import annotations

import asyncio
import gc
import os
import ssl
import sys
import threading
from pathlib import Path

import pytest

from certificates import Authority
from dragoman.http.httpx_transport import HttpxTransport
from dragoman.http.transport import HttpTransport
from dragoman.values.contracts import Transport
from many.crowd import Crowd, Seen, connected, service, sockets

REQUESTS = int(os.environ.get("DRAGOMAN_REQUESTS", "800"))
"""Read here: tests run without variables of ours."""
SEED = int(os.environ.get("DRAGOMAN_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
AGENTS = 50


def ask(url: str, requests: int, transport: Transport | None = None) -> Seen:
    """Everything at once; afterwards there is no task and no socket more than before."""

    async def run() -> Seen:
        before, tasks = sockets(), len(asyncio.all_tasks())
        connection = connected(url, transport)
        seen = await Crowd(connection, AGENTS, requests, SEED).ask_all()
        await connection.aclose()
        await asyncio.sleep(0.05)
        assert len(asyncio.all_tasks()) == tasks
        gc.collect()
        assert sockets() == before
        return seen

    seen = asyncio.run(run())
    print(f"seed {SEED}: {seen}")
    return seen


def check(seen: Seen, requests: int) -> None:
    assert seen.crossed == [], f"seed {SEED}: {seen}"
    assert seen.hung == [], f"seed {SEED}: {seen}"
    assert seen.failed == [], f"seed {SEED}: {seen}"
    assert seen.answered + seen.cancelled == requests
    assert seen.answered > requests / 2


@pytest.mark.parametrize("kind", ["hypercorn", "ours"])
def test_every_answer_reaches_its_question(kind: str) -> None:
    with service(kind) as [url]:
        check(ask(url, REQUESTS), REQUESTS)


def test_over_tls(tmp_path: Path) -> None:
    with service("hypercorn", certificate=certificate(tmp_path)) as [url]:
        check(ask(url, REQUESTS // 4, HttpTransport(tls=trusting(tmp_path))), REQUESTS // 4)


def test_through_a_proxy(tmp_path: Path) -> None:
    with service("hypercorn", certificate=certificate(tmp_path), proxy=True) as [url, proxy]:
        check(ask(url, REQUESTS // 4, HttpTransport(proxy=proxy, tls=trusting(tmp_path))), REQUESTS // 4)


@pytest.mark.parametrize("version", ["http/1.1", "h2"])
def test_over_httpx(tmp_path: Path, version: str) -> None:
    """The second client passes the same; over HTTP/2 all agents share a few connections."""
    with service("hypercorn", certificate=certificate(tmp_path), version=version) as [url]:
        context = trusting(tmp_path)
        context.set_alpn_protocols([version])
        check(ask(url, REQUESTS // 4, HttpxTransport(tls=context)), REQUESTS // 4)


def test_in_several_threads_on_one_connection() -> None:
    """Each thread has an event loop of its own; connection, credential and memo are the same for all."""
    seen: list[Seen] = []

    def be_a_thread(number: int) -> None:
        seen.append(asyncio.run(Crowd(connection, 10, REQUESTS // 8, SEED + number, name=f"t{number}").ask_all()))

    with service("hypercorn") as [url]:
        before, connection = sockets(), connected(url)
        threads = [threading.Thread(target=be_a_thread, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 4
        for each in seen:
            check(each, REQUESTS // 8)
        assert sockets() == before, "the connections of an event loop end with it"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_with_eager_tasks() -> None:
    """On 3.12.1 and 3.13.0 asyncio's own way of trying several addresses fails with them."""

    async def run(url: str) -> Seen:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        connection = connected(url.replace("127.0.0.1", "localhost"))
        seen = await Crowd(connection, 10, 200, SEED).ask_all()
        await connection.aclose()
        return seen

    with service("hypercorn") as [url]:
        check(asyncio.run(run(url)), 200)


def certificate(folder: Path) -> str:
    return str(Authority(folder).server_file("127.0.0.1"))


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "authority.pem"))
