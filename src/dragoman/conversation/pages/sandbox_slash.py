"""`/sandbox` in both conversations: shows what holds commands, and changes it for the session."""

from __future__ import annotations

import asyncio

from dragoman.app.sandbox_state import describe_boundary, find_boundary, starter_of
from dragoman.conversation.talk import Talk
from dragoman.values.errors import InputError
from dragoman.words import say

MAX_PORT = 65_535


async def sandbox(talk: Talk, rest: str) -> None:
    """Show or change, and say so."""
    await find_boundary(talk.agent)
    try:
        match rest.split():
            case []:
                await _show(talk)
            case ["write", "on" | "off" as switch]:
                _let_write(talk, on=switch == "on")
            case ["port"]:
                await _show(talk)
            case ["port", number]:
                await _open_port(talk, _port_of(number))
            case ["port", number, "close"]:
                await _close_port(talk, _port_of(number))
            case ["off"]:
                _turn_off(talk)
            case ["on"]:
                await _turn_on(talk)
            case _:
                raise InputError(say("sandbox_usage"))
    except InputError as error:
        talk.screen.message(str(error), "yellow")


async def _show(talk: Talk) -> None:
    lines = await asyncio.to_thread(describe_boundary, talk.agent)  # which ports are listened on is looked up
    for line in lines:
        talk.screen.message(line)
    talk.screen.message(say("sandbox_usage"), "dim")


def _let_write(talk: Talk, *, on: bool) -> None:
    """Raises InputError where no sandbox would hold what is written."""
    starter = starter_of(talk.agent)
    if on and (starter is None or not starter.is_sandbox):
        raise InputError(say("sandbox_cannot_write", words=talk.agent.approvals.sandbox))
    talk.agent.approvals.commands_write = on
    unasked_anyway = not on and talk.agent.approvals.mode == "auto"
    talk.screen.message(say("sandbox_write_auto" if unasked_anyway else "sandbox_write_on" if on else "sandbox_write_off"))


def _turn_off(talk: Talk) -> None:
    harness = talk.agent._harness
    was_auto = talk.agent.approvals.mode == "auto"
    harness.turn_sandbox(on=False)
    talk.screen.message(say("sandbox_turned_off"), "yellow")
    if was_auto:
        talk.screen.message(say("sandbox_left_auto", mode=talk.agent.approvals.mode))


async def _turn_on(talk: Talk) -> None:
    talk.agent._harness.turn_sandbox(on=True)
    await find_boundary(talk.agent)
    talk.screen.message(say("sandbox_is", words=talk.agent.approvals.sandbox))
    if talk.setup.config.sandbox.level == "off":
        talk.screen.message(say("sandbox_configured_off"), "yellow")


async def _open_port(talk: Talk, port: int) -> None:
    starter = starter_of(talk.agent)
    if starter is None or not starter.is_sandbox or starter.is_external:  # commands use the network that the user has
        talk.screen.message(say("sandbox_port_url", port=port, url=f"http://127.0.0.1:{port}"))
        return
    try:
        url = await starter.open_port(port)
    except OSError as error:
        raise InputError(say("sandbox_port_closed", port=port, reason=error.strerror or str(error))) from error
    talk.screen.message(say("sandbox_port_url", port=port, url=url))
    if port not in await asyncio.to_thread(starter.listening_ports):
        talk.screen.message(say("sandbox_port_silent", port=port), "yellow")


async def _close_port(talk: Talk, port: int) -> None:
    starter = starter_of(talk.agent)
    if starter is None or port not in starter.opened_ports:
        raise InputError(say("sandbox_port_not_open", port=port))
    await starter.close_port(port)
    talk.screen.message(say("sandbox_port_is_closed", port=port))


def _port_of(text: str) -> int:
    """Raises InputError."""
    port = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
    if not 1 <= port <= MAX_PORT:
        raise InputError(say("sandbox_not_a_port", text=text[:20]))
    return port
