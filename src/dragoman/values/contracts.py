"""The interfaces between the packages: protocols, and the values passed between them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from contextvars import ContextVar
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.values.errors import Unsupported
from dragoman.values.events import ResponseFinished, StreamEvent
from dragoman.values.messages import Blob, FileRef, Request, Response, Text, ToolCall, ToolResult, ToolSpec
from dragoman.values.profile import Deployment, Profile
from dragoman.values.record import Entry, ToolOutcome, WaitsFor
from dragoman.values.usage import Usage

prompt_at_work = ContextVar("prompt_at_work", default="")
"""The id of the prompt that the current task works on; empty outside a run. For logs: so it need not pass through every call."""


class HttpRequest(msgspec.Struct, frozen=True):
    """The exact request that would be sent, without the key: authentication headers are added on sending."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


@runtime_checkable
class Provider(Protocol):
    """Request → events. Failures are ProviderErrors; an answer that ended badly is still an answer, with its finish reason.

    A custom provider inherits from this class and implements `name`, `profile`, `prepare` and `stream`; the rest has defaults.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The deployment, as used to tag opaque payloads."""
        ...

    @abstractmethod
    def profile(self, model: str) -> Profile: ...

    @abstractmethod
    def prepare(self, request: Request) -> HttpRequest:
        """Exactly what `stream` would send. Pure: nothing is sent."""
        ...

    @abstractmethod
    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Ends with ResponseFinished or raises. Consume it under `contextlib.aclosing`."""
        ...

    async def generate(self, request: Request) -> Response:
        """The whole answer; by default, collected from the stream."""
        async with aclosing(self.stream(request)) as events:
            async for event in events:
                if isinstance(event, ResponseFinished):
                    return event.response
        raise AssertionError("a stream ends with ResponseFinished or raises")

    async def count_tokens(self, request: Request) -> int:
        """Raises Unsupported if the service does not count tokens."""
        raise Unsupported(say("values.no_counting", name=self.name))

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        """Raises Unsupported if the service has no embeddings."""
        raise Unsupported(say("values.no_embeddings", name=self.name))

    async def preconnect(self) -> None:
        """Open a connection for a request that will follow. A hint: it may do nothing, and never raises."""
        return

    async def aclose(self) -> None:
        return

    # --- what it was connected for

    @property
    def model(self) -> str:
        """The model it was connected for; empty if it serves any."""
        return ""

    @property
    def deployment(self) -> Deployment | None:
        """Protocol, URL and cache of the service, if there is one."""
        return None

    @property
    def blobs(self) -> BlobStore | None:
        """The store with the bytes of images and files."""
        return None

    def look_in(self, blobs: BlobStore) -> None:
        """Find the bytes of images and files in this store too. An agent asks this of a provider it is given, so that what its tools have
        read can be sent. By default nothing happens: a provider that sends no bytes needs none."""
        return

    @property
    def dialect(self) -> str:
        """How tools are described and called as text; empty: natively."""
        return ""


class HttpResponse(Protocol):
    """An HTTP response whose head has arrived and whose body is still being received."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, decompressed. Raises ConnectionFailed if it is cut off."""
        ...


