"""The conversation on a channel: requests of ours that wait for their answers, and requests of the server that we answer.

Each answer goes to the request with its id and to no other; an answer that nobody waits for (a second one, or one with an unknown id) is
counted and dropped.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dragoman.mcp_client.channel import Channel
from dragoman.mcp_client.contracts import Progress
from dragoman.mcp_client.errors import McpError, NotJson, ProtocolError, ServerDied, ServerRefused, ServerTimedOut
from dragoman.mcp_client.messages import Id, Incoming, RpcError, RpcNotification, RpcRequest, RpcResult, from_wire
from dragoman.mcp_client.questions import Unanswerable
from dragoman.words import say

MOST_QUESTIONS = 32
"""Requests of the server that are answered at once. More are refused."""
CLOSING_S = 1.0
_BUSY = -32603


class _Waiting:
    def __init__(self, timeout_s: float, progress: Progress | None) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.timeout_s = timeout_s
        self.progress = progress
        self.deadline = loop.time() + timeout_s

    def extend_deadline(self) -> None:
        self.deadline = asyncio.get_running_loop().time() + self.timeout_s

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # marked as seen: whoever waited may be gone


class Peer:
    """One connection to a server. Belongs to one event loop; any of its tasks may use it."""

    def __init__(
        self,
        channel: Channel,
        name: str,
        answer: Callable[[RpcRequest], Awaitable[dict[str, Any]]],
        told: Callable[[RpcNotification], None],
    ) -> None:
        self.channel = channel
        self.strays = 0
        """Answers that nobody waited for."""
        self.answers_questions = True
        """In the modern era a server asks nothing by itself, and we send no answers."""
        self._name = name
        self._answer = answer
        self._told = told
        self._ids = itertools.count(1)
        self._waiting: dict[Id, _Waiting] = {}
        self._questions: dict[Id, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._loss: Exception | None = None

    @property
    def is_open(self) -> bool:
        return self._loss is None and self.channel.is_open

    async def open(self) -> None:
        await self.channel.open(self._hear, self._lose)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_s: float,
        headers: Mapping[str, str] = {},
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """The result. Raises McpError. If cancelled, the server is told so.

        `timeout_s` is how long nothing may be heard: progress begins it anew, and it stands still while we answer a question of the server.
        """
        if self._loss is not None:
            raise self._loss
        identity = next(self._ids)
        waiting = self._waiting[identity] = _Waiting(timeout_s, progress)
        if progress is not None:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": identity}}
        message = {"id": identity, "method": method, "params": params}
        sending = self._in_background(self.channel.request(identity, message, headers), waiting.fail)
        is_answered = False
        try:
            result = await self._wait(waiting, method)
            is_answered = True
            return result
        except ProtocolError:
            is_answered = True
            raise
        finally:
            del self._waiting[identity]
            if not is_answered:
                self._give_up(identity, method, sending)

    async def tell(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self.channel.tell({"method": method, **({"params": params} if params else {})}, {})

    def abandon(self) -> None:
        """Every request fails, and no other can be sent."""
        self._lose(ServerDied(say("mcp.closed", server=self._name)))

    async def aclose(self) -> None:
        self.abandon()
        for task in [*self._questions.values()]:
            task.cancel()
        if self._background:
            await asyncio.wait(self._background, timeout=CLOSING_S)
        for task in [*self._background]:
            task.cancel()
        await self.channel.aclose()

    # --- requests of ours

    async def _wait(self, waiting: _Waiting, method: str) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        while True:
            left = waiting.deadline - loop.time()
            if left > 0:
                await asyncio.wait({waiting.answer}, timeout=left)
            if waiting.answer.done():
                return waiting.answer.result()
            if self._questions:  # the server waits for us
                await asyncio.wait({waiting.answer, *self._questions.values()}, return_when=asyncio.FIRST_COMPLETED)
                waiting.extend_deadline()
            elif loop.time() >= waiting.deadline:
                raise ServerTimedOut(say("mcp.timed_out", server=self._name, method=method, seconds=waiting.timeout_s))

    def _give_up(self, identity: Id, method: str, sending: asyncio.Task[None]) -> None:
        sending.cancel()
        if self.is_open and self.channel.cancels_by_message and method != "initialize":  # which must not be cancelled
            message = {"method": "notifications/cancelled", "params": {"requestId": identity, "reason": "cancelled"}}
            self._in_background(self.channel.tell(message, {}))

    def _in_background(self, work: Awaitable[None], fail: Callable[[BaseException], None] = lambda error: None) -> asyncio.Task[None]:
        async def carry_out() -> None:
            try:
                await work
            except (TypeError, ValueError) as error:  # arguments that are not JSON
                fail(NotJson(say("mcp.unsendable", server=self._name, reason=error)))
            except Exception as error:  # a connection that was lost, for example
                fail(error)

        task = asyncio.ensure_future(carry_out())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    # --- what the server says

    def _hear(self, message: Incoming) -> None:
        match message:
            case RpcResult():
                waiting = self._waiting_for(message.id)
                if waiting is None or waiting.answer.done():
                    self.strays += 1
                else:
                    waiting.answer.set_result(message.result)
            case RpcError():
                self._hear_fault(message)
            case RpcRequest():
                self._begin_answering(message)
            case RpcNotification(method="notifications/progress"):
                self._hear_progress(message.params)
            case RpcNotification(method="notifications/cancelled"):
                if (task := self._questions.get(message.params.get("requestId", ""))) is not None:
                    task.cancel()
            case RpcNotification():
                self._tell_others(message)

    def _waiting_for(self, identity: Id | None) -> _Waiting | None:
        """Some servers give a number back as text, and other clients take it."""
        if isinstance(identity, str) and len(identity) < 16 and identity.isascii() and identity.isdecimal():
            identity = int(identity)
        return self._waiting.get(identity) if identity is not None else None

    def _tell_others(self, message: RpcNotification) -> None:
        """What they do with it must not end the reading."""
        try:
            self._told(message)
        except Exception as error:
            context = {"message": f"a change of the MCP server {self._name} could not be passed on", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _hear_fault(self, fault: RpcError) -> None:
        waiting = self._waiting_for(fault.id)
        if waiting is None or waiting.answer.done():
            self.strays += 1
            return
        waiting.fail(protocol_error(self._name, fault))

    def _hear_progress(self, params: dict[str, Any]) -> None:
        token, done = params.get("progressToken"), params.get("progress")
        waiting = self._waiting.get(token) if isinstance(token, int | str) else None
        if waiting is None or not isinstance(done, int | float):
            return
        waiting.extend_deadline()
        if waiting.progress is not None:
            total, message = params.get("total"), params.get("message")
            try:
                waiting.progress(
                    float(done), float(total) if isinstance(total, int | float) else None, message if isinstance(message, str) else ""
                )
            except Exception as error:
                waiting.fail(error)

    def _lose(self, error: Exception) -> None:
        if self._loss is None:
            self._loss = error
        for waiting in [*self._waiting.values()]:
            waiting.fail(error)

    # --- requests of the server

    def _begin_answering(self, asked: RpcRequest) -> None:
        if not self.answers_questions or asked.id in self._questions:
            self.strays += 1
            return
        if len(self._questions) >= MOST_QUESTIONS:
            self._in_background(self._send_answer(asked.id, {"error": {"code": _BUSY, "message": "too many requests at once"}}))
            return
        task = self._questions[asked.id] = self._in_background(self._answer_one(asked))
        task.add_done_callback(lambda _: self._questions.pop(asked.id, None))

    async def _answer_one(self, asked: RpcRequest) -> None:
        try:
            body: dict[str, Any] = {"result": await self._answer(asked)}
        except Unanswerable as error:
            body = {"error": {"code": error.code, "message": str(error)}}
        except Exception as error:  # of whoever was to answer; the server learns no more than that
            context = {"message": f"a question of the MCP server {self._name} could not be answered", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            body = {"error": {"code": _BUSY, "message": "the request could not be answered"}}
        await self._send_answer(asked.id, body)

    async def _send_answer(self, identity: Id, body: dict[str, Any]) -> None:
        await self.channel.tell({"id": identity, **body}, {})


def refusal_as_error(server: str, refusal: ServerRefused) -> McpError:
    """The error of the protocol that a refusal's body holds, if it holds one."""
    try:
        (message,) = from_wire(refusal.body.encode())
    except ValueError:  # NotAMessage is one, and so are several messages
        return refusal
    return protocol_error(server, message, refusal.status) if isinstance(message, RpcError) else refusal


def protocol_error(server: str, fault: RpcError, status: int = 200) -> ProtocolError:
    message = say("mcp.protocol_error", server=server, message=fault.message or "?", code=fault.code)
    return ProtocolError(message, fault.code, fault.data, status)
