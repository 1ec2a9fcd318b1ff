"""A tool and its calls: what a call would do, whether it may run, what it returns, and where it is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from dragoman.base import jsontext
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Blob, FileRef, Source, Text, ToolCall, ToolResult, ToolSpec
from dragoman.values.record import CommandOutput, FileVersion, ToolOutcome, WaitsFor
from dragoman.values.usage import Usage


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
    files: tuple[FileVersion, ...] = ()
    """What the files that it read or changed were then, so that the model is told when they change beside it."""
    hand_over: TakesOver | None = None
    """The agent that has the conversation from the next request on."""
    command: CommandOutput | None = None
    """Of a command: what it printed and how it ended, for the record."""
    sources: tuple[Source, ...] = ()
    """The pages that a search found, in the order of the numbers in its text, from 1; those of a subagent that has searched."""


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
    guarded: Literal["", "own", "trusted", "grave", "outside", "discards"] = ""
    """Why it is asked about every time, and no `always` covers it: it writes our own configuration, approvals or logs (own), or a file that
    makes something else run or is believed later (trusted), or it deletes, pushes, publishes or acts outside (grave), or
    it runs outside the sandbox (outside), or throws away work that git does not hold (discards). Set by the policy."""
    command: str = ""
    """The command line as the shell gets it, if it runs one."""
    directory: str = ""
    """The folder it is run in: absolute, symlinks resolved."""
    sandboxed: bool = False
    """Whether it runs inside a sandbox that holds it in the workspace."""
    outside: str = ""
    """Why it is to run outside the sandbox, in the model's words; empty: it is not."""
    writing: Literal["", "tried", "wanted", "refused"] = ""
    """Of a command that can run with the workspace read-only: it runs so unless it is asked about (tried), the model says that it changes
    files (wanted), or it ran so and was refused to write (refused). Empty: there is no such way here."""
    prefix: str = ""
    """How commands begin that may be allowed together with this one: `pytest`. Set by the policy."""
    why: str = ""
    """Why the user is asked, if there is more to say than that the mode asks. Set by the policy."""
    is_by_own_service: bool = False
    """Of a search: whether the service of the conversation makes it, which is sent everything that is said anyway."""
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
    # One that is called again and again with the same arguments, to see whether something has changed, has `polled = True`.
    # One that only calls another tool for the model has `stands_for(args)`: the tool and arguments that are judged. If the model may call
    # that one by its own name, it also has `carried`, the names, and `carry(name, args)`: its own arguments for such a call, or None.
    # One that knows what models write out of habit has `tidy(args)`, for arguments that do not fit: others, and what was changed.
    # Of our own alone: `decides_within` (an agent, whose calls are decided one by one), `is_trusted` (not asked about), `is_for_one_run`.

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        """Do it. When cancelled, it leaves nothing running behind and lets CancelledError through."""
        ...


class WrappingTool:
    """The base class of tools that wrap another. What a wrapper does not override is delegated."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def timeout_s(self) -> float:
        return getattr(self.tool, "timeout_s", 0.0)

    @property
    def runs_beside(self) -> bool:
        return getattr(self.tool, "runs_beside", False)

    @property
    def polled(self) -> bool:
        return getattr(self.tool, "polled", False)

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return self.tool.intend(args)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await self.tool.run(args, show)


prompt_at_work = ContextVar("prompt_at_work", default="")
"""The id of the prompt that the current task works on; empty outside a run. For logs: so it need not pass through every call."""


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
    """The call may run."""

    arguments: str = ""
    """The arguments to run instead, as JSON text, if a person edited them."""
    remember: Literal["once", "session", "saved"] = "once"
    """Whether similar calls may run without asking from now on: in this session, or in this folder permanently."""
    prefix: str = ""
    """With `remember`: all commands that begin with these words, instead of this one: the `prefix` of the Intent, or a longer one."""
    commands_write: bool = False
    """Whether all commands in the sandbox may write in the workspace unasked from now on, in this session. Heeded where the Intent says
    `wanted` or `refused`."""


class Deny(msgspec.Struct, frozen=True):
    """The call may not run. The model is given the reason."""

    reason: str


class Later(Exception):
    """Not now. `ask` returns it where nobody can decide yet; a tool raises it, or a function returns it, where its result comes from
    outside. The run ends with the call pending, and `agent.resume` goes on with the decision or the result."""

    intent: Intent | None = None
    """What the person was to be shown. Set by the policy."""

    def __init__(self, *message: object) -> None:  # as Exception has it, which hides its signature
        super().__init__(*message)


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


class WriteApproval(Protocol):
    """Decides whether commands that ran with the workspace read-only may run again and write."""

    @property
    def cannot_write(self) -> str:
        """Why nobody can be asked; empty: somebody can."""
        ...

    async def ask_to_write(self, call: ToolCall, view: Intent) -> Allow | Deny: ...


class Only(tuple[str, ...]):
    """Choices besides which there is no answer: where a person may not answer in words of their own."""


AskUser = Callable[[str, Sequence[str]], str | Awaitable[str]]
"""Asks a person the model's own question, with its choices, and returns the answer. It may be async or plain, as Ask."""


class Ledger(Protocol):
    """Where the scheduler records what its calls do: History, or, in a session that is saved, Checkpoints around it."""

    def start_tool(self, call: ToolCall, arguments: str = "", *, outside: bool = False, read_only: bool = False) -> object: ...

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
        command: CommandOutput | None = None,
        files: tuple[FileVersion, ...] = (),
    ) -> object: ...

    async def sync(self) -> None: ...
