"""One request on its way through httpcore2, and what is known of the connection it goes over.

httpcore2 does not say whether that was kept from an earlier request, or whether anything of an answer has come; it leaves sockets open when
it is cancelled halfway, and forgets HTTP/2 streams that nobody reads to the end. All of that is seen from the sockets, which it takes
from us, and from what it tells on the way (its `trace` extension).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import h2.errors
import h2.events
import h2.exceptions
import httpcore2

from dragoman.http.httpx_network import Stream, watcher


class Exchange:
    def __init__(self, pool: httpcore2.AsyncConnectionPool, connect_timeout_s: float) -> None:
        self._pool = pool
        self._connect_timeout_s = connect_timeout_s
        self._kept = pool.connections
        self._dialled: Stream | None = None
        """The socket that was opened for it."""
        self._stream: Stream | None = None
        """The one it was written to."""
        self._received_before = 0
        self.by_http2 = False
        self.sent = False
        """Whether a connection was there, and the request began to be written to it."""
        self.unsendable = False

    async def ask(self, request: httpcore2.Request) -> httpcore2.Response:
        """Send the request and return the answer once its head is there. A connection that was given up halfway is closed."""
        request.extensions.update(trace=self._note, timeout={"connect": self._connect_timeout_s})
        outer = watcher.set(self)
        try:
            async with asyncio.timeout(None) as limit:
                timer = asyncio.get_running_loop().call_later(self._connect_timeout_s, self._give_up, limit)
                try:
                    return await self._pool.handle_async_request(request)
                finally:
                    timer.cancel()
        except BaseException:
            if self._dialled is not None and not self.sent:
                await self._dialled.aclose()
            raise
        finally:
            watcher.reset(outer)

    # --- what became of it

    @property
    def has_dialled(self) -> bool:
        return self._dialled is not None

    @property
    def is_kept(self) -> bool:
        """Whether it went over a connection that was there before."""
        return self.sent and self._dialled is None

    @property
    def is_cut(self) -> bool:
        """Whether the server has closed the connection."""
        return self._stream is not None and self._stream.ended

    @property
    def _is_answered(self) -> bool:
        return self._stream is not None and self._stream.received_bytes > self._received_before

    def found_dead(self, error: Exception) -> bool:
        """Whether a kept connection turned out to be gone before anything of an answer came."""
        if not self.is_kept or (self._is_answered and not self.by_http2):
            return False
        if error.args and isinstance(error.args[0], h2.events.StreamReset):
            return False  # the connection lives: the server refused this request
        return isinstance(error, httpcore2.NetworkError | httpcore2.RemoteProtocolError)

    async def close_kept(self) -> None:
        """So that the next request opens a new connection: where one was dead, the others that were there before are of the same age."""
        for connection in self._kept:
            if connection.is_idle() and not connection.is_closed():
                await connection.aclose()

    # --- what is told on the way

    def dials(self, stream: Stream) -> None:
        self._dialled = stream

    def goes_over(self, stream: Stream) -> bool:
        is_new = self._stream is not stream
        if is_new:
            self._stream, self._received_before = stream, stream.received_bytes
        return is_new

    async def _note(self, name: str, info: Mapping[str, Any]) -> None:
        match name:
            case "http11.send_request_headers.started":
                self.sent = True
                self._expect_http1()
            case "http2.send_request_headers.started":
                self.sent = self.by_http2 = True
            case "http11.send_request_headers.failed" | "http2.send_request_headers.failed":
                self.unsendable = isinstance(info["exception"], httpcore2.LocalProtocolError | h2.exceptions.ProtocolError)
            case "http11.response_closed.started":
                await self._drop_surplus()
            case "http2.response_closed.started":
                await self._reset(info["stream_id"])

    def _give_up(self, limit: asyncio.Timeout) -> None:
        """The time to connect is over. A request that waits for its turn on a connection that stands is left alone."""
        is_waiting = self._dialled is None and any(connection.is_connected() for connection in self._pool.connections)
        if not self.sent and not is_waiting:
            limit.reschedule(asyncio.get_running_loop().time())

    # --- what there is no public way to

    def _expect_http1(self) -> None:
        """The server does not speak HTTP/2. httpcore2 would go on hoping, and have all requests wait for each connection that is opened."""
        self._pool._http2 = False

    async def _drop_surplus(self) -> None:
        """Close a connection over which more came than one answer: httpcore2 would take the rest for the next."""
        connection = self._connection()
        if connection is not None and self._stream is not None and connection._h11_state.trailing_data[0]:
            await self._stream.aclose()

    async def _reset(self, stream_id: int) -> None:
        """Tell the server when an HTTP/2 answer is not read to its end.

        httpcore2 only forgets the stream: the server would go on working and sending, and what it sent would be taken off the connection's
        window for good, until all others on it stood still.
        """
        connection = self._connection()
        stream = connection._h2_state.streams.get(stream_id) if connection is not None else None
        if connection is None or stream is None or stream.closed:
            return
        unread = [event for event in connection._events.get(stream_id, ()) if isinstance(event, h2.events.DataReceived)]
        try:
            connection._h2_state.acknowledge_received_data(sum(event.flow_controlled_length or 0 for event in unread), stream_id)
            connection._h2_state.reset_stream(stream_id, h2.errors.ErrorCodes.CANCEL)
            await connection._write_outgoing_data(httpcore2.Request("RESET", ""))
        except (h2.exceptions.ProtocolError, httpcore2.NetworkError):
            pass  # the connection is gone, and the stream with it

    def _connection(self) -> Any:
        """httpcore2's own object for the connection this went over, or None."""
        for connection in self._pool.connections:
            inner: Any = connection
            while getattr(inner, "_connection", None) is not None:
                inner = inner._connection
            if getattr(inner, "_network_stream", None) is self._stream is not None:
                return inner
        return None
