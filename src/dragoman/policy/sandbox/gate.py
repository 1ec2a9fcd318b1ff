"""The gate: the only way from a command in the sandbox to the network. An HTTP proxy in our own process, on a listener inside the network
of the session, for the command that knows its secret; whoever `admit`s decides which host is reached, and at which addresses.

Nothing a client does costs more than its share: the head, its time, connections and what is under way are bounded.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from dragoman.policy.sandbox.carrying import PIECE_BYTES, Pulse, Streams, pump, until_still
from dragoman.policy.sandbox.gate_request import CHUNK_LINE, ProxyRequest, UnclearRequest, proves, read_request

_TRIED_ADDRESSES = 3
_ASK_WHO = 'Proxy-Authenticate: Basic realm="dragoman"'
_SHOWN = 50
"""So many hosts are named of those reached and refused."""


class GateLimits(msgspec.Struct, frozen=True):
    """How much one command may ask of the gate."""

    connections: int = 64
    """At a time, for one command."""
    head_bytes: int = 32 * 1024
    head_s: float = 15.0
    """For the whole head, however slowly it comes."""
    dial_s: float = 15.0
    """For each address that is tried."""
    idle_s: float = 300.0
    """Without a byte in either direction."""
    under_way_bytes: int = 64 * 1024
    """In each direction of a connection, before whoever sends has to wait."""


class Reachable(msgspec.Struct, frozen=True):
    """Whom a request is for, with addresses that were checked."""

    host: str
    port: int
    addresses: Sequence[str]
    name: str
    """As it is written in rules and lists: with the port, if that is not one of the web's."""


class GateRefused(Exception):
    """The host is not reached. `name` is shown to the model; `reason` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


class UnknownHost(Exception):
    """The host is allowed, but it does not exist."""


Admit = Callable[[str], Awaitable[Reachable]]
"""Takes a URL. Raises GateRefused or UnknownHost."""
Dial = Callable[[str, int, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to an address and port, with a limit for what is read ahead. Raises OSError."""


