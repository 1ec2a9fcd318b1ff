"""Adds tools as text to any provider, for models and servers without native tools, over any protocol.

    provider = TextTools(connect("ollama/some-model"))

Tools, calls and results are sent as text, and calls are parsed out of the answer as it streams. Callers see the requests and responses of
a service with native tools. The only state is a cache of rewritten messages.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec

from dragoman.text_tools.answering import AnswerReader, BoundAnswerReader, ReaderOptions
from dragoman.text_tools.dialect_table import find_dialect
from dragoman.text_tools.no_think import words_for
from dragoman.text_tools.options import TextOptions
from dragoman.text_tools.parser import StreamParser
from dragoman.text_tools.prompt import render_bound_prompt, render_prompt
from dragoman.text_tools.rewriting import rewrite
from dragoman.text_tools.toolset import Toolset
from dragoman.values.bound_answer import constrain_request, is_constrained
from dragoman.values.contracts import HttpRequest, Provider
from dragoman.values.errors import InputError
from dragoman.values.events import Retrying, StreamEvent
from dragoman.values.messages import Message, PerMessage, Request, Response, ToolSpec, user
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import sentence_of

MUST_CALL = "Answer with a tool call."
MUST_CALL_ONE = "Answer with a call of the tool {name}."
CACHED_TOOLSETS = 8
"""For how many sets of tools the derived values are cached."""


T = TypeVar("T")


class TextTools(WrappingProvider):
    """A Provider around a Provider."""

    def __init__(self, provider: Provider, options: TextOptions | None = None) -> None:
        super().__init__(provider)
        self.options = options or TextOptions()
        self._dialect = _dialect_name(self.options.dialect)
        self._place = self.options.place_over(provider.deployment.protocol if provider.deployment is not None else "")
        self._memos: dict[tuple[str, bool], PerMessage[Message]] = {}
        self._prompt = _OncePerTools(lambda tools: render_prompt(tools, self.dialect))
        self._bound_prompt = _OncePerTools(render_bound_prompt)
        self._few_shot = _OncePerTools(self._examples)
        self._first_message = _OncePerTools(lambda tools: user(self._prompt(tools)))
        self._toolset = _OncePerTools(lambda tools: Toolset.of(tools) or Toolset({}))

    def prepare(self, request: Request) -> HttpRequest:
        return self.provider.prepare(self.rewrite_request(request))

    async def generate(self, request: Request) -> Response:
        return self._reader_for(request).read_response(await self.provider.generate(self.rewrite_request(request)))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        reader = self._reader_for(request)
        async with aclosing(self.provider.stream(self.rewrite_request(request))) as events:
            async for event in events:
                if isinstance(event, Retrying):
                    reader = self._reader_for(request)
                for out in reader.read_event(event):
                    yield out

    async def count_tokens(self, request: Request) -> int:
        return await self.provider.count_tokens(self.rewrite_request(request))

    @property
    def dialect(self) -> str:
        return self._dialect

    # --- the request

    def rewrite_request(self, request: Request) -> Request:
        """The request as sent to the model. A message is always rewritten to the same object, so that its rendered form can be reused."""
        is_bound = self._is_always_bound(request)
        if is_bound:
            request = constrain_request(request)
        messages = self._memo(words_for(self.options.no_think, request.settings, self.profile(request.model)), is_bound).over(
            request.messages
        )
        small = self.profile(request.model).small
        examples = self._few_shot(request.tools) if is_bound and small is not None and small.examples else []
        messages[:0] = examples
        system = request.system
        if is_bound:
            system = "\n\n".join(text for text in (system, self._bound_prompt(request.tools)) if text.strip())
        elif request.tools and self._place == "user":
            messages.insert(0, self._first_message(request.tools))
        elif request.tools:
            system = "\n\n".join(text for text in (system, self._prompt(request.tools)) if text.strip())
        if instruction := _choice_instruction(request):
            messages.append(user(instruction))  # last and not recorded: the next request continues from the message before it
        settings = msgspec.structs.replace(request.settings, tool_choice="auto")
        return msgspec.structs.replace(
            request, messages=tuple(messages), system=system, tools=(), settings=settings, example_count=len(examples)
        )

    @property
    def messages_rewritten(self) -> int:
        """How many messages have been rewritten so far: the real cost of requests."""
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
        """Whether every answer is bound to a call or words. Only with the tools that a small model's examples are about: offered others in
        this way, the smallest answers in words each time (docs/inside/text-tools.md has the figures)."""
        small = self.profile(request.model).small
        if not request.tools or small is None or not small.bound_calls:
            return False
        return not small.few_tools or all(tool.name in small.few_tools for tool in request.tools)

    # --- the answer

    def _reader_for(self, request: Request) -> AnswerReader:
        options, tools = self.options, self._toolset(request.tools)
        reader_options = ReaderOptions(request, tools, self.dialect, options.preserve_context)
        choice = request.settings.tool_choice if request.tools else "none"
        if self._is_always_bound(request) or is_constrained(request):
            return BoundAnswerReader(reader_options, StreamParser(tools, tool_choice="none", is_thinking=options.is_thinking))
        return AnswerReader(
            reader_options,
            StreamParser(
                tools,
                dialect=self.dialect,
                tool_choice=choice,
                mapping=options.mapping_for(self.name, request.model),
                is_thinking=options.is_thinking,
            ),
        )


def _choice_instruction(request: Request) -> str:
    choice = request.settings.tool_choice
    if not request.tools or choice in ("auto", "none"):
        return ""
    return MUST_CALL if choice == "required" else MUST_CALL_ONE.format(name=choice)


def _dialect_name(dialect: str) -> str:
    try:
        return find_dialect(dialect).name
    except ValueError as error:
        raise InputError(sentence_of(error)) from error


class _OncePerTools(Generic[T]):
    """A value derived from the tools, cached for the last few sets: agents with different tools may take turns, from several threads."""

    def __init__(self, make: Callable[[tuple[ToolSpec, ...]], T]) -> None:
        self._make = make
        self._entries: tuple[tuple[tuple[ToolSpec, ...], T], ...] = ()
        """Most recently used first. Never changed, only replaced, so that readers in other threads see a consistent state."""
        self._lock = threading.RLock()

    def __call__(self, tools: tuple[ToolSpec, ...]) -> T:
        kept = self._entries
        if kept and kept[0][0] == tools:
            return kept[0][1]
        entry = _entry_for(tools, kept) or (tools, self._make(tools))
        with self._lock:
            entry = _entry_for(tools, self._entries) or entry  # another thread may have been faster: all get the same
            self._entries = (entry, *(each for each in self._entries if each is not entry))[:CACHED_TOOLSETS]
        return entry[1]


def _entry_for(tools: tuple[ToolSpec, ...], kept: tuple[tuple[tuple[ToolSpec, ...], T], ...]) -> tuple[tuple[ToolSpec, ...], T] | None:
    return next((entry for entry in kept if entry[0] == tools), None)
