"""One request sent with httpcore2, and what is known about its connection.

httpcore2 does not say whether a connection was reused, or whether any byte of an answer has arrived; it leaves sockets open when it is
cancelled halfway, and drops HTTP/2 streams that are not read to the end. We learn all of that from the sockets, which we provide, and
from its `trace` extension.
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


class HttpxExchange:
    def __init__(self, pool: httpcore2.AsyncConnectionPool, connect_timeout_s: float) -> None:
        self._pool = pool
        self._connect_timeout_s = connect_timeout_s
        self._open_before = pool.connections
        self._dialled: Stream | None = None
        """The socket that was opened for this request."""
        self._stream: Stream | None = None
        """The socket the request was written to."""
        self._received_before = 0
        self.is_http2 = False
        self.sent = False
        """Whether there was a connection and we began to write the request to it."""
        self.unsendable = False

    async def ask(self, request: httpcore2.Request) -> httpcore2.Response:
        """Send the request and return the answer once its head has arrived. A half-open connection is closed on failure."""
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

    # --- its state

    @property
    def has_dialled(self) -> bool:
        return self._dialled is not None

    @property
    def is_reused(self) -> bool:
        """Whether it was sent over a connection that existed before."""
        return self.sent and self._dialled is None

    @property
    def is_cut(self) -> bool:
        """Whether the server has closed the connection."""
        return self._stream is not None and self._stream.ended

    @property
    def _is_answered(self) -> bool:
        return self._stream is not None and self._stream.received_bytes > self._received_before

    def is_dead_connection(self, error: Exception) -> bool:
        """Whether a reused connection turned out to be closed before any byte of an answer arrived."""
        if isinstance(error, h2.exceptions.ProtocolError) and self._dialled is None and not self._is_answered:
            return True  # whoever opened it was cancelled halfway: it is closed, and nothing can have been written to it
        if not self.is_reused or (self._is_answered and not self.is_http2):
            return False
        if error.args and isinstance(error.args[0], h2.events.StreamReset):
            return False  # the connection works: the server rejected this request
        return isinstance(error, httpcore2.NetworkError | httpcore2.RemoteProtocolError)

    async def close_reused(self) -> None:
        """Close the connections that existed before, so that the retry opens a new one: if one was dead, the others are as old."""
        for connection in self._open_before:
            if connection.is_idle() and not connection.is_closed():
                await connection.aclose()

    # --- notifications

    def note_dial(self, stream: Stream) -> None:
        self._dialled = stream

    def note_stream(self, stream: Stream) -> bool:
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
                self.sent = self.is_http2 = True
            case "http11.send_request_headers.failed" | "http2.send_request_headers.failed":
                self.unsendable = isinstance(info["exception"], httpcore2.LocalProtocolError | h2.exceptions.ProtocolError)
            case "http11.response_closed.started":
                await self._drop_surplus()
            case "http2.response_closed.started":
                await self._reset(info["stream_id"])

    def _give_up(self, limit: asyncio.Timeout) -> None:
        """The connect timeout has passed. A request that waits for its turn on an open connection may go on waiting."""
        is_waiting = self._dialled is None and any(connection.is_connected() for connection in self._pool.connections)
        if not self.sent and not is_waiting:
            limit.reschedule(asyncio.get_running_loop().time())

    # --- httpcore2 internals without a public API

    def _expect_http1(self) -> None:
        """The server does not support HTTP/2. httpcore2 would keep expecting it, and make all requests wait for each new connection."""
        self._pool._http2 = False

    async def _drop_surplus(self) -> None:
        """Close a connection that sent more than one answer: httpcore2 would take the rest for the next answer."""
        connection = self._connection()
        if connection is not None and self._stream is not None and connection._h11_state.trailing_data[0]:
            await self._stream.aclose()

    async def _reset(self, stream_id: int) -> None:
        """Reset the HTTP/2 stream if its answer is not read to the end.

        httpcore2 only drops the stream: the server would go on working and sending, and what it sent would use up the connection's flow
        control window until all other requests on it stalled.
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
        """httpcore2's internal object for the connection of this request, or None."""
        for connection in self._pool.connections:
            inner: Any = connection
            while getattr(inner, "_connection", None) is not None:
                inner = inner._connection
            if getattr(inner, "_network_stream", None) is self._stream is not None:
                return inner
        return None
