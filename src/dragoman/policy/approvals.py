"""Approval of tool calls: the policy rules, then the user. The scheduler asks here before a call runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec

from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.policy.grants import Grants
from dragoman.policy.judge import Mode, MustAsk, grant_key, judge
from dragoman.values.contracts import Allow, Ask, Deny, Intent, Later, Tool
from dragoman.values.errors import Cancelled
from dragoman.values.messages import ToolCall, ToolSpec

NO_ONE_TO_ASK = (
    "{name} needs a person's approval, and nobody can be asked here. Do what you can without it, and say what you would have done."
)


Ruling = Literal["refused", "granted", "not_saved"]
"""What a front end may want to tell: a call that the mode refused, one that ran because of a saved grant, a grant that was not saved."""
OnRuling = Callable[[Ruling, ToolCall, Intent, str], None]
"""The text says why, where there is a reason to tell."""


class Approvals:
    """`decide` is a contracts.Decide. `trusted` tools skip the rules (an embedder's own functions). `doubted` calls may have been written
    by someone other than the model: the user confirms each, whatever the rules say. `is_own` knows our own files (own_files.py).
    `session` is written beside what is saved."""

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
    ) -> None:
        self.mode: Mode = mode
        self.ask = ask
        self._find = find
        self.grants = grants or Grants()
        self.on_ruling: OnRuling | None = None
        """Told what was decided without asking; see Ruling."""
        self._session = session
        self._is_own = is_own
        self._trusted = trusted
        self._doubted = doubted

    def decide(self, call: ToolCall) -> Allow | Deny | Awaitable[Allow | Deny | Later]:
        tool = self._find(call.name)
        if tool is None:
            return Deny(f"there is no tool called {call.name}")
        is_doubted = self._doubted(call, tool.spec)
        if self._trusted(tool) and not is_doubted and self.mode != "plan":
            return Allow()
        intent = self.intend(tool, jsontext.decode_object(call.arguments) or {})
        verdict = judge(tool.spec, intent, self.mode, self.grants.keys)
        if is_doubted and isinstance(verdict, Allow):
            verdict = MustAsk(intent)
        if not isinstance(verdict, MustAsk):
            self._tell_ruling(verdict, call, tool, intent)
            return verdict
        return Deny(NO_ONE_TO_ASK.format(name=call.name)) if self.ask is None else self._ask_person(self.ask, call, tool, verdict.view)

    def forbids(self, call: ToolCall) -> Deny | None:
        """Why the rules do not let it run at all, whoever would allow it."""
        tool = self._find(call.name)
        if tool is None:
            return Deny(f"there is no tool called {call.name}")
        verdict = judge(tool.spec, self.intend(tool, jsontext.decode_object(call.arguments) or {}), self.mode, self.grants.keys)
        return verdict if isinstance(verdict, Deny) else None

    def intend(self, tool: Tool, args: Mapping[str, Any]) -> Intent:
        """What a call would do, and whether it would do it to our own files."""
        intent = tool.intend(args)
        if any(map(self._is_own, intent.writes)):
            return msgspec.structs.replace(intent, guarded="own")
        return intent

    def apply(self, call: ToolCall, answer: Allow | Deny) -> Allow | Deny:
        """What a person said later about a call that was put off. The rules are asked again: they may forbid it by now."""
        tool = self._find(call.name)
        if tool is None:
            return Deny(f"there is no tool called {call.name}")
        intent = self.intend(tool, jsontext.decode_object(call.arguments) or {})
        verdict = judge(tool.spec, intent, self.mode)
        if isinstance(verdict, Deny):
            return verdict
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
            again = judge(tool.spec, self.intend(tool, edited), self.mode)
            if isinstance(again, Deny):
                return again
            view = again.view if isinstance(again, MustAsk) else self.intend(tool, edited)
        if answer.remember != "once" and not view.guarded:
            problem = self.grants.add(grant_key(tool.spec, view), saved=answer.remember == "saved", session=self._session)
            if problem and self.on_ruling is not None:
                self.on_ruling("not_saved", call, view, problem)
        return answer

    def _tell_ruling(self, verdict: Allow | Deny, call: ToolCall, tool: Tool, intent: Intent) -> None:
        if self.on_ruling is None:
            return
        if isinstance(verdict, Deny):
            self.on_ruling("refused", call, intent, verdict.reason)
        elif grant_key(tool.spec, intent) in self.grants.saved and isinstance(judge(tool.spec, intent, self.mode), MustAsk):
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
