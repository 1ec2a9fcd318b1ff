"""Record HTTP once, replay it without a network. Secrets are redacted before anything is written.

A cassette is JSON lines, one interaction each, in the order the requests were sent:

    {"request": {"method", "url", "headers", "body"}, "response": {"status", "headers", "chunks"}, "fault": {"message", "retryable"}}

What a request says of its machine, day and session is replaced by stand-ins (`portable`), so a recording can be replayed anywhere. Bytes
are text if they are valid UTF-8, else {"base64": …}. Chunks keep their boundaries, unless a path is replaced in them. `fault` is present if
there was no answer (then there is no response) or if it was cut off. The first line may have `about`: what was recorded, and with what.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from dragoman.base import jsontext
from dragoman.base.atomic import replace_file
from dragoman.providers.redact import Secrets, known_secrets, redact, redact_bytes, redact_chunks, redact_headers
from dragoman.testing.portable import PortablePlace, difference_path, fill_places, find_places, hide_places, portable_body
from dragoman.values.contracts import HttpResponse, Transport
from dragoman.values.errors import ConnectionFailed, InputError
from dragoman.words import say

CONTEXT = 60
"""Characters shown on either side of the first difference."""


class Base64(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are not text."""

    base64: str


Data = str | Base64


class RecordedRequest(msgspec.Struct, frozen=True):
    method: str
    url: str
    headers: dict[str, str]
    body: Data


