"""The options the program was started with, the same for every front end."""

from __future__ import annotations

from typing import Literal

import msgspec

Command = Literal[
    "run",
    "acp",
    "models",
    "config",
    "doctor",
    "sessions",
    "context",
    "approvals",
    "trust",
    "hooks",
    "auth",
    "mcp",
    "agents",
    "skills",
    "plugins",
    "serve-local",
    "fleet",
    "view",
    "completions",
]
"""`run` is the main command: `dragoman` without a subcommand."""
OutputFormat = Literal["text", "json", "stream-json"]
SEARCH_NOW = "now"
"""As `search`: search the web for the prompt itself."""


class Options(msgspec.Struct, frozen=True):
    """The parsed command line alone; configuration files and environment variables are not in it."""

    command: Command = "run"
    words: tuple[str, ...] = ()
    """The arguments after a subcommand."""
    prompt: str | None = None
    question: str = ""
    """What a conversation begins with."""
    model: str = ""
    fallback: tuple[str, ...] = ()
    output_format: OutputFormat = "text"
    max_turns: int | None = None
    approval: str = ""
    sandbox: str = ""
    """The level of the sandbox, as on the command line."""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    resume: str | None = None
    """A session; empty: one to be picked, or the latest where nobody can pick."""
    include: tuple[str, ...] = ()
    config: str = ""
    directory: str = ""
    lang: str = ""
    trust: bool = False
    revoke: bool = False
    worktree: str | None = None
    """Work in a git worktree of this name; empty: of a new one."""
    yes: bool = False
    search: str = ""
    """How the web is searched, as `web.search` in the configuration, or `now`."""
    text_tools: bool = False
    debug: bool = False
    no_color: bool = False
    offline: bool = False
    live: bool = False
    record: str = ""
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
    env: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    transport: str = ""
    scope: str = ""
    workers: int | None = None
    attempts: int | None = None
    attempt: int | None = None
    epoch: int | None = None
    budget_usd: float | None = None
    template: str = ""
    name: str = ""
    scratch: str = ""
    on: str = ""
    cpus: float | None = None
    memory_mb: int | None = None
    failed: bool = False
    take_over: bool = False
    hide: tuple[str, ...] = ()
    sign_in: bool = False
    """Of `acp`: store a key in the terminal, as the editor was told to."""
    talk: bool = False
    """The browser may hold conversations."""
    origin: str = ""
    host: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    no_open: bool = False
    help: bool = False
    version: bool = False
