"""A Python function as a tool.

    @tool
    def weather(city: str) -> str:
        "The weather in a city."
        return look_up(city)

The schema comes from the annotations, the description from the docstring. Whatever the function returns becomes the result. A parameter
annotated `ToolContext` receives what it may know of its call.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Generic, ParamSpec, TypeVar, get_args, get_origin, get_type_hints, overload

import msgspec

from dragoman.base import jsontext
from dragoman.tools import results
from dragoman.tools.docstring import read_docstring
from dragoman.tools.registry import check_name
from dragoman.tools.returned import to_output
from dragoman.tools.tool_context import ToolContext, is_context
from dragoman.values.calls import Intent, Later, Show, ToolOutput
from dragoman.values.errors import InputError, ToolBroken
from dragoman.values.messages import ToolKind, ToolSpec
from dragoman.words import say

if TYPE_CHECKING:
    from inspect import Parameter

    from dragoman.values.typed import Typed

P = ParamSpec("P")
R = TypeVar("R")

SHOW = "show"
"""A parameter of this name receives the Show callable; it is not part of the schema."""
MAX_TITLE_CHARS = 120
_CONTEXT_OF = re.compile(r"\bToolContext\[")


def _show_nobody(text: str) -> None:
    return


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str = "",
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    read_only: bool = False,
    kind: ToolKind = "other",
    timeout_s: float | None = None,
    external: bool = False,
    polled: bool = False,
) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    read_only: bool = False,
    kind: ToolKind = "other",
    timeout_s: float | None = None,
    external: bool = False,
    polled: bool = False,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    read_only: bool = False,
    kind: ToolKind = "other",
    timeout_s: float | None = None,
    external: bool = False,
    polled: bool = False,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """A function, sync or async, as a Tool: `@tool`, `@tool(read_only=True)` or `tool(function, name=…)`.

    parameters: the JSON Schema of the arguments, in the place of the annotations; the function receives them by name as they were decoded.
    read_only: it changes nothing, so it may run in parallel and without approval. timeout_s: after so many seconds it is cancelled, and the
    model is told so. external: the function is never called; the run ends, and `agent.resume(results=…)` gives the result. polled: the
    model may call it again and again with the same arguments, to see whether something has changed, and that is not taken for going in
    circles; `Limits.max_turns` still ends the run. Raises InputError if the signature has no JSON schema.
    """
    options: Any = {
        "name": name,
        "description": description,
        "parameters": parameters,
        "read_only": read_only,
        "kind": kind,
        "timeout_s": timeout_s,
        "external": external,
        "polled": polled,
    }
    if function is None:
        return lambda function: FunctionTool(function, **options)
    return FunctionTool(function, **options)


def _pattern_check(schema: dict[str, Any]) -> Callable[[Any], None] | None:
    """None where the schema has no pattern."""
    if '"pattern"' not in _json(schema):
        return None
    from dragoman.values.typed import Misfit, pattern_check

    check = pattern_check(schema)

    def raising(args: Any) -> None:
        try:
            check(args)
        except Misfit as error:
            raise msgspec.ValidationError(str(error)) from None

    return raising


class FunctionTool(Generic[P, R]):
    """What `tool` returns. It can still be called like the original function, and type checkers know its signature."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str = "",
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        read_only: bool = False,
        kind: ToolKind = "other",
        timeout_s: float | None = None,
        external: bool = False,
        polled: bool = False,
    ) -> None:
        name = name or getattr(function, "__name__", "")
        if not name.isidentifier() and name == getattr(function, "__name__", ""):
            raise InputError(say("tools.function_without_name", function=repr(function)))
        check_name(name)
        about, parameter_texts = read_docstring(inspect.getdoc(function) or "" if hasattr(function, "__name__") else "")
        taken = _parameters(function, name, is_open=parameters is not None)
        self._function: Callable[..., Any] = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
        self._is_external = external
        self._positional = [key for key, parameter in taken.items() if parameter.kind is parameter.POSITIONAL_ONLY]
        self._takes_show = taken.pop(SHOW, None) is not None
        hints = _hints(function, name)
        self._context_key = _context_parameter(name, hints, taken)
        taken.pop(self._context_key, None)
        self._models: dict[str, Typed[Any]] = {}
        self._arguments: type[msgspec.Struct] | None = None
        """What the arguments are converted to; None where the schema was given."""
        if parameters is None:
            self._models = _pydantic_types(hints, taken)
            self._arguments = _arguments_type(name, hints | dict.fromkeys(self._models, Any), taken, parameter_texts)
            schema = _schema(self._arguments, name, taken, self._models)
        else:
            from dragoman.tools.given_schema import checked_schema

            schema = checked_schema(name, parameters, taken)
        self.timeout_s = _check_timeout(name, timeout_s)
        """How long it may run; 0: as long as it takes."""
        self.polled = polled
        """Whether calling it again with the same arguments is what it is for."""
        self.spec = ToolSpec.of(name, description or about, schema, kind=kind, read_only=read_only)
        self._check_patterns = _pattern_check(schema) if parameters is None else None
        self.__name__ = name
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.spec.name}>"

    def intend(self, args: Mapping[str, Any]) -> Intent:
        written = ", ".join(f"{key}={_json(value)}" for key, value in args.items())
        title = f"{self.spec.name}({written})"
        short = title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 2] + "…)"
        return Intent(short, f"{self.spec.name}({_json(args, indent=2)})" if args else title)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            given = self.convert(args)
        except msgspec.ValidationError as error:
            return results.error_output(f"{self.spec.name} was not run: its arguments do not fit ({error})", "invalid_arguments")
        if self._is_external:
            raise Later
        try:
            return await to_output(await self.call(given, show), self.spec.name)
        except (ToolBroken, Later):
            raise
        except (Exception, SystemExit) as error:
            return results.exception_output(error, self.spec.name)

    def convert(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Decoded JSON as arguments of the function. Raises msgspec.ValidationError."""
        if self._arguments is None:
            from dragoman.tools.given_schema import check_arguments

            return check_arguments(self.spec.schema, args)
        if self._check_patterns is not None:
            self._check_patterns(args)
        converted = msgspec.convert(args, self._arguments)
        given = {key: value for key in converted.__struct_fields__ if (value := getattr(converted, key)) is not msgspec.UNSET}
        for key in self._models.keys() & given.keys():
            try:
                given[key] = self._models[key].convert(given[key])
            except ValueError as error:
                raise msgspec.ValidationError(f"{key}: {error}") from None
        return given

    async def call(self, given: dict[str, Any], show: Show = _show_nobody) -> object:
        """Call the function with converted arguments; a plain one in a thread of its own."""
        if self._takes_show:
            given[SHOW] = show
        if not self._context_key:
            return await self._call(given, None)
        context = given[self._context_key] = ToolContext.of(show)
        try:
            return await self._call(given, context)
        except asyncio.CancelledError:
            context.cancel()  # a thread that the function has started may look
            raise

    async def _call(self, given: dict[str, Any], context: ToolContext[Any] | None) -> object:
        first = [given.pop(key) for key in self._positional if key in given]
        if self._is_async:
            return await self._function(*first, **given)
        returned = await _in_own_thread(lambda: self._function(*first, **given), context)
        return await returned if isinstance(returned, Awaitable) else returned


# --- parameters ------------------------------------------------------------------------------------------------------------------


def _parameters(function: Callable[..., Any], name: str, *, is_open: bool = False) -> dict[str, Parameter]:
    """`is_open`: the schema is given, so `**arguments` may take what it names."""
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise InputError(say("tools.function_signature", name=name, reason=error)) from error
    for key, parameter in parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL or (parameter.kind is parameter.VAR_KEYWORD and not is_open):
            raise InputError(say("tools.function_variadic", name=name, parameter=key))
    return parameters


def _pydantic_types(hints: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, Typed[Any]]:
    """The parameters that pydantic knows and msgspec does not: models, and `Annotated[int, Field(ge=1)]`."""
    if "pydantic" not in sys.modules:
        return {}
    from dragoman.values.typed import is_of_pydantic, typed

    return {key: typed(hints[key]) for key in parameters if key in hints and is_of_pydantic(hints[key])}


def _context_parameter(name: str, hints: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> str:
    """The one that receives the ToolContext; empty if none does."""
    found = [key for key in parameters if is_context(hints.get(key))]
    if len(found) > 1:
        raise InputError(say("tools.function_contexts", name=name, parameters=", ".join(found)))
    return found[0] if found else ""


def _check_timeout(name: str, timeout_s: object) -> float:
    if timeout_s is None:
        return 0.0
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not timeout_s > 0:
        raise InputError(say("tools.function_timeout", name=name, given=timeout_s))
    return float(timeout_s)


def _arguments_type(
    name: str, hints: Mapping[str, Any], parameters: Mapping[str, Parameter], parameter_texts: Mapping[str, str]
) -> type[msgspec.Struct]:
    """A Struct with a field for each parameter. One left out by the model stays UNSET, so that the function's own default applies."""
    try:
        fields: list[Any] = []
        for key, parameter in parameters.items():
            hint = _annotate(hints.get(key, Any), parameter_texts.get(key, ""))
            optional = parameter.default is not parameter.empty
            fields.append((key, hint | msgspec.UnsetType, msgspec.UNSET) if optional else (key, hint))
        return msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)
    except (TypeError, ValueError) as error:
        raise InputError(say("tools.function_parameters", name=name, reason=error)) from error


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(target, None, unknown, include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            missing = getattr(error, "name", "")
            if not isinstance(error, NameError) or missing in unknown or not _is_of_context(target, missing):
                raise InputError(say("tools.function_annotations", name=name, reason=error)) from error
            unknown[missing] = Any


def _is_of_context(target: object, name: str) -> bool:
    """Whether a name that is not known stands for dependencies alone, as in `ToolContext[Deps]`: that may be for type checkers only."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    uses = [hint for hint in getattr(target, "__annotations__", {}).values() if isinstance(hint, str) and word.search(hint)]
    return bool(uses) and all(_CONTEXT_OF.search(hint) for hint in uses)


def _annotate(hint: Any, description: str) -> Any:
    """`Annotated[T, "words"]` as msgspec understands it; these words take precedence over the docstring."""
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        own = next((note for note in notes if isinstance(note, str)), "")
        described_there = any(isinstance(note, msgspec.Meta) and note.description for note in notes)
        metas = [note for note in notes if not isinstance(note, str)]
        description = own or ("" if described_there else description)
        hint = Annotated[(kind, *metas)] if metas else kind
    return Annotated[hint, msgspec.Meta(description=description)] if description else hint


def _schema(
    arguments: type[msgspec.Struct], name: str, parameters: Mapping[str, Parameter], models: Mapping[str, Typed[Any]]
) -> dict[str, Any]:
    """The Struct's schema with the object at the root, and the defaults that JSON can express."""
    try:
        (_,), components = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    except (TypeError, ValueError) as error:
        raise InputError(say("tools.function_parameters", name=name, reason=error)) from error
    root = components.pop(arguments.__name__)
    root.pop("title", None)
    for key, model in models.items():
        components |= model.schema.get("$defs", {})
        root["properties"][key] |= {word: value for word, value in model.schema.items() if word != "$defs"}
    for key, field in root["properties"].items():
        default = parameters[key].default
        if default is not parameters[key].empty and default is not None and (json_default := _as_default(default)) is not None:
            field["default"] = json_default
    return {**root, **({"$defs": components} if components else {})}


def _as_default(default: object) -> Any:
    try:
        return msgspec.to_builtins(default)
    except TypeError:
        return None


def _json(value: object, indent: int = -1) -> str:
    data = jsontext.encode(value)
    return (msgspec.json.format(data, indent=indent) if indent >= 0 else data).decode()


async def _in_own_thread(function: Callable[[], object], context_of_call: ToolContext[Any] | None) -> object:
    """Run it in a daemon thread, which does not keep the program from exiting.

    A function cannot be interrupted. When cancelled, we wait for it, so that the caller knows whether it stopped; one that takes a
    ToolContext sees there that it should.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[object] = loop.create_future()

    def settle(value: object, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    run = functools.partial(context.run, function)
    del context, function  # `work` lets go of them before it tells that it is done: they hold the run, and the thread lives on for a moment

    def work() -> None:
        nonlocal run
        value, error = None, None
        try:
            value = run()
        except BaseException as raised:
            # A future does not accept StopIteration, and SystemExit must not leave the loop.
            error = raised if isinstance(raised, Exception) and not isinstance(raised, StopIteration) else RuntimeError(repr(raised))
        run = functools.partial(type(None))
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            pass  # the loop is closed: no one waits any more

    threading.Thread(target=work, name="dragoman tool", daemon=True).start()
    try:
        await asyncio.wait([done])
    except asyncio.CancelledError:
        if context_of_call is not None:
            context_of_call.cancel()
        done.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([done])
        raise
    return done.result()
