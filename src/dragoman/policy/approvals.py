"""Approval of tool calls: the policy rules, then the user. The scheduler asks here before a call runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.base import jsontext
from dragoman.policy.grants import OUTSIDE_KEY, Grants
from dragoman.policy.judge import GATE, NO_LAW, PREFIX_KEY, Law, Mode, MustAsk, asks_by_rule, grant_key, judge, narrower
from dragoman.values.calls import Allow, Ask, Deny, Intent, Later, Tool
from dragoman.values.errors import Cancelled, SandboxError
from dragoman.values.messages import ToolCall, ToolSpec
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.discarding import Discarded
    from dragoman.policy.rules import Rule
    from dragoman.policy.sandbox.detection import Detected
    from dragoman.values.commands import OutsideRun, Reach

NO_ONE_TO_ASK = (
    "{name} needs a person's approval{why}, and nobody can be asked here. Do what you can without it, and say what you would have done."
)


NO_ONE_TO_LET_OUT = (
    "{name} was not run outside the sandbox: a person must allow that each time, and nobody can be asked here. Do what you can inside, and "
    "say which command is to be run outside. The user can run it, or allow it beforehand by a rule `outside COMMAND`."
)
NOT_ALLOWED = "it is not among the allowed hosts, and nobody can be asked here"
UNDECIDED = "whether it may be reached was not decided"
CANNOT_WRITE = "commands need a person's approval to write here, and nobody can be asked"
ONLY_PLANS = "plan mode only reads"


Ruling = Literal["refused", "granted", "not_saved"]
"""What a front end may want to tell: a call that the mode refused, one that ran because of a saved grant, a grant that was not saved."""
OnRuling = Callable[[Ruling, ToolCall, Intent, str], None]
"""The text says why, where there is a reason to tell."""
Limit = Callable[[ToolSpec, Intent, Law], Deny | MustAsk | None]
"""Narrows what may run; None: it says nothing of a call."""


class Unattended:
    """An `ask` that reaches nobody: it refuses everything, as with -p. The model is told so from the beginning."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def __call__(self, call: ToolCall, intent: Intent) -> Any:
        return self._ask(call, intent)


def reaches_person(ask: Ask | None) -> bool:
    return ask is not None and not isinstance(ask, Unattended)


def allows_hosts(hosts: Sequence[str], rules: Sequence[Rule], granted: Collection[str]) -> bool:
    """Whether commands in the sandbox reach some host unasked."""
    by_rule = any(rule.tool == GATE and rule.decision == "allow" and rule.tier != "project" for rule in rules)
    return bool(hosts) or by_rule or any(key.startswith(f"{GATE} ") for key in granted)


def require_sandbox(mode: Mode, has_sandbox: Callable[[], bool], known: Callable[[], Detected | None]) -> None:
    """Raises SandboxError for `auto` without a sandbox, saying why there is none and what to do."""
    if mode == "auto" and not has_sandbox():
        words = say("policy.auto_without_sandbox")
        reasons = detected.reasons if (detected := known()) is not None else ()
        raise SandboxError(say("policy.auto_refused_because", words=words, reasons="; ".join(reasons)) if reasons else words)


def _guard_repositories(intent: Intent) -> Intent:
    """A repository's own files are known by their names where the folder is called .git; it may have any other name."""
    from dragoman.policy.git_folder import is_in_repository  # where something is written

    return msgspec.structs.replace(intent, guarded="trusted") if any(map(is_in_repository, intent.writes)) else intent


class _Switch:
    """Shared by an agent and the subagents that work for it."""

    is_on: bool | None = None
    """None: as it is configured."""


