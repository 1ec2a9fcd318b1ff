"""A window that is only a guess: what the service tells with an overflow is kept, also for whoever resumes the session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.loop.agent import Agent
from dragoman.providers.faults import named_limit
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script_steps import Fail, ReportStep, ScriptedAnswer, answer
from dragoman.values.profile import UNKNOWN_CONTEXT_WINDOW
from dragoman.values.record import Configured
from dragoman.values.usage import Usage
from loop.test_long_runs import PLAIN, LookingService
from scenarios.workshop import check_record, play

LIMIT = 8_000
NAMES_IT = f"This model's maximum context length is {LIMIT} tokens. Please reduce the length of the messages."
NAMES_NONE = "Your input exceeds the context window of this model."


class NarrowService(LookingService):
    """A model that nobody has described, with a limit of its own."""

    def __init__(self, words: str, rounds: int) -> None:
        super().__init__(answer(PLAIN), rounds, window=128_000)
        self.words, self.overruns, self.asked = words, 0, 0
        self.server = MockServer(self._choose_within)
        self.model = "openai/nobody-knows-it"

    def _choose_within(self, asked: ModelRequest) -> ScriptedAnswer:
        self.asked += 1
        tokens = len(json.dumps(asked.body)) // 4
        if tokens > LIMIT:
            self.overruns += 1
            return answer(Fail(400, self.words, "context_length_exceeded"))
        found = self._choose(asked)
        return answer(*found.steps, ReportStep(Usage(tokens, output_tokens=20)))


@pytest.mark.parametrize("words", [NAMES_IT, NAMES_NONE], ids=["named", "not named"])
def test_a_limit_that_the_service_tells_is_overrun_once(words: str, tmp_path: Path) -> None:
    async def go() -> None:
        service = NarrowService(words, 180)
        async with service.server:
            async with service.agent(sessions=tmp_path / "sessions", workspace=tmp_path) as agent:
                assert agent.provider.profile(agent.model).prompt_window == UNKNOWN_CONTEXT_WINDOW, "nothing is known of it"
                assert (await agent.run("Look at everything.")).text == "All seen."
                assert service.asked > 122
                assert service.overruns == 1
                told = windows(agent)
                assert told[0] == UNKNOWN_CONTEXT_WINDOW
                assert 0.8 * LIMIT < told[-1] <= LIMIT
                check_record(agent.history, protocols=["openai_chat"])
            service.rounds += 60
            async with service.agent(sessions=tmp_path / "sessions", workspace=tmp_path, resume=agent.session_id) as again:
                assert (await again.run("Go on.")).text == "All seen."
                assert service.overruns == 1, "whoever resumes it knows the limit"
                assert windows(again) == told, "and it is recorded once"
                assert again.plan().window == told[-1]

    play(go)


def windows(agent: Agent) -> list[int]:
    found: list[Any] = [entry.window for entry in agent.history.entries if isinstance(entry, Configured)]
    return [window for place, window in enumerate(found) if not place or window != found[place - 1]]


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (NAMES_IT, LIMIT),
        ("prompt is too long: 212345 tokens > 200000 maximum", 200_000),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length", 200_000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4_096),
        ("Requested tokens (9000) exceed context window of 4,096", 4_096),
        ("Range of input length should be [1, 30720]", 30_720),
        ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 131_072),
        (NAMES_NONE, 0),
        ("context_length_exceeded", 0),
    ],
)
def test_the_limit_is_read_from_what_services_say(words: str, limit: int) -> None:
    assert named_limit(words) == limit
