"""Which hosts a command in the sandbox reaches: the gate asks the approvals, and then the rules for addresses that web_fetch has.

Loaded with the first command that may reach a host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.policy.approvals import UNDECIDED, Approvals, gate_spec
from dragoman.policy.judge import GATE, MustAsk
from dragoman.policy.sandbox.gate import Gate, GateRefused, Reachable, UnknownHost, dial
from dragoman.tools.background_results import title_of
from dragoman.tools.job import call_at_work
from dragoman.tools.web import NO_RULES
from dragoman.tools.web.addresses import Target, addresses_to_fetch, is_allowed, read_url, system_resolve
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.commands import GateEnd, Launched
from dragoman.values.messages import ToolCall
from dragoman.values.record import HostsUsed

MAX_QUESTIONS = 8
"""About different hosts, for one command. After that, unknown hosts are refused."""
TOO_MANY = "the command has asked for too many hosts"
NEVER_REACHED = "it is this machine, or a private, local or reserved address, which commands never reach"
NO_HOST = "it is not a host and a port in their plain form"
_REFUSED = "The network gate of the sandbox refused {hosts}. Do without, or tell the user, who can allow a host {remedy}."
_LATE = "The user allowed {hosts} when the command, or the program in it that asked, had given up waiting{scope}: run it again."
_ONCE = ", for that command alone, so that they are asked again"
_SHOWN = 5


async def open_gate(launched: Launched, approvals: Approvals, command: str = "") -> Launched:
    """The command with its gate at work, if one was made for it. `command`: as the user is shown it where they are asked."""
    end = launched.take_gate()
    if end is None:  # the system does not let us into bubblewrap's network
        return launched
    hosts = HostApprovals(approvals, command)
    gate = Gate(hosts.admit, secret=end.secret, connect=dial)
    try:
        await gate.open(end.descriptor)
    except BaseException:
        await launched.end(0)
        raise
    return GatedCommand(launched, gate, hosts)


class GatedCommand(Launched):
    """A command with a gate, which ends with it."""

    def __init__(self, launched: Launched, gate: Gate, hosts: HostApprovals) -> None:
        self._launched = launched
        self._gate = gate
        self._approvals = hosts

    @property
    def returncode(self) -> int | None:
        return self._launched.returncode

    @property
    def remark(self) -> str:
        late = explain_late(self._late, is_remembered=self._approvals.is_remembered)
        return " ".join(filter(None, (self._launched.remark, explain_refused(self._gate.refused), late)))

    @property
    def notice(self) -> str:
        return self._launched.notice

    @property
    def hosts(self) -> HostsUsed:
        return HostsUsed(tuple(self._gate.reached), tuple(self._gate.refused), self._late)

    @property
    def _late(self) -> tuple[str, ...]:
        return tuple(host for host in self._gate.gone if host not in self._gate.reached)

    def take_terminal(self) -> int | None:
        return self._launched.take_terminal()

    def take_gate(self) -> GateEnd | None:
        return None

    def watch_questions(self, tell: Callable[[bool], None]) -> None:
        self._approvals.watch(tell)

    async def settle(self) -> None:
        for host, answer in (await self._approvals.wait_for_answers()).items():
            if isinstance(answer, Allow):
                self._gate.gone[host] = ""
            else:
                self._gate.refused[host] = answer.reason

    async def wait(self) -> int:
        return await self._launched.wait()

    async def end(self, grace_s: float) -> bool:
        self._approvals.close()  # first: nobody is to answer what no longer matters
        try:
            return await self._launched.end(grace_s)
        finally:
            self._gate.close()


def explain_refused(refused: dict[str, str]) -> str:
    """One line for the model; empty if nothing was refused."""
    if not refused:
        return ""
    hosts = "; ".join(f"{host} ({reason})" for host, reason in list(refused.items())[:_SHOWN])
    hosts += f"; and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
    return _REFUSED.format(hosts=hosts, remedy="by network.hosts, or by a rule: allow `network HOST`")


def explain_late(hosts: Collection[str], *, is_remembered: Callable[[str], bool]) -> str:
    """One line for the model about hosts that were allowed too late; empty if there are none."""
    if not hosts:
        return ""
    shown = ", ".join(list(hosts)[:_SHOWN])
    return _LATE.format(hosts=shown, scope="" if all(map(is_remembered, hosts)) else _ONCE)


class HostApprovals:
    """Decides for one command. A host is asked about once; a refusal holds until the command ends.

    A program that gives up waiting takes the question from nobody: the answer holds for the rest of the command, and one that comes when
    the command has ended is remembered if the user said so.
    """

    def __init__(self, approvals: Approvals, command: str = "") -> None:
        self._command = title_of(command)
        at_work = call_at_work.get()
        self._call_id = at_work[0].id if at_work is not None else GATE
        self._approvals = approvals
        self._answers: dict[str, asyncio.Future[Allow | Deny]] = {}
        """Of those that were asked about."""
        self._open = 0
        self._tell: Callable[[bool], None] | None = None

    async def admit(self, url: str) -> Reachable:
        """Implements gate.Admit. A name is looked up when it is allowed, and not before: a lookup tells somebody's server of it."""
        target = _read(url)
        answer = await self._permit(target)
        if isinstance(answer, Deny):
            raise GateRefused(target.name, answer.reason)
        try:
            found = await addresses_to_fetch(target, NO_RULES, system_resolve)
            return Reachable(target.host, target.port, found, target.name)
        except ToolRefusal as refused:
            if refused.error_type == "not_found":
                raise UnknownHost(f"{target.host} was not found") from None
            raise GateRefused(target.name, NEVER_REACHED) from None

    def watch(self, tell: Callable[[bool], None]) -> None:
        """Implements Launched.watch_questions."""
        self._tell = tell
        if self._open:
            tell(True)

    async def wait_for_answers(self) -> dict[str, Allow | Deny]:
        """Wait until nothing is open. Returns what was answered meanwhile."""
        answered: dict[str, Allow | Deny] = {}
        while waiting := {host: answer for host, answer in self._answers.items() if not answer.done()}:
            await asyncio.wait(waiting.values())
            answered |= {host: answer.result() for host, answer in waiting.items() if not answer.cancelled()}
        return answered

    def is_remembered(self, host: str) -> bool:
        """Whether the yes to a host holds for later commands."""
        answer = self._answers.get(host)
        given = answer.result() if answer is not None and answer.done() and not answer.cancelled() else None
        return isinstance(given, Allow) and given.remember != "once"

    def close(self) -> None:
        """Whoever is being asked is asked no longer."""
        for answer in self._answers.values():
            answer.cancel()

    async def _permit(self, target: Target) -> Allow | Deny:
        name = target.name
        if name not in self._answers:
            verdict = self._approvals.judge_host(gate_spec(), name)
            if not isinstance(verdict, MustAsk):
                return verdict
            if len(self._answers) >= MAX_QUESTIONS:
                return Deny(TOO_MANY)
            self._answers[name] = asyncio.ensure_future(self._ask(target, verdict.view))
        # Several connections wait for one answer; that one of them goes away takes it from nobody.
        return await asyncio.shield(self._answers[name])

    async def _ask(self, target: Target, view: Intent) -> Allow | Deny:
        arguments = jsontext.dumps({"host": target.host, "port": target.port})
        if self._command:
            view = msgspec.structs.replace(view, preview=self._command)
        self._count(1)
        try:
            return await self._approvals.ask_host(ToolCall(f"{self._call_id}-{GATE}", GATE, arguments), view)
        except Exception:  # the person went away, or `ask` failed, which was reported to the event loop: no answer means no
            return Deny(UNDECIDED)
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        before, self._open = self._open, self._open + more
        if self._tell is not None and not (before and self._open):
            self._tell(self._open > 0)


def _read(url: str) -> Target:
    """Raises GateRefused for anything but a plain host, and for hosts that are never reached."""
    try:
        target = read_url(url)
    except ToolRefusal:
        shown = clip(escape_hidden(url.partition("//")[2].rstrip("/"), one_line=True), 100)
        raise GateRefused(shown, NO_HOST) from None
    try:
        is_allowed(target, NO_RULES)
    except ToolRefusal:
        raise GateRefused(target.name, NEVER_REACHED) from None
    return target
