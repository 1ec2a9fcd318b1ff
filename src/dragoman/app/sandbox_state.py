"""The boundary around commands as `/sandbox` shows it: which there is, and in words what holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.base.places import shorten_home
from dragoman.policy.judge import GATE
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent
    from dragoman.loop.commands import CommandStarter
    from dragoman.policy.approvals import Approvals

_SHOWN = 8


def starter_of(agent: Agent) -> CommandStarter | None:
    """What starts the commands of an agent; None where they are started directly, without any boundary."""
    return agent._harness.starter


async def find_boundary(agent: Agent) -> bool:
    """Find out whether commands run inside a boundary, without holding up the event loop."""
    starter = starter_of(agent)
    if starter is None:
        return False
    await starter.prepare()
    return starter.is_sandbox


def describe_boundary(agent: Agent) -> list[str]:
    """The lines that say what holds. It must have been found out before."""
    starter, approvals = starter_of(agent), agent.approvals
    lines = [say("sandbox_is", words=approvals.sandbox)]
    if starter is None or not starter.is_sandbox or starter.is_external:
        return lines
    lines.append(say("sandbox_writes", folders=", ".join(map(shorten_home, starter.writable)), temporary=starter.sandbox.temporary))
    lines.append(say(_asking(starter, approvals)))
    if starter.sandbox.caches:
        lines.append(say("sandbox_caches", folder=shorten_home(starter.sandbox.caches)))
    lines.append(say("sandbox_hides"))
    lines.append(_network(starter, approvals))
    if starter.sandbox.detected.has_own_network:
        lines.append(_ports(starter))
    return lines


def _asking(starter: CommandStarter, approvals: Approvals) -> str:
    if approvals.mode == "plan":
        return "sandbox_plans"
    if approvals.commands_write or approvals.mode == "auto":
        return "sandbox_unasked"
    return "sandbox_asks" if starter.has_read_only else "sandbox_asks_each"


def _network(starter: CommandStarter, approvals: Approvals) -> str:
    if not starter.sandbox.detected.has_own_network:
        return say("sandbox_no_network")
    hosts = [*approvals.hosts, *(rule.pattern for rule in approvals.rules if rule.tool == GATE and rule.decision == "allow")]
    hosts += [key.removeprefix(f"{GATE} ") for key in approvals.grants.keys if key.startswith(f"{GATE} ")]
    named = sorted(set(hosts))
    if not named:
        return say("sandbox_no_hosts")
    more = say("sandbox_more_hosts", count=len(named) - _SHOWN) if len(named) > _SHOWN else ""
    return say("sandbox_hosts", hosts=", ".join(named[:_SHOWN]) + more)


def _ports(starter: CommandStarter) -> str:
    opened = starter.opened_ports
    listening = [str(port) for port in starter.listening_ports() if port not in opened]
    words = [say("sandbox_port_opened", port=port, url=url) for port, url in sorted(opened.items())]
    words += [say("sandbox_ports_listening", ports=", ".join(listening[:_SHOWN]))] if listening else []
    return say("sandbox_ports", ports="; ".join(words)) if words else say("sandbox_no_servers")
