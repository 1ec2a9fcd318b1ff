"""What a user can configure about the context."""

from __future__ import annotations

from typing import Literal

import msgspec

Schedule = Literal["auto", "request", "turn", "economic", "off"]

TERMINAL_TOOLS = ("run_shell", "shell_output", "run_shell_command", "terminal-execute", "bash", "shell")


class PruneRule(msgspec.Struct, frozen=True):
    """When a result is outdated: it came from one of these tools, is older than this, not among the newest, and not an error."""

    tools: tuple[str, ...] = TERMINAL_TOOLS
    """The tools whose results may go, by name regardless of case; `*`: any tool."""
    age_ms: int = 15 * 60 * 1000
    """A result is outdated when it is older than this, not when it is exactly this old; -1: at once."""
    keep: int = 5
    """How many of the newest results stay, of any tool. Errors stay anyway and take no place."""
    strict_stderr: bool = True
    """Whether anything on stderr makes a command's result an error, even with exit code 0."""
    by_content: bool = False
    """Whether results of tools with other names may go as well, where they are a JSON object with `stdout`, `stderr` or `exitCode`."""
    superseded: bool = False
    """Whether a file that was read may go, whatever its age, when the same part of it was read again or all of it was written since."""


class PruneSettings(msgspec.Struct, frozen=True):
    """When old tool results are replaced by placeholders, and which."""

    schedule: Schedule = "auto"
    rule: PruneRule = PruneRule()
    placeholder: str = ""
    """The text that replaces a pruned result, fixed when the session starts; empty: a few words in the chosen language."""
    pressure: float = 0.5
    """`auto`: above this share of the window everything that may go is pruned at once ..."""
    pressure_step: float = 0.1
    """... and again only when this much more of the window is filled."""
    overhead: float = 0.02
    """`auto`: how much more than never pruning it may have cost at any moment, as a share ..."""
    share: float = 0.25
    """... except when outdated results make up more than this share of the request: then they go together, as soon as that pays in time.
    1: the share does not matter."""
    overdraft: float = 0.25
    """`auto`: how much more than never pruning it may have cost at any moment for the sake of that share."""


class CompressSettings(msgspec.Struct, frozen=True):
    """When older messages are replaced by a summary, and how many stay."""

    enabled: bool = True
    threshold: float = 0.7
    """Share of the model's window at which old messages are replaced by a summary."""
    threshold_tokens: int = 0
    """The same in tokens; 0: use the share."""
    keep: float = 0.3
    """Share of the conversation, counted from its end, that stays unchanged."""
    min_gain: float = 0.1
    """A summary that does not make the whole request smaller by this share is not used."""
    retry_growth: float = 0.1
    """After a summary that was not used, the request must have grown by this share before another is requested, after a second one by
    twice that. After three in a row none is requested until the model changes or a person asks for one: old results go without a model."""


class ContextSettings(msgspec.Struct, frozen=True):
    """How the conversation is kept within the window."""

    prune: PruneSettings = PruneSettings()
    compress: CompressSettings = CompressSettings()
