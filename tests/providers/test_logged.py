"""What is told of a request, what is kept from the log, and that nothing changes for being watched."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from dragoman.providers.logged import Figures, Logged
from dragoman.values import messages
from dragoman.values.calls import prompt_at_work
from dragoman.values.contracts import HttpRequest, Provider
from dragoman.values.errors import RateLimited, StreamBroken
from dragoman.values.events import ResponseFinished, ResponseStarted, Retrying, StreamEvent, TextDelta, UsageUpdated
from dragoman.values.messages import FinishReason, Request, Response, ToolSpec
from dragoman.values.profile import Profile
from dragoman.values.usage import Prices, Usage

KEY = "sk-proj-abcDEF0123456789"
TOKEN = "hush-hush-0123"
USAGE = Usage(fresh_tokens=1_000, cache_read_tokens=3_000, output_tokens=500)
RESPONSE = Response(messages.assistant(f"hello, your key is {KEY}, and {TOKEN}"), FinishReason.STOP, usage=USAGE)
REQUEST = Request(
    "m-1", (messages.user(f"my key is {KEY}, and {TOKEN}"), messages.assistant("so"), messages.user("go on")), tools=(ToolSpec("t", "d"),)
)
EVENTS: list[StreamEvent] = [ResponseStarted(), TextDelta("hello"), UsageUpdated(USAGE), ResponseFinished(FinishReason.STOP, RESPONSE)]


class Clock:
    """Tells what it was last set to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Played:
    """A Provider that plays events; an exception among them is raised, a number passes the time, None waits for ever."""

    name = "acme"

    def __init__(
        self, events: Sequence[StreamEvent | BaseException | float | None], clock: Clock | None = None, prices: bool = True
    ) -> None:
        self.events = events
        self.clock = clock or Clock()
        self.prices = Prices(input=2.0, output=10.0, cache_read=0.2) if prices else None
        self.prepared = 0
        self.closed = False
        self.stream_closed = False

    def profile(self, model: str) -> Profile:
        return Profile(prices=self.prices)

    def prepare(self, request: Request) -> HttpRequest:
        self.prepared += 1
        return HttpRequest("POST", "https://api.acme.test", {}, request.messages[0].text.encode())

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        try:
            for event in self.events:
                if isinstance(event, BaseException):
                    raise event
                if event is None:
                    await asyncio.sleep(600)
                elif isinstance(event, float):
                    self.clock.now += event
                else:
                    yield event
        finally:
            self.stream_closed = True

    async def generate(self, request: Request) -> Response:
        self.clock.now += 2.0
        for event in self.events:
            if isinstance(event, BaseException):
                raise event
        return RESPONSE

    async def count_tokens(self, request: Request) -> int:
        return 7

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        return [[0.0] for _ in texts]

    async def aclose(self) -> None:
        self.closed = True


async def collect(provider: Provider, take: int = 99) -> list[StreamEvent]:
    got: list[StreamEvent] = []
    async with aclosing(provider.stream(REQUEST)) as events:
        async for event in events:
            got.append(event)
            if len(got) == take:
                break
    return got


@pytest.fixture
def logger() -> logging.Logger:
    return logging.getLogger("test.logged")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[int], Callable[[], list[str]]]:
    def at(level: int) -> Callable[[], list[str]]:
        caplog.set_level(level, "test.logged")
        return lambda: [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == "test.logged"]

    return at


def test_one_line_when_it_starts_and_one_when_it_ends(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.INFO)
    clock = Clock()
    played = Played([0.25, Retrying(1, 5.0, "busy"), 0.25, *EVENTS[:2], 1.0, *EVENTS[2:]], clock)
    provider = Logged(played, logger, clock)
    assert asyncio.run(collect(provider)) == [Retrying(1, 5.0, "busy"), *EVENTS]
    assert lines() == [
        f"INFO acme m-1 #1: stream, 3 messages, {len(REQUEST.messages[0].text)} bytes, 1 tools",
        "INFO acme m-1 #1: stop, 4000 tokens in (3000 read from cache, 0 written), 500 out, $0.007600, "
        "first event 0.500 s, total 1.500 s, 1 retry",
    ]
    asyncio.run(collect(provider))
    assert " #2: " in lines()[2]


