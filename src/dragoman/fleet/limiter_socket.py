"""The limiter of one machine: workers ask over a socket whose path is in their environment. When it closes, nobody waits for them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from dragoman.fleet.limiter import Ask, FleetLimiter, Lease, LocalLimiter, RefusalNews, SpendingNews

VARIABLE = "DRAGOMAN_FLEET_LIMITER"
MOST_LINE = 64_000
_decoder = msgspec.json.Decoder(Ask | RefusalNews | SpendingNews)
_encoder = msgspec.json.Encoder()


class LimiterServer:
    """Answers workers, one line of JSON for each question."""

    def __init__(self, limiter: LocalLimiter | FleetLimiter, path: str) -> None:
        self._limiter = limiter
        self._path = path
        self._server: asyncio.Server | None = None
        self._writers = set[asyncio.StreamWriter]()

    async def open(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        with _short(self._path) as path:
            self._server = await asyncio.start_unix_server(self._serve, path, limit=MOST_LINE)

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in self._writers:
                writer.close()
            with suppress(OSError):
                os.unlink(self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                match _decoder.decode(line):
                    case Ask() as ask:
                        lease = self._limiter.lease(ask)
                        writer.write(_encoder.encode(lease if isinstance(lease, Lease) else await lease) + b"\n")
                    case RefusalNews() as refused:
                        if (refusal := self._limiter.refuse(refused)) is not None:
                            await refusal
                    case SpendingNews() as news:
                        self._limiter.spent(news)
        except (OSError, ValueError):  # the worker is gone, or is none of ours
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


class LimiterClient:
    """A worker's end. Implements `FleetLimiter`."""

    def __init__(self, path: str, on_gone: Callable[[], None]) -> None:
        """`on_gone` is called when the supervisor is gone."""
        self._path = path
        self._on_gone = on_gone
        self._writer: asyncio.StreamWriter | None = None
        self._answers: asyncio.Queue[Lease | None] = asyncio.Queue()
        self._turn = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises OSError where nobody listens."""
        with _short(self._path) as path:
            reader, self._writer = await asyncio.open_unix_connection(path, limit=MOST_LINE)
        self._reading = asyncio.create_task(self._read(reader))

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()

    async def lease(self, ask: Ask) -> Lease:
        async with self._turn:
            self._send(ask)
            answer = await self._answers.get()
        if answer is None:
            self._answers.put_nowait(None)
            raise ConnectionResetError("the supervisor is gone")
        return answer

    async def refuse(self, refused: RefusalNews) -> None:
        self._send(refused)

    def spent(self, news: SpendingNews) -> None:
        self._send(news)

    def _send(self, message: Ask | RefusalNews | SpendingNews) -> None:
        assert self._writer is not None
        self._writer.write(_encoder.encode(message) + b"\n")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._answers.put_nowait(msgspec.json.decode(line, type=Lease))
        except (OSError, ValueError):
            pass
        self._answers.put_nowait(None)
        self._on_gone()


@contextmanager
def _short(path: str) -> Iterator[str]:
    """The path of a socket in no more bytes than the system takes: by way of its open folder."""
    if len(os.fsencode(path)) < 100 or not os.path.isdir("/proc/self/fd"):
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)
