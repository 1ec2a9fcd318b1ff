"""`dragoman doctor --live`: asks first, tries every feature of a protocol once, and says what worked."""

from __future__ import annotations

import asyncio
import signal
import string
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import dragoman as dm
from destinations import ACCENTED, rules_of
from dragoman.app import live_checks
from dragoman.app.live import LiveRow, LiveRun
from dragoman.app.live_exchange import LiveExchange, Planned, Service
from dragoman.app.live_samples import one_page_pdf, red_square
from dragoman.base.graphemes import width
from dragoman.cli.live_page import feature_name, page_of
from dragoman.conversation.page import Look
from dragoman.providers.catalog import profile_for
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.script_steps import CallStep, CutStep, Fail, Finish, Say, ScriptedAnswer, Step, Wait, answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.errors import NotFound, Unauthorized
from dragoman.words.en.program_live import TEXTS as ENGLISH
from dragoman.words.zh.program_live import TEXTS as CHINESE
from live_service import CITY, GoodModel
from program import KEY, PROTOCOLS, Place, service
from program import Service as Loopback
from terminals import terminal

Serve = Callable[..., Loopback]
MODEL = "anthropic/claude-opus-5"
ALWAYS = {"plain", "stream", "limit", "tools", "schema"}


async def checked(
    model: str, faults: Mapping[str, Step | ScriptedAnswer] | None = None, *, exchange_s: float = 20, key: str = KEY, **options: Any
) -> LiveRun:
    """The rows of a model, against a loopback service that is strict about requests unless `rules` says otherwise."""
    deployment, name = dm.builtin_catalog().find(model)
    rules = options.pop("rules", rules_of(deployment, profile_for(deployment, name)))
    async with dm.testing.MockServer(GoodModel(faults), key=KEY, rules=rules, **options) as server:
        base = server.url + ("/v1" if deployment.protocol.startswith("openai") or deployment.auth == "vertex" else "")
        env = {"GOOGLE_CLOUD_PROJECT": "some-project"}
        connection = dm.connect(model, key=key, base_url=base, env=env, retry=RetryPolicy(attempts=1))
        run = LiveRun(connection, exchange_s=exchange_s)
        try:
            await run.check()
        finally:
            await connection.aclose()
    return run


def states(run: LiveRun) -> dict[str, str]:
    return {row.feature: row.state for row in run.rows}


def row_of(run: LiveRun, feature: str) -> LiveRow:
    return next(row for row in run.rows if row.feature == feature)


# --- every protocol ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*PROTOCOLS.values(), *(ACCENTED[name] for name in ("mistral", "anthropic-budget", "vllm", "kimi"))])
def test_everything_a_service_offers_works(model: str) -> None:
    run = asyncio.run(checked(model))
    failed = {row.feature: row.text for row in run.rows if row.state == "failed"}
    assert not failed
    assert {name for name, state in states(run).items() if state == "worked"} >= ALWAYS
    assert len(states(run)) == len(run.rows), "a feature has one row"


@pytest.mark.parametrize("model", PROTOCOLS.values())
def test_what_came_back_is_told_with_tokens_and_cost(model: str) -> None:
    run = asyncio.run(checked(model, rules=None))
    assert run.worked, run.rows
    assert row_of(run, "plain").text == "“pong”"
    assert row_of(run, "tools").requests == 2
    assert row_of(run, "cache").usage.cache_read_tokens == 5_000
    assert row_of(run, "image").text == "“Red”"
    for row in run.rows:
        assert row.state != "worked" or row.seconds > 0
        assert row.cost_usd or not row.usage.total_tokens
    assert run.cost_usd == pytest.approx(sum(row.cost_usd or 0 for row in run.rows))


def test_what_the_model_lacks_is_not_a_failure() -> None:
    run = asyncio.run(checked("openai/gpt-4.1", rules=None))
    offered = states(run)
    assert {name for name, state in offered.items() if state == "not_offered"} == {"thinking", "effort", "search", "search_tools", "count"}
    assert run.worked
    assert all(row.text and not row.requests for row in run.rows if row.state == "not_offered")


