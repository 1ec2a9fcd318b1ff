"""`make wire-check`: what is sent to each deployment, checked against the newest official SDKs; written into docs/reference/wire.md."""

from __future__ import annotations

import sys
from pathlib import Path

from checks.sdk_types import official
from checks.wire_cases import EFFORTS, Row, Sent, digest, rows, sent
from dragoman.base import jsontext

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "wire.md"
BEGIN, END = "<!-- begin: make wire-check -->", "<!-- end: make wire-check -->"
COLUMNS = {
    "plain": "plain",
    "tools": "tools",
    "parallel results": "results",
    "error result": "error",
    "image": "image",
    "PDF": "PDF",
    "thinking back": "thinking",
    "schema": "schema",
    "forced call": "forced",
    "cache": "cache",
    "search": "search",
    "search and tools": "search + tools",
    "limits": "limits",
    "stop": "stop",
}


class Checked:
    """A row of the table."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.sent: dict[str, Sent] = {each.case: each for each in sent(row)}
        self.official = official(row)
        self.faults = {case: fault for case, each in self.sent.items() if each.request and (fault := self.official.check(each.body))}

    def mark(self, case: str) -> str:
        if self.sent[case].request is None:
            return "–"
        return "**✗**" if case in self.faults else "✓"

    def effort(self, word: str) -> str:
        """What a word of ours becomes: the fields that are not there without it."""
        case = f"effort {word}"
        before, after = self.sent["plain"].body, self.sent[case].body
        added = {key: value for key, value in _settings(after).items() if _settings(before).get(key) != value}
        mark = " **✗**" if case in self.faults else ""
        return (f"`{jsontext.dumps(added).replace('|', chr(92) + '|')}`" if added else "nothing") + mark


def _settings(body: dict[str, object]) -> dict[str, object]:
    inner = body.get("generationConfig")
    rest = {key: value for key, value in body.items() if key not in ("messages", "input", "contents", "generationConfig")}
    return {**rest, **(inner if isinstance(inner, dict) else {})}


def table(checked: list[Checked]) -> str:
    head = ["deployment and model", *COLUMNS.values(), "checked against", "digest"]
    lines = [_line(head), _line(["---"] * len(head))]
    for each in checked:
        marks = [each.mark(case) for case in COLUMNS]
        lines.append(_line([f"`{each.row.name}`", *marks, each.official.label, f"`{digest(each.row)}`"]))
    lines += ["", _line(["effort", *EFFORTS]), _line(["---"] * (len(EFFORTS) + 1))]
    lines += [_line([f"`{each.row.name}`", *map(each.effort, EFFORTS)]) for each in checked]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write(page: Path, made: str) -> None:
    text = page.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    page.write_text(f"{head}{BEGIN}\n\n{made}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main() -> int:
    checked = [Checked(row) for row in rows()]
    write(PAGE, table(checked))
    for each in checked:
        for case, fault in each.faults.items():
            print(f"{each.row.name}, {case}: {fault}")
    faults = sum(len(each.faults) for each in checked)
    bodies = sum(one.request is not None for each in checked for one in each.sent.values())
    print(f"{bodies} requests to {len(checked)} deployments, {faults} that an SDK could not have sent. See docs/reference/wire.md.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
