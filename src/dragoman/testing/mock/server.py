"""The loopback server: real HTTP, four protocols, one script."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import msgspec

from dragoman.base import jsontext
from dragoman.providers.redact import REDACTED, SECRET_HEADERS, redact
from dragoman.testing.mock import encode_anthropic, encode_chat, encode_gemini, encode_responses, faults, routes
from dragoman.testing.mock.http import Hangup, Listener, ReceivedRequest, Sender
from dragoman.testing.mock.routes import ServiceRoute
from dragoman.testing.mock.validate import Rules, Violation, validate
from dragoman.testing.mock.wire import Close, Encoder, ModelRequest, Pause, frame_as_array, frame_events, play, stop_at_stall, to_json
from dragoman.testing.portable import portable_bytes
from dragoman.testing.script import Playback, Source
from dragoman.testing.script_steps import (
    BlockStep,
    CallStep,
    Cite,
    CutStep,
    Fail,
    Finish,
    Garbage,
    RawStep,
    ReportStep,
    Say,
    ScriptedAnswer,
    ScriptFraming,
    Stall,
    Think,
    Wait,
)
from dragoman.values.errors import InputError
from dragoman.values.profile import ProtocolName

_ENCODERS: dict[ProtocolName, tuple[Callable[[ScriptedAnswer, ModelRequest], Encoder], str]] = {
    "gemini": (encode_gemini.GeminiEncoder, encode_gemini.CALL_PREFIX),
    "openai_chat": (encode_chat.ChatEncoder, encode_chat.CALL_PREFIX),
    "openai_responses": (encode_responses.ResponsesEncoder, encode_responses.CALL_PREFIX),
    "anthropic": (encode_anthropic.AnthropicEncoder, encode_anthropic.CALL_PREFIX),
}
_JSON = {"content-type": "application/json; charset=utf-8"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_NAMED = re.compile(r"/s/([^/]+)(/.*)")


class ServedExchange(msgspec.Struct):
    """One request and its outcome."""

    method: str
    path: str
    """With the query."""
    headers: dict[str, str]
    body: Any
    """Decoded JSON; text where it is not JSON."""
    script: str = ""
    """The named script selected by the path."""
    protocol: str = ""
    action: str = ""
    model: str = ""
    violation: Violation | None = None
    """The validator's verdict."""
    status: int = 0
    outcome: str = "waiting"
    """`answered`, or who ended the connection: `cut by the script`, `the client went away`, `the server closed`, `the server failed`."""
    data: bytes = b""
    """The body as it came, byte for byte. The log has it decoded alone."""

    def to_json(self) -> bytes:
        """JSON for a log, without secrets."""
        headers = {name: REDACTED if name in SECRET_HEADERS else value for name, value in self.headers.items()}
        told = {name: value for name, value in msgspec.structs.asdict(self).items() if name != "data"}
        return to_json(told | {"headers": headers, "path": redact(self.path)})


_BETA_FIELDS = {"thinking-binding-controls-2026-08-01": "block_binding"}
"""Fields that Anthropic accepts only if the `anthropic-beta` header names the beta."""


def _with_betas(rules: Rules, headers: Mapping[str, str]) -> Rules:
    named = {name.strip() for name in headers.get("anthropic-beta", "").split(",")}
    fields = {field for beta, field in _BETA_FIELDS.items() if beta in named}
    return msgspec.structs.replace(rules, extra_fields=rules.extra_fields | fields) if fields else rules


