"""The verdict on every recorded answer: did our provider read what the service said?"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from dragoman.values.errors import DragomanError
from recorded.comparison import Difference, compare_answer, compare_error
from recorded.exchanges import Exchange
from recorded.not_asked import why_not_asked
from recorded.plain_reading import read_plainly
from recorded.playing import Played, play, stage
from recorded.reading import Reading
from recorded.sending_back import compare_sent_back

Verdict = Literal["ok", "error as meant", "differs", "refused", "crash", "not asked"]
VERDICTS: tuple[Verdict, ...] = ("ok", "error as meant", "differs", "refused", "crash", "not asked")
BAD: tuple[Verdict, ...] = ("differs", "refused", "crash")


@dataclass
class Answer:
    """A recorded answer, and what became of it."""

    exchange: Exchange
    verdict: Verdict
    reading: Reading = field(default_factory=Reading)
    reason: str = ""
    """Why it was not asked for, or what we raised."""
    differences: list[Difference] = field(default_factory=list)
    sent_back: list[Difference] = field(default_factory=list)
    """What is different in the next request."""


async def judge_answers(exchanges: Iterable[Exchange]) -> list[Answer]:
    """Play every answer to our provider, one after the other."""
    judged = []
    async with stage() as here:
        for exchange in exchanges:
            if reason := why_not_asked(exchange):
                judged.append(Answer(exchange, "not asked", reason=reason))
                continue
            connection = here.connect(exchange)
            played = await play(exchange, connection)
            answer = _judge(exchange, played)
            if played.response is not None and answer.reading.error is None:
                answer.sent_back = compare_sent_back(exchange, answer.reading, played.response, connection)
            judged.append(answer)
            await connection.aclose()
    return judged


def _judge(exchange: Exchange, played: Played) -> Answer:
    reading = read_plainly(exchange)
    if played.crash is not None:
        return Answer(exchange, "crash", reading, "".join(traceback.format_exception(played.crash)))
    if played.error is not None:
        return _judge_error(exchange, reading, played.error)
    assert played.response is not None
    if reading.error is not None:
        return Answer(exchange, "differs", reading, differences=[Difference("error", reading.error, str(played.response.finish))])
    found = compare_answer(exchange.protocol, reading, played.response, played.events)
    return Answer(exchange, "differs" if found else "ok", reading, differences=found)


def _judge_error(exchange: Exchange, reading: Reading, error: DragomanError) -> Answer:
    if reading.error is None:
        return Answer(exchange, "refused", reading, f"{type(error).__name__}: {error}")
    found = compare_error(exchange, reading, error)
    return Answer(exchange, "differs" if found else "error as meant", reading, differences=found)
