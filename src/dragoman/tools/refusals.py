"""Asks the sandbox about a command that has begun or ended: what it was refused, and where it listens.

The asking can fail, for a command prints whatever it likes and the sandbox may be closed meanwhile. It then has no answer, and how the
command ended and what it printed stand as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dragoman.tools.process import NotStarted
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import ToolOutput

if TYPE_CHECKING:
    from dragoman.values.commands import Launch


def describe_failure(error: OSError) -> ToolOutput:
    """Return what the model is told: nothing has run only where the command could not be started."""
    reason = error.strerror or error
    if isinstance(error, NotStarted):
        return ToolRefusal(f"the command could not be started: {reason}", "not_started").output()
    told = f"the command was started, and then this failed: {reason}. What it did stands, what it printed is lost"
    return ToolRefusal(told, "lost").output()


def explain_refusal(launch: Launch, end: str, **about: Any) -> str:
    """Return what the sandbox stopped of a command that failed, as `Launch.explain` does; empty if that cannot be found out."""
    told = ""
    with _going_on():
        told = launch.explain(end, **about)
    return told


def find_refused_write(launch: Launch, said: str) -> str:
    """Return the line in which a command was refused to write; empty if there is none, or none can be looked for."""
    line = ""
    with _going_on():
        line = launch.find_refused_write(said)
    return line


async def find_new_ports(launch: Launch) -> tuple[int, ...]:
    """Return the ports that commands have begun to listen on; none if they cannot be looked for."""
    ports: tuple[int, ...] = ()
    with _going_on():
        ports = await launch.find_new_ports()
    return ports


async def find_servers(launch: Launch) -> tuple[int, ...]:
    """Return the ports that commands of the session listen on; none if they cannot be looked for."""
    ports: tuple[int, ...] = ()
    with _going_on():
        ports = await launch.find_servers()
    return ports


@contextmanager
def _going_on() -> Iterator[None]:
    try:
        yield
    except Exception:
        logging.getLogger("dragoman.tools").debug("the sandbox had no answer about a command", exc_info=True)