class MockServer:
    """Plays a script to any client, in the protocol of its request.

        async with MockServer("text: Hello.") as server:
            ...  # server.url, server.requests

    `/s/<name>/...` plays the named script, `POST /_script` (or `/s/<name>/_script`) replaces it, `GET /_log` returns
    the requests. A request that the real service would refuse is refused with its error message and uses up no answer of the script.
    `rules` may depend on the protocol and the model.
    """

    def __init__(
        self,
        source: Source = "",
        *,
        scripts: Mapping[str, Source] | None = None,
        key: str = "",
        rules: Rules | Callable[[ProtocolName, str], Rules] | None = Rules(),  # noqa: B008  a frozen value
        models: Sequence[str] = ("mock-model",),
        log: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        cut: int | None = None,
        piece_bytes: int = 0,
        piece_wait_s: float = 0.0,
        framing: Sequence[ScriptFraming] = (),
        keep: int | None = None,
    ) -> None:
        self._playbacks = {"": Playback(source)} | {name: Playback(each) for name, each in (scripts or {}).items()}
        self._key = key
        self._rules = rules
        self._models = tuple(models)
        self._log_path = log
        self._log: TextIO | None = None
        self._address = (host, port)
        self._cut = cut
        self._defaults: dict[str, Any] = {"piece_bytes": piece_bytes, "piece_wait_s": piece_wait_s, "framing": tuple(framing)}
        self._listener = Listener(self._respond, Sender, name="mock server")
        self._request_count = 0
        self._keep = keep
        self.requests: list[ServedExchange] = []
        """The requests received, in order: all, or the latest `keep`. Those to `/_script` and `/_log` are left out."""
        self.url = ""

    @property
    def connections(self) -> int:
        """Number of connections opened."""
        return self._listener.accepted

    # --- opening and closing

    async def __aenter__(self) -> Self:
        self._open_log()
        self.url = await self._listener.open(*self._address)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop listening and end every connection, stalled ones too."""
        await self._listener.aclose()
        if self._log is not None:
            self._log.close()

    def _open_log(self) -> None:
        if self._log_path is not None:
            self._log = Path(self._log_path).open("a", encoding="utf-8")  # noqa: SIM115  closed in aclose

    def play(self, source: Source, name: str = "") -> None:
        """Replace the script that is playing."""
        self._playbacks[name] = Playback(source)

    # --- handling requests

    async def _respond(self, request: ReceivedRequest, sender: Sender) -> None:
        name, path = found.groups() if (found := _NAMED.fullmatch(request.path)) else ("", request.path)
        if path == "/_log":
            body = b"[" + b",".join(each.to_json() for each in self.requests) + b"]"
            await sender.send_all(200, _JSON, body)
            return
        if path == "/_script":
            await self._replace_script(sender, request, name)
            return
        exchange = ServedExchange(
            request.method, request.path + (f"?{request.query}" if request.query else ""), request.headers, None, name, data=request.body
        )
        self._remember(exchange)
        try:
            await self._answer(exchange, request, path, sender)
            exchange.outcome = "answered"
        except Hangup as error:
            exchange.outcome = str(error)
            raise
        except asyncio.CancelledError:
            exchange.outcome = "the server closed"
            raise
        except Exception:
            exchange.outcome = "the server failed"
            raise
        finally:
            if self._log is not None:
                self._log.write(exchange.to_json().decode() + "\n")
                self._log.flush()

    def _remember(self, exchange: ServedExchange) -> None:
        self.requests.append(exchange)
        if self._keep is not None:
            del self.requests[: max(len(self.requests) - self._keep, 0)]

    async def _replace_script(self, sender: Sender, request: ReceivedRequest, name: str) -> None:
        try:
            self.play(request.body.decode(), name)
        except (InputError, UnicodeDecodeError) as error:
            await sender.send_text(400, str(error))
            return
        count = len(self._playbacks[name].script.answers)
        await sender.send_text(200, "1 answer is ready." if count == 1 else f"{count} answers are ready.")

    async def _answer(self, exchange: ServedExchange, request: ReceivedRequest, path: str, sender: Sender) -> None:
        where = routes.find_route(request, path)
        if where is None:
            exchange.status = 404
            await sender.send_text(404, f"{request.method} {path} is not answered here. Paths are: {routes.PATHS}")
            return
        body = _decode_body(request.body)
        model_request = self._model_request(where, request, body if isinstance(body, dict) else {})
        exchange.body, exchange.protocol, exchange.action, exchange.model = body, where.protocol, where.action, model_request.model
        fail = self._refusal(where, request, body, exchange)
        if fail is not None:
            await _send_error(sender, exchange, model_request, fail)
        elif where.action in ("generate", "stream"):
            await self._perform(exchange, request, model_request, sender)
        else:
            exchange.status = 200
            headers = _JSON | faults.request_headers(where.protocol, faults.request_id_of(model_request))
            await sender.send_all(200, headers, to_json(self._plain_answer(where, model_request)))

    def _model_request(self, where: ServiceRoute, request: ReceivedRequest, body: dict[str, Any]) -> ModelRequest:
        self._request_count += 1
        stream = where.action == "stream" or body.get("stream") is True
        model = where.model or str(body.get("model") or self._models[0])
        tokens = max(portable_bytes(request.body) // 4, 1)
        return ModelRequest(where.protocol, model, body, self._request_count, tokens, stream, int(time.time()))

    def _refusal(self, where: ServiceRoute, request: ReceivedRequest, body: object, exchange: ServedExchange) -> Fail | None:
        """The error for this request, if any: a wrong key, a body that is not JSON, an unknown script, or a violated rule."""
        if self._key and routes.key_of(request) != self._key:
            return Fail(401)
        if where.action == "models":
            return None
        if not isinstance(body, dict):
            return Fail(400, "We could not parse the JSON body of your request.")
        if exchange.script not in self._playbacks:
            known = ", ".join(sorted(filter(None, self._playbacks))) or "none"
            remedy = f"Named scripts: {known}. POST one to /s/{exchange.script}/_script."
            return Fail(404, f"There is no script named {exchange.script!r}. {remedy}")
        if self._rules is None or where.action not in ("generate", "stream"):
            return None
        own = self._rules if isinstance(self._rules, Rules) else self._rules(where.protocol, exchange.model)
        rules = routes.rules_at(where, _with_betas(own, exchange.headers))
        exchange.violation = validate(where.protocol, body, rules)
        if exchange.violation is None:
            return None
        found = exchange.violation
        return Fail(found.status, found.message, found.code, param=found.param)

    def _plain_answer(self, where: ServiceRoute, model_request: ModelRequest) -> dict[str, Any]:
        match where.action:
            case "models":
                return routes.models_body(where.protocol, self._models)
            case "count":
                return routes.count_body(where.protocol, model_request.input_tokens)
            case _:
                return routes.embed_body(where, model_request.body, model_request.input_tokens)

    # --- playing an answer

    async def _perform(self, exchange: ServedExchange, request: ReceivedRequest, model_request: ModelRequest, sender: Sender) -> None:
        try:
            answer = self._with_defaults(self._playbacks[exchange.script].next(model_request))
        except InputError as error:
            await _send_error(sender, exchange, model_request, Fail(400, str(error)))
            return
        steps = list(answer.steps)
        cut = next((step.after_bytes for step in steps if isinstance(step, CutStep) and step.after_bytes is not None), None)
        sender.set_faults(piece_bytes=answer.piece_bytes, piece_wait_s=answer.piece_wait_s, cut=cut)
        while steps and isinstance(first := steps[0], Wait):
            await sender.pause(first.seconds)
            steps.pop(0)
        match steps[:1]:
            case [Fail() as fail]:
                await _send_error(sender, exchange, model_request, fail)
                return
            case [CutStep(None)]:
                raise Hangup("cut by the script")
        rest = msgspec.structs.replace(answer, steps=tuple(steps))
        if model_request.stream:
            await _send_stream(
                sender, exchange, model_request, rest, array=model_request.protocol == "gemini" and "alt=sse" not in request.query
            )
        else:
            await _send_whole(sender, exchange, model_request, rest)

    def _with_defaults(self, answer: ScriptedAnswer) -> ScriptedAnswer:
        """The answer with the server's default faults, where it has none of its own."""
        changed = {name: value for name, value in self._defaults.items() if value and not getattr(answer, name)}
        if self._cut is not None and not any(isinstance(step, CutStep) for step in answer.steps):
            changed["steps"] = (*answer.steps, CutStep(self._cut))
        return msgspec.structs.replace(answer, **changed) if changed else answer


