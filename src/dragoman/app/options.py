"""What the user asked for when the program was started, whichever front end it is."""

from __future__ import annotations

from typing import Literal

import msgspec

OutputFormat = Literal["text", "json", "stream-json"]


class Options(msgspec.Struct, frozen=True):
    """What the command line says, and nothing else: no file and no variable has been looked at."""

    command: str = "run"
    words: tuple[str, ...] = ()
    """What follows a subcommand."""
    prompt: str | None = None
    model: str = ""
    output_format: OutputFormat = "text"
    max_turns: int | None = None
    approval: str = ""
    resume: str | None = None
    include: tuple[str, ...] = ()
    config: str = ""
    directory: str = ""
    lang: str = ""
    trust: bool = False
    yes: bool = False
    text_tools: bool = False
    debug: bool = False
    no_color: bool = False
    offline: bool = False
    all: bool = False
    at: int | None = None
    to: int | None = None
    form: str = ""
    output: str = ""
    force: bool = False
    source: str = ""
    request: str | None = None
    focus: str = ""
    port: int | None = None
    help: bool = False
    version: bool = False
