"""Hooks: functions of the embedder, or commands of the user, that are called at fixed points of a run. Each may be async or plain.

What a hook changes is on the record before it is sent, so a resumed session sends the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, Protocol

import msgspec

from dragoman.values.calls import Allow, Around, Decide, Deny, Intent, Tool, ToolOutput
from dragoman.values.events import TurnEvent
from dragoman.values.messages import Message, Response, Settings, ToolCall
from dragoman.values.usage import Usage


class Step:
    """One request that is about to be sent. Assign to `system`, `tools`, `settings` or `messages` to change it.

    The next step begins with what the agent was given, not with what was changed here: a hook that changes something does so each time.
    Only `messages` stay as they were made. What is the same as before costs no entry, and the prompt cache holds.
    """

    def __init__(
        self,
        *,
        deps: Any = None,
        session_id: str = "",
        turn: int = 1,
        model: str = "",
        system: str = "",
        tools: Iterable[str] = (),
        settings: Settings | None = None,
        messages: Iterable[Message] = (),
        usage: Usage | None = None,
    ) -> None:
        self.deps = deps
        self.session_id = session_id
        self.turn = turn
        """1 for the first answer of a run."""
        self.model = model
        """Its full name."""
        self.system = system
        self.tools: list[str | Tool | Callable[..., Any]] = list(tools)
        """The names of those that are offered. Take some away, or add tools and plain functions."""
        self.settings = settings or Settings()
        self.messages = tuple(messages)
        """What the model is shown; put others in their place for a context policy of your own."""
        self.usage = usage or Usage()
        """Of the run so far."""
        self.notes: list[str] = []
        self.pruned: list[str] = []

    def say(self, text: str) -> None:
        """Tell the model something, after all that was said so far."""
        self.notes.append(text)

    def prune(self, *call_ids: str) -> None:
        """Have a placeholder stand for the results of these calls from now on."""
        self.pruned += call_ids


class RunEnd(msgspec.Struct, frozen=True):
    """How a run ended."""

    result: Any
    """The Result, complete also where the run failed."""
    error: BaseException | None = None


Go = Callable[[], Awaitable[ToolOutput]]
"""Carries a call out."""


class Proceed(msgspec.Struct, frozen=True):
    """An answer of `before_call` that leaves the call to the rules and the person, unlike Allow."""

    arguments: str = ""
    """Others for the call, as JSON text; empty: its own. Whoever is asked is shown these."""
    question: Literal["", "skip", "ask"] = ""
    """`skip`: nobody is asked, unless a rule asks or what it writes is guarded. `ask`: somebody is asked, whatever allows it."""


class Compressing(msgspec.Struct, frozen=True):
    """A summary is about to be asked for, or has been."""

    session_id: str
    trigger: Literal["manual", "auto"]
    status: str = ""
    """What came of it: `compressed`, or why not. Empty before."""


class SubagentStart(msgspec.Struct, frozen=True):
    """An agent is about to be run inside another."""

    name: str
    session_id: str
    """Its own session."""
    prompt: str


class SubagentEnd(msgspec.Struct, frozen=True):
    """An agent that was run inside another has ended."""

    name: str
    session_id: str
    text: str
    """Its last words."""
    error: str = ""


class Hooks(msgspec.Struct, frozen=True):
    """What is called when; None: nothing.

    What `before_prompt`, `before_request` and `after_response` raise ends the run; what `before_prompt` raises leaves the prompt unsaid.
    Where `before_call` or `before_ask` raises, the call is refused; what `around_call` raises is the call's result, as an error. What the
    others raise is reported to the event loop's exception handler, and the run goes on. `dragoman.hooks.stop_run` ends a run from any.
    """

    before_request: Callable[[Step], Awaitable[None] | None] | None = None
    """Before each request, a retry of the same one excepted."""
    after_response: Callable[[Response], str | Awaitable[str | None] | None] | None = None
    """After each answer that can be used. Words that it returns are told to the model, which is asked again: so a run goes on that would
    have ended."""
    before_call: Callable[[ToolCall], Allow | Deny | Awaitable[Allow | Deny | None] | None] | None = None
    """Before a call is judged. Allow runs it unasked, with other arguments where it has some, unless the rules forbid that. Deny refuses
    it, and the model is told the reason. None leaves it to the rules and the person."""
    around_call: Callable[[ToolCall, Go], Awaitable[ToolOutput]] | None = None
    """In the place of the call, once it may run: `await go()` carries it out. What is returned is the call's result."""
    on_event: Callable[[TurnEvent], Awaitable[None] | None] | None = None
    """After each event was told, in their order."""
    on_run_end: Callable[[RunEnd], Awaitable[None] | None] | None = None
    """After the last event. Who awaits the run waits for this too."""
    before_prompt: Callable[[Message], str | Awaitable[str | None] | None] | None = None
    """Before a prompt is on the record. Words that it returns are told to the model after it. A prompt that is sent again after a failure
    is not asked about again."""
    before_ask: Callable[[ToolCall, Intent], Allow | Deny | Awaitable[Allow | Deny | None] | None] | None = None
    """Before a person is asked about a call. Allow and Deny are the answer in their place; None: they are asked. What writes our own or
    other guarded files is asked about in any case, unless it is denied."""
    before_compress: Callable[[Compressing], str | Deny | Awaitable[str | Deny | None] | None] | None = None
    """Before a summary of older messages is asked for. Words say what matters in it; Deny leaves it undone."""
    after_compress: Callable[[Compressing], Awaitable[None] | None] | None = None
    """After that, whatever came of it."""
    before_subagent: Callable[[SubagentStart], str | Awaitable[str | None] | None] | None = None
    """Before an agent is run inside another. Words are added to its prompt."""
    after_subagent: Callable[[SubagentEnd], Awaitable[None] | None] | None = None
    """After it has ended."""
    on_close: Callable[[], Awaitable[None] | None] | None = None
    """When the agent is closed."""
    everywhere: bool = False
    """Whether they are called in agents too that run inside this one, whatever hooks those have."""


class HookCaller(Protocol):
    """Calls the hooks of an agent: see loop/hooking.py."""

    def fresh(self) -> HookCaller:
        """The same hooks for another conversation."""
        ...

    @property
    def configures(self) -> bool:
        """Whether the configuration of a request is known only when its step begins."""
        ...

    async def before_request(self, harness: Any, options: Any, turn: int, from_entry: int) -> None: ...

    async def after_response(self, response: Response) -> str: ...

    def decide(self, approvals: Any, decide: Decide) -> Decide: ...

    @property
    def before(self) -> Callable[[ToolCall], Awaitable[None]] | None: ...

    @property
    def around(self) -> Around | None: ...

    async def watch(self, run: Any, drive: Awaitable[None]) -> None: ...

    async def before_prompt(self, harness: Any, prompt: Message | None) -> None: ...

    async def admit(self, text: str) -> bool: ...

    def say(self, text: str) -> None: ...

    def stop(self, error: Exception) -> None: ...

    async def before_compress(self, session_id: str, trigger: Literal["manual", "auto"], focus: str) -> str | Deny: ...

    async def after_compress(self, session_id: str, trigger: Literal["manual", "auto"], status: str) -> None: ...

    async def before_subagent(self, start: SubagentStart) -> str: ...

    async def after_subagent(self, end: SubagentEnd) -> None: ...

    def beside(self, own: HookCaller | None) -> HookCaller | None:
        """The hooks of an agent that runs inside this one."""
        ...

    async def close(self) -> None: ...