class Transport(Protocol):
    """Plain HTTP: no retries, no interpretation of the response. Raises ConnectionFailed if there is no answer."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AbstractAsyncContextManager[HttpResponse]: ...

    async def preconnect(self, url: str) -> None:
        """Open a connection for a request that will follow. A hint: it may do nothing, and never raises."""
        ...

    async def aclose(self) -> None: ...


Pin = Callable[[str], Transport]
"""Makes a transport whose connections all go to this IP address, whatever a URL's host resolves to by then; TLS still verifies the host.
With a proxy, the proxy is given the address. An empty address: the host is resolved by name, unpinned."""


class BlobStore(Protocol):
    """Keeps the bytes of images and files, by their SHA-256. Neither method raises; both may be called from any thread."""

    def put(self, mime: str, data: bytes) -> Blob:
        """The same bytes twice are kept once."""
        ...

    def get(self, sha256: str) -> bytes | None:
        """The bytes, or None if they are not here."""
        ...


class Journal(Protocol):
    """Stores entries. `append` is synchronous, one write, and never raises: faults become an event."""

    def append(self, entry: Entry) -> None: ...

    async def sync(self) -> None:
        """Returns when everything appended is on disk."""
        ...


class Ledger(Protocol):
    """Where the scheduler records what its calls do: History, or, in a session that is saved, Checkpoints around it."""

    def start_tool(self, call: ToolCall, arguments: str = "") -> object: ...

    def postpone_tool(
        self, call: ToolCall, waits_for: WaitsFor, intent: Intent, arguments: str = "", repairs: tuple[str, ...] = ()
    ) -> object: ...

    def finish_tool(
        self,
        result: ToolResult,
        outcome: ToolOutcome = "finished",
        display: str = "",
        extras: str = "",
        *,
        saw: tuple[str, ...] = (),
        wrote: tuple[str, ...] = (),
        repairs: tuple[str, ...] = (),
    ) -> object: ...

    async def sync(self) -> None: ...


class Media(msgspec.Struct, frozen=True):
    """Bytes for the model, as a function that is a tool returns them: an image, a PDF, a sound. The session keeps them."""

    data: bytes
    mime: str = ""
    """Empty: told by the bytes, for the images and PDFs that models accept."""


class TakesOver:
    """What a tool may return to hand the conversation over: an agent. A class, so that tools know one without knowing agents."""


class ToolOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool's result, separately for its three readers."""

    content: tuple[Text | Blob | FileRef, ...] = ()
    """For the model."""
    display: str = ""
    """For the user."""
    extras: str = ""
    """For debugging: JSON text."""
    is_error: bool = False
    error_type: str = ""
    """A short name for programs: `not_found`, `stale`, `ambiguous` …"""
    output_file: str = ""
    """The file with the whole output, if the model got only its head and tail."""
    changed: tuple[str, ...] = ()
    """Files that were written, created or removed: absolute paths."""
    saw: tuple[str, ...] = ()
    """Files whose content this output shows: absolute paths, links resolved."""
    wrote: tuple[str, ...] = ()
    """Files whose whole content is in the arguments of the call."""
    hand_over: TakesOver | None = None
    """The agent that has the conversation from the next request on."""


class Intent(msgspec.Struct, frozen=True):
    """What a call would do, determined without doing it. Users approve this, and rules judge it."""

    title: str = ""
    """One line: `read_file src/a.py`, `$ make test`."""
    preview: str = ""
    """The full command, or the diff."""
    writes: tuple[str, ...] = ()
    """Files it would change: absolute paths, symlinks resolved."""
    reads: tuple[str, ...] = ()
    """Files and folders it would read, as far as rules may name them: absolute paths, symlinks resolved."""
    scope: str = ""
    """What allowing similar calls covers, if that is less than the whole tool: the host that is fetched from."""
    problem: str = ""
    """Why it cannot work (a path outside the workspace, missing text), if that is already known: then the user is not asked."""
    guarded: Literal["", "own", "trusted", "grave"] = ""
    """Why it is asked about every time, and no `always` covers it: it writes our own configuration, approvals or logs (own), or a file that
    makes something else run or is believed later (trusted), or it deletes, pushes, publishes or acts outside (grave). Set by the policy."""
    command: str = ""
    """The command line as the shell gets it, if it runs one."""
    directory: str = ""
    """The folder it is run in: absolute, symlinks resolved."""
    sandboxed: bool = False
    """Whether it runs inside a sandbox that holds it in the workspace."""
    prefix: str = ""
    """How commands begin that may be allowed together with this one: `pytest`. Set by the policy."""
    why: str = ""
    """Why the user is asked, if there is more to say than that the mode asks. Set by the policy."""
    asker: str = ""
    """Which subagent wants it, its callers before it: `general › explore`. Empty: the agent that the user talks with."""


Show = Callable[[str], None]
"""Takes output for the user while a tool runs."""


