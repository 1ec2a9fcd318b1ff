"""The first answer: `initialize` is answered from here, where almost nothing is imported, before the program is loaded."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, NamedTuple

from dragoman import __version__
from dragoman.words import choose_language, language_of, say

PROTOCOL_VERSION = 1
"""The newest stable one, and the only one spoken: whoever asks for another is told this one."""
MAX_LINE_BYTES = 64_000_000
"""Of one message: images come in base64, and no service takes more than 20 MB of them. A longer line is refused."""
KEY_METHOD, TERMINAL_METHOD = "key", "terminal"
"""How a person may sign in."""


class Greeting(NamedTuple):
    """How the conversation with the client began."""

    reading: int
    """The descriptor of the client's messages,"""
    writing: int
    """and of ours. Nobody else has them."""
    hello: bytes = b""
    """The `initialize` that was answered. Empty: something else came first."""
    rest: bytes = b""
    """What was read beyond it."""
    is_over: bool = False
    """The client is gone already."""


def greet(reading: int, writing: int) -> Greeting:
    """Answer the first message if it is `initialize`, as it should be."""
    read = b""
    if os.isatty(reading):
        _tell_person()
    while b"\n" not in read:
        try:
            more = os.read(reading, 65_536)
        except OSError:
            more = b""
        if not more:
            return Greeting(reading, writing, rest=read, is_over=True)
        read += more
        if len(read) > 1_000_000:  # no client begins like that: it is read with more patience later
            return Greeting(reading, writing, rest=read)
    line, _, rest = read.partition(b"\n")
    answer = answer_hello(line)
    if not answer:
        return Greeting(reading, writing, rest=read)
    try:
        while answer:
            answer = answer[os.write(writing, answer) :]
    except OSError:
        return Greeting(reading, writing, line, rest, is_over=True)
    return Greeting(reading, writing, line, rest)


def _tell_person() -> None:
    """Somebody has typed the command themselves."""
    choose_language(language_of(os.environ))
    with suppress(OSError):
        os.write(2, f"{say('acp.on_terminal')}\n".encode())


def answer_hello(line: bytes) -> bytes:
    """The answer to a message that is a well-formed `initialize`; empty for any other."""
    import json  # loaded in a sixth of the time that msgspec takes

    try:
        message = json.loads(line)
        params, id = message["params"], message["id"]
        if message["method"] != "initialize" or type(id) not in (int, str) or type(params["protocolVersion"]) is not int:
            return b""
    except (ValueError, KeyError, TypeError, RecursionError):
        return b""
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": hello(params)}, separators=(",", ":")).encode() + b"\n"


def hello(params: Any) -> dict[str, Any]:
    """What `initialize` is answered with. `params`: as the client sent them."""
    offered: dict[str, Any] = {}
    capabilities = {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": False},
        "sessionCapabilities": dict.fromkeys(("list", "delete", "additionalDirectories", "resume", "close"), offered),
        "auth": {"logout": offered},
    }
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": capabilities,
        "authMethods": _auth_methods(params),
        "agentInfo": {"name": "dragoman", "title": "Dragoman", "version": __version__},
        "_meta": {"steering": {"supported": True}},
    }


def _auth_methods(params: Any) -> list[dict[str, Any]]:
    """A key that is there already; and where the client can open a terminal, one that is typed there."""
    choose_language(language_of(os.environ))
    methods: list[dict[str, Any]] = [{"id": KEY_METHOD, "name": say("acp.key_method"), "description": say("acp.key_method_about")}]
    try:
        has_terminal = params["clientCapabilities"]["auth"]["terminal"] is True
    except (KeyError, TypeError):
        has_terminal = False
    if has_terminal:
        words = {"name": say("acp.terminal_method"), "description": say("acp.terminal_method_about")}
        methods.append({"id": TERMINAL_METHOD, "type": "terminal", **words, "args": ["--sign-in"]})
    return methods