def test_efforts_that_are_the_same_to_the_model_are_tried_once() -> None:
    budget = asyncio.run(checked(ACCENTED["anthropic-budget"], rules=None))
    assert [row.feature for row in budget.rows if row.feature.startswith("effort")] == ["effort_off", "effort_low"]
    adaptive = asyncio.run(checked(MODEL, rules=None))
    assert len([row for row in adaptive.rows if row.feature.startswith("effort_")]) == 5


def test_thinking_and_signatures_go_back_in_the_tool_loop() -> None:
    async def run() -> list[Any]:
        async with dm.testing.MockServer(GoodModel(), rules=None) as server:
            connection = dm.connect(MODEL, key="any", base_url=server.url)
            await LiveRun(connection).check()
            await connection.aclose()
            return [exchange.body for exchange in server.requests]

    bodies = [body for body in asyncio.run(run()) if "Which is warmer" in str(body) and "no such city" in str(body)]
    blocks = [block for body in bodies for message in body["messages"] for block in message["content"]]
    assert [block["type"] for block in blocks] == ["text", "thinking", "tool_use", "tool_use", "tool_result", "tool_result"]
    assert blocks[1]["signature"]
    assert [block.get("is_error") for block in blocks[-2:]] == [None, True]


# --- one feature fails ------------------------------------------------------------------------------------------------------------


REFUSED = Fail(400, "this model has no such thing")


@pytest.mark.parametrize("model", PROTOCOLS.values())
@pytest.mark.parametrize("feature", ["stream", "tools", "schema", "image"])
def test_a_refused_feature_is_told_in_the_words_of_the_service_and_the_others_go_on(model: str, feature: str) -> None:
    run = asyncio.run(checked(model, {feature: REFUSED}, rules=None))
    assert [row.feature for row in run.rows if row.state == "failed"] == [feature]
    assert "this model has no such thing" in row_of(run, feature).text
    assert "--record" in row_of(run, feature).advice
    assert not run.worked


FAILURES: list[tuple[str, Step | ScriptedAnswer, str, str]] = [
    ("limit", Say("1 2 3"), "limited to 16 tokens", "Run it again"),
    ("tools", Say("I will not."), "no tool was called: “I will not.”", "Run it again"),
    ("tools", CallStep("get_weather", "[1]"), "not a JSON object: [1]", "Run it again"),
    ("forced", CallStep("get_weather", '{"city": "Rome"}'), "get_weather was called instead of get_time", "Run it again"),
    ("schema", Say("Paris is nice."), "not JSON: “Paris is nice.”", "Run it again"),
    ("schema", Say(CITY.replace("4", "9")), "does not fit the schema", "Run it again"),
    ("cache", Say("Shelf 1"), "nothing was read from the cache", "Run it again"),
    ("plain", Say(""), "the answer is empty", "Run it again"),
    ("image", Say(""), "the answer is empty", "Run it again"),
    ("stream", Finish("refusal", "I must not"), "ended with refusal", "Run it again"),
    ("image", Fail(403, "not for you"), "not for you", "permissions"),
    ("image", Fail(404, "no such model"), "no such model", "bug report"),
    ("image", Fail(429, "slow down", retry_after_s=1), "slow down", "Wait a minute"),
    ("image", Fail(500, "oops"), "oops", "later"),
    ("image", Fail(529, "overloaded"), "overloaded", "later"),
    ("image", CutStep(), "", "dragoman doctor"),
    ("image", answer(Say("Re"), CutStep()), "", "bug report"),
]


@pytest.mark.parametrize(("feature", "fault", "text", "advice"), FAILURES)
def test_a_failure_says_why_and_what_to_do(
    feature: str, fault: Step | ScriptedAnswer, text: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_checks, "CACHE_WAIT_S", 0.0)
    run = asyncio.run(checked(MODEL, {feature: fault}, rules=None))
    assert [row.feature for row in run.rows if row.state == "failed"] == [feature]
    assert text in row_of(run, feature).text
    assert advice in row_of(run, feature).advice


def test_the_output_limit_may_come_as_an_error() -> None:
    words = "Could not finish the message because max_tokens or model output limit was reached."
    run = asyncio.run(checked(PROTOCOLS["openai_responses"], {"limit": Fail(400, words), "effort": Fail(400, words)}, rules=None))
    assert run.worked, run.rows