@runtime_checkable
class Tool(Protocol):
    """A failing tool returns an error output; it does not raise."""

    @property
    def spec(self) -> ToolSpec: ...

    def intend(self, args: Mapping[str, Any]) -> Intent:
        """What `run` would do with these arguments, which fit the schema. It changes nothing and does not raise."""
        ...

    # A tool whose `intend` may take long also has `async def prepare_intent(self, args)`. It is awaited first; `intend` is quick after it.
    # One that may run only so long has `timeout_s`: after that it is cancelled, and the model is told so.
    # One that may run beside others though it does more than read has `runs_beside = True`.

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        """Do it. When cancelled, it leaves nothing running behind and lets CancelledError through."""
        ...


class RunAtWork(Protocol):
    """The run that a tool works for. All of it may be used from any thread."""

    @property
    def prompt_id(self) -> str: ...

    @property
    def turn(self) -> int:
        """How often the model was asked in this run, from 1; an answer that was asked for again counts once."""
        ...

    @property
    def session_id(self) -> str: ...

    @property
    def deps(self) -> Any:
        """What the embedder's own tools work with."""
        ...

    @property
    def usage(self) -> Usage:
        """What the run has used so far."""
        ...

    @property
    def blobs(self) -> BlobStore:
        """Where the session keeps the bytes of images and files."""
        ...

    def cancel(self) -> None:
        """End the run, with everything it does. Returns at once."""
        ...


run_at_work: ContextVar[Callable[[], RunAtWork | None]] = ContextVar("run_at_work", default=lambda: None)
"""Gives the run that the current task works for; None outside. So a tool finds its run through every wrapper, and agents that run side by
side find each its own. The run is held weakly: whatever a run opens, such as a connection, may keep the context it was opened in."""


class Allow(msgspec.Struct, frozen=True):
    arguments: str = ""
    """The arguments to run instead, as JSON text, if a person edited them."""
    remember: Literal["once", "session", "saved"] = "once"
    """Whether similar calls may run without asking from now on: in this session, or in this folder permanently."""
    prefix: str = ""
    """With `remember`: all commands that begin with these words, instead of this one: the `prefix` of the Intent, or a longer one."""


class Deny(msgspec.Struct, frozen=True):
    reason: str


class Later(Exception):
    """Not now. `ask` returns it where nobody can decide yet; a tool raises it, or a function returns it, where its result comes from
    outside. The run ends with the call pending, and `agent.resume` goes on with the decision or the result."""

    intent: Intent | None = None
    """What the person was to be shown. Set by the policy."""


class PendingCall(msgspec.Struct, frozen=True):
    """A call that waits, in `result.pending` and `agent.pending`."""

    call: ToolCall
    """As the model wrote it."""
    intent: Intent
    """What a person is shown: what it would do, as it looked when it was put off."""
    waits_for: WaitsFor
    is_decided: bool = False
    """The decision is on the record, but the call has not begun: an earlier call waits, or the process ended. `resume` runs it."""
    arguments: str = ""
    """The arguments it would run with, as JSON text."""

    @property
    def id(self) -> str:
        return self.call.id

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments it would run with, decoded."""
        return jsontext.decode_object(self.arguments or self.call.arguments) or {}


class MeantCall(msgspec.Struct, frozen=True):
    """A call with the names and types that its tool declares, where the model wrote others."""

    call: ToolCall
    """What is judged, shown for approval and run. The record keeps the call as the model wrote it."""
    repairs: tuple[str, ...] = ()
    """What was changed, one short line each: `dir → path`."""


Align = Callable[[ToolCall, Mapping[str, Any], Sequence[ToolSpec]], MeantCall | None]
"""What a call with these decoded arguments was meant to be, given the tools there are; None if it is to be taken as it is."""


Around = Callable[[ToolCall, Callable[[], Awaitable[ToolOutput]]], Awaitable[ToolOutput]]
"""Carries a call out that may run, by calling what it is given."""
Decide = Callable[[ToolCall], Allow | Deny | Awaitable[Allow | Deny | Later]]
"""Decides whether a call may run. Returns an awaitable if a person must be asked."""
Ask = Callable[[ToolCall, Intent], Allow | Deny | Later | Awaitable[Allow | Deny | Later]]
"""Asks a person to approve a call. Supplied by the front end; headless, it denies. It may be async or plain; a plain one holds up the event
loop of the run while it asks. With Later the run ends and the call waits. If it raises, the call is refused, and the event loop's exception
handler is told."""
AskUser = Callable[[str, Sequence[str]], str | Awaitable[str]]
"""Asks a person the model's own question, with its choices, and returns the answer. It may be async or plain, as Ask."""


