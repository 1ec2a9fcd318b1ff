"""Prints how we stand to a folder of recordings, and fails if anything is wrong that is not known.

make recorded
make recorded RECORDINGS=/some/folder ARGS='--protocol gemini --details /tmp/details.jsonl'
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import msgspec

from outside_folders import NO_RECORDINGS, RECORDINGS
from recorded import answers, validation
from recorded.exchanges import PROTOCOLS, are_there
from recorded.report import AnswerReport, Reasons, RequestReport, answer_details, report_answers, report_requests, request_details

_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="make recorded")
    parser.add_argument("--protocol", choices=PROTOCOLS, help="this protocol alone")
    parser.add_argument("--details", type=Path, metavar="FILE", help="write the verdict on every exchange there, as JSON lines")
    options = parser.parse_args()
    if not are_there():
        print(NO_RECORDINGS, file=sys.stderr)
        return 2
    protocols = [options.protocol] if options.protocol else PROTOCOLS
    read = [report_answers(protocol) for protocol in protocols]
    asked = [report_requests(protocol) for protocol in protocols]
    if options.details:
        records = [record for report in read for record in answer_details(report)]
        records += [record for report in asked for record in request_details(report)]
        options.details.write_bytes(msgspec.json.Encoder().encode_lines(records))
    return _print(read, asked)


def _print(read: list[AnswerReport], asked: list[RequestReport]) -> int:
    print(f"Recordings in {RECORDINGS}\n")
    _table("answers", answers.VERDICTS, {report.protocol: report.verdicts for report in read})
    _reasons(sum((report.reasons for report in read), Counter()))
    print(f"\n{sum(report.bad for report in read)} answers are lost, misread or refused.\n")
    _table("requests", validation.VERDICTS, {report.protocol: report.verdicts for report in asked})
    _reasons(sum((report.reasons for report in asked), Counter()))
    print("\nsent back otherwise than received")
    _reasons(sum((report.changed for report in read), Counter()))
    return _complain(
        {
            "answers that nobody can explain": [line for report in read for line in report.unexplained],
            "answers sent back changed, and nobody can explain why": [line for report in read for line in report.unexplained_changes],
            "requests that nobody can explain": [line for report in asked for line in report.unexplained],
        }
    )


def _table(title: str, columns: tuple[str, ...], rows: dict[str, Counter[str]]) -> None:
    print(f"{title:<18}" + "".join(f"{name:>16}" for name in ("all", *columns)))
    for name, counts in rows.items():
        print(f"{name:<18}" + "".join(f"{count:>16,}" for count in (counts.total(), *(counts[column] for column in columns))))


def _reasons(reasons: Reasons) -> None:
    for (verdict, reason), count in sorted(reasons.items(), key=lambda each: (each[0][0], -each[1])):
        print(f"{count:>8,}  {verdict}: {reason}")


def _complain(groups: dict[str, list[str]]) -> int:
    for title, lines in groups.items():
        if lines:
            print(f"\n{len(lines)} {title}:")
            print("\n".join(f"  {line}" for line in lines[:_SHOWN]) + ("\n  ..." if len(lines) > _SHOWN else ""))
    return 1 if any(groups.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
