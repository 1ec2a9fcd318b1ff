"""The loopback server: HTTP, the requests it takes and refuses, its scripts and its log."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from dragoman.testing.mock.server import MockServer
from dragoman.testing.script_steps import ScriptedAnswer, answer
from raw_client import (
    PROTOCOLS,
    REQUESTS,
    USER,
    Got,
    answered,
    ask,
    connect,
    read_answer,
    request_bytes,
    run,
    text_of,
)

SOURCE = Path(__file__).resolve().parents[2] / "src"

# --- HTTP ------------------------------------------------------------------------------------------------------------------


def test_a_connection_serves_many_requests() -> None:
    async def two(server: MockServer) -> list[Got]:
        reader, writer = await connect(server)
        answers: list[Got] = []
        for protocol in PROTOCOLS:
            writer.write(request_bytes(protocol))
            answers.append(await read_answer(reader))
        writer.close()
        return answers

    answers = run("answer: times=4\ntext: Hello.", two)
    assert [got.status for got in answers] == [200] * 4
    assert [text_of(protocol, got.body) for protocol, got in zip(PROTOCOLS, answers, strict=True)] == ["Hello."] * 4
    assert all(got.complete and got.headers["content-type"].startswith("text/event-stream") for got in answers)


def test_many_connections_at_once() -> None:
    async def crowd(server: MockServer) -> list[Got]:
        return await asyncio.gather(*(ask(server, PROTOCOLS[n % 4]) for n in range(100)))

    answers = run("script: end=repeat\nwait: 0.01\ntext: Hello.\nwait: 0.01\ntext: there", crowd)
    assert {text_of(PROTOCOLS[n % 4], got.body) for n, got in enumerate(answers)} == {"Hello.there"}


def test_bodies_come_in_chunks_and_after_100_continue() -> None:
    async def chunked(server: MockServer) -> tuple[bytes, Got]:
        reader, writer = await connect(server)
        data = json.dumps(REQUESTS["anthropic"][1]).encode()
        writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
        interim = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"5\r\n%b\r\n%x;ext=1\r\n%b\r\n0\r\nTrailer: x\r\n\r\n" % (data[:5], len(data) - 5, data[5:]))
        got = await read_answer(reader)
        writer.close()
        return interim, got

    interim, got = run("text: Hello.", chunked)
    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert text_of("anthropic", got.body) == "Hello."


@pytest.mark.parametrize("nonsense", [b"hello\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"X" * 300_000 + b"\r\n\r\n"])
def test_nonsense_gets_400_and_the_server_lives_on(nonsense: bytes) -> None:
    async def both(server: MockServer) -> tuple[int, int]:
        reader, writer = await connect(server)
        writer.write(nonsense)
        first = (await read_answer(reader)).status
        writer.close()
        return first, (await ask(server, "anthropic")).status

    assert run("text: Hello.", both) == (400, 200)


def test_an_unknown_path_says_which_paths_there_are() -> None:
    got = answered("text: a", "anthropic", path="/v2/nothing")
    assert (got.status, b"/v1/chat/completions" in got.body) == (404, True)


# --- requests -------------------------------------------------------------------------------------------------------------------


def test_a_bad_request_is_refused_and_costs_no_answer() -> None:
    async def both(server: MockServer) -> tuple[Got, Got]:
        return await ask(server, "anthropic", body={"model": "claude-mock", "max_tokens": 10, "messages": []}), await ask(
            server, "anthropic"
        )

    async def within() -> None:
        async with MockServer("script: end=raise\ntext: Hello.") as server:
            bad, good = await both(server)
            assert (bad.status, bad.json["error"]["type"]) == (400, "invalid_request_error")
            assert server.requests[0].violation is not None
            assert server.requests[0].violation.message == bad.json["error"]["message"]
            assert text_of("anthropic", good.body) == "Hello."
            assert server.requests[1].violation is None
            over = await ask(server, "anthropic")
            assert over.status == 400
            assert "The script has ended" in over.json["error"]["message"]

    asyncio.run(within())


def test_validation_can_be_left_out() -> None:
    got = answered("text: Hello.", "openai_chat", options={"rules": None}, body={"stream": True})
    assert text_of("openai_chat", got.body) == "Hello."


def test_a_body_that_is_not_json_is_refused() -> None:
    for protocol in PROTOCOLS:
        for body in (b"{", b"[]", b"\xff"):
            got = answered("text: a", protocol, body=body)
            assert (got.status, "JSON" in got.json["error"]["message"]) == (400, True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("header", ["Authorization: Bearer k\r\n", "x-api-key: k\r\n", "x-goog-api-key: k\r\n", "api-key: k\r\n"])
def test_the_key_may_stand_in_any_usual_header(protocol: str, header: str) -> None:
    assert answered("text: a", protocol, options={"key": "k"}, headers=header).status == 200
    assert answered("text: a", protocol, options={"key": "other"}, headers=header).status == 401


def test_vertex_paths_and_gemini_without_events() -> None:
    base = "/v1/projects/p/locations/global/publishers/google/models/gemini-mock"
    body = REQUESTS["gemini"][1]
    assert answered("text: Hello.", "gemini", path=f"{base}:generateContent", body=body).json["modelVersion"] == "gemini-mock"
    array = answered("text piece=2: Hello.", "gemini", path=f"{base}:streamGenerateContent", body=body)
    assert [c["candidates"][0]["content"].get("parts") for c in array.json] == [[{"text": "He"}], [{"text": "ll"}], [{"text": "o."}], None]
    assert array.headers["content-type"].startswith("application/json")


def test_vertex_has_no_method_for_several_embeddings_and_its_own_rules() -> None:
    v1, v1beta1 = (f"/{version}/projects/p/locations/global/publishers/google/models/gemini-mock" for version in ("v1", "v1beta1"))
    assert answered("", "gemini", path=f"{v1}:batchEmbedContents", body={"requests": []}).status == 404
    assert answered("", "gemini", path="/v1beta/models/gemini-mock:batchEmbedContents", body={"requests": []}).status == 200
    assert answered("", "gemini", path="/v1beta/models/gemini-mock:predict", body={"instances": []}).status == 404
    call = {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]}
    reply = {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "x"}}}]}
    asked = {"role": "user", "parts": [{"text": "hi"}]}
    body = {"contents": [asked, call, reply], "tools": [{"functionDeclarations": [{"name": "f"}]}]}
    assert answered("text: a", "gemini", path=f"{v1}:generateContent", body=body).status == 400
    assert answered("text: a", "gemini", path=f"{v1beta1}:generateContent", body=body).status == 200


def test_paths_without_v1_and_with_a_gateways_prefix() -> None:
    for protocol, path in [("openai_chat", "/chat/completions"), ("openai_responses", "/api/v3/responses"), ("anthropic", "/messages")]:
        assert text_of(protocol, answered("text: a", protocol, path=path).body) == "a"


# --- scripts and the log ---------------------------------------------------------------------------------------------------------


def test_scripts_by_name_and_at_run_time(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    async def talk(url: str) -> None:
        body = REQUESTS["openai_chat"][1]
        async with httpx2.AsyncClient(base_url=url, headers={"Authorization": "Bearer secret-key"}) as client:

            async def said(path: str = "") -> str:
                return text_of("openai_chat", (await client.post(f"{path}/v1/chat/completions", json=body)).content)

            assert [await said(), await said("/s/greek"), await said("/s/greek")] == ["one", "alpha", "beta"]
            unknown = await client.post("/s/latin/v1/chat/completions", json=body)
            assert (unknown.status_code, "greek" in unknown.text) == (404, True)
            assert (await client.post("/_script", content="text: two")).text == "1 answer is ready.\n"
            assert (await client.post("/s/latin/_script", content="text: a")).status_code == 200
            assert [await said(), await said("/s/latin")] == ["two", "a"]
            wrong = await client.post("/_script", content="txt: two")
            assert (wrong.status_code, wrong.text.startswith("line 1: `txt` is not a step")) == (400, True)
            logged = (await client.get("/_log")).json()
            assert [each["script"] for each in logged] == ["", "greek", "greek", "latin", "", "latin"]
            assert [each["status"] for each in logged] == [200, 200, 200, 404, 200, 200]
            assert logged[0]["body"] == body
            assert logged[0]["headers"]["authorization"] == "REDACTED"

    async def within() -> None:
        async with MockServer("text: one", scripts={"greek": "text: alpha\n---\ntext: beta"}, log=log) as server:
            await talk(server.url)
            assert server.requests[0].headers["authorization"] == "Bearer secret-key"

    asyncio.run(within())
    lines = log.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["answered"] * 6
    assert "secret-key" not in log.read_text(encoding="utf-8")


def test_an_answer_may_depend_on_what_was_asked() -> None:
    got = answered(lambda asked: answer(f"{asked.protocol} {asked.model}"), "anthropic")
    assert text_of("anthropic", got.body) == "anthropic claude-mock"


@pytest.mark.parametrize(("keep", "kept"), [(None, ["1", "2", "3", "4"]), (2, ["3", "4"]), (9, ["1", "2", "3", "4"]), (0, [])])
def test_it_may_remember_only_the_latest_requests(keep: int | None, kept: list[str]) -> None:
    async def four(server: MockServer) -> None:
        for number in "1234":
            assert (await ask(server, "anthropic", path=f"/{number}/v1/messages")).status == 200
        assert [exchange.path[1] for exchange in server.requests] == kept
        async with httpx2.AsyncClient() as client:
            assert [each["path"][1] for each in (await client.get(f"{server.url}/_log")).json()] == kept

    run("answer: times=4\ntext: Hello.", four, keep=keep)


def test_a_function_that_fails_to_choose_ends_the_connection_and_is_reported() -> None:
    reported: list[BaseException] = []

    def choose(asked: object) -> ScriptedAnswer:
        raise LookupError("no answer for this")

    async def fail(server: MockServer) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        reader, writer = await connect(server)
        writer.write(request_bytes("anthropic"))
        assert await reader.read() == b""
        writer.close()
        assert server.requests[0].outcome == "the server failed"

    run(choose, fail)
    assert [str(error) for error in reported] == ["no answer for this"]


# --- by hand ---------------------------------------------------------------------------------------------------------------------


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dragoman.testing.mock", *arguments]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, env=environment, preexec_fn=heed_ctrl_c)


def heed_ctrl_c() -> None:
    """As in a terminal. A suite that runs in the background of a shell ignores Ctrl-C, and its children with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_by_hand_it_says_what_to_set_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    script = tmp_path / "hello.script"
    script.write_text("text: From a file.", encoding="utf-8")
    with start("--port", "0", "--script", str(script), "--key", "k") as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        lines = [process.stdout.readline() for _ in range(6)]
        assert f"export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY=k\n" in lines
        body = {"model": "gpt-mock", "messages": [USER]}
        answer = httpx2.post(f"{url}/v1/chat/completions", json=body, headers={"Authorization": "Bearer k"})
        assert answer.json()["choices"][0]["message"]["content"] == "From a file."
        process.send_signal(signal.SIGINT)
        try:
            rest, complaints = process.communicate(timeout=60)
        finally:
            process.kill()
        assert (process.returncode, "Stopped." in rest, complaints) == (0, True, "")


def test_by_hand_a_mistake_is_one_line_and_42(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.script"
    wrong.write_text("txt: a", encoding="utf-8")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cases = [
            (["--script", str(wrong)], "line 1: `txt` is not a step"),
            (["--script", str(tmp_path / "missing")], "No such file or directory. Name a file with a script in it."),
            (["--named", "x"], "Write --named NAME=FILE."),
            (["--log", str(tmp_path)], "Name a file that can be written with --log."),
            (["--port", str(taken.getsockname()[1])], "is in use. Choose another with --port"),
        ]
        processes = [start(*(arguments if "--port" in arguments else ["--port", "0", *arguments])) for arguments, _ in cases]
        for process, (_, complaint) in zip(processes, cases, strict=True):
            with process:
                _, said = process.communicate(timeout=60)
            assert (process.returncode, said.count("\n")) == (42, 1), said
            assert complaint in said