def test_a_used_up_quota_ends_it_with_what_was_seen() -> None:
    run = asyncio.run(checked("openai/gpt-4.1", {"tools": Fail(429, "No credit left.", "insufficient_quota")}, rules=None))
    assert states(run)["stream"] == "worked"
    assert "credit" in row_of(run, "tools").advice
    assert {state for name, state in states(run).items() if name in {"forced", "image", "schema", "embed"}} == {"not_tried"}


@pytest.mark.parametrize("model", PROTOCOLS.values())
def test_a_wrong_key_ends_it_at_once(model: str) -> None:
    with pytest.raises(Unauthorized):
        asyncio.run(checked(model, key="sk-wrong-0123456789"))


def test_a_model_that_does_not_exist_ends_it_at_once() -> None:
    with pytest.raises(NotFound, match="no such model"):
        asyncio.run(checked(MODEL, {"plain": Fail(404, "no such model")}))


def test_a_key_that_may_not_do_one_thing_does_not_end_it() -> None:
    run = asyncio.run(checked(MODEL, {"image": Fail(401, "missing scope")}, rules=None))
    assert [row.feature for row in run.rows if row.state == "failed"] == ["image"]


@pytest.mark.parametrize("model", PROTOCOLS.values())
def test_a_slow_service_is_given_up_after_two_silences(model: str) -> None:
    run = asyncio.run(asyncio.wait_for(checked(model, dict.fromkeys(("plain", "stream"), Wait(300)), exchange_s=0.3, rules=None), 60))
    assert [row.state for row in run.rows[:3]] == ["failed", "failed", "not_tried"]
    assert "within 0 s" in run.rows[0].text
    assert not run.worked


@pytest.mark.parametrize("model", PROTOCOLS.values())
def test_a_cut_network_is_given_up_too(model: str) -> None:
    run = asyncio.run(checked(model, dict.fromkeys(("plain", "stream"), CutStep()), rules=None))
    assert [row.state for row in run.rows[:3]] == ["failed", "failed", "not_tried"]


def test_one_silence_between_answers_does_not_end_it() -> None:
    run = asyncio.run(checked(MODEL, dict.fromkeys(("stream", "tools"), CutStep()), rules=None))
    assert "not_tried" not in states(run).values()


def test_a_fault_of_our_own_is_a_row_too() -> None:
    class Broken(ScriptedProvider):
        def stream(self, request: dm.Request) -> Any:
            raise KeyError("oops")

    run = LiveRun(Broken("text: pong", model="m"))
    asyncio.run(run.check())
    assert "KeyError" in row_of(run, "stream").text


def test_an_answer_that_only_thinking_fits_is_told_as_such() -> None:
    words = "Could not finish the message because max_tokens or model output limit was reached."
    run = asyncio.run(checked(PROTOCOLS["openai_responses"], {"image": Fail(400, words)}, rules=None))
    assert "thought until our limit" in row_of(run, "image").text


# --- notes ------------------------------------------------------------------------------------------------------------------------


def test_what_was_left_out_or_tried_again_is_a_note() -> None:
    class Events(ScriptedProvider):
        async def stream(self, request: dm.Request) -> Any:
            yield dm.events.FieldOmitted("responses", "m", "reasoning.summary", "your organization must be verified")
            yield dm.events.Retrying(1, 0.0, "overloaded")
            async for event in super().stream(request):
                yield event

    exchange = LiveExchange(Service(Events("text: pong"), "m", dm.Profile()), 5, [Planned(dm.Request("m", (dm.user("hi"),)))])
    asyncio.run(exchange.stream(exchange.request))
    assert exchange.notes == ["sent without reasoning.summary: your organization must be verified", "tried again: overloaded"]


def test_one_call_instead_of_two_is_a_note() -> None:
    run = asyncio.run(checked(MODEL, {"tools": CallStep("get_weather", '{"city": "Paris"}')}, rules=None))
    assert row_of(run, "tools").state == "worked"
    assert "one call instead of two" in row_of(run, "tools").notes[0]