async def dial(address: str, port: int, limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(address, port, limit=limit)


class Gate:
    """One for each command. Belongs to one event loop."""

    def __init__(self, admit: Admit, *, secret: str, connect: Dial = dial, limits: GateLimits | None = None) -> None:
        """`secret`: what a client must know to be served."""
        self._admit = admit
        self._secret = secret
        self._dial = connect
        self._limits = limits or GateLimits()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.reached: dict[str, str] = {}
        """In the order in which they were first reached; the values are empty."""
        self.refused: dict[str, str] = {}
        """With the reason."""
        self.gone: dict[str, str] = {}
        """Hosts that were allowed when whoever asked for them had gone; the values are empty."""

    async def open(self, descriptor: int) -> None:
        """Takes the descriptor of a listener."""
        try:
            listener = socket.socket(fileno=descriptor)
        except OSError:
            os.close(descriptor)
            raise
        listener.setblocking(False)
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=self._limits.under_way_bytes)

    def close(self) -> None:
        """Whatever is under way ends."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()

    # --- one connection

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(self._serving) >= self._limits.connections:
                await _answer(writer, "503 Service Unavailable", "too many connections at a time")
                return
            self._serving.add(task)
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, UnclearRequest):
            pass  # somebody went away, or keeps to no rules: the connection ends
        except asyncio.CancelledError:
            pass  # the command has ended; nobody waits for this task
        finally:
            self._serving.discard(task)
            writer.transport.abort() if not writer.is_closing() and _has_unsent(writer) else writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await self._read_request(reader)
        except UnclearRequest as bad:
            await _answer(writer, "400 Bad Request", str(bad))
            return
        if not proves(request, self._secret):
            await _answer(writer, "407 Proxy Authentication Required", "this gate is another command's", _ASK_WHO)
            return
        try:
            place = await self._admit(request.url)
        except GateRefused as refused:
            _note(self.refused, refused.name, refused.reason)
            await _answer(writer, "403 Forbidden", str(refused))
            return
        except UnknownHost as missing:
            await _answer(writer, "502 Bad Gateway", str(missing))
            return
        if reader.at_eof() or reader.exception() is not None:  # it gave up while the user was asked
            return _note(self.gone, place.name, "")
        try:
            there, to_there = await self._connect(place)
        except (OSError, TimeoutError) as error:
            await _answer(writer, "502 Bad Gateway", f"{place.name} cannot be reached: {error}")
            return
        _note(self.reached, place.name, "")
        try:
            await self._carry(request, place, (reader, writer), (there, to_there))
        finally:
            to_there.close()

    async def _read_request(self, reader: asyncio.StreamReader) -> ProxyRequest:
        """Raises UnclearRequest, and TimeoutError for a client that never ends."""
        head = bytearray()
        async with asyncio.timeout(self._limits.head_s):
            while not head.endswith(b"\r\n\r\n"):
                # Line by line: what follows the head belongs to the body, or to the server.
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.LimitOverrunError:
                    raise UnclearRequest("the head is too long") from None
                head += line
                if len(head) > self._limits.head_bytes:
                    raise UnclearRequest("the head is too long")
        return read_request(bytes(head))

    async def _connect(self, place: Reachable) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        fault: OSError | TimeoutError = OSError("it has no address")
        for address in place.addresses[:_TRIED_ADDRESSES]:
            try:
                async with asyncio.timeout(self._limits.dial_s):
                    return await self._dial(address, place.port, self._limits.under_way_bytes)
            except (OSError, TimeoutError) as error:
                fault = error
        raise fault

    async def _carry(self, request: ProxyRequest, place: Reachable, client: Streams, server: Streams) -> None:
        pulse = Pulse()
        if request.is_tunnel:
            client[1].write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
            await until_still(pulse, self._limits.idle_s, pump(client[0], server[1], pulse), pump(server[0], client[1], pulse))
            return
        bracketed = f"[{place.host}]" if ":" in place.host else place.host
        server[1].write(request.head_for(bracketed if place.port == 80 else f"{bracketed}:{place.port}"))
        # The answer may come before the body is through; it ends with the connection.
        sending = asyncio.ensure_future(_send_body(request, client[0], server[1], pulse))
        try:
            await until_still(pulse, self._limits.idle_s, pump(server[0], client[1], pulse))
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _send_body(request: ProxyRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pulse: Pulse) -> None:
    """Exactly the body. If the client breaks its own framing the connection ends, so that the server takes no half for a whole."""
    try:
        await writer.drain()
        if not request.is_chunked:
            return await _copy(request.length, reader, writer, pulse)
        while size := await _chunk_size(reader):
            writer.write(b"%x\r\n" % size)
            await _copy(size, reader, writer, pulse)
            if await reader.readexactly(2) != b"\r\n":
                raise UnclearRequest("a chunk is longer than it says")
            writer.write(b"\r\n")
        for _ in range(100):  # trailers, which nobody needs
            if await reader.readuntil(b"\r\n") == b"\r\n":
                break
        else:
            raise UnclearRequest("there are too many trailers")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    except (UnclearRequest, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        writer.transport.abort()


async def _chunk_size(reader: asyncio.StreamReader) -> int:
    line = CHUNK_LINE.fullmatch(await reader.readuntil(b"\r\n"))
    if line is None:
        raise UnclearRequest("the length of a chunk cannot be read")
    return int(line[1], 16)


async def _copy(count: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pulse: Pulse) -> None:
    while count:
        data = await reader.read(min(count, PIECE_BYTES))
        if not data:
            raise asyncio.IncompleteReadError(b"", count)
        count -= len(data)
        pulse.note_traffic()
        writer.write(data)
        await writer.drain()


async def _answer(writer: asyncio.StreamWriter, status: str, text: str, *headers: str) -> None:
    body = f"dragoman: {text}\n".encode("utf-8", "replace")
    about = ("Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", "Connection: close")
    writer.write("\r\n".join((f"HTTP/1.1 {status}", *headers, *about, "", "")).encode("ascii") + body)
    async with asyncio.timeout(5):
        await writer.drain()
        writer.write_eof()


def _has_unsent(writer: asyncio.StreamWriter) -> bool:
    """More than a client that is still there would have left: the rest is not waited for."""
    return writer.transport.get_write_buffer_size() > PIECE_BYTES


def _note(notes: dict[str, str], name: str, value: str) -> None:
    if len(notes) < _SHOWN:
        notes[name] = value
