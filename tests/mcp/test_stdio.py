"""A server's program that hangs, floods, dies, or says what is not MCP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import pid_of, until

from dragoman.mcp_client import client as client_module
from dragoman.mcp_client import stdio
from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import Elicitation, Elicited, StdioServer
from dragoman.mcp_client.errors import McpError, NotJson, ProtocolError, ServerDied, ServerGarbled, ServerNotStarted, ServerTimedOut
from dragoman.mcp_client.process import StderrTail
from processes import alive, gone_within, marked_sleep, started_within

ODD = str(Path(__file__).with_name("odd_server.py"))


def odd(way: str, **more: Any) -> StdioServer:
    return StdioServer(sys.executable, ("-S", "-E", ODD, way), **more)


@asynccontextmanager
async def talking(way: str, **options: Any) -> AsyncIterator[McpClient]:
    client = McpClient(odd(way), **{"timeout_s": 20, **options})
    try:
        yield client
    finally:
        await client.aclose()


def say(way: str, text: str = "hello", **options: Any) -> str:
    """What a call to such a server gives."""

    async def call() -> str:
        async with talking(way, **options) as client:
            return (await client.call_tool("say", {"text": text})).content[0]["text"]

    return asyncio.run(asyncio.wait_for(call(), 60))


@pytest.mark.parametrize("way", ["well", "garbage", "twice", "unknown-ids", "flood", "batch", "text-id"])
def test_what_is_not_asked_for_changes_no_answer(way: str) -> None:
    assert say(way) == "hello"


def test_a_second_answer_goes_to_nobody() -> None:
    async def call_twice() -> list[str]:
        async with talking("twice") as client:
            answers = [(await client.call_tool("say", {"text": text})).content[0]["text"] for text in ("one", "two", "three")]
            assert client._peer is not None
            await until(lambda: client._peer is not None and client._peer.strays >= 2)
            return answers

    assert asyncio.run(call_twice()) == ["one", "two", "three"]


@pytest.mark.parametrize("length", [0, 1, 65_536, 5_000_000])
def test_a_line_of_megabytes_comes_whole(length: int) -> None:
    assert say("megabytes", str(length)) == "x" * length


def test_an_answer_without_a_result_is_not_waited_for() -> None:
    with pytest.raises(ProtocolError, match="without a result"):
        say("no-result")


def test_a_long_request_reaches_a_server() -> None:
    assert say("well", "é" * 2_000_000) == "é" * 2_000_000


def test_answers_in_any_order_find_their_requests() -> None:
    async def call_ten() -> list[str]:
        async with talking("late") as client:
            results = await asyncio.gather(*(client.call_tool("say", {"text": str(number)}) for number in range(10)))
            return [each.content[0]["text"] for each in results]

    assert asyncio.run(call_ten()) == [str(number) for number in range(10)]


def test_an_error_has_its_code_and_data() -> None:
    with pytest.raises(ProtocolError) as caught:
        say("error")
    assert (caught.value.code, caught.value.data, "broken" in str(caught.value)) == (-32000, {"why": "rope"}, True)


# --- silence and death


@pytest.mark.parametrize("way", ["never-speaks", "silent-start", "hangs"])
def test_a_server_that_says_nothing_times_out(way: str) -> None:
    with pytest.raises(ServerTimedOut) as caught:
        say(way, timeout_s=0.3 if way != "hangs" else 1.0)
    assert caught.value.key == "mcp.timed_out"


def test_a_call_that_is_given_up_is_cancelled_by_a_message() -> None:
    async def give_up() -> None:
        async with talking("hangs") as client:
            await client.connect()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.call_tool("say", {}), 0.2)
            await until(lambda: "cancelled 2" in client.stderr)

    asyncio.run(give_up())


def test_death_is_told_with_exit_code_and_last_words() -> None:
    with pytest.raises(ServerDied) as caught:
        say("dies")
    assert caught.value.exit_code_of_server == 7
    assert "out of rope" in caught.value.stderr
    assert "out of rope" in str(caught.value)


def test_a_program_that_ends_at_once_says_why() -> None:
    with pytest.raises(ServerDied, match="no licence") as caught:
        say("dies-at-once")
    assert caught.value.exit_code_of_server == 3


def test_what_is_sent_to_a_server_that_is_ending_waits_for_its_exit_code() -> None:
    async def send() -> ServerDied:
        closed, lost = asyncio.Event(), list[Exception]()
        channel = stdio.StdioChannel(odd("lingers"), "odd")
        await channel.open(lambda message: None, lambda error: (lost.append(error), closed.set()))
        try:
            await until(lambda: not channel.is_open)
            assert not lost, "it is still ending"
            with pytest.raises(ServerDied, match="no licence") as caught:
                await channel.tell({"method": "ping"}, {})
            await closed.wait()
            assert str(lost) == str([caught.value])
            return caught.value
        finally:
            await channel.aclose()

    error = asyncio.run(asyncio.wait_for(send(), 60))
    assert error.exit_code_of_server == 3
    assert "?" not in str(error)


def test_a_server_that_closes_its_output_is_ended() -> None:
    async def call() -> None:
        async with talking("closes-output") as client:
            await client.connect()
            pid = pid_of(client)
            with pytest.raises(ServerDied):
                await client.call_tool("say", {})
            assert not is_running(pid)

    asyncio.run(call())


def test_after_a_death_the_next_call_starts_it_again() -> None:
    async def call_again() -> None:
        async with talking("dies") as client:
            for _ in range(2):
                with pytest.raises(ServerDied):
                    await client.call_tool("say", {})
            assert not client.is_connected

    asyncio.run(call_again())


def test_logs_on_the_wrong_stream_end_the_server_when_there_is_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MOST_GARBAGE_LINES", 5000)
    with pytest.raises(ServerGarbled, match="standard error"):
        say("only-garbage")


def test_a_program_that_is_not_there_is_named() -> None:
    async def connect() -> None:
        await McpClient(StdioServer("no-such-mcp-server")).connect()

    with pytest.raises(ServerNotStarted, match="no-such-mcp-server"):
        asyncio.run(connect())


def test_a_folder_that_is_not_there_is_an_error_of_ours() -> None:
    async def connect() -> None:
        await McpClient(odd("well", cwd="/no/such/folder")).connect()

    with pytest.raises(ServerNotStarted):
        asyncio.run(connect())


# --- eras


@pytest.mark.parametrize(
    ("way", "known", "found"),
    [
        ("well", "", "legacy"),
        ("well", "modern", "modern"),
        ("modern-only", "", "modern"),
        ("modern-only", "legacy", "modern"),
        ("claims-modern", "", "modern"),
        ("legacy-only", "modern", "legacy"),
        ("answers-anything", "modern", "legacy"),
        ("dies-of-discover", "modern", "legacy"),
    ],
)
def test_the_era_is_found_whatever_was_believed(way: str, known: Any, found: str) -> None:
    async def connect() -> str:
        async with talking(way, era=known) as client:
            return (await client.connect()).era

    assert asyncio.run(connect()) == found


def test_a_revision_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ServerGarbled, match="2031-01-01"):
        say("future")


# --- questions of the server


def test_a_ping_is_answered_and_models_and_folders_are_not_given() -> None:
    async def elicit(question: Elicitation) -> Elicited:
        return Elicited("decline")

    assert json.loads(say("asks", elicit=elicit)) == {
        "q:ping": {},
        "q:sampling/createMessage": -32601,
        "q:roots/list": -32601,
        "q:elicitation/create": {"action": "decline"},
        "q:made/up": -32601,
    }


def test_a_function_that_fails_to_answer_is_reported_and_the_call_goes_on() -> None:
    reported: list[dict[str, Any]] = []

    async def elicit(question: Elicitation) -> Elicited:
        raise RuntimeError("broken")

    async def call() -> str:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        async with talking("asks", elicit=elicit) as client:
            return (await client.call_tool("say", {"text": "x"})).content[0]["text"]

    assert json.loads(asyncio.run(call()))["q:elicitation/create"] == -32603
    assert [str(context["exception"]) for context in reported] == ["broken"]


def test_without_somebody_to_ask_elicitation_is_not_offered() -> None:
    assert json.loads(say("asks"))["q:elicitation/create"] == -32601


def test_the_clock_stands_still_while_the_user_thinks() -> None:
    async def elicit(question: Elicitation) -> Elicited:
        await asyncio.sleep(1.5)
        return Elicited("cancel")

    assert json.loads(say("asks", elicit=elicit, timeout_s=0.8))["q:elicitation/create"] == {"action": "cancel"}


# --- lists


def test_all_pages_are_read_and_wrong_items_are_left_out() -> None:
    async def list_tools() -> Any:
        async with talking("pages") as client:
            return await client.list_tools()

    listed = asyncio.run(list_tools())
    assert [tool.name for tool in listed.items] == ["t0", "t1", "t2", "t3", "t4"]
    assert (listed.ttl_ms, listed.scope) == (4996, "public")


@pytest.mark.parametrize(("way", "count"), [("endless-pages", 20), ("same-page", 2)])
def test_a_list_without_end_is_cut(way: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MOST_PAGES", 20)

    async def list_tools() -> int:
        async with talking(way) as client:
            return len((await client.list_tools()).items)

    assert asyncio.run(list_tools()) == count


# --- the program


def test_a_server_gets_a_short_list_of_variables_and_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("LANG", "C.UTF-8")

    async def call() -> dict[str, str]:
        client = McpClient(StdioServer(sys.executable, ("-S", "-E", ODD, "env"), env={"NAMED": "yes"}))
        try:
            return json.loads((await client.call_tool("say", {})).content[0]["text"])
        finally:
            await client.aclose()

    given = asyncio.run(call())
    assert (given["NAMED"], given["LANG"], given["PATH"]) == ("yes", "C.UTF-8", os.environ["PATH"])
    assert not any("sk-secret" in value for value in given.values())


def test_standard_error_is_kept_up_to_a_bound() -> None:
    tail = StderrTail(100)
    for number in range(1000):
        tail.add(f"{number:04d};".encode())
    assert tail.text.endswith("0998;0999;")
    assert len(tail.text) <= 100
    tail.add(b"x" * 5000)
    assert tail.text == "x" * 100


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at in /proc")
@pytest.mark.parametrize("way", ["well", "stays"])
def test_a_closed_client_leaves_no_process(way: str) -> None:
    async def open_and_close() -> int:
        async with talking(way) as client:
            await client.connect()
            return pid_of(client)

    pid = asyncio.run(asyncio.wait_for(open_and_close(), 60))
    assert not is_running(pid)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at in /proc")
def test_what_a_server_started_ends_with_it_also_in_a_session_of_its_own() -> None:
    mark = marked_sleep()

    async def start_children() -> None:
        async with talking("starts-children") as client:
            await client.call_tool("say", {"text": mark})
            assert started_within(60, mark, 2)

    asyncio.run(start_children())
    assert gone_within(60, mark)


def test_closing_in_the_middle_of_calls_fails_them_and_hangs_nowhere() -> None:
    async def close_early() -> list[BaseException | Any]:
        client = McpClient(odd("hangs"), timeout_s=20)
        await client.connect()
        calls = [asyncio.ensure_future(client.call_tool("say", {})) for _ in range(5)]
        await asyncio.sleep(0.05)
        await client.aclose()
        return await asyncio.gather(*calls, return_exceptions=True)

    assert all(isinstance(each, McpError) for each in asyncio.run(close_early()))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at in /proc")
@pytest.mark.parametrize("how", ["cancelled", "closed"])
def test_connecting_to_a_silent_server_can_be_given_up_and_leaves_no_process(how: str) -> None:
    mark = f"mark-{time.monotonic_ns()}"

    async def give_up() -> None:
        client = McpClient(StdioServer(sys.executable, ("-S", "-E", ODD, "silent-start", mark)), timeout_s=300)
        connecting = asyncio.ensure_future(client.connect())
        await until(lambda: bool(alive(mark)))
        connecting.cancel() if how == "cancelled" else await client.aclose()
        outcome = (await asyncio.gather(connecting, return_exceptions=True))[0]
        assert isinstance(outcome, asyncio.CancelledError if how == "cancelled" else ServerDied)

    asyncio.run(asyncio.wait_for(give_up(), 60))
    assert alive(mark) == []


def test_arguments_that_are_no_json_are_said_to_be_none() -> None:
    async def call() -> str:
        async with talking("well") as client:
            for wrong in ({"text": object()}, {"text": "\ud800"}):
                with pytest.raises(NotJson):
                    await client.call_tool("say", wrong)
            return (await client.call_tool("say", {"text": "fine"})).content[0]["text"]

    assert asyncio.run(call()) == "fine"


def test_a_listener_that_raises_ends_nothing() -> None:
    heard: list[str] = []

    def fall_over(kind: str) -> None:
        heard.append(kind)
        raise RuntimeError(kind)

    async def call() -> str:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with talking("changes", on_change=fall_over) as client:
            return (await client.call_tool("say", {"text": "fine"})).content[0]["text"]

    assert asyncio.run(call()) == "fine"
    assert heard == ["tools"]


def test_a_server_without_prompts_has_none() -> None:
    async def look() -> tuple[int, int]:
        async with talking("refuses-lists") as client:
            return len((await client.list_prompts()).items), len((await client.list_resources()).items)

    assert asyncio.run(look()) == (0, 0)


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
