"""Approval of tool calls: the policy rules, then the user. The scheduler asks here before a call runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.base import jsontext
from dragoman.policy.grants import Grants
from dragoman.policy.judge import Mode, MustAsk, grant_key, judge
from dragoman.values.contracts import Allow, Ask, Deny, Intent, Tool
from dragoman.values.messages import ToolCall, ToolSpec

NO_ONE_TO_ASK = (
    "{name} needs a person's approval, and nobody can be asked here. Do what you can without it, and say what you would have done."
)


class Approvals:
    """`decide` is a contracts.Decide. `trusted` tools skip the rules (an embedder's own functions). `doubted` calls may have been written
    by someone other than the model: the user confirms each, whatever the rules say."""

    def __init__(
        self,
        find: Callable[[str], Tool | None],
        mode: Mode = "default",
        ask: Ask | None = None,
        *,
        grants: Grants | None = None,
        trusted: Callable[[Tool], bool] = lambda tool: False,
        doubted: Callable[[ToolCall, ToolSpec], bool] = lambda call, spec: False,
    ) -> None:
        self.mode: Mode = mode
        self.ask = ask
        self._find = find
        self._grants = grants or Grants()
        self._trusted = trusted
        self._doubted = doubted

    def decide(self, call: ToolCall) -> Allow | Deny | Awaitable[Allow | Deny]:
        tool = self._find(call.name)
        if tool is None:
            return Deny(f"there is no tool called {call.name}")
        is_doubted = self._doubted(call, tool.spec)
        if self._trusted(tool) and not is_doubted:
            return Allow()
        intent = tool.intend(jsontext.decode_object(call.arguments) or {})
        verdict = judge(tool.spec, intent, self.mode, self._grants.keys)
        if is_doubted and isinstance(verdict, Allow):
            verdict = MustAsk(intent)
        if not isinstance(verdict, MustAsk):
            return verdict
        return Deny(NO_ONE_TO_ASK.format(name=call.name)) if self.ask is None else self._ask_person(self.ask, call, tool, verdict.view)

    async def _ask_person(self, ask: Ask, call: ToolCall, tool: Tool, view: Intent) -> Allow | Deny:
        answer = await ask(call, view)
        if isinstance(answer, Deny):
            return answer
        if answer.arguments:
            # Edited arguments go through the rules again. Only Deny counts: the user has just been asked.
            edited = jsontext.decode_object(answer.arguments)
            if edited is None:
                return Deny("the edited arguments are not a JSON object: the call was not run")
            view = tool.intend(edited)
            again = judge(tool.spec, view, self.mode, self._grants.keys)
            if isinstance(again, Deny):
                return again
        if answer.remember != "once":
            self._grants.add(grant_key(tool.spec, view), saved=answer.remember == "saved")
        return answer
