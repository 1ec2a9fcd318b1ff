"""Runs that end with a value of a type (`output=`): how the model is asked for it, what ends the run, and what it is told instead.

How a model is asked goes into the Configured entry like any settings and tools, so a resumed session sends the same. It is chosen anew
whenever another model goes on.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from dragoman.loop.harness import Emit, Harness
from dragoman.loop.model import Model
from dragoman.loop.result import Result
from dragoman.tools.function import FunctionTool
from dragoman.tools.job import CallReport
from dragoman.tools.results import error_output
from dragoman.typed_output.asking import OutputRequest, output_request
from dragoman.typed_output.partial_json import NOTHING
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.errors import OutputInvalid
from dragoman.values.events import (
    OutputUpdated,
    ResponseFinished,
    ResponseStarted,
    Retrying,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
)
from dragoman.values.messages import Settings, Text, ToolSpec, user
from dragoman.values.notes import OUTPUT_NOTE
from dragoman.values.typed import Misfit, Typed, typed
from dragoman.words import say

T = TypeVar("T")
Check = Callable[[Any], Any]

UPDATE_S = 0.2
"""The shortest time between two events with the value so far, while it streams."""


class Wanted:
    """What is asked for: a type, or a function that makes the value of its arguments. Made once for all runs of an agent."""

    def __init__(self, output: Any) -> None:
        """Raises InputError where it has no JSON Schema."""
        self._function = _as_function(output)
        self.kind: Typed[Any] = typed(output) if self._function is None else _arguments_of(self._function)

    async def finish(self, value: Any) -> Any:
        return value if self._function is None else await self._function.call(value)


class TypedAnswer(Generic[T]):
    """The value one run is asked for."""

    def __init__(self, harness: Harness, wanted: Wanted | None, checks: Sequence[Check]) -> None:
        """Without anything wanted, it is the text, to be checked."""
        self._harness = harness
        self._wanted = wanted or Wanted(str)
        self._checks = checks
        self._asked: Model | None = None
        self._request: OutputRequest[Any] | None = None
        self._names: tuple[str, ...] = ()
        """The tools that were added for this run."""
        self._misses = 0
        self._value: Any = NOTHING
        self._failure: Exception | None = None
        """What a check or a function raised that is not about the answer."""
        self._taking = asyncio.Lock()

    # --- asking

    @property
    def is_outdated(self) -> bool:
        """Whether another model goes on than the one that was asked."""
        return self._asked is not self._harness.session.model

    def ask(self, tools: tuple[ToolSpec, ...], settings: Settings) -> tuple[tuple[ToolSpec, ...], Settings]:
        """The tools and settings that ask this model for the value."""
        model = self._asked = self._harness.session.model
        others = tuple(spec for spec in tools if spec.name not in self._names)
        self.close()
        names = [spec.name for spec in others]
        has_tools = bool(others) or settings.search
        request = self._request = output_request(self._wanted.kind, model.provider, model.name, has_tools=has_tools, taken=names)
        for spec in request.tools:
            self._harness.registry.register(_AnswerTool(spec, self))
        self._names = tuple(spec.name for spec in request.tools)
        if request.tools and settings.tool_choice == "none":  # other tools are not to be called: this one has to be
            others = ()
        if request.tools and not others:
            settings = msgspec.structs.replace(settings, tool_choice=_must_call(model, settings))
        return (*others, *request.tools), request.settings(settings)

    def move_to(self, harness: Harness) -> None:
        """Another agent has the conversation: it is asked for the same value."""
        self.close()
        self._harness, self._asked = harness, None

    def close(self) -> None:
        """Remove the tools that were added."""
        for name in self._names:
            self._harness.registry.remove(name)
        self._names = ()

    # --- reading

    async def take_text(self, text: str) -> bool:
        """Whether the answer is the value. If it is not, the model is told why; raises OutputInvalid where that was done often enough."""
        if self._value is not NOTHING:
            return True
        assert self._request is not None
        try:
            self._value = await self._finish(self._request.read_text(text))
        except ValueError as error:
            self._count_miss(str(error))
            self._harness.session.history.say(user(OUTPUT_NOTE.format(reason=str(error).rstrip("."))), "output")
            return False
        return True

    async def take_call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """What the model is told of a call that gives the answer. The first that fits is the answer."""
        async with self._taking:  # calls that only read run side by side
            if self._value is not NOTHING or self._request is None:
                return ToolOutput((Text("Not used: the answer was given already."),))
            try:
                self._value = await self._finish(self._request.read_call(name, args))
            except ValueError as error:
                return error_output(OUTPUT_NOTE.format(reason=str(error).rstrip(".")), "output_invalid")
            except Exception as error:
                self._failure = error
                return error_output("The answer could not be checked.", "exception")
        return ToolOutput((Text("This is the answer."),))

    def take_reports(self, reports: Sequence[CallReport]) -> bool:
        """Whether one of the calls gave the value. Raises what a check raised, or OutputInvalid."""
        if self._failure is not None:
            raise self._failure
        if self._value is not NOTHING:
            return True
        missed = [report.result.text for report in reports if report.call.name in self._names and report.result.is_error]
        if missed:
            self._count_miss(missed[-1])
        return False

    def put_into(self, result: Result[Any]) -> Result[T]:
        return msgspec.structs.replace(result, output=None if self._value is NOTHING else self._value)

    def _count_miss(self, reason: str) -> None:
        self._misses += 1
        if self._misses > self._harness.limits.output_tries:
            raise OutputInvalid(say("loop.output_invalid", type=self._wanted.kind.name, times=self._misses, reason=reason.rstrip(".")))

    async def _finish(self, value: Any) -> Any:
        value = await self._wanted.finish(value)
        for check in self._checks:
            checked = check(value)
            checked = await checked if isinstance(checked, Awaitable) else checked
            value = value if checked is None else checked
        return value

    # --- while it streams

    def watcher(self, emit: Emit) -> Callable[[StreamEvent], None]:
        """Tells the value so far, of one turn."""
        assert self._request is not None
        return _Watcher(self._request, emit, reads_pieces=not self._harness.session.model.provider.dialect).see


class _Watcher:
    """Reads along: the text, or the first call that gives the answer."""

    def __init__(self, request: OutputRequest[Any], emit: Emit, *, reads_pieces: bool) -> None:
        self._request = request
        self._reads_pieces = reads_pieces
        """Whether the pieces of a call are its arguments: of one written as text, they are that text."""
        self._emit = emit
        self._names = {spec.name for spec in request.tools}
        self._call = self._name = ""
        """Of the call that gives the answer, its id and its tool."""
        self._written: list[str] = []
        self._told: Any = NOTHING
        self._told_s = 0.0

    def see(self, event: StreamEvent) -> None:
        match event:
            case ResponseStarted() | Retrying():
                self._begin()
            case TextDelta(text=text) if not self._call:
                self._add(text)
            case ToolCallStarted(call_id=call_id, name=name) if name in self._names and not self._call:
                self._begin(call_id, name)
            case ToolCallDelta(call_id=call_id, arguments=arguments) if call_id == self._call and self._reads_pieces:
                self._add(arguments)
            case ToolCallReady(call=call) if call.name in self._names and self._is_without_pieces(call.id):
                self._begin(call.id, call.name)
                self._add(call.arguments)
            case ResponseFinished():
                self._tell()
            case _:
                pass

    def _is_without_pieces(self, call_id: str) -> bool:
        return not self._call or (call_id == self._call and not self._written)

    def _begin(self, call_id: str = "", name: str = "") -> None:
        self._call, self._name, self._told = call_id, name, NOTHING
        self._written.clear()

    def _add(self, text: str) -> None:
        self._written.append(text)
        if time.monotonic() - self._told_s >= UPDATE_S:
            self._tell()

    def _tell(self) -> None:
        if not self._written:
            return
        part = self._request.read_part("".join(self._written), self._name)
        if part is not NOTHING and part != self._told:
            self._told, self._told_s = part, time.monotonic()
            self._emit(OutputUpdated(part))


class _AnswerTool:
    """The tool whose valid call ends the run."""

    is_for_one_run = True

    def __init__(self, spec: ToolSpec, answer: TypedAnswer[Any]) -> None:
        self.spec = spec
        self._answer = answer

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return Intent(self.spec.name)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await self._answer.take_call(self.spec.name, args)


def _must_call(model: Model, settings: Settings) -> str:
    """The tool choice: `required`, as there is no other tool; `auto` for models that cannot think before a required call."""
    is_thinking = settings.thinking is not None and settings.thinking.effort != "off"
    return "auto" if is_thinking or not model.profile.forced_tool_choice else "required"


def _as_function(output: Any) -> FunctionTool[..., Any] | None:
    if isinstance(output, FunctionTool):
        return output
    if isinstance(output, partial):
        return FunctionTool(output, name=getattr(output.func, "__name__", ""))
    return FunctionTool(output) if inspect.isroutine(output) else None


def _arguments_of(function: FunctionTool[..., Any]) -> Typed[dict[str, Any]]:
    def convert(value: Any) -> dict[str, Any]:
        try:
            return function.convert(value)
        except msgspec.ValidationError as error:
            raise Misfit(str(error)) from None

    about = {"description": function.spec.description} if function.spec.description else {}
    return Typed(function.spec.name, {**function.spec.schema, **about}, convert)
