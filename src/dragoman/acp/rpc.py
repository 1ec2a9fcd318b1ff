"""JSON-RPC 2.0 with the client: requests both ways, notifications, errors and cancelled requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from dragoman.base import jsontext
from dragoman.values.errors import ConfigError, DragomanError, InputError, NoSession, Unauthorized
from dragoman.words import say

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
CANCELLED, NEEDS_SIGN_IN, NOT_FOUND = -32800, -32000, -32002
T = TypeVar("T")
_log = logging.getLogger("dragoman.acp")


class AcpError(Exception):
    """What a request is answered with if it is not carried out."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class ReplyThen(NamedTuple):
    """The result of a request, and what to do once it is sent: nothing may go out about a session before the client knows it."""

    result: Any
    then: Callable[[], None]


class _Message(msgspec.Struct):
    id: int | str | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


class _Failure(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""


_MESSAGE = msgspec.json.Decoder(_Message)
Request = Callable[[str, msgspec.Raw], Awaitable[Any]]
"""The result of a method with these parameters; may be a ReplyThen. Raises AcpError or DragomanError."""
Notification = Callable[[str, msgspec.Raw], None]


class ClientPeer:
    """The client. `take` is given its lines; `write` sends one of ours."""

    def __init__(self, write: Callable[[bytes], None], on_request: Request, on_notification: Notification) -> None:
        self._write = write
        self._on_request = on_request
        self._on_notification = on_notification
        self._tasks: dict[int | str, asyncio.Task[None]] = {}
        """Requests of the client under way."""
        self._asked: dict[int | str, asyncio.Future[msgspec.Raw]] = {}
        """Requests to it that it has not answered."""
        self._count = 0

    # --- to the client

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: Any) -> msgspec.Raw:
        """Raises AcpError where the client answers with an error. If nobody waits for it any more, the client is told so."""
        self._count += 1
        id = f"dragoman-{self._count}"
        self._asked[id] = answer = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            self.notify("$/cancel_request", {"requestId": id})
            raise
        finally:
            del self._asked[id]

    def _send(self, message: dict[str, Any]) -> None:
        self._write(jsontext.encode(message))

    def _fail(self, id: int | str | None, error: AcpError) -> None:
        told: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.data is not None:
            told["data"] = error.data
        self._send({"jsonrpc": "2.0", "id": id, "error": told})

    # --- from the client

    def take(self, line: bytes | None) -> None:
        """A line of the client; None for one that was too long."""
        if line is None:
            return self._fail(None, AcpError(INVALID_REQUEST, say("acp.line_too_long")))
        if not line.strip():
            return
        try:
            message = _decode(line)
        except AcpError as error:
            return self._fail(None, error)
        if message.method is msgspec.UNSET:
            self._take_answer(message)
        elif message.id is msgspec.UNSET:
            # Behind the requests that came before it, which begin in their turn: a cancel is about them too.
            asyncio.get_running_loop().call_soon(self._take_notification, message.method, message.params)
        elif message.id is None or message.id in self._tasks:
            self._fail(message.id, AcpError(INVALID_REQUEST, say("acp.bad_id")))
        else:
            self._begin(message.id, message.method, message.params)

    def _take_answer(self, message: _Message) -> None:
        answer = self._asked.get(message.id) if isinstance(message.id, int | str) else None
        if not message.result and not message.error:
            self._fail(message.id if isinstance(message.id, int | str) else None, AcpError(INVALID_REQUEST, say("acp.not_a_message")))
        elif answer is None or answer.done():
            return  # nobody waits for it any more
        elif message.error:
            try:
                failure = msgspec.json.decode(message.error, type=_Failure)
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                failure = _Failure()
            answer.set_exception(AcpError(failure.code, failure.message))
        else:
            answer.set_result(message.result)

    def _take_notification(self, method: str, params: msgspec.Raw) -> None:
        try:
            if method == "$/cancel_request":
                task = self._tasks.get(read(params, _CancelRequest).request_id)
                if task is not None:
                    task.cancel()
            else:
                self._on_notification(method, params)
        except AcpError as error:  # a notification has no answer
            _log.debug("%s: %s", method, error.message)

    def _begin(self, id: int | str, method: str, params: msgspec.Raw) -> None:
        self._tasks[id] = task = asyncio.get_running_loop().create_task(self._answer(id, method, params))
        task.add_done_callback(lambda _: self._tasks.pop(id, None))

    async def _answer(self, id: int | str, method: str, params: msgspec.Raw) -> None:
        then: Callable[[], None] | None = None
        try:
            result = await self._on_request(method, params)
            if isinstance(result, ReplyThen):
                result, then = result
            self._send({"jsonrpc": "2.0", "id": id, "result": result})
        except asyncio.CancelledError:
            self._fail(id, AcpError(CANCELLED, say("acp.request_cancelled")))
        except Exception as error:
            self._fail(id, as_rpc_error(error))
        if then is not None:
            then()

    async def aclose(self) -> None:
        """Leave everything that is under way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=0.1)


class _CancelRequest(msgspec.Struct, rename="camel"):
    request_id: int | str


def _decode(line: bytes) -> _Message:
    """Raises AcpError."""
    try:
        try:
            return _MESSAGE.decode(line)
        except (msgspec.DecodeError, UnicodeError) as problem:
            if isinstance(problem, msgspec.ValidationError):
                raise AcpError(INVALID_REQUEST, say("acp.not_a_message")) from problem
            # An editor in JavaScript may send half a surrogate pair, which is grammatical JSON.
            return _MESSAGE.decode(jsontext.encode(jsontext.decode(line)))
    except msgspec.ValidationError as error:
        raise AcpError(INVALID_REQUEST, say("acp.not_a_message")) from error
    except (msgspec.DecodeError, jsontext.NotJSON, UnicodeError, RecursionError) as error:
        raise AcpError(PARSE_ERROR, say("acp.not_json")) from error


def read(params: msgspec.Raw, kind: type[T]) -> T:
    """The parameters of a method. Raises AcpError, which says what is wrong with them."""
    if bytes(params) == b"null":  # some clients write it where they have none
        params = msgspec.Raw(b"{}")
    try:
        try:
            return msgspec.json.decode(params, type=kind)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeError):
            return msgspec.json.decode(jsontext.encode(jsontext.decode(bytes(params))), type=kind)
    except (msgspec.DecodeError, jsontext.NotJSON, UnicodeError, RecursionError) as error:
        raise AcpError(INVALID_PARAMS, say("acp.bad_params", reason=str(error))) from error


def as_rpc_error(error: Exception) -> AcpError:
    """What the client is told, in words for the person before it."""
    match error:
        case AcpError():
            return error
        case NoSession():
            return AcpError(NOT_FOUND, str(error))
        case Unauthorized():
            return AcpError(NEEDS_SIGN_IN, str(error))
        case InputError() | ConfigError():
            return AcpError(INVALID_PARAMS, str(error), {"type": type(error).__name__})
        case DragomanError():
            return AcpError(INTERNAL_ERROR, str(error), {"type": type(error).__name__})
        case _:
            _log.debug("unexpected", exc_info=error)
            return AcpError(INTERNAL_ERROR, say("acp.broken", kind=type(error).__name__, reason=error))
