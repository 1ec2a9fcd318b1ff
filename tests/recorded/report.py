"""The verdicts on a folder of recordings, counted, with the reason for each that is not as it should be."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.values.profile import ProtocolName
from outside_folders import RECORDINGS
from recorded import answers, known, validation
from recorded.answers import Answer, judge_answers
from recorded.exchanges import read_exchanges
from recorded.validation import Asked, judge_requests

Reasons = Counter[tuple[str, str]]
"""How often: verdict and reason."""


@dataclass
class AnswerReport:
    protocol: ProtocolName
    judged: list[Answer]
    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Reasons = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)
    """A line for each answer that is read otherwise and nobody knows why."""
    changed: Reasons = field(default_factory=Counter)
    """What goes back otherwise than it came."""
    unexplained_changes: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        return sum(self.verdicts[verdict] for verdict in answers.BAD)


@dataclass
class RequestReport:
    protocol: ProtocolName
    judged: list[Asked]
    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Reasons = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)


def report_answers(protocol: ProtocolName, folder: Path = RECORDINGS) -> AnswerReport:
    report = AnswerReport(protocol, asyncio.run(judge_answers(read_exchanges(protocol, folder))))
    for answer in report.judged:
        _count_answer(answer, report)
        _count_changes(answer, report)
    return report


def _count_answer(answer: Answer, report: AnswerReport) -> None:
    report.verdicts[answer.verdict] += 1
    reasons = [answer.reason] if answer.verdict == "not asked" else known.why_misread(answer)
    report.reasons.update((answer.verdict, reason) for reason in reasons)
    if answer.verdict in answers.BAD and not reasons:
        wrong = "; ".join(_brief(*found) for found in answer.differences) or answer.reason[-300:]
        report.unexplained.append(f"{answer.verdict}: {wrong} [{answer.exchange.source}]")


def _count_changes(answer: Answer, report: AnswerReport) -> None:
    for found in answer.sent_back:
        if why := known.why_changed(answer, found):
            report.changed[found.kind, why] += 1
        else:
            report.unexplained_changes.append(f"{_brief(*found)} [{answer.exchange.source}]")


def report_requests(protocol: ProtocolName, folder: Path = RECORDINGS) -> RequestReport:
    report = RequestReport(protocol, judge_requests(read_exchanges(protocol, folder)))
    for asked in report.judged:
        report.verdicts[asked.verdict] += 1
        if asked.verdict == "not asked":
            report.reasons[asked.verdict, asked.said] += 1
        elif asked.verdict in validation.BAD:
            if why := known.why_judged(asked):
                report.reasons[asked.verdict, why] += 1
            else:
                report.unexplained.append(f"{asked.verdict}: {asked.exchange.host}: {_one_line(asked.said)} [{asked.exchange.source}]")
    return report


def answer_details(report: AnswerReport) -> Iterator[dict[str, object]]:
    """A record for each answer, for a file that a person searches."""
    for answer in report.judged:
        yield {
            "source": answer.exchange.source,
            "protocol": report.protocol,
            "host": answer.exchange.host,
            "model": answer.exchange.model,
            "verdict": answer.verdict,
            "reasons": known.why_misread(answer) or [answer.reason],
            "differences": [tuple(map(str, found)) for found in answer.differences],
            "sent_back": [tuple(map(str, found)) for found in answer.sent_back],
        }


def request_details(report: RequestReport) -> Iterator[dict[str, object]]:
    for asked in report.judged:
        yield {
            "source": asked.exchange.source,
            "protocol": report.protocol,
            "host": asked.exchange.host,
            "model": asked.exchange.model,
            "verdict": f"request: {asked.verdict}",
            "said": asked.said,
            "reasons": [why] if (why := known.why_judged(asked)) else [],
        }


def _brief(kind: str, service: object, ours: object) -> str:
    return f"{kind}: {_one_line(service)} → {_one_line(ours)}"


def _one_line(value: object) -> str:
    return " ".join(str(value).split())[:200]