# --- the estimate -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*PROTOCOLS.values(), *ACCENTED.values()])
def test_no_run_sends_or_costs_more_than_was_said(model: str) -> None:
    run = asyncio.run(checked(model, rules=None))
    most = run.estimate
    assert sum(row.requests for row in run.rows) <= most.requests
    assert run.usage.input_tokens <= most.input_tokens
    assert run.usage.output_tokens <= most.output_tokens
    assert run.cost_usd is None or (most.cost_usd is not None and run.cost_usd <= most.cost_usd)


CATALOG = [row for row in dm.builtin_catalog().deployments.values() if not row.in_process]


@pytest.mark.parametrize("model", [f"{row.name}/{name}" for row in CATALOG for name in row.models])
def test_a_run_costs_little_with_every_model_of_the_catalog(model: str) -> None:
    env = {"GOOGLE_CLOUD_PROJECT": "p", "AZURE_OPENAI_ENDPOINT": "https://x.example", "AZURE_OPENAI_RESOURCE": "x"}
    run = LiveRun(dm.connect(model, key="any", env=env, base_url="http://127.0.0.1:9"))
    most = run.estimate
    assert most.requests <= 30
    assert most.cost_usd is None or most.cost_usd < 2.5


def test_the_cache_is_not_tried_where_it_would_cost_much() -> None:
    dear = dm.builtin_catalog().with_rows(
        {"anthropic": {"models": {"dear": {"cache_min_tokens": 4_096, "prices": {"input": 50, "output": 99}}}}}
    )
    run = LiveRun(dm.connect("anthropic/dear", key="any", catalog=dear))
    without = LiveRun(dm.connect("anthropic/claude-opus-5", key="any"))
    assert without.estimate.requests - run.estimate.requests >= live_checks.CACHE_TRIES
    cache = next(planned for check, planned in run._planned if check.name == "cache")
    assert isinstance(cache, LiveRow)
    assert (cache.state, "$" in cache.text) == ("skipped", True)


# --- the program --------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def good(place: Place) -> Iterator[Loopback]:
    with service(GoodModel(), rules=None, key=KEY) as found:  # type: ignore[arg-type]
        place.service = found
        yield found


def live(place: Place, *arguments: str, **options: Any) -> Any:
    return place.run("doctor", "--live", "-m", MODEL, *arguments, **options)


def test_nothing_is_sent_before_the_yes(place: Place, good: Loopback) -> None:
    done = live(place)
    done.complaint(42, "nothing was sent", "--yes", "requests", "$")
    assert good.requests == []


def test_it_asks_in_a_terminal_and_names_model_requests_and_cost(place: Place, good: Loopback) -> None:
    with terminal(place, "doctor", "--live") as shown:
        question = shown.expect("(Enter: n): ")
        assert MODEL in question
        assert "22 requests" in question
        assert "$0." in question
        assert good.requests == []
        shown.send("n\r")
        shown.expect("nothing was done")
        assert shown.ended() == 42
    assert good.requests == []


@pytest.mark.parametrize("columns", [80, 120])
def test_after_a_yes_the_table_fits_the_terminal(place: Place, good: Loopback, columns: int) -> None:
    with terminal(place, "doctor", "--live", "--no-color", size=(40, columns)) as shown:
        shown.expect("(Enter: n): ")
        shown.send("y\r")
        shown.expect("Everything that anthropic/claude-opus-5 offers worked: 18 of 18.")
        assert shown.ended() == 0
    table = shown.text[shown.text.index("  feature") :].splitlines()
    assert all(width(line) <= columns for line in table), shown.text
    assert any(line.startswith("✓ plain answer") and line.endswith("“pong”") for line in table)


def test_ctrl_c_in_a_terminal(place: Place, serve: Serve) -> None:
    serve(GoodModel({"tools": Wait(30)}), rules=None)  # type: ignore[arg-type]
    with terminal(place, "doctor", "--live", "--yes") as shown:
        shown.expect("tool calls …")
        shown.send("\x03")
        shown.expect("Stopped: 3 of 3")
        assert shown.ended() == 130


def test_the_exit_code_and_the_table_of_a_failure(place: Place, serve: Serve) -> None:
    serve(GoodModel({"pdf": REFUSED}), rules=None)  # type: ignore[arg-type]
    done = live(place, "--yes")
    assert done.code == 1
    assert "✗ PDF" in done.out
    assert "this model has no such thing" in done.out
    assert "17 of 18 features" in done.out
    assert "At most 22 requests" in done.err


