"""The first message: where the model finds itself. Pure: the facts are gathered elsewhere, once, and kept with the session."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

GREETING = "This is Dragoman. We are setting up the context for our chat."
REMINDER = "Reminder: Do not return an empty response when a tool call is required."
READY = "My setup is complete. I will provide my first command in the next turn."


class Surroundings(msgspec.Struct, frozen=True):
    """What is so when a session starts."""

    date: str
    system: str
    directories: tuple[str, ...]
    temporary: str = ""
    tree: str = ""
    memory: tuple[tuple[str, str], ...] = ()
    """Files that speak to the model: where each lies, and what it says."""


def environment_text(facts: Surroundings) -> str:
    """Named fragments in a fixed order, joined by blank lines."""
    fragments = [
        GREETING,
        f"Today's date is {facts.date}.",
        f"My operating system is: {facts.system}",
        f"My temporary directory is: {facts.temporary}" if facts.temporary else "",
        _directories(facts.directories),
        facts.tree,
        *(_memory(path, text) for path, text in facts.memory),
        REMINDER,
        READY,
    ]
    return "\n\n".join(fragment.strip() for fragment in fragments if fragment.strip())


def _directories(directories: Sequence[str]) -> str:
    if len(directories) == 1:
        return f"I'm working in the directory: {directories[0]}"
    return "I'm working in these directories:\n" + "\n".join(f"  - {directory}" for directory in directories)


def _memory(path: str, text: str) -> str:
    return f"--- What {path} says ---\n{text.strip()}\n--- End of {path} ---"
