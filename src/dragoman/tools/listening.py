"""Servers that background commands start: the user is told that one listens, and how a browser gets to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.tools.process import tell_user
from dragoman.tools.refusals import find_new_ports
from dragoman.words import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.values.commands import Launch

LISTENS = "It listens on port {port}: later commands reach it at 127.0.0.1, the user's browser once they type /sandbox port {port}."


async def tell_ports(launch: Launch | None, ids: Sequence[str]) -> str:
    """Tell the user of each port that a background command has begun to listen on, once. `ids`: which may have. Returns a line for the
    model; empty: there is nothing to say."""
    if launch is None or not ids:
        return ""
    ports = await find_new_ports(launch)
    for port in ports:
        tell_user(say("tools.listens", id=" / ".join(ids), port=port))
    return " ".join(LISTENS.format(port=port) for port in ports)