class RecordedResponse(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    chunks: list[Data]


class RecordedFault(msgspec.Struct, frozen=True):
    message: str
    retryable: bool = True


class Interaction(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a cassette."""

    request: RecordedRequest
    response: RecordedResponse | None = None
    fault: RecordedFault | None = None
    about: dict[str, str] = {}


class Cassette:
    """A Transport that records another one, or replays what was recorded.

    mode: `record` needs a transport and writes the file when closed; `replay` needs none; `auto` replays if the file exists, else records.
    secrets: values to keep out of the file, or a function that returns them (`auth.secrets`), called when they are needed.
    hide: patterns of what else to keep out of it (group 1 of each), called when they are needed.
    keep_header: which headers are recorded; None: all.
    folders: folders whose paths differ from run to run (a test's `tmp_path`), besides those that the agent tells the model itself.
    Replay goes in order: each request must equal the recorded one in method, path, query and body, secrets aside, and whatever the agent
    says of date, system, folders and session. Without `in_order`, a request gets the first answer not yet given that was recorded for an
    equal one.
    """

    def __init__(
        self,
        path: Path | str,
        transport: Transport | None = None,
        *,
        mode: Literal["record", "replay", "auto"] = "auto",
        secrets: Secrets = (),
        hide: Callable[[], Sequence[bytes]] = tuple,
        keep_header: Callable[[str], bool] | None = None,
        about: Mapping[str, str] | None = None,
        in_order: bool = True,
        folders: Sequence[Path | str] = (),
    ) -> None:
        self._path = Path(path)
        self._transport = transport
        self._secrets = secrets
        self._hide = hide
        self._keep_header = keep_header
        self._about = dict(about or {})
        self._in_order = in_order
        self._folders = [str(folder) for folder in folders]
        self._takes: list[_Recording] = []
        self._interactions: list[Interaction] = []
        self._expected: list[_PortableRequest] = []
        self._left: list[int] = []
        self.recording = mode == "record" or (mode == "auto" and not self._path.exists())
        if not self.recording:
            self._interactions = read_cassette(self._path)
            self._left = list(range(len(self._interactions)))
            self._about = self._interactions[0].about
            self._expected = [_PortableRequest(each.request, self._folders) for each in self._interactions]
        elif transport is None:
            raise InputError(say("testing.no_cassette", path=self._path))

    @property
    def remaining(self) -> int:
        """Interactions not yet replayed."""
        return len(self._left)

    @property
    def recorded(self) -> int:
        """Interactions recorded so far."""
        return len(self._takes)

    @property
    def about(self) -> dict[str, str]:
        """What was recorded, and with what, if the recording says so."""
        return dict(self._about)

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[HttpResponse, None]:
        if not self.recording:
            yield self._replay(method, url, body)
            return
        assert self._transport is not None
        take = _Recording(method, url, dict(headers), body)
        self._takes.append(take)
        try:
            async with self._transport.send(method, url, headers, body) as answer:
                take.status, take.response_headers = answer.status, dict(answer.headers)
                yield _RecordedAnswer(answer, take)
        except ConnectionFailed as error:
            # Faults of the body are recorded where they arise: this one may be passing through from elsewhere.
            take.fault = take.fault or (RecordedFault(error.message, error.retryable) if take.status is None else None)
            raise

    async def preconnect(self, url: str) -> None:
        if self.recording and self._transport is not None:
            await self._transport.preconnect(url)

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()
        self.save()

    def save(self) -> None:
        """Write what was recorded so far. `aclose` calls it."""
        if self._takes:
            secrets, hidden = known_secrets(self._secrets), tuple(self._hide())
            first, *others = [take.interaction(secrets, hidden, self._keep_header, self._folders) for take in self._takes]
            write_cassette(self._path, [msgspec.structs.replace(first, about=self._about), *others])

    def _replay(self, method: str, url: str, body: bytes) -> _ReplayedAnswer:
        secrets = known_secrets(self._secrets)
        sent = _PortableRequest(_record_request(method, url, {}, body, secrets, tuple(self._hide())), self._folders)
        if not self._left:
            count, target = len(self._interactions), _target(sent.request.url)
            raise InputError(say("testing.cassette_ended", path=self._path, count=count, method=method, target=target))
        place = self._place_of(sent)
        interaction, expected = self._interactions[place], self._expected[place]
        if difference := _difference(expected.request, sent.request):
            raise InputError(say("testing.cassette_differs", path=self._path, line=place + 1, difference=difference))
        self._left.remove(place)
        if interaction.response is None:
            raise _to_error(interaction.fault)
        chunks = fill_places([_to_bytes(chunk) for chunk in interaction.response.chunks], expected.places, sent.places)
        return _ReplayedAnswer(interaction.response, chunks, interaction.fault)

    def _place_of(self, sent: _PortableRequest) -> int:
        """Which interaction is due: the next one, or the next one that fits."""
        fitting = (place for place in self._left if not _difference(self._expected[place].request, sent.request))
        return self._left[0] if self._in_order else next(fitting, self._left[0])


# --- the file -----------------------------------------------------------------------------------------------------------------


def read_cassette(path: Path) -> list[Interaction]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(say("testing.cassette_unreadable", path=path, reason=error.strerror)) from error
    decoder = msgspec.json.Decoder(Interaction)
    interactions = [_decode_line(decoder, line, path, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not interactions:
        raise InputError(say("testing.cassette_empty", path=path))
    return interactions


def _decode_line(decoder: msgspec.json.Decoder[Interaction], line: bytes, path: Path, number: int) -> Interaction:
    try:
        interaction = decoder.decode(line)
        _to_bytes(interaction.request.body)
        for chunk in interaction.response.chunks if interaction.response else ():
            _to_bytes(chunk)
    except (msgspec.DecodeError, ValueError) as error:  # ValueError: not UTF-8, not base64
        raise InputError(say("testing.cassette_damaged", path=path, line=number, reason=error)) from error
    if interaction.response is None and interaction.fault is None:
        reason = say("testing.neither_response_nor_fault")
        raise InputError(say("testing.cassette_damaged", path=path, line=number, reason=reason))
    return interaction


def write_cassette(path: Path, interactions: list[Interaction]) -> None:
    """Write atomically, readable only by the owner: the content may be sensitive in ways we do not detect."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two may save at once: the last one wins.
        replace_file(str(path), b"".join(jsontext.encode(interaction) + b"\n" for interaction in interactions))
    except OSError as error:
        raise InputError(say("testing.cassette_not_written", path=path, reason=error.strerror)) from error


def _from_bytes(data: bytes) -> Data:
    try:
        return data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return Base64(b64encode(data).decode())


def _to_bytes(data: Data) -> bytes:
    if isinstance(data, str):
        return data.encode()

    return b64decode(data.base64, validate=True)


# --- recording ------------------------------------------------------------------------------------------------------------------


class _Recording:
    """An interaction in progress, unredacted: secrets are removed when it is written, since only then all are known."""

    def __init__(self, method: str, url: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.url, self.headers, self.body = method, url, headers, body
        self.status: int | None = None
        self.response_headers: dict[str, str] = {}
        self.chunks: list[bytes] = []
        self.ended = False
        self.fault: RecordedFault | None = None

    def interaction(
        self,
        secrets: tuple[str, ...],
        hidden: Sequence[bytes] = (),
        keep_header: Callable[[str], bool] | None = None,
        folders: Sequence[str] = (),
    ) -> Interaction:
        sent = _record_request(self.method, self.url, _kept(self.headers, keep_header), self.body, secrets, hidden)
        portable = _PortableRequest(sent, folders)
        fault = self.fault
        if fault is None and not self.ended:
            fault = RecordedFault(say("testing.recording_interrupted"), retryable=False)  # nobody waited for it any longer
        if fault is not None:
            fault = RecordedFault(redact(fault.message, secrets, hidden), fault.retryable)
        if self.status is None:
            return Interaction(portable.request, fault=fault)
        headers = redact_headers(_kept(self.response_headers, keep_header), secrets, hidden)
        chunks = [_from_bytes(chunk) for chunk in hide_places(redact_chunks(self.chunks, secrets, hidden), portable.places)]
        return Interaction(portable.request, RecordedResponse(self.status, headers, chunks), fault)


def _kept(headers: Mapping[str, str], keep: Callable[[str], bool] | None) -> dict[str, str]:
    return {name: value for name, value in headers.items() if keep is None or keep(name.lower())}


class _RecordedAnswer:
    def __init__(self, answer: HttpResponse, take: _Recording) -> None:
        self._answer = answer
        self._take = take

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._answer.chunks()) as chunks:
                async for chunk in chunks:
                    self._take.chunks.append(chunk)
                    yield chunk
            self._take.ended = True
        except ConnectionFailed as error:
            self._take.fault = RecordedFault(error.message, error.retryable)
            raise


def _record_request(
    method: str, url: str, headers: Mapping[str, str], body: bytes, secrets: tuple[str, ...], hidden: Sequence[bytes] = ()
) -> RecordedRequest:
    return RecordedRequest(
        method,
        redact(url, secrets, hidden),
        redact_headers(headers, secrets, hidden),
        _from_bytes(redact_bytes(body, secrets, hidden)),
    )


class _PortableRequest:
    """A request as it is compared, and the places it named."""

    def __init__(self, request: RecordedRequest, folders: Sequence[str]) -> None:
        self.request = request
        self.places: list[PortablePlace] = []
        if isinstance(request.body, str):
            self.places = find_places(request.body, folders)
            self.request = msgspec.structs.replace(request, body=portable_body(request.body, self.places))


# --- replaying ------------------------------------------------------------------------------------------------------------------


class _ReplayedAnswer:
    def __init__(self, response: RecordedResponse, chunks: Sequence[bytes], fault: RecordedFault | None) -> None:
        self._response = response
        self._chunks = chunks
        self._fault = fault

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for chunk in self._chunks:
            await asyncio.sleep(0)  # let other tasks run, as with a network
            yield chunk
        if self._fault is not None:
            raise _to_error(self._fault)


def _to_error(fault: RecordedFault | None) -> ConnectionFailed:
    return ConnectionFailed(fault.message, retryable=fault.retryable) if fault else ConnectionFailed(say("testing.no_recorded_answer"))


def _difference(recorded: RecordedRequest, sent: RecordedRequest) -> str:
    """The first thing in which two requests differ, or "". Scheme and host may differ: a base URL is a setting."""
    if recorded.method != sent.method:
        return say("testing.differs_method", recorded=recorded.method, sent=sent.method)
    if _target(recorded.url) != _target(sent.url):
        return _first_difference("testing.differs_path", _target(recorded.url), _target(sent.url))
    if recorded.body != sent.body:
        one, other = _as_text(recorded.body), _as_text(sent.body)
        where = difference_path(one, other)
        return _first_difference("testing.differs_body", one, other) + (say("testing.differs_where", where=where) if where else "")
    return ""


def _target(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"


def _as_text(data: Data) -> str:
    return data if isinstance(data, str) else data.base64


def _first_difference(key: str, recorded: str, sent: str) -> str:
    at = next(
        (index for index, (one, other) in enumerate(zip(recorded, sent, strict=False)) if one != other), min(len(recorded), len(sent))
    )
    window = slice(max(at - CONTEXT, 0), at + CONTEXT)
    return say(key, position=at, recorded=recorded[window], sent=sent[window])
