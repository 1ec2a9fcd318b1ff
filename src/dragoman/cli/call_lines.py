"""A tool call and its outcome, each in a few words for a person."""

from __future__ import annotations

from dragoman.cli.output import one_line
from dragoman.cli.words import say
from dragoman.events import ToolCallFinished
from dragoman.messages import ToolCall, ToolResult

_MAIN_ARGUMENTS = ("file_path", "path", "pattern", "query", "url", "question", "paths")
"""The argument that says what a call is about, in the order of how much it says."""
TITLE_CHARS = 100


def title(call: ToolCall) -> str:
    """`read_file src/a.py`, `$ make test`."""
    args = call.args
    if args is None:
        return one_line(f"{call.name} {call.arguments}", TITLE_CHARS)
    command = args.get("command")
    if isinstance(command, str):
        return one_line(f"$ {command}", TITLE_CHARS)
    about = [args[name] for name in _MAIN_ARGUMENTS if args.get(name)][:2]
    words = [", ".join(map(str, each)) if isinstance(each, list) else str(each) for each in about]
    return one_line(" ".join([call.name, *words]), TITLE_CHARS)


def outcome(event: ToolCallFinished) -> str:
    """`✓ 120 lines`, `✗ no such file`."""
    if event.error or any(isinstance(part, ToolResult) and part.is_error for part in event.parts):
        return say("call_failed", why=_first_line(event.error or event.display))
    return say("call_done", what=_first_line(event.display))


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return one_line(lines[0], TITLE_CHARS) if lines else ""