def test_telemetry_gets_the_figures(logger: logging.Logger) -> None:
    clock = Clock()
    figures: list[Figures] = []
    asyncio.run(collect(Logged(Played([0.5, *EVENTS, 1.0], clock), logger, clock, on_finished=figures.append)))
    assert figures == [
        Figures(
            provider="acme",
            model="m-1",
            kind="stream",
            outcome="finished",
            finish="stop",
            usage=USAGE,
            cost_usd=pytest.approx(0.0076),
            first_event_s=0.5,
            total_s=1.5,
            messages=3,
            tools=1,
        )
    ]


def test_without_prices_there_is_no_cost(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.INFO)
    asyncio.run(collect(Logged(Played(EVENTS, prices=False), logger)))
    assert "$" not in lines()[1]


def test_an_error_passes_through_untouched_and_is_told_once(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.WARNING)
    error = RateLimited(f"slow down,\n{KEY} and {TOKEN}", provider="acme", status=429)
    figures: list[Figures] = []
    clock = Clock()
    provider = Logged(Played([0.5, EVENTS[0], 0.5, error], clock), logger, clock, on_finished=figures.append, secrets=[TOKEN])
    with pytest.raises(RateLimited) as caught:
        asyncio.run(collect(provider))
    assert caught.value is error
    told = "WARNING acme m-1 #1: RateLimited: acme: slow down, REDACTED and REDACTED (HTTP 429); first event 0.500 s, total 1.000 s"
    assert lines() == [told]
    assert [(each.outcome, each.error, each.total_s) for each in figures] == [("failed", "RateLimited", 1.0)]


def test_cancelling_passes_through_and_closes_the_stream(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.INFO)
    played = Played([EVENTS[0], None])

    async def run() -> None:
        task = asyncio.create_task(collect(Logged(played, logger)))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert played.stream_closed

    asyncio.run(run())
    assert len(lines()) == 2
    assert lines()[1].startswith("INFO acme m-1 #1: cancelled, first event")


def test_a_reader_that_leaves_early_closes_the_stream(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.INFO)
    played = Played(EVENTS)

    async def run() -> None:
        await collect(Logged(played, logger), take=2)
        assert played.stream_closed

    asyncio.run(run())
    assert "cancelled" in lines()[1]


def test_a_reader_that_leaves_after_the_last_event_has_not_cancelled(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.INFO)
    asyncio.run(collect(Logged(Played(EVENTS), logger), take=len(EVENTS)))
    assert "#1: stop, 4000 tokens in" in lines()[1]


def test_bodies_are_for_debugging_without_secrets_and_cut_short(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.DEBUG)
    asyncio.run(collect(Logged(Played(EVENTS), logger, secrets=lambda: [TOKEN])))
    assert [line.split()[0] for line in lines()] == ["INFO", "DEBUG", "INFO", "DEBUG"]
    assert "sends my key is REDACTED, and REDACTED" in lines()[1]
    assert "hello, your key is REDACTED, and REDACTED" in lines()[3]
    assert KEY not in "".join(lines())
    assert TOKEN not in "".join(lines())


@pytest.mark.parametrize("limit", range(0, 60, 3))
def test_no_half_of_a_secret_is_left_where_a_body_is_cut(logger: logging.Logger, log: Any, limit: int) -> None:
    lines = log(logging.DEBUG)
    asyncio.run(collect(Logged(Played(EVENTS), logger, secrets=[TOKEN], body_limit=limit)))
    sent = lines()[1]
    assert sent.endswith(f"… ({len(REQUEST.messages[0].text)} bytes)") or limit > 30
    assert "sk-" not in sent
    assert "hush" not in sent


def test_a_long_body_costs_little(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.DEBUG)
    request = Request("m", (messages.user("é" * 5_000_000),))

    async def run() -> None:
        async for _ in Logged(Played(EVENTS), logger).stream(request):
            pass

    asyncio.run(run())
    assert len(lines()[1]) < 5_000
    assert lines()[1].endswith("… (10,000,000 bytes)")


def test_when_nobody_listens_the_stream_is_the_providers_own(logger: logging.Logger, log: Any) -> None:
    log(logging.CRITICAL)
    played = Played(EVENTS)
    provider = Logged(played, logger)
    stream = provider.stream(REQUEST)
    assert stream.__qualname__ == "Played.stream"
    asyncio.run(stream.aclose())
    assert played.prepared == 0


