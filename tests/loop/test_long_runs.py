"""Long runs over real HTTP with a service whose summaries are of no use: how many it is asked for, and whether the conversation goes on.

DRAGOMAN_LONG=1 makes the runs 2,000 tool rounds long.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from agents import make_agent
from destinations import rules_of
from dragoman.loop.agent import Agent
from dragoman.loop.options import AnswerPolicy, Limits
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.providers.connect import connect
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script_steps import CallStep, Fail, Finish, ScriptedAnswer, answer
from dragoman.values.calls import Show
from dragoman.values.record import Compressed, NotCompressed, Said
from scenarios.workshop import PlainTool, check_record, no_wait, play

ROUNDS = 2_000 if os.environ.get("DRAGOMAN_LONG") else 200
PLAIN = "The person wants every thing looked at, one after the other. Everything so far was found to be in order. Go on with the next."
SUMMARIES: dict[str, ScriptedAnswer] = {
    "plain words": answer(PLAIN),
    "headings": answer("## Goal\nLook at everything.\n\n## Done\n- the first things\n\n## Open\n- the others"),
    "empty": answer(Finish()),
    "cut": answer("<snapshot><goal>half of", Finish("length")),
    "too long": answer(f"<snapshot>{'many words ' * 20_000}</snapshot>"),
    "500": answer(Fail(500)),
}
WRITTEN = ("plain words", "headings")


class LookingService:
    """A model that looks at one thing after the other, behind a loopback server, and one answer to every request for a summary."""

    def __init__(self, summary: ScriptedAnswer, rounds: int, *, window: int) -> None:
        self.rounds, self.looked, self.summary = rounds, 0, summary
        deployment, name = builtin_catalog().find("openai/gpt-4.1")
        profile = profile_for(deployment, name)
        self.server = MockServer(self._choose, rules=rules_of(deployment, profile))
        small = msgspec.to_builtins(msgspec.structs.replace(profile, context_window=window))
        self.catalog = builtin_catalog().with_rows({deployment.name: {"models": {"small": small}}})
        self.model = f"{deployment.name}/small"

    def _choose(self, asked: ModelRequest) -> ScriptedAnswer:
        if is_summary(asked.body):
            return self.summary
        if self.looked == self.rounds:
            return answer("All seen.")
        self.looked += 1
        what = json.dumps({"what": f"thing {self.looked}"})
        return answer(f"Now number {self.looked}.", CallStep("look", what, id=f"call_{self.looked:05d}"))

    def agent(self, **options: Any) -> Agent:
        retry = RetryPolicy(attempts=3, sleep=no_wait)
        limits = Limits(max_turns=self.rounds + 50, answers=AnswerPolicy(sleep=no_wait))
        connection = connect(self.model, catalog=self.catalog, base_url=f"{self.server.url}/v1", key="key-for-tests", retry=retry)
        options = {"describe": False, "builtin": False, "system": "Be brief.", "limits": limits, "tools": (PlainTool(act=look),), **options}
        return make_agent(connection, **options)

    @property
    def summaries(self) -> int:
        return sum(is_summary(exchange.body) and exchange.action != "count" for exchange in self.server.requests)


def is_summary(body: Any) -> bool:
    return "===== transcript" in json.dumps(body)


async def look(args: Mapping[str, Any], show: Show) -> str:
    return f"{args.get('what')} is in order; " + " ".join(f"part {number}" for number in range(40))


def entries(agent: Agent, kind: type[Any]) -> list[Any]:
    return [entry for entry in agent.history.entries if isinstance(entry, kind)]


@pytest.mark.parametrize("window", [6_000, 30_000])
@pytest.mark.parametrize("form", SUMMARIES)
def test_a_long_run_goes_on_whatever_the_summaries_are_like(form: str, window: int) -> None:
    async def go() -> None:
        service = LookingService(SUMMARIES[form], ROUNDS, window=window)
        async with service.server:
            agent = service.agent()
            result = await agent.run("Look at everything. Never touch main.py.")
            assert (result.text, result.tool_calls) == ("All seen.", ROUNDS)
            useless, used = entries(agent, NotCompressed), [entry for entry in entries(agent, Compressed) if entry.model]
            if form in WRITTEN:
                assert useless == []
                assert service.summaries == len(used) > 0
            else:
                assert used == []
                assert 1 <= len(useless) <= 3, "then no more are asked for"
                assert service.summaries <= 5, "and requests for the second and third are not repeated"
            assert max(entry.usage.input_tokens for entry in entries(agent, Said) if entry.usage) <= window, "by the service's own count"
            assert all("Never touch main.py." in json.dumps(exchange.body) for exchange in service.server.requests)
            for exchange in service.server.requests:
                assert exchange.violation is None, exchange.violation
            check_record(agent.history, protocols=["openai_chat"])
            await agent.aclose()

    play(go, within_s=1_200)
