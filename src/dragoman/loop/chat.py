"""A conversation without the loop: for whoever carries out the calls of the model themselves.

It is put together as an agent is, and keeps the same record. A message is one model round; nothing is run unless it is asked for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from dragoman.base import late_types
from dragoman.loop.assembly import assemble
from dragoman.loop.chat_turn import ChatAnswer, ChatTurn
from dragoman.loop.conversation import BetweenRuns
from dragoman.loop.history import History
from dragoman.loop.merging import checked
from dragoman.loop.option_checks import check_options
from dragoman.loop.options import (
    ApprovalOptions,
    Connector,
    Limits,
    RunOptions,
    SearchMode,
    SessionOptions,
    ToolOptions,
    WebAccess,
    WorkspaceOptions,
    as_tool,
)
from dragoman.loop.web import require_search
from dragoman.policy.judge import Mode
from dragoman.tools.declared import DeclaredTool, read_declarations
from dragoman.tools.job import CallReport
from dragoman.values.calls import Tool
from dragoman.values.contracts import Provider
from dragoman.values.errors import InputError, shown
from dragoman.values.events import ErrorRaised, TurnEvent, UserCancelled
from dragoman.values.messages import Content, Message, Settings, ToolCall, ToolSpec, is_list
from dragoman.values.parts import prompt_message, says_something
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.settings import ContextSettings
    from dragoman.loop.background import Background
    from dragoman.sessions.stores import Store
else:
    (ContextSettings,) = late_types("dragoman.context.settings", "ContextSettings")
    (Store,) = late_types("dragoman.sessions.stores", "Store")

V = TypeVar("V")
OwnTool = Tool | Callable[..., Any] | ToolSpec | Mapping[str, Any]
"""A tool, a function, or the declaration of a tool that you carry out elsewhere: a ToolSpec, or a dict as one of the services has it."""
Prompt = Content | Iterable[Content] | None


class Chat(BetweenRuns):
    """A conversation that asks the model once for each message: the GeminiChat of the founding documents, for every service.

        chat = Chat("gemini/gemini-3.8-flash", tools=[search_files])
        answer = await chat.send_message("Find the TypeScript files.")
        while answer.calls:
            await chat.run_calls()                  # or carry them out yourself, and send their results
            answer = await chat.send_message()

    Everything that is said is on the record (`history`), invalid answers included; what is sent is a view of it. With `session` it is kept
    on disk, and can be gone on with as any session can.
    """

    def __init__(
        self,
        model: str | Provider | Connector | None,
        *,
        system: str = "",
        tools: Iterable[OwnTool] | ToolOptions = (),
        history: Iterable[Message | Mapping[str, Any]] = (),
        search: SearchMode | None = None,
        workspace: str | os.PathLike[str] | WorkspaceOptions | None = None,
        approval: Mode | ApprovalOptions = "default",
        session: str | os.PathLike[str] | Store | History | SessionOptions | None = None,
        settings: Settings | None = None,
        limits: Limits | None = None,
        context: ContextSettings | None = None,
    ) -> None:
        """`history` are messages to begin with (the documents' extraHistory); its last answer may hold calls that wait for their results.

        `workspace` puts the setup message in front of the first message, which tells the date, the system and what lies in this folder.
        None: nothing is told. `search` is how the web is searched: "grounding", by the service itself; "tool", by calls of
        google_web_search. `context` says when outdated
        results are pruned and old messages summed up before a message is sent, as an agent does; None: never.
        `approval` holds for `run_calls` alone.
        """
        check_options(search=search)
        where = WorkspaceOptions(describe=False) if workspace is None else _described(workspace)
        self._harness, self.notices = assemble(
            model, system=system, tools=_tool_options(tools, search), workspace=where, approval=approval, session=session,
            settings=settings, limits=limits, context=context,
        )  # fmt: skip
        self._session = self._harness.session
        self._search = search
        self._background: Background | None = None
        self._background_lock = threading.Lock()
        self.last: ChatAnswer | None = None
        """What the model said last; None before the first answer."""
        try:
            self._require_search(search)
            self._begin_with(history)
        except BaseException:
            self._session.close()  # so that the next attempt does not find it in use
            raise

    # --- saying something

    async def send_message(
        self, message: Prompt = None, *, settings: Settings | None = None, search: SearchMode | None = None, instructions: str = ""
    ) -> ChatAnswer:
        """Send a message and wait for the answer (the documents' sendMessage). Without one: go on, as after a failure or `run_calls`.

        A message may hold the results of the calls that wait, from `dm.tool_result`. The rest is for this message alone: `settings` say
        how the answer is generated, over those of the chat, `search` how the web is searched, and `instructions` are added to the system
        prompt.
        """
        turn = self.turn(message, settings=settings, search=search, instructions=instructions)
        async for _ in turn:
            pass
        if turn.error is not None:
            raise turn.error
        assert turn.answer is not None
        return turn.answer

    async def send_message_stream(
        self, message: Prompt = None, *, settings: Settings | None = None, search: SearchMode | None = None, instructions: str = ""
    ) -> AsyncGenerator[TurnEvent, None]:
        """Send a message and yield the answer as it comes (the documents' sendMessageStream). What goes wrong is raised.

        A `Retrying` event says that what was shown of the answer is void. Afterwards `last` is the whole answer.
        """
        turn = self.turn(message, settings=settings, search=search, instructions=instructions)
        async with aclosing(aiter(turn)) as events:
            async for event in events:
                if not isinstance(event, ErrorRaised | UserCancelled):
                    yield event
        if turn.error is not None:
            raise turn.error

    def turn(
        self, message: Prompt = None, *, settings: Settings | None = None, search: SearchMode | None = None, instructions: str = ""
    ) -> ChatTurn:
        """One message and its answer as a stream of events, which can be cancelled (the documents' Turn). Nothing is raised while it is
        iterated: the last event tells what went wrong."""
        check_options(settings=settings, search=search, instructions=instructions)
        search = self._search if search is None else search
        self._require_search(search)
        prompt = None if message is None else prompt_message(message)
        if prompt is not None and not says_something(prompt):
            raise InputError(say("loop.empty_prompt"))
        if prompt is not None:
            prompt = self._session.take_media(prompt)
        return _Turn(self, prompt, RunOptions(search, settings, instructions=instructions))

    def send_message_sync(self, message: Prompt = None, **options: Any) -> ChatAnswer:
        """`send_message` for code that is not async. It works in a thread of its own, so it may be called from anywhere."""
        return self._wait_for(lambda: self.send_message(message, **options))

    # --- carrying out calls

    async def run_calls(
        self, calls: Sequence[ToolCall] | None = None, *, watch: Callable[[TurnEvent], None] | None = None
    ) -> tuple[CallReport, ...]:
        """Carry out the calls that wait, or some of them, as a run does: validated, approved or refused, and recorded.

        Their results are part of the next request: `send_message()` goes on. `watch` gets every state that a call passes through.
        Calls of tools that are only declared go on waiting: send their results.
        """
        open_calls = self.history.view.open_calls
        chosen: tuple[ToolCall, ...] = open_calls if calls is None else tuple(calls) if is_list(calls) else (calls,)  # type: ignore[assignment]
        for call in chosen:
            if call not in open_calls:
                raise InputError(say("loop.call_not_open", call=shown(call.id if isinstance(call, ToolCall) else call)))
        worker = ChatTurn(self._harness, None, RunOptions())
        await self._session.work.begin_after(worker)
        try:
            try:
                return await self._harness.scheduler(watch or _ignore).run(chosen) if chosen else ()
            finally:
                await self._harness.settle()
        finally:
            self._session.work.end(worker)

    def run_calls_sync(
        self, calls: Sequence[ToolCall] | None = None, *, watch: Callable[[TurnEvent], None] | None = None
    ) -> tuple[CallReport, ...]:
        """`run_calls` for code that is not async."""
        return self._wait_for(lambda: self.run_calls(calls, watch=watch))

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last answer that have no result yet."""
        return self.history.view.open_calls

    def set_tools(self, tools: Iterable[OwnTool]) -> None:
        """Offer these tools and no others from the next message on (the documents' setTools)."""
        self._session.work.require_none()
        made = _own_tools(tools)
        registry = self._harness.registry
        for name in registry.names:
            registry.remove(name)
        for tool in made:
            registry.register(tool)

    # --- its history

    def get_history(self, curated: bool = False) -> tuple[Message, ...]:
        """Return all that was said, invalid answers and original results too (the comprehensive history), or, curated, what is sent.

        What was cleared or replaced is in neither: `history.transcript()` has it. Messages are values: nobody can change the conversation
        through them.
        """
        return self.history.curated() if curated else self.history.transcript(current=True)

    def add_history(self, message: Message | Mapping[str, Any]) -> None:
        """Put a message behind the conversation without sending it (the documents' addHistory)."""
        self._session.work.require_none()
        from dragoman.loop.replacing import add_messages

        add_messages(self._harness, checked((message,)))

    def set_history(self, messages: Iterable[Message | Mapping[str, Any]]) -> None:
        """Put these messages in the place of the conversation so far (the documents' setHistory); the record keeps that. Raises InputError
        where a role is unknown.

        Calls without a result get one that says so, but for those of the last answer: they wait for the results that you send. Results
        without a call are left out.
        """
        self._session.work.require_none()
        from dragoman.loop.replacing import set_history

        set_history(self._harness, messages, keep_open=True)

    def merge_history(self, messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
        """Append what a service's own call history has beyond this conversation, and return it (the documents'
        automaticFunctionCallingHistory). Raises InputError where the two depart from each other."""
        self._session.work.require_none()
        added = self.history.merge(messages)
        for message in added:
            self._session.keep_bytes((*message.parts, *(part for result in message.results for part in result.content)))
        return added

    @property
    def estimated_tokens(self) -> int:
        """About how many tokens the next request has, as far as the conversation goes (the documents' lastPromptTokenCount)."""
        return self.history.view.tokens(self._session.model.profile.token_scale)

    # --- ending it

    async def aclose(self) -> None:
        """End what is going on, and close the session and the connections it opened. A provider that was given stays open."""
        from dragoman.loop.ending import end

        await end(self._harness)

    def close(self) -> None:
        """`aclose` for code that is not async."""
        self._in_background().close(self.aclose)

    def __reduce__(self) -> NoReturn:
        raise TypeError(say("loop.not_copied"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_search(self, search: SearchMode | None) -> None:
        """Raises InputError where the web is to be searched in a way this model does not know."""
        if self._harness.web is None:
            require_search(search, self._session.model, self._harness.registry.specs)

    def _begin_with(self, history: Iterable[Message | Mapping[str, Any]]) -> None:
        messages = checked(history)
        if messages and self.history.view.messages:
            raise InputError(say("loop.history_twice"))
        if messages:
            self.set_history(messages)

    def _wait_for(self, make: Callable[[], Coroutine[Any, Any, V]]) -> V:
        return self._in_background().value_of(make)

    def _in_background(self) -> Background:
        with self._background_lock:  # two threads may ask first at the same time
            if self._background is None:
                from dragoman.loop.background import Background

                self._background = Background()
            return self._background


class _Turn(ChatTurn):
    """A turn that leaves its answer with the chat."""

    def __init__(self, chat: Chat, message: Message | None, options: RunOptions) -> None:
        super().__init__(chat._harness, message, options)
        self._chat = chat

    async def _ask(self) -> ChatAnswer:
        self._chat.last = answer = await super()._ask()
        return answer


def _described(workspace: str | os.PathLike[str] | WorkspaceOptions) -> WorkspaceOptions:
    return workspace if isinstance(workspace, WorkspaceOptions) else WorkspaceOptions(workspace, describe=True)


def _tool_options(tools: Iterable[OwnTool] | ToolOptions, search: SearchMode | None) -> ToolOptions:
    if isinstance(tools, ToolOptions):
        if search is not None:
            raise InputError(say("loop.search_twice"))
        return tools
    return ToolOptions(tuple(_own_tools(tools)), web=WebAccess(search=search, fetch=False) if search == "tool" else None)


def _own_tools(tools: Iterable[OwnTool]) -> list[Tool]:
    if not isinstance(tools, Iterable) or isinstance(tools, (str, bytes, Mapping)):
        raise InputError(say("loop.option_wrong", name="tools", expected=say("loop.option_list"), given=shown(tools)))
    made: list[Tool] = []
    for tool in tools:
        if isinstance(tool, (ToolSpec, Mapping)):
            made += map(DeclaredTool, read_declarations(tool))
        else:
            made.append(as_tool(tool))
    return made


def _ignore(event: TurnEvent) -> None:
    return