async def _send_stream(
    sender: Sender, exchange: ServedExchange, model_request: ModelRequest, answer: ScriptedAnswer, *, array: bool
) -> None:
    encoder_class, prefix = _ENCODERS[model_request.protocol]
    frames = stop_at_stall(play(answer, encoder_class(answer, model_request), model_request, prefix), answer)
    exchange.status = 200
    headers = (_JSON if array else _EVENTS) | faults.request_headers(model_request.protocol, faults.request_id_of(model_request))
    await sender.send_head(200, headers)
    for each in frame_as_array(frames) if array else frame_events(frames, answer.framing):
        match each:
            case Pause(seconds):
                await sender.flush()
                await sender.pause(seconds)
            case Close():
                await sender.flush()
                raise Hangup("cut by the script")
            case data:
                await sender.send(data)
    await sender.end()


async def _send_whole(sender: Sender, exchange: ServedExchange, model_request: ModelRequest, answer: ScriptedAnswer) -> None:
    """Send the answer as one body. Pauses within a stream happen before it; a cut without a number cuts it in half."""
    encoder_class, prefix = _ENCODERS[model_request.protocol]
    content = msgspec.structs.replace(
        answer,
        steps=tuple(step for step in answer.steps if isinstance(step, Say | Think | CallStep | Cite | ReportStep | Finish | BlockStep)),
    )
    encoder = encoder_class(content, model_request)
    for _ in play(content, encoder, model_request, prefix):
        pass
    raw = b"".join(
        step.data if isinstance(step, RawStep) else step.text.encode() for step in answer.steps if isinstance(step, RawStep | Garbage)
    )
    body = raw or (to_json(encoder.whole()) if content.steps else b"")
    cut = next((step for step in answer.steps if isinstance(step, CutStep)), None)
    cut_at = None if cut is None else len(body) // 2 if cut.after_bytes is None else cut.after_bytes
    sender.set_faults(piece_bytes=answer.piece_bytes, piece_wait_s=answer.piece_wait_s, cut=cut_at)
    await sender.pause(sum(step.seconds for step in answer.steps if isinstance(step, Wait)))
    if fail := next((step for step in answer.steps if isinstance(step, Fail)), None):
        await _send_error(sender, exchange, model_request, fail)
        return
    exchange.status = 200
    await sender.send_head(200, _JSON | faults.request_headers(model_request.protocol, faults.request_id_of(model_request)), len(body))
    if any(isinstance(step, Stall) for step in answer.steps):
        await sender.pause(None)
    await sender.send(body)
    await sender.end()


async def _send_error(sender: Sender, exchange: ServedExchange, model_request: ModelRequest, fail: Fail) -> None:
    exchange.status = fail.status
    request_id = faults.request_id_of(model_request)
    headers = _JSON | faults.error_headers(model_request.protocol, fail, request_id, time.time())
    await sender.send_all(fail.status, headers, to_json(faults.error_body(model_request.protocol, fail, request_id)))


def _decode_body(data: bytes) -> object:
    if not data:
        return dict[str, Any]()
    try:
        return jsontext.decode(data)
    except jsontext.NotJSON:
        return data.decode(errors="replace")