class Approvals:
    """`decide` is a calls.Decide. `trusted` tools skip the rules (an embedder's own functions). `doubted` calls may have been written
    by someone other than the model: the user confirms each, whatever the rules say. `is_own` knows our own files (own_files.py).
    `session` is written beside what is saved. `law` holds the rules and the folders, as they are at the call."""

    def __init__(
        self,
        find: Callable[[str], Tool | None],
        mode: Mode = "default",
        ask: Ask | None = None,
        *,
        grants: Grants | None = None,
        session: str = "",
        is_own: Callable[[str], bool] = lambda path: False,
        trusted: Callable[[Tool], bool] = lambda tool: False,
        doubted: Callable[[ToolCall, ToolSpec], bool] = lambda call, spec: False,
        law: Callable[[], Law] = lambda: NO_LAW,
        has_sandbox: Callable[[], bool] = lambda: False,
        describe_sandbox: Callable[[], str] = lambda: "",
        known_sandbox: Callable[[], Detected | None] = lambda: None,
        lost_by: Callable[[Intent], Discarded | None] = lambda intent: None,
    ) -> None:
        """`lost_by`: the work that a command would throw away; None: nothing."""
        self._lost_by = lost_by
        self._discarded: dict[str, Discarded] = {}
        """By a call's id: what a command throws away that was allowed because a copy of it is kept."""
        self._has_sandbox = has_sandbox
        self._describe_sandbox = describe_sandbox
        self._known_sandbox = known_sandbox
        self.mode = mode
        self.ask = ask
        self._find = find
        self.grants = grants or Grants()
        self.on_ruling: OnRuling | None = None
        """Told what was decided without asking; see Ruling."""
        self.narrowed: Limit | None = None
        """What a skill or a command at work says of a call: refused, or asked about where the mode alone would let it run. It allows
        nothing: see allowed_tools.py."""
        self._held: tuple[Limit, ...] = ()
        """What the files of subagents say: this one's, and those of its callers. A rule that allows does not lift it."""
        self._most: Mode = "auto"
        self._asks = True
        self._session = session
        self._is_own = is_own
        self._trusted = trusted
        self._doubted = doubted
        self._configured = law
        self._writing = _Switch()
        self._reaches: dict[str, Reach] = {}
        """By a call's id: how far its command may reach, where that is not the workspace."""
        self._home: asyncio.AbstractEventLoop | None = None
        """The event loop of the last run: questions are asked there, also about commands that run in another."""
        self._judged: dict[str, tuple[str, ...]] = {}
        """By a call's id: the files and the folder that it was allowed for."""
        self._shown: dict[str, str] = {}
        """By a call's id: the change of a file that a person was shown and allowed."""
        self._outside: dict[str, OutsideRun] = {}
        """By a call's id: the command that was allowed to run outside the sandbox."""
        self._planned: set[str] = set()
        """Ids of calls with commands that plan mode let run, because their words say that they only read."""
        self.is_attended = not isinstance(ask, Unattended)
        """Whether `ask` reaches a person, if there is one."""

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        """Raises SandboxError for `auto` without a sandbox."""
        require_sandbox(mode, self._has_sandbox, self._known_sandbox)
        self._mode: Mode = mode

    @property
    def session(self) -> str:
        """The id of the session, where it is saved."""
        return self._session

    @property
    def has_person(self) -> bool:
        """Whether somebody can be asked."""
        return self.ask is not None and self.is_attended

    @property
    def commands_write(self) -> bool:
        """Whether commands in the sandbox may write in the workspace unasked, in this session. It covers neither edits by tools, nor hosts,
        nor commands outside the sandbox; rules that refuse or ask, and plan mode, stand above it."""
        return self._law().run_sandboxed

    @property
    def chosen_writing(self) -> bool | None:
        """What the user has chosen for the session about that; None: nothing, and it is as configured."""
        return self._writing.is_on

    @commands_write.setter
    def commands_write(self, value: bool) -> None:
        self._writing.is_on = value

    def _law(self) -> Law:
        """The rules and the folders, with what the user has chosen for the session."""
        law = self._configured()
        return law if self._writing.is_on is None else msgspec.structs.replace(law, run_sandboxed=self._writing.is_on)

    def tighten(self, limit: Limit, mode: Mode | None = None, *, asks: bool = True) -> None:
        """Hold what the file of a subagent says from now on, for it and for those that it calls."""
        self._held = (*self._held, limit)
        self._narrow_to(mode or self._most, asks=asks)

    def work_for(self, caller: Approvals) -> None:
        """Hold what holds for the caller, also what a skill or a command says that it begins to use later."""
        self.on_ruling, self._writing = caller.on_ruling, caller._writing
        self.is_attended = self.is_attended and caller.is_attended
        self.narrowed = lambda spec, intent, law: caller.narrowed(spec, intent, law) if caller.narrowed is not None else None
        self._held = (*self._held, caller.limit_held)
        self._narrow_to(caller._most, asks=caller._asks)

    def _narrow_to(self, mode: Mode, *, asks: bool) -> None:
        self._most, self._asks = narrower(self._most, mode), self._asks and asks
        if (most := narrower(self.mode, self._most)) != self.mode:
            self.mode = most
        if not self._asks:
            self.ask = None

    def limit_held(self, spec: ToolSpec, intent: Intent, law: Law) -> Deny | MustAsk | None:
        """What the files of subagents say of a call, the strictest."""
        limits = [limit(spec, intent, law) for limit in self._held]
        return next((each for each in limits if isinstance(each, Deny)), next(filter(None, limits), None))

    @property
    def sandbox(self) -> str:
        """One line: what holds commands, and what it does not hold. The first time it takes a moment to find out."""
        return self._describe_sandbox()

    @property
    def known_sandbox(self) -> Detected | None:
        """The level that was found, at the first command or by the mode auto; None before. Costs nothing."""
        return self._known_sandbox()

    @property
    def has_boundary(self) -> bool:
        """Whether it is known that commands run in a sandbox, or inside a boundary that the user has named."""
        return (known := self._known_sandbox()) is not None and known.level > 0

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force, without what the user granted when asked."""
        return self._law().rules

    @property
    def hosts(self) -> tuple[str, ...]:
        """Which hosts may be reached unasked, by configuration."""
        return self._law().hosts

    def decide(self, call: ToolCall) -> Allow | Deny | Awaitable[Allow | Deny | Later]:
        tool = self._find(call.name)
        if tool is None:
            return Deny(f"there is no tool called {call.name}")
        self._reaches.pop(call.id, None)
        self._planned.discard(call.id)
        self._home = _loop_at_work()
        self._outside.pop(call.id, None)
        is_doubted = self._doubted(call, tool.spec)
        law = self._law()
        limit, held = self._limits(call, tool, law)
        if isinstance(limit, Deny):
            return limit
        only_plans = self.mode == "plan" and not getattr(tool, "decides_within", False)  # an agent that is called then plans too
        mode = self.mode if only_plans or self.mode != "plan" else "default"
        is_trusted = self._trusted(tool) and not is_doubted and not only_plans
        if is_trusted and not law.rules and limit is None and held is None and "outside" not in call.arguments:
            return Allow()
        tool, args = _meant(tool, jsontext.decode_object(call.arguments) or {})
        intent = self.intend(tool, args)
        is_trusted = is_trusted and not intent.outside
        self._discarded.pop(call.id, None)
        verdict = judge(tool.spec, intent, mode, self.grants.keys, law)
        lost = self._lost(tool.spec, intent, mode, verdict, law)
        if lost is not None:
            verdict = self._judge_loss(call.id, intent, mode, verdict, lost)
        is_asked_about = lost is not None and not isinstance(verdict, Allow)
        if (
            limit is None
            and held is None
            and not is_doubted
            and not is_asked_about
            and self._runs_unasked(call, tool.spec, intent, mode, verdict, law)
        ):
            return Allow()
        if isinstance(verdict, MustAsk) and is_trusted and not verdict.view.why:
            verdict = Allow()  # rules may forbid an embedder's own function or have it asked; nothing else does
            if limit is None and held is None:
                return verdict
        if limit is not None and isinstance(verdict, Allow) and not self._is_allowed_by_person(tool, intent, law):
            verdict = limit
        if held is not None and isinstance(verdict, Allow):
            verdict = self._ask_for_held(held, tool, intent, law)
        if is_doubted and isinstance(verdict, Allow):
            verdict = MustAsk(intent)
        if not isinstance(verdict, MustAsk):
            if isinstance(verdict, Allow):
                self._bind(call, intent, was_asked=False)
                if mode == "plan" and intent.command:
                    self._planned.add(call.id)
            self._tell_ruling(verdict, call, tool, intent)
            return verdict
        if lost is not None and is_asked_about and not intent.outside and not self.has_person:
            refused = Deny(lost.refusal)
            return refused if self.ask is None else self._refuse_unattended(self.ask, call, verdict, refused)
        if self.ask is None and intent.outside:
            return Deny(NO_ONE_TO_LET_OUT.format(name=tool.spec.name))
        if self.ask is None:
            return Deny(NO_ONE_TO_ASK.format(name=tool.spec.name, why=f" ({verdict.view.why})" if verdict.view.why else ""))
        return self._ask_person(self.ask, call, tool, verdict.view)

    def _lost(self, spec: ToolSpec, intent: Intent, mode: Mode, verdict: Allow | MustAsk | Deny, law: Law) -> Discarded | None:
        """The work that a command would throw away, if somebody has to hear of it first."""
        if not intent.command or mode == "plan":
            return None
        from dragoman.policy.discarding import is_to_be_told  # only for commands

        return self._lost_by(intent) if is_to_be_told(spec, intent, verdict, law) else None

    def _judge_loss(self, call_id: str, intent: Intent, mode: Mode, verdict: Allow | MustAsk | Deny, lost: Discarded) -> Allow | MustAsk:
        from dragoman.policy.discarding import ask_about_loss

        if isinstance(verdict, Allow) and mode == "auto" and lost.is_kept:
            self._discarded[call_id] = lost
            return verdict
        return ask_about_loss(intent, verdict, lost, keeps_why=mode == "auto")

    async def _refuse_unattended(self, ask: Ask, call: ToolCall, verdict: MustAsk | Deny, refused: Deny) -> Allow | Deny | Later:
        """What nobody can be asked about, told to whoever counts such calls, and to the model with what to do."""
        answer = await self._answer_of(ask, call, verdict.view) if isinstance(verdict, MustAsk) else verdict
        return refused if isinstance(answer, Deny) else answer

    def discarded_by(self, call_id: str) -> tuple[str, str]:
        """What the model and the user are told of a command that was allowed because a copy is kept of what it throws away."""
        lost = self._discarded.get(call_id)
        return (lost.note, lost.notice) if lost is not None else ("", "")

    def _runs_unasked(self, call: ToolCall, spec: ToolSpec, intent: Intent, mode: Mode, verdict: Allow | MustAsk | Deny, law: Law) -> bool:
        """Whether it is a command that runs with the workspace read-only, so that nobody needs to be asked. Notes that."""
        if not intent.writing or intent.outside:
            return False
        from dragoman.policy.unasked import reach_unasked  # only where a command can run so

        reach = reach_unasked(spec, intent, mode, verdict, law)
        if reach is None:
            return False
        self._bind(call, intent, was_asked=False)
        self._reaches[call.id] = reach
        return True

    @property
    def may_reach_out(self) -> bool:
        """Whether some host may be reached by a command in the sandbox: one is allowed, or somebody can be asked."""
        law = self._law()
        return self.ask is not None or allows_hosts(law.hosts, law.rules, self.grants.keys)

    def judge_host(self, spec: ToolSpec, host: str) -> Allow | MustAsk | Deny:
        """Whether a tool may ask this host: `example.org`, or `example.org:8080` if the port is not one of the web's."""
        view = Intent(title=say("policy.network_title", host=host), preview=host, scope=host)
        return judge(spec, view, self.mode, self.grants.keys, self._law())

    def forbids_host(self, spec: ToolSpec, host: str) -> str:
        """Why a tool that was allowed for another host may not go on to this one; empty: it may."""
        verdict = self.judge_host(spec, host)
        if isinstance(verdict, Deny):
            return verdict.reason
        if isinstance(held := self.limit_held(spec, Intent(scope=host), self._law()), Deny):
            return held.reason
        if not isinstance(verdict, MustAsk):
            return ""
        is_unasked = self.mode == "auto" or (not spec.read_only and asks_by_rule(spec, verdict.view, self._law()))
        return verdict.view.why if is_unasked else ""

    async def ask_host(self, call: ToolCall, view: Intent) -> Allow | Deny:
        """Ask the person whether a command in the sandbox may reach a host."""
        home = self._home
        if home is None or home is asyncio.get_running_loop():
            return await self._ask_host(call, view)
        asking = self._ask_host(call, view)
        try:
            asked = asyncio.run_coroutine_threadsafe(asking, home)
        except RuntimeError:  # the loop is closed: there is nobody any more
            asking.close()
            return Deny(UNDECIDED)
        return await asyncio.wrap_future(asked)

    async def _ask_host(self, call: ToolCall, view: Intent) -> Allow | Deny:
        if self.ask is None:
            return Deny(NOT_ALLOWED)
        answer = await self._answer_of(self.ask, call, view)
        if isinstance(answer, Later):  # the command is already running, so Later is not possible
            return Deny(UNDECIDED)
        if isinstance(answer, Allow):
            self._remember(answer, call, view, grant_key(gate_spec(), view))
        return answer

    @property
    def cannot_write(self) -> str:
        """Why nobody can be asked whether a command may write; empty: somebody can."""
        return ONLY_PLANS if self.mode == "plan" else "" if self.has_person else CANNOT_WRITE

    async def ask_to_write(self, call: ToolCall, view: Intent) -> Allow | Deny:
        """Ask the person whether a command that ran with the workspace read-only may run again and write. `view`: the command, and why it
        is asked about."""
        if self.ask is None or self.mode == "plan":
            return Deny(self.cannot_write)
        answer = await self._answer_of(self.ask, call, view)
        if isinstance(answer, Later):  # the command has run already, so Later is not possible
            return Deny(CANNOT_WRITE)
        if isinstance(answer, Allow):
            self._note_writing(answer, view)
            self._reaches.pop(call.id, None)
        return answer

    def _note_writing(self, answer: Allow, view: Intent) -> None:
        if answer.commands_write and view.writing in ("wanted", "refused") and not view.guarded:
            self.commands_write = True

    def forbids(self, call: ToolCall) -> Deny | None:
        """Why the rules do not let it run at all, whoever would allow it."""
        tool = self._find(call.name)
        if tool is None:
            return Deny(f"there is no tool called {call.name}")
        self._reaches.pop(call.id, None)
        if isinstance(limit := self._limits(call, tool, self._law())[0], Deny):
            return limit
        tool, args = _meant(tool, jsontext.decode_object(call.arguments) or {})
        intent, law = self.intend(tool, args), self._law()
        verdict = judge(tool.spec, intent, self.mode, law=law)
        if not isinstance(verdict, Deny) or self._runs_unasked(call, tool.spec, intent, self.mode, verdict, law):
            return None
        return verdict

    def _limits(self, call: ToolCall, tool: Tool, law: Law) -> tuple[Deny | MustAsk | None, MustAsk | None]:
        """What skills and commands say, and what the files of subagents say. A refusal of either comes first."""
        if self.narrowed is None and not self._held:
            return None, None
        tool, args = _meant(tool, jsontext.decode_object(call.arguments) or {})
        intent = self.intend(tool, args)
        held = self.limit_held(tool.spec, intent, law)
        limit = self.narrowed(tool.spec, intent, law) if self.narrowed is not None else None
        for each in (held, limit):
            if isinstance(each, Deny):
                self._tell_ruling(each, call, tool, intent)
                return each, None
        return limit, held if isinstance(held, MustAsk) else None

    def _is_allowed_by_person(self, tool: Tool, intent: Intent, law: Law) -> bool:
        """By a rule or an earlier answer, whatever the mode."""
        law = msgspec.structs.replace(law, run_sandboxed=False)
        return isinstance(judge(tool.spec, intent, "default", self.grants.keys, law), Allow)

    def _ask_for_held(self, held: MustAsk, tool: Tool, intent: Intent, law: Law) -> Allow | MustAsk:
        """What the file of a subagent wants asked: an earlier answer of the person's counts, neither the mode nor a rule does."""
        rules = tuple(rule for rule in law.rules if rule.decision != "allow")
        law = msgspec.structs.replace(law, rules=rules, hosts=(), run_sandboxed=False)
        unasked = judge(tool.spec, intent, "default", law=law)
        with_grants = judge(tool.spec, intent, "default", self.grants.keys, law)
        is_granted = isinstance(with_grants, Allow) and not isinstance(unasked, Allow)
        if not intent.outside and (is_granted or grant_key(tool.spec, intent) in self.grants.keys):
            return Allow()
        return MustAsk(msgspec.structs.replace(unasked.view, why=held.view.why)) if isinstance(unasked, MustAsk) else held

    def intend(self, tool: Tool, args: Mapping[str, Any]) -> Intent:
        """What a call would do, and whether it would do it to our own files."""
        intent = tool.intend(args)
        if intent.outside:
            return msgspec.structs.replace(intent, guarded="outside", sandboxed=False)
        if any(map(self._is_own, intent.writes)):
            return msgspec.structs.replace(intent, guarded="own")
        return _guard_repositories(intent) if intent.writes and not intent.guarded else intent

    def view(self, tool: Tool, args: Mapping[str, Any]) -> Intent:
        """What a person is shown of a call: what it would do, why it is asked about, and what may be allowed from now on."""
        tool, args = _meant(tool, args)
        intent = self.intend(tool, args)
        law = self._law()
        verdict = judge(tool.spec, intent, self.mode, law=law)
        if (lost := self._lost(tool.spec, intent, self.mode, verdict, law)) is not None and isinstance(verdict, MustAsk):
            verdict = self._judge_loss("", intent, self.mode, verdict, lost)
        return verdict.view if isinstance(verdict, MustAsk) else intent

    def view_of(self, call: ToolCall) -> Intent | None:
        """`view` of a call by its name; None where there is no such tool."""
        tool = self._find(call.name)
        return self.view(tool, jsontext.decode_object(call.arguments) or {}) if tool is not None else None

    def may_skip(self, call: ToolCall) -> bool:
        """Whether somebody else's yes is enough: no rule forbids it or wants it asked, nothing it writes is guarded, and nobody doubts
        that the model wrote it."""
        self._reaches.pop(call.id, None)
        tool = self._find(call.name)
        if tool is None or self._doubted(call, tool.spec) or self._limits(call, tool, self._law()) != (None, None):
            return False
        tool, args = _meant(tool, jsontext.decode_object(call.arguments) or {})
        intent, law = self.intend(tool, args), self._law()
        verdict = judge(tool.spec, intent, self.mode, law=law)
        if self._lost(tool.spec, intent, self.mode, verdict, law) is not None:
            return False
        if isinstance(verdict, MustAsk):
            return not verdict.view.guarded and not asks_by_rule(tool.spec, intent, law)
        return isinstance(verdict, Allow)

    def name_of(self, call: ToolCall) -> str:
        """The name of the tool that a call is about: where one calls another for the model (`call_tool`), the other's."""
        tool = self._find(call.name)
        return _meant(tool, jsontext.decode_object(call.arguments) or {})[0].spec.name if tool is not None else call.name

    def runs_outside(self, call: ToolCall) -> bool:
        """Whether it is to run outside the sandbox: then no hook allows it."""
        tool = self._find(call.name)
        return tool is not None and bool(self.intend(*_meant(tool, jsontext.decode_object(call.arguments) or {})).outside)

    def ask_about(self, call: ToolCall) -> Deny | Awaitable[Allow | Deny | Later]:
        """Ask the person, whatever would allow it."""
        tool = self._find(call.name)
        if tool is None:
            return Deny(f"there is no tool called {call.name}")
        if self.ask is None:
            return Deny(NO_ONE_TO_ASK.format(name=self.name_of(call), why=""))
        return self._ask_person(self.ask, call, tool, self.view(tool, jsontext.decode_object(call.arguments) or {}))

    def apply(self, call: ToolCall, answer: Allow | Deny, shown: str = "") -> Allow | Deny:
        """What a person said later about a call that was put off. The rules are asked again: they may forbid it by now. `shown`: the
        preview that the person was shown; a file that was changed since may make another change of it, which nobody has allowed."""
        tool = self._find(call.name)
        if tool is None:
            return Deny(f"there is no tool called {call.name}")
        tool, args = _meant(tool, jsontext.decode_object(call.arguments) or {})
        intent = self.intend(tool, args)
        verdict = judge(tool.spec, intent, self.mode, law=self._law())
        if isinstance(verdict, Deny):
            return verdict
        is_as_shown = not shown or not intent.writes or changed_lines(shown) == changed_lines(intent.preview)
        if isinstance(answer, Allow) and not answer.arguments and not is_as_shown:
            return Deny("the file changed after the user was shown this change: make the call again")
        return self._take_answer(answer, call, tool, verdict.view if isinstance(verdict, MustAsk) else intent)

    async def _ask_person(self, ask: Ask, call: ToolCall, tool: Tool, view: Intent) -> Allow | Deny | Later:
        answer = await self._answer_of(ask, call, view)
        if not isinstance(answer, Later):
            return self._take_answer(answer, call, tool, view)
        later = Later()
        later.intent = view
        return later

    def _take_answer(self, answer: Allow | Deny, call: ToolCall, tool: Tool, view: Intent) -> Allow | Deny:
        if isinstance(answer, Deny):
            return answer
        if answer.arguments:
            # Edited arguments go through the rules again. Only Deny counts: the user has just been asked.
            edited = jsontext.decode_object(answer.arguments)
            if edited is None:
                return Deny("the edited arguments are not a JSON object: the call was not run")
            if (called := self._find(call.name)) is not None:
                if isinstance(
                    limit := self._limits(msgspec.structs.replace(call, arguments=answer.arguments), called, self._law())[0], Deny
                ):
                    return limit
                tool, edited = _meant(called, edited)
            again = judge(tool.spec, self.intend(tool, edited), self.mode, law=self._law())
            if isinstance(again, Deny):
                return again
            changed = again.view if isinstance(again, MustAsk) else self.intend(tool, edited)
            if changed.outside and not view.outside:
                return Deny("the edited arguments would run it outside the sandbox, which was not asked about: the call was not run")
            view = changed
        beginning = _key_of(answer, view)
        # Who lets a beginning out has not looked at this one command: it runs as the next ones will.
        self._bind(call, view, was_asked=not (view.outside and beginning))
        self._reaches.pop(call.id, None)
        self._note_writing(answer, view)
        self._remember(answer, call, view, beginning or grant_key(tool.spec, view))
        return answer

    def _bind(self, call: ToolCall, intent: Intent, *, was_asked: bool) -> None:
        if paths := (*intent.writes, *filter(None, [intent.directory])):
            self._judged[call.id] = paths
        self._shown.pop(call.id, None)
        if was_asked and intent.writes:
            self._shown[call.id] = intent.preview
        self._outside.pop(call.id, None)
        if intent.outside:
            from dragoman.policy.outside import plan_run  # only where a command asks for it

            self._outside[call.id] = plan_run(intent, self._law(), was_asked=was_asked)

    def reach_of(self, call_id: str) -> Reach:
        """How far the command of a call that was allowed may reach. In plan mode none writes, whoever has allowed it."""
        reach = "outside" if call_id in self._outside else self._reaches.get(call_id, "workspace")
        return "read-only" if self.mode == "plan" and reach == "workspace" and call_id not in self._planned else reach

    def outside_run(self, call_id: str) -> OutsideRun | None:
        """The command that a call was allowed to run outside the sandbox; None: none was."""
        return self._outside.get(call_id)

    def was_judged(self, call_id: str, path: str) -> bool:
        """Whether this real path is what a call was allowed for, or shown to a person: a link may have been swapped since. For a call that
        others have allowed, whether nobody needs to be asked about the path."""
        judged = self._judged.get(call_id)
        if judged is not None:
            return path in judged
        from dragoman.policy.guarded_files import is_guarded

        return not is_guarded(path) and not self._is_own(path)

    def was_shown(self, call_id: str, preview: str) -> bool:
        """Whether a person who allowed a call was shown this change of a file. True if nobody was asked."""
        shown = self._shown.get(call_id)
        return shown is None or changed_lines(shown) == changed_lines(preview)

    def _remember(self, answer: Allow, call: ToolCall, view: Intent, key: str) -> None:
        is_beginning = bool(view.outside) and answer.remember == "session" and key.startswith(OUTSIDE_KEY)
        if answer.remember == "once" or (view.guarded and not is_beginning):
            return
        problem = self.grants.add(key, saved=answer.remember == "saved", session=self._session)
        if problem and self.on_ruling is not None:
            self.on_ruling("not_saved", call, view, problem)

    def _tell_ruling(self, verdict: Allow | Deny, call: ToolCall, tool: Tool, intent: Intent) -> None:
        if self.on_ruling is None:
            return
        if isinstance(verdict, Deny):
            self.on_ruling("refused", call, intent, verdict.reason)
        elif self.grants.saved and isinstance(judge(tool.spec, intent, self.mode, self.grants.of_session, self._law()), MustAsk):
            self.on_ruling("granted", call, intent, "")

    async def _answer_of(self, ask: Ask, call: ToolCall, view: Intent) -> Allow | Deny | Later:
        """What the person says. A failing `ask` refuses the call; whoever wrote it hears of it from the event loop, not from the model."""
        try:
            asked = ask(call, view)
            answer = await asked if isinstance(asked, Awaitable) else asked
            if not isinstance(answer, Allow | Deny | Later):
                raise TypeError(say("policy.ask_answer", answer=repr(answer)[:80]))
        except (EOFError, Cancelled):  # the person went away: nothing has failed
            raise
        except Exception as error:
            failed = {"message": str(say("policy.ask_failed", tool=call.name)), "exception": error}
            asyncio.get_running_loop().call_exception_handler(failed)
            raise
        return answer


def _meant(tool: Tool, args: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
    """What is judged: the tool itself, or the one that it calls for the model (`stands_for`)."""
    stands_for = getattr(tool, "stands_for", None)
    return (tool, args) if stands_for is None else stands_for(args)


def changed_lines(preview: str) -> list[str]:
    """The lines that a change removes and adds, of its diff; where they stand and what is around them may have changed meanwhile. Whatever
    is no diff counts as a whole."""
    lines = preview.split("\n")
    changed = [line for line in lines if line.startswith(("+", "-"))]
    return changed or lines


def _loop_at_work() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def gate_spec() -> ToolSpec:
    """The gate as a tool, for the rules."""
    return ToolSpec.of(GATE, "", {"type": "object"}, kind="fetch")


def _key_of(answer: Allow, view: Intent) -> str:
    """The key of a beginning, if the answer names one that was offered, or a longer one."""
    is_offered = view.prefix and (answer.prefix == view.prefix or answer.prefix.startswith(f"{view.prefix} "))
    if view.outside:
        return f"{OUTSIDE_KEY}{view.prefix}" if view.prefix and answer.prefix == view.prefix else ""
    return f"{PREFIX_KEY}{answer.prefix}" if is_offered else ""