class HostsUsed(msgspec.Struct, frozen=True):
    """Which hosts a command in the sandbox asked for: `example.org`, or `example.org:8080` if the port is not one of the web's."""

    reached: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


NO_HOSTS = HostsUsed()


class Launched(Protocol):
    """A command that was started, and everything it starts."""

    @property
    def returncode(self) -> int | None:
        """As subprocess has it: negative if a signal ended it. None while it runs."""
        ...

    @property
    def remark(self) -> str:
        """After `end`: what had to be put back, in a line for the model. Empty: nothing."""
        ...

    @property
    def hosts(self) -> HostsUsed:
        """After `end`: whom it has asked for through the gate to the network."""
        ...

    def take_gate(self) -> int | None:
        """The descriptor of the listener inside the command's own network, if one was asked for. The caller closes it."""
        ...

    def take_terminal(self) -> int | None:
        """The descriptor of the terminal's own end, if one was asked for. The caller closes it."""
        ...

    async def wait(self) -> int:
        """Until the command itself has ended; what it has started may go on."""
        ...

    async def end(self, grace_s: float) -> bool:
        """End whatever of it is alive: SIGTERM, then SIGKILL after `grace_s`. Returns whether it is known that nothing is left."""
        ...


class Launch(Protocol):
    """Starts commands. All they have started ends when it is told to, and when our process dies."""

    @property
    def is_sandbox(self) -> bool:
        """Whether commands are confined: they write in the workspace only, read no secrets and have no network. May take a moment the first
        time; not after `prepare`."""
        ...

    async def prepare(self) -> None: ...

    @property
    def has_terminals(self) -> bool:
        """Whether a command can be given a terminal. May take a moment the first time; not after `prepare`."""
        ...

    async def start(
        self,
        argv: Sequence[str],
        *,
        directory: str,
        env: Mapping[str, str],
        streams: tuple[int, int, int],
        terminal: tuple[int, int] | None = None,
    ) -> Launched:
        """`argv[0]` is an absolute path; `streams` are descriptors for its standard input, output and error, which the caller closes. With
        `terminal`, it gets a new one of so many rows and columns in their place: see `Launched.take_terminal`.
        Raises OSError if it cannot be started. If cancelled, nothing is left running."""
        ...

    def explain(self, output: str) -> str:
        """What the boundary seems to have refused, in a line for the model; empty: nothing. `output`: the end of what the command said."""
        ...


StateOfCommand = Literal["running", "ended", "stopped", "timed out", "failed"]
"""ended: by itself. stopped: by the model or the user. failed: its output could not be read any more."""


class CommandState(msgspec.Struct, frozen=True):
    """A background command as it is at the moment."""

    id: str
    command: str
    state: StateOfCommand
    exit_code: int | None
    """As in a shell; None while it runs, and where it was stopped."""
    age_s: float
    """Since it was started."""


class Tracing(Protocol):
    """Watches runs from inside and makes spans of them: see `dragoman.traces`."""

    async def drive(self, run: Any) -> None:
        """Carry the run out, under a span of its own."""
        ...

    def watch(self, provider: Provider) -> Provider:
        """The same provider, with a span for each answer it is asked for."""
        ...

    @property
    def scheduler(self) -> Any:
        """A Scheduler that makes a span for each call."""
        ...

    async def compress(self, work: Awaitable[Any]) -> Any:
        """Carry a compression out, under a span of its own."""
        ...


tracing: Tracing | None = None
"""For the whole process; None, unless `dragoman.traces.enable` was called. Read it where it is used, as `contracts.tracing`."""


def traced(provider: Provider) -> Provider:
    return provider if tracing is None else tracing.watch(provider)