def test_json(place: Place, good: Loopback) -> None:
    done = live(place, "--yes", "--output-format", "json")
    assert done.code == 0
    found = done.json
    assert found["ok"] is True
    assert found["model"] == MODEL
    assert found["requests"] == len(good.requests)
    assert found["cost_usd"] > 0
    assert {row["feature"]: row["state"] for row in found["rows"]}["embed"] == "not_offered"


def test_in_chinese(place: Place, good: Loopback) -> None:
    done = live(place, "--yes", "--lang", "zh")
    assert done.code == 0
    assert "✓ 普通回答" in done.out
    assert "提供的功能全部正常" in done.out


def test_a_wrong_key_is_one_clear_error(place: Place, good: Loopback) -> None:
    done = live(place, "--yes", env={"ANTHROPIC_API_KEY": "sk-wrong-0123456789"})
    assert done.code == 41
    assert done.out == ""
    assert done.err.splitlines()[-1].startswith("dragoman: anthropic: ")
    assert "sk-wrong" not in done.err
    assert len(good.requests) == 1


def test_without_a_key_nothing_is_sent(place: Place, good: Loopback) -> None:
    live(place, "--yes", env={"ANTHROPIC_API_KEY": ""}).complaint(41, "ANTHROPIC_API_KEY")


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_ctrl_c_ends_it_with_what_was_seen(place: Place, serve: Serve, output_format: str) -> None:
    loopback = serve(GoodModel({"tools": Wait(30)}), rules=None)  # type: ignore[arg-type]
    process = place.start("doctor", "--live", "-m", MODEL, "--yes", "--record", "tape.jsonl", "--output-format", output_format)
    deadline = time.monotonic() + 60
    while len(loopback.requests) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    text = out.decode()
    assert "stream" in text
    assert ("Stopped: 3 of 3" if output_format == "text" else '"stopped":true') in text
    assert (place.work / "tape.jsonl").read_bytes().count(b"\n") == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["doctor", "--record", "x"], ["--record", "--live"]),
        (["doctor", "--yes"], ["--yes", "--live"]),
        (["doctor", "--live", "--offline"], ["--live", "--offline"]),
        (["--live", "-p", "x"], ["--live", "doctor"]),
    ],
)
def test_options_that_do_not_go_together(place: Place, arguments: list[str], words: list[str]) -> None:
    place.run(*arguments).complaint(42, *words)


# --- words and samples ----------------------------------------------------------------------------------------------------------------


def test_every_sentence_is_said_in_chinese_with_the_same_values() -> None:
    def places(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    assert set(CHINESE) == set(ENGLISH)
    assert {key for key in ENGLISH if places(ENGLISH[key]) != places(CHINESE[key])} == set()


def test_every_feature_has_a_name() -> None:
    for model in ("openai/gpt-4.1", MODEL):
        run = LiveRun(dm.connect(model, key="any"))
        assert all(feature_name(check.name) for check, _ in run._planned)


def test_what_a_service_says_cannot_move_the_cursor() -> None:
    run = LiveRun(dm.connect(MODEL, key="any"))
    run.rows.append(LiveRow("plain", "failed", "bad\x1b[2J\nnews", "do\rthis", requests=1))
    page = page_of(run, Look(80), stopped=False, seconds=1)
    assert "\x1b" not in page
    assert "\r" not in page


def test_the_image_and_the_page_are_what_they_say() -> None:
    png = red_square(8)
    data = png[png.index(b"IDAT") + 4 : png.index(b"IEND") - 8]
    assert zlib.decompress(data) == (b"\x00" + b"\xe0\x10\x10" * 8) * 8
    pdf = one_page_pdf("Hello")
    table = int(pdf.split(b"startxref\n")[1].split()[0])
    assert pdf[table:].startswith(b"xref")
    offsets = [int(line.split()[0]) for line in pdf[table:].splitlines()[3:8]]
    assert [pdf[at:].startswith(b"%d 0 obj" % number) for number, at in enumerate(offsets, 1)] == [True] * 5
