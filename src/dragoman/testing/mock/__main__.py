"""The server by hand: `python -m dragoman.testing.mock --script FILE`, and point any client at it."""

from __future__ import annotations

import argparse
import asyncio
import errno
import sys
from collections.abc import Sequence

from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.validate import Rules
from dragoman.testing.script import Script
from dragoman.testing.script_steps import ScriptFraming
from dragoman.values.errors import InputError
from dragoman.words import say

DEFAULT_PORT = 8790
HELLO = Script.parse("text piece=6: Hello from the mock server.")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse_options(arguments)
    try:
        asyncio.run(_serve(options))
    except KeyboardInterrupt:
        print("\nStopped.")
    except InputError as error:
        print(f"mock server: {error}", file=sys.stderr)
        return InputError.exit_code
    except OSError as error:
        print(f"mock server: {_explain(error, options)}", file=sys.stderr)
        return InputError.exit_code
    return 0


async def _serve(options: argparse.Namespace) -> None:
    script = Script.load(options.script) if options.script else HELLO
    if options.repeat:
        script = Script(script.answers, at_end="repeat")
    server = MockServer(
        script,
        scripts=dict(_load_named_script(each) for each in options.named),
        key=options.key,
        rules=None if options.lenient else Rules(),
        models=options.model or ("mock-model",),
        log=options.log,
        host=options.host,
        port=options.port,
        cut=options.cut,
        piece_bytes=options.piece_bytes,
        piece_wait_s=options.piece_wait,
        framing=tuple(ScriptFraming(each) for each in options.framing),
    )
    async with server:
        print(_welcome_text(server.url, options.key), flush=True)
        await asyncio.Event().wait()


def _load_named_script(pair: str) -> tuple[str, Script]:
    name, equals, path = pair.partition("=")
    if not (name and equals and path):
        raise InputError(say("testing.wrong_named", option="--named", pair=pair))
    return name, Script.load(path)


def _welcome_text(url: str, key: str) -> str:
    key = key or "any"
    return f"""\
Listening on {url}

export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY={key}
export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key}
export GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY={key}

GET {url}/_log shows what was asked. POST a script to {url}/_script to replace this one. Ctrl-C ends."""


def _explain(error: OSError, options: argparse.Namespace) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {options.port} is in use. Choose another with --port, or --port 0 for any free one."
    if error.errno == errno.EACCES and options.port and options.port < 1024:
        return f"port {options.port} needs privileges. Choose one above 1023 with --port."
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}. Name a file that can be written with --log."
    return f"cannot listen on {options.host}:{options.port}: {error.strerror or error}. Choose others with --host and --port."


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dragoman.testing.mock",
        description="A loopback server that speaks Gemini, OpenAI Chat, OpenAI Responses and Anthropic, and plays a script.",
    )
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help="default %(default)s; 0 for any free one")
    parser.add_argument("--host", default="127.0.0.1", help="default %(default)s")
    parser.add_argument("--script", metavar="FILE", help="what to answer; without one: a greeting")
    parser.add_argument("--named", metavar="NAME=FILE", action="append", default=[], help="another script, played under /s/NAME/...")
    parser.add_argument("--repeat", action="store_true", help="give the last answer again when the script has ended")
    parser.add_argument("--key", default="", help="refuse requests without this key")
    parser.add_argument("--model", action="append", help="a model to list; may be given more than once")
    parser.add_argument("--lenient", action="store_true", help="answer requests that the real service would refuse")
    parser.add_argument("--log", metavar="FILE", help="append every request as a line of JSON")
    parser.add_argument("--cut", type=_count, metavar="N", help="close the connection at byte N of every body")
    parser.add_argument("--piece-bytes", type=_count, default=0, metavar="N", help="send bodies in pieces of N bytes")
    parser.add_argument("--piece-wait", type=float, default=0.0, metavar="SECONDS", help="pause between two pieces")
    parser.add_argument(
        "--framing", action="append", default=[], choices=[each.value for each in ScriptFraming], help="how events are written"
    )
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; write a number from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a count; write a whole number")
    return int(text)


if __name__ == "__main__":
    raise SystemExit(main())
