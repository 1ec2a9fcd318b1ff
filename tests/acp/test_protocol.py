"""JSON-RPC over standard input and output: whatever a client sends, and whatever else in the process prints."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
from editor import MODEL, Editor

from program import Place, Service

Start = Callable[..., Editor]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"this is not JSON", -32700),
        (b'{"jsonrpc": "2.0", "id": 7', -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[" * 100_000, -32600),
        (b'{"params": ' * 100_000, -32700),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "session/list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "session/list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 9}', -32600),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "no/such"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "session/new", "params": 3}', -32602),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "session/new", "params": {"cwd": 3}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": {"sessionId": "no", "prompt": []}}', -32002),
    ],
)
def test_garbage_is_answered_and_the_next_message_as_ever(edit: Start, line: bytes, code: int) -> None:
    editor = edit("text: Hello.")
    editor.write(line + b"\n")
    assert editor.expect(lambda each: "error" in each)["error"]["code"] == code
    assert editor.ask("session/list") == {"sessions": []}


def test_parameters_that_are_null_are_none(edit: Start) -> None:
    editor = edit("text: Hello.")
    editor.write(b'{"jsonrpc": "2.0", "id": 1000, "method": "session/list", "params": null}\n')
    assert editor.result(1000) == {"sessions": []}


def test_garbage_before_the_first_message_is_answered_too(edit: Start) -> None:
    editor = edit("text: Hello.", greets=False)
    editor.write(b"garbage\n\n")
    assert editor.expect(lambda each: "error" in each)["error"]["code"] == -32700
    assert editor.greet()["protocolVersion"] == 1


def test_a_client_of_another_version_is_told_ours(edit: Start) -> None:
    editor = edit("text: Hello.", greets=False)
    assert editor.ask("initialize", protocolVersion=99)["protocolVersion"] == 1


def test_half_a_message_at_the_end_is_no_fault(edit: Start) -> None:
    editor = edit("text: Hello.")
    editor.write(b'{"jsonrpc": "2.0", "id": 1')
    assert editor.leave() == 0
    assert editor.errors == b""


def test_a_client_that_is_gone_at_once_ends_the_program(place: Place) -> None:
    done = place.run("acp", stdin="")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_message_in_many_pieces_is_one(edit: Start) -> None:
    editor = edit("text: Hello.")
    message = json.dumps({"jsonrpc": "2.0", "id": 1000, "method": "session/list", "params": {}}).encode() + b"\n"
    for at in range(0, len(message), 7):
        editor.write(message[at : at + 7])
    assert editor.result(1000) == {"sessions": []}


def test_messages_that_come_together_are_answered_in_turn(place: Place) -> None:
    asked = [("initialize", {"protocolVersion": 1}), ("session/list", {}), ("no/such", {})]
    lines = [json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) for id, (method, params) in enumerate(asked)]
    done = place.run("acp", stdin="\n".join(lines))
    assert done.code == 0
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == [0, 1, 2]


def test_a_client_that_does_not_read_holds_up_nobody(place: Place, serve: Callable[..., Service]) -> None:
    """Much more is said than a pipe takes. The program still hears that the client is gone, and ends."""
    serve(f"script: end=repeat\ntext: {'x' * 300_000}")
    process = place.start("acp", "-m", MODEL, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    messages = [("initialize", {"protocolVersion": 1}), ("session/new", {"cwd": str(place.work), "mcpServers": []})]
    for id, (method, params) in enumerate(messages):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    session = json.loads(process.stdout.readline())["result"]["sessionId"]
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}).encode() + b"\n")
    process.stdin.flush()
    assert place.service is not None
    place.service.expect(1)
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()


def test_half_a_surrogate_pair_is_read(edit: Start) -> None:
    """Editors in JavaScript cut texts between the halves of one."""
    editor = edit("text: Hello.")
    session = editor.open()
    prompt = f'{{"sessionId": "{session}", "prompt": [{{"type": "text", "text": "cut \\ud83d"}}]}}'
    editor.write(f'{{"jsonrpc": "2.0", "id": 1000, "method": "session/prompt", "params": {prompt}}}\n'.encode())
    assert editor.result(1000)["stopReason"] == "end_turn"


def test_a_request_can_be_cancelled(edit: Start) -> None:
    editor = edit("wait: 60\ntext: never")
    session = editor.open()
    asked = editor.begin_prompt(session)
    editor.expect_update("session_info_update")
    editor.tell("$/cancel_request", requestId=asked)
    assert editor.reply(asked)["error"]["code"] == -32800
    editor.tell("$/cancel_request", requestId="nobody knows it")
    assert editor.ask("session/list") is not None


PRINTING_HOOK = """
import sys
print("a print of a package")
sys.stdout.flush()
import os
os.write(1, b"bytes of a library\\n")
os.system("echo a command of it")

from dragoman.hooks import Hooks

hooks = Hooks()
"""


def test_standard_output_carries_the_protocol_alone(edit: Start, place: Place) -> None:
    """Prints of code in the process, of what it starts, and of commands of the user's own: all of it goes where errors go."""
    (place.home / "dragoman").mkdir(exist_ok=True)
    (place.home / "printing.py").write_text(PRINTING_HOOK)
    (place.home / "dragoman" / "config.toml").write_text('[plugins]\nhooks = ["printing:hooks"]\n')
    editor = edit("text: Hello.", PYTHONPATH=str(place.home))
    assert editor.prompt(editor.open()) == "end_turn"
    assert editor.leave() == 0
    said = editor.errors.decode()
    assert "a print of a package" in said
    assert "bytes of a library" in said
    assert "a command of it" in said


def test_what_ends_the_client_ends_the_program_in_the_middle_of_a_run(edit: Start) -> None:
    editor = edit("wait: 60\ntext: never")
    session = editor.open()
    editor.begin_prompt(session)
    editor.expect_update("session_info_update")
    assert editor.leave() == 0
