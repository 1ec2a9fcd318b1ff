"""Any provider, with tools as text: for models and servers that know none, over any protocol.

    provider = TextTools(connect("ollama/some-model"))

The tools are described in words, calls and results in the history are told in words, and calls are read out of the answer as it streams.
Whoever uses it sees the requests and answers of a service that knows tools. It remembers nothing but what it has already rewritten.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Generic, Literal, TypeVar

import msgspec

from dragoman.text_tools.align import Mapped
from dragoman.text_tools.answering import Answering, Bound, Reading
from dragoman.text_tools.constrained import constrained, is_constrained
from dragoman.text_tools.dialect import DEFAULT, SEED, find
from dragoman.text_tools.parser import StreamParser
from dragoman.text_tools.prompt import render_bound_prompt, render_prompt
from dragoman.text_tools.rewriting import rewrite
from dragoman.text_tools.toolset import Toolset
from dragoman.values.contracts import Prepared, Provider
from dragoman.values.errors import InputError
from dragoman.values.events import Retrying, StreamEvent
from dragoman.values.messages import Message, PerMessage, Request, Response, ToolSpec, user
from dragoman.values.profile import Profile

MUST_CALL = "Answer with a tool call."
MUST_CALL_ONE = "Answer with a call of the tool {name}."
NO_THINK = "/no_think"
"""How Qwen is told in words not to think."""
KEPT_TOOLS = 8
"""For so many sets of tools is kept what was made of them."""


T = TypeVar("T")


class TextOptions(msgspec.Struct, frozen=True):
    """How tools are put into text."""

    dialect: str = DEFAULT
    """How calls are written: one of `dialects()`."""
    place: Literal["system", "user"] = "system"
    """Where the tools are described: in the system message, or as the first thing the user says. See `place_for`."""
    preserve_context: bool = True
    """Keep the words beside calls; False drops them from the history, as some services with native calls do."""
    no_think: str | None = None
    """What a prompt is given where thinking is off and the server has no switch for it: `/no_think` behind it, or the seed's `<no_think>`
    before it. None: as the profile says. Empty: nothing."""
    is_thinking: bool = False
    """The chat template opens the model's thinking itself, so answers begin within it."""
    mapping: Mapped = {}
    """The user's own names for tools and parameters: see `align.Mapped`."""


def place_for(dialect: str, protocol: str) -> Literal["system", "user"]:
    """Where the seed puts its guidance: over Gemini it is the first user content, elsewhere it is in the system message."""
    return "user" if find(dialect).name == SEED and protocol == "gemini" else "system"