def test_where_only_errors_are_told_nothing_is_rendered(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.WARNING)
    played = Played(EVENTS)
    assert asyncio.run(collect(Logged(played, logger))) == EVENTS
    assert (played.prepared, lines()) == (0, [])


def test_a_request_that_cannot_be_prepared_fails_in_its_own_words(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.INFO)
    played = Played([ValueError("own words")])
    played.prepare = lambda request: 1 / 0  # type: ignore[assignment,method-assign,return-value]
    with pytest.raises(ValueError, match="own words"):
        asyncio.run(collect(Logged(played, logger)))
    assert "unknown bytes" in lines()[0]


def test_a_telemetry_hook_that_fails_harms_no_request_and_is_reported(logger: logging.Logger) -> None:
    """It vanished where logging was not set up."""
    reported: list[dict[str, Any]] = []

    def hook(figures: Figures) -> None:
        raise RuntimeError("broken")

    async def go() -> list[Any]:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        return await collect(Logged(Played(EVENTS), logger, on_finished=hook))

    assert asyncio.run(go()) == EVENTS
    assert [(context["message"], repr(context["exception"])) for context in reported] == [
        ("on_finished of dragoman.Logged failed; the request went on without it", "RuntimeError('broken')")
    ]


def test_it_is_seen_in_a_program_that_set_nothing_up() -> None:
    program = """
import asyncio
import dragoman as dm

def hook(figures):
    raise RuntimeError("broken")

provider = dm.Logged(dm.testing.ScriptedProvider("text: Hello."), on_finished=hook)
print(asyncio.run(provider.generate(dm.build_request("m", "Hello"))).message.text)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "Hello.\n"
    assert "on_finished of dragoman.Logged failed" in done.stderr
    assert "RuntimeError: broken" in done.stderr


def test_the_rest_of_the_contract_is_watched_too(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.INFO)
    clock = Clock()
    played = Played([], clock)
    figures: list[Figures] = []
    provider: Provider = Logged(played, logger, clock, on_finished=figures.append)

    async def run() -> None:
        assert await provider.generate(REQUEST) is RESPONSE
        assert await provider.count_tokens(REQUEST) == 7
        assert await provider.embed(["a", "b"], "e-1") == [[0.0], [0.0]]
        await provider.aclose()

    asyncio.run(run())
    assert played.closed
    assert provider.name == "acme"
    assert provider.profile("m-1") == played.profile("m-1")
    assert provider.prepare(REQUEST).url == "https://api.acme.test"
    assert [line.partition(": ")[2] for line in lines()[1::2]] == [
        "stop, 4000 tokens in (3000 read from cache, 0 written), 500 out, $0.007600, total 2.000 s",
        "7 tokens, total 0.000 s",
        "2 vectors, total 0.000 s",
    ]
    assert [each.kind for each in figures] == ["generate", "count_tokens", "embed"]


def test_a_failed_generate_is_told(logger: logging.Logger, log: Any) -> None:
    lines = log(logging.WARNING)
    error = RateLimited("slow down")
    with pytest.raises(RateLimited) as caught:
        asyncio.run(Logged(Played([error]), logger).generate(REQUEST))
    assert caught.value is error
    assert lines()[0].startswith("WARNING acme m-1 #1: RateLimited: slow down; total")


def test_a_program_without_logging_hears_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    import subprocess
    import sys

    code = "import logging; import dragoman.providers.logged; logging.getLogger('dragoman.providers').warning('failed')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={"PYTHONPATH": ":".join(sys.path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_a_broken_request_took_is_the_least_it_can_be(caplog: pytest.LogCaptureFixture) -> None:
    figures: list[Figures] = []
    provider = Logged(Played([ResponseStarted(), UsageUpdated(USAGE), StreamBroken("cut")]), on_finished=figures.append)
    with caplog.at_level(logging.INFO, "dragoman.providers"), pytest.raises(StreamBroken):
        asyncio.run(collect(provider))
    assert figures[0].usage == msgspec.structs.replace(USAGE, incomplete=1)
    assert "at least 4000 tokens in" in caplog.text
    assert "at least $" in caplog.text


def test_figures_name_the_prompt() -> None:
    figures: list[Figures] = []

    async def go() -> None:
        prompt_at_work.set("s#3")
        await collect(Logged(Played(EVENTS), on_finished=figures.append))

    asyncio.run(go())
    assert figures[0].prompt_id == "s#3"
