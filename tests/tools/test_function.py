"""A Python function as a tool."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import subprocess
import sys
import threading
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import msgspec
import pytest

from dragoman.tools.function import FunctionTool, tool
from dragoman.values.calls import Show, ToolOutput
from dragoman.values.errors import InputError, ToolBroken
from dragoman.values.messages import Blob, Text, ToolCall
from dragoman.values.schema import problems
from scheduling import Bench


class Point(msgspec.Struct):
    x: int
    y: int = 0


@dataclasses.dataclass
class Box:
    width: int


class Options(TypedDict):
    deep: bool
    limit: NotRequired[int]


def run(made: FunctionTool, show: Show = lambda text: None, **args: Any) -> ToolOutput:
    return asyncio.run(made.run(args, show))


def text(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content if isinstance(part, Text))


# --- what the model is told


def test_ten_lines_are_enough() -> None:
    @tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Rain in {city}."

    assert (weather.spec.name, weather.spec.description, weather.spec.read_only) == ("weather", "The weather in a city.", False)
    assert weather.spec.schema == {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    assert text(run(weather, city="Paris")) == "Rain in Paris."
    assert weather("Rome") == "Rain in Rome."
    (report,) = Bench([weather]).run(ToolCall("1", "weather", '{"city": "Oslo"}'))
    assert text(report.output) == "Rain in Oslo."


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Annotated[int, msgspec.Meta(ge=1, description="some")], {"type": "integer", "minimum": 1, "description": "some"}),
        (Annotated[int, msgspec.Meta(ge=1), "some"], {"type": "integer", "minimum": 1, "description": "some"}),
        (Any, {}),
        (Point, {"$ref": "#/$defs/Point"}),
        (list[Box], {"type": "array", "items": {"$ref": "#/$defs/Box"}}),
        (Options, {"$ref": "#/$defs/Options"}),
    ],
)
@pytest.mark.parametrize("optional", [False, True])
def test_the_schema_comes_from_the_annotations(hint: Any, schema: dict[str, Any], optional: bool) -> None:
    def needed(value):  # type: ignore[no-untyped-def]
        return None

    def left_out(value=None):  # type: ignore[no-untyped-def]
        return None

    function = left_out if optional else needed
    function.__annotations__["value"] = hint
    made = tool(function).spec.schema
    assert made["properties"]["value"] == schema
    assert made["required"] == ([] if optional else ["value"])
    assert made["additionalProperties"] is False


def test_nested_types_are_described_beside() -> None:
    def place(at: Point, options: Options) -> None: ...

    assert sorted(tool(place).spec.schema["$defs"]) == ["Options", "Point"]
    assert problems(tool(place).spec.schema, {"at": {"x": 1}, "options": {"deep": True}}) == []
    assert problems(tool(place).spec.schema, {"at": {"x": "1"}, "options": {}}) == [
        "at.x must be an integer, not a string",
        "options.deep is required",
    ]


def test_defaults_are_told_where_they_can_be() -> None:
    nothing = object()

    def find(a: int = 3, b: str = "x", c: list[int] = [1], d: Any = nothing, e: int | None = None, f: Point = Point(1)) -> None: ...  # noqa: B006, B008

    defaults = {name: field.get("default") for name, field in tool(find).spec.schema["properties"].items()}
    assert defaults == {"a": 3, "b": "x", "c": [1], "d": None, "e": None, "f": {"x": 1, "y": 0}}


def test_parameters_are_described_by_the_docstring() -> None:
    @tool
    def find(pattern: str, limit: Annotated[int, "at most"] = 5, deep: bool = False) -> str:
        """Find things.

        In many places.

        Args:
            pattern (str): What to look for:
                a word,

                or two.
            limit: not used, the annotation goes before it
            other: not there

        Returns:
            What was found.
        """
        return pattern

    assert find.spec.description == "Find things.\n\nIn many places.\n\nReturns:\n    What was found."
    described = {name: field.get("description") for name, field in find.spec.schema["properties"].items()}
    assert described == {"pattern": "What to look for: a word, or two.", "limit": "at most", "deep": None}


def test_name_description_kind_and_read_only_may_be_given() -> None:
    @tool(name="look-up", description="Looks up.", read_only=True, kind="search")
    def look(word: str) -> str:
        """Not this."""
        return word

    assert (look.spec.name, look.spec.description, look.spec.read_only, look.spec.kind) == ("look-up", "Looks up.", True, "search")
    assert repr(look) == "<tool look-up>"


def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    class Shop:
        def price(self, item: str, currency: str = "EUR") -> str:
            """What it costs."""
            return f"{item} 5 {currency}"

        def __call__(self, item: str) -> str:
            return item

    assert text(run(tool(Shop().price), item="tea")) == "tea 5 EUR"
    assert list(tool(Shop(), name="shop").spec.schema["properties"]) == ["item"]
    assert text(run(tool(functools.partial(Shop().price, "tea"), name="tea"), currency="CHF")) == "tea 5 CHF"


def test_positional_only_and_keyword_only_parameters_are_filled() -> None:
    def join(a: str, b: str = "-", /, *, c: str) -> str:
        return a + b + c

    assert text(run(tool(join), a="1", c="3")) == "1-3"


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x, "pass name="),
        (functools.partial(print), "pass name="),
        (print, "takes \\*args"),
        (type, "the signature of type cannot be read"),
    ],
)
def test_what_a_model_cannot_be_told_of_is_refused(function: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        tool(function)


def test_annotations_that_mean_nothing_to_a_model_are_refused() -> None:
    def takes_lock(lock: threading.Event) -> None: ...
    def takes_nothing_known(thing: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InputError, match="the parameters of takes_lock cannot be described"):
        tool(takes_lock)
    with pytest.raises(InputError, match="the annotations of takes_nothing_known cannot be read"):
        tool(takes_nothing_known)


# --- calling it


def test_arguments_are_converted() -> None:
    seen: list[Any] = []

    @tool
    def take(point: Point, box: Box, options: Options, ratio: float) -> None:
        seen.extend([point, box, options, ratio])

    run(take, point={"x": 1}, box={"width": 2}, options={"deep": True}, ratio=1)
    assert seen == [Point(1), Box(2), {"deep": True}, 1.0]


def test_what_the_model_leaves_out_has_the_functions_own_default() -> None:
    token = object()

    @tool
    def take(a: int = 3, b: Any = token) -> str:
        return f"{a} {b is token}"

    assert text(run(take)) == "3 True"


def test_arguments_that_do_not_fit_are_an_error() -> None:
    @tool
    def take(a: int) -> None: ...

    for args in ({"a": "x"}, {}, {"a": 1, "b": 2}):
        output = run(take, **args)
        assert (output.is_error, output.error_type) == (True, "invalid_arguments")


def test_an_async_function_runs_on_the_loop_and_a_sync_one_beside_it() -> None:
    @tool
    async def here() -> int:
        await asyncio.sleep(0)
        return threading.get_ident()

    @tool
    def beside() -> int:
        return threading.get_ident()

    assert text(run(here)) == str(threading.get_ident())
    assert text(run(beside)) != str(threading.get_ident())


def test_a_sync_function_that_returns_a_coroutine_is_awaited() -> None:
    async def later() -> str:
        return "later"

    assert text(run(tool(lambda: later(), name="t"))) == "later"


def test_context_variables_reach_the_thread() -> None:
    user = contextvars.ContextVar[str]("user")
    user.set("ada")
    assert text(run(tool(lambda: user.get(), name="who"))) == "ada"


def test_show_is_handed_in_and_kept_from_the_model() -> None:
    @tool
    def work(steps: int, show: Show) -> str:
        for step in range(steps):
            show(f"{step} ")
        return "done"

    assert list(work.spec.schema["properties"]) == ["steps"]
    bench = Bench([work])
    bench.run(ToolCall("1", "work", '{"steps": 3}'))
    shown = [getattr(event, "output_delta", "") for event in bench.events]
    assert "".join(shown) == "0 1 2 "


# --- what it returns


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("plain", (Text("plain"),)),
        (None, ()),
        (Text("part"), (Text("part"),)),
        (Blob("image/png", "00", 1), (Blob("image/png", "00", 1),)),
        ([Text("a"), Blob("image/png", "00", 1), "b"], (Text("a"), Blob("image/png", "00", 1), Text("b"))),
        (["a", "b"], (Text('["a","b"]'),)),
        ([], (Text("[]"),)),
        ({"a": [1, None, True]}, (Text('{"a":[1,null,true]}'),)),
        (Point(1), (Text('{"x":1,"y":0}'),)),
        (Box(2), (Text('{"width":2}'),)),
        (0, (Text("0"),)),
        (ToolOutput((Text("own"),), display="shown"), (Text("own"),)),
    ],
)
def test_what_is_returned_becomes_content(value: Any, content: tuple[Any, ...]) -> None:
    assert run(tool(lambda: value, name="t")).content == content


def test_what_cannot_be_written_down_is_an_error() -> None:
    output = run(tool(lambda: threading.Event(), name="t"))
    assert output.is_error
    assert "t returned a Event, which cannot be written as JSON" in text(output)


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(1), StopIteration(), KeyboardInterrupt()])
def test_what_a_function_raises_is_an_error_output(error: BaseException) -> None:
    def fail() -> None:
        raise error

    output = run(tool(fail))
    assert output.is_error
    assert type(error).__name__ in text(output)
    assert "Traceback" in output.extras


def test_what_an_async_function_raises_is_an_error_output() -> None:
    async def fail() -> None:
        raise SystemExit(1)

    assert text(run(tool(fail))) == "fail failed: SystemExit: 1"


def test_a_broken_tool_is_no_result() -> None:
    def fail() -> None:
        raise ToolBroken("no space left")

    with pytest.raises(ToolBroken):
        run(tool(fail))


# --- what is shown before it runs


def test_the_intent_names_the_call_in_one_line_and_shows_the_whole() -> None:
    @tool
    def send(to: str, body: str = "") -> None: ...

    intent = send.intend({"to": "ada", "body": "line\nline"})
    assert intent.title == 'send(to="ada", body="line\\nline")'
    assert intent.preview == 'send({\n  "to": "ada",\n  "body": "line\\nline"\n})'
    long = send.intend({"to": "x" * 10_000})
    assert len(long.title) <= 120
    assert "x" * 10_000 in long.preview
    assert send.intend({}).title == "send()"


# --- cancelling


def test_an_async_function_is_cancelled() -> None:
    async def scenario() -> None:
        started, ended = asyncio.Event(), asyncio.Event()

        @tool
        async def wait() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        task = asyncio.create_task(wait.run({}, lambda text: None))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(scenario())


def test_a_cancelled_sync_function_is_waited_for() -> None:
    """It cannot be interrupted: the cancel goes on its way when it is over."""

    async def scenario() -> None:
        started, go = threading.Event(), threading.Event()
        ended: list[bool] = []

        @tool
        def work() -> None:
            started.set()
            go.wait(60)
            ended.append(True)

        task = asyncio.create_task(work.run({}, lambda text: None))
        await asyncio.to_thread(started.wait, 60)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(scenario())


def test_a_sync_function_that_hangs_is_abandoned_and_its_words_are_lost() -> None:
    async def scenario() -> None:
        started, go = threading.Event(), threading.Event()

        @tool
        def work(show: Show) -> None:
            started.set()
            go.wait(300)
            show("too late")

        bench = Bench([work])
        task = asyncio.create_task(bench.scheduler.run([ToolCall("1", "work")]))
        await asyncio.to_thread(started.wait, 60)
        assert bench.scheduler.cancel("1")
        (report,) = await asyncio.wait_for(task, 60)
        assert "may still be running" in text(report.output)
        go.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=60)
        assert "too late" not in str(bench.events)

    asyncio.run(scenario())


def test_a_function_that_hangs_does_not_keep_the_program_from_ending() -> None:
    program = """
import asyncio, time
from dragoman.tools.function import tool

async def main():
    task = asyncio.create_task(tool(lambda: time.sleep(60), name="hang").run({}, print))
    await asyncio.sleep(0.1)
    task.cancel()

asyncio.run(main())
print("over")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