class TextTools:
    """A Provider around a Provider."""

    def __init__(self, provider: Provider, options: TextOptions | None = None) -> None:
        self.provider = provider
        self.options = options or TextOptions()
        self.dialect = _known(self.options.dialect)
        self.model: str = getattr(provider, "model", "")
        self.blobs: Any = getattr(provider, "blobs", None)
        self._memos: dict[tuple[str, bool], PerMessage[Message]] = {}
        self._prompt = _OncePerTools(lambda tools: render_prompt(tools, self.dialect))
        self._bound_prompt = _OncePerTools(render_bound_prompt)
        self._shown = _OncePerTools(self._examples)
        self._first = _OncePerTools(lambda tools: user(self._prompt(tools)))
        self._toolset = _OncePerTools(lambda tools: Toolset.of(tools) or Toolset({}))

    @property
    def name(self) -> str:
        return self.provider.name

    def profile(self, model: str) -> Profile:
        return self.provider.profile(model)

    def prepare(self, request: Request) -> Prepared:
        return self.provider.prepare(self.rewritten(request))

    async def generate(self, request: Request) -> Response:
        return self._answering(request).whole(await self.provider.generate(self.rewritten(request)))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        answering = self._answering(request)
        async with aclosing(self.provider.stream(self.rewritten(request))) as events:
            async for event in events:
                if isinstance(event, Retrying):
                    answering = self._answering(request)
                for told in answering.event(event):
                    yield told

    async def count_tokens(self, request: Request) -> int:
        return await self.provider.count_tokens(self.rewritten(request))

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        return await self.provider.embed(texts, model)

    async def preconnect(self) -> None:
        await self.provider.preconnect()

    async def aclose(self) -> None:
        await self.provider.aclose()

    # --- the request

    def rewritten(self, request: Request) -> Request:
        """What the model is sent. The same message becomes the same message each time, so that what was rendered of it stays so."""
        is_bound = self._is_always_bound(request)
        if is_bound:
            request = constrained(request)
        messages = self._memo(self._no_think(request), is_bound).over(request.messages)
        shown = self._shown(request.tools) if is_bound and self.profile(request.model).examples else []
        messages[:0] = shown
        system = request.system
        if is_bound:
            system = "\n\n".join(text for text in (system, self._bound_prompt(request.tools)) if text.strip())
        elif request.tools and self.options.place == "user":
            messages.insert(0, self._first(request.tools))
        elif request.tools:
            system = "\n\n".join(text for text in (system, self._prompt(request.tools)) if text.strip())
        if told := _told_choice(request):
            messages.append(user(told))  # last, and in no record: the next request goes on from what stands before it
        settings = msgspec.structs.replace(request.settings, tool_choice="auto")
        return msgspec.structs.replace(request, messages=tuple(messages), system=system, tools=(), settings=settings, shown=len(shown))

    @property
    def messages_rewritten(self) -> int:
        """How many messages have been rewritten so far: what requests really cost."""
        return sum(memo.computed for memo in list(self._memos.values()))

    def _memo(self, no_think: str, is_bound: bool) -> PerMessage[Message]:
        memo = self._memos.get((no_think, is_bound))
        if memo is None:
            made = PerMessage[Message](lambda message: rewrite(message, self.dialect, no_think, is_bound=is_bound))
            memo = self._memos.setdefault((no_think, is_bound), made)  # another thread may have been faster
        return memo

    def _examples(self, tools: tuple[ToolSpec, ...]) -> list[Message]:
        from dragoman.text_tools.examples import examples

        return [rewrite(message, self.dialect, is_bound=True) for message in examples({tool.name for tool in tools})]

    def _is_always_bound(self, request: Request) -> bool:
        return bool(request.tools) and self.profile(request.model).bound_calls

    def _no_think(self, request: Request) -> str:
        thinking, words = request.settings.thinking, self.options.no_think
        if thinking is None or thinking.effort != "off":
            return ""
        if words is not None:
            return words
        profile = self.profile(request.model)
        return NO_THINK if profile.thinking == "switch" and not profile.thinking_switch else ""

    # --- the answer

    def _answering(self, request: Request) -> Answering:
        options, tools = self.options, self._toolset(request.tools)
        reading = Reading(request, tools, self.dialect, options.preserve_context)
        choice = request.settings.tool_choice if request.tools else "none"
        if self._is_always_bound(request) or is_constrained(request):
            return Bound(reading, StreamParser(tools, tool_choice="none", is_thinking=options.is_thinking))
        return Answering(
            reading,
            StreamParser(tools, dialect=self.dialect, tool_choice=choice, mapping=options.mapping, is_thinking=options.is_thinking),
        )


def _told_choice(request: Request) -> str:
    choice = request.settings.tool_choice
    if not request.tools or choice in ("auto", "none"):
        return ""
    return MUST_CALL if choice == "required" else MUST_CALL_ONE.format(name=choice)


def _known(dialect: str) -> str:
    try:
        return find(dialect).name
    except ValueError as error:
        raise InputError(str(error)) from error


class _OncePerTools(Generic[T]):
    """Something made of the tools, kept for the last few sets of tools: agents with different ones may take turns, from several threads."""

    def __init__(self, make: Callable[[tuple[ToolSpec, ...]], T]) -> None:
        self._make = make
        self._kept: tuple[tuple[tuple[ToolSpec, ...], T], ...] = ()
        """The set used last comes first. Never changed, only replaced: whoever reads it sees one state of it."""
        self._lock = threading.RLock()

    def __call__(self, tools: tuple[ToolSpec, ...]) -> T:
        kept = self._kept
        if kept and kept[0][0] == tools:
            return kept[0][1]
        entry = _entry_for(tools, kept) or (tools, self._make(tools))
        with self._lock:
            entry = _entry_for(tools, self._kept) or entry  # another thread may have been faster: all are given the same
            self._kept = (entry, *(each for each in self._kept if each is not entry))[:KEPT_TOOLS]
        return entry[1]


def _entry_for(tools: tuple[ToolSpec, ...], kept: tuple[tuple[tuple[ToolSpec, ...], T], ...]) -> tuple[tuple[ToolSpec, ...], T] | None:
    return next((entry for entry in kept if entry[0] == tools), None)
