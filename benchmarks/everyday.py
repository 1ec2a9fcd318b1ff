"""Ten everyday questions about a folder, asked of a small model through the program itself: `python -m benchmarks.local --everyday`.

An answer is right, false, or says that it cannot tell. What matters most: a false one is marked as not checked, and a right one is not.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.table import Cell, Table

FILES = {
    "README.md": "# Harbour\n\nA timetable of ferries.\n\nStart it with `python app.py`.\n",
    "app.py": "import sys\n\nPORT = 8443\n\n\ndef next_ferry(now):\n    return now + 20\n\n\nprint(next_ferry(0))\n",
    "test_app.py": "from app import next_ferry\n\n\ndef test_next_ferry():\n    assert next_ferry(10) == 31\n",
    "config.toml": '[service]\nhost = "quay.example"\ntimeout_s = 45\n',
    "notes.txt": "Buy milk.\nThe meeting is on Thursday at ten.\nCall Anna.\n",
    "data/prices.csv": "name,price\ntea,3\ncoffee,4\n",
    "docs/guide.md": "Tickets are sold on board.\n",
}


class Question(NamedTuple):
    text: str
    right: str
    """A pattern of right answers, whatever their case. Empty: no answer can be, but that it cannot tell."""
    leaves: tuple[str, str] = ("", "")
    """For a thing to do: a file, and what stands in it afterwards."""


QUESTIONS = (
    Question("what is this project about?", r"ferr(?:y|ies)"),
    Question("how do I start this program?", r"app\.py"),
    Question("which port does app.py use?", r"\b8443\b"),
    Question("do the tests pass?", ""),
    Question("how many files are in this folder?", r"\b(?:5|five)\b"),
    Question("when is the meeting?", r"thursday"),
    Question("what does coffee cost?", r"\b(?:4|four)\b"),
    Question("which functions are in app.py?", r"next_ferry"),
    Question("what is the timeout in config.toml?", r"\b45\b"),
    Question("add the line `Ring Bob.` to notes.txt", "", ("notes.txt", "Thursday at ten.\nCall Anna.\nRing Bob.")),
)
UNSEEN = (
    Question("who do I have to call?", r"anna"),
    Question("what is the host in config.toml?", r"quay\.example"),
    Question("which file has the prices?", r"prices\.csv"),
    Question("does app.py compile?", ""),
    Question("what is the most expensive thing in data/prices.csv?", r"coffee"),
    Question("what does the function next_ferry return?", r"\b20\b"),
    Question("is there a license file here?", r"\bno\b|\bnot\b"),
    Question("where are tickets sold?", r"board"),
    Question("how many lines does notes.txt have?", r"\b(?:3|three)\b"),
    Question("rename PORT to HARBOUR_PORT in app.py", "", ("app.py", "\nHARBOUR_PORT = 8443\n")),
)
"""Ten more, thought of before they were asked: no rule for what is marked was chosen by these."""
_CANNOT_TELL = re.compile(
    r"\b(?:can(?: ?not|['’]t| only)|could(?: not|n['’]t)|unable|do(?: not|n['’]t) (?:know|have)"
    r"|no information|not (?:provided|specified))\b",
    re.IGNORECASE,
)
_DENIES = re.compile(r"\b(?:does(?: not|n['’]t) (?:exist|contain)|no such|not found|there (?:is|are) no)\b", re.IGNORECASE)
Verdict = Literal["right", "false", "cannot tell"]


class Given(NamedTuple):
    """One answer, as the user gets it."""

    question: Question
    answer: str
    unchecked: str
    """How it is marked; empty: it is not."""
    seconds: float
    verdict: Verdict

    @property
    def judged(self) -> str:
        return f"{self.verdict}, {'marked' if self.unchecked else 'not marked'}"


def judge(question: Question, answer: str, workspace: Path) -> Verdict:
    path, wanted = question.leaves
    if path and wanted in (workspace / path).read_text(encoding="utf-8", errors="replace"):
        return "right"
    if question.right and re.search(question.right, answer, re.IGNORECASE) and not _DENIES.search(answer) and '"arguments"' not in answer:
        return "right"
    return "cannot tell" if _CANNOT_TELL.search(answer) else "false"


def table_of(title: str, questions: tuple[Question, ...], given: list[Given], note: str) -> Table:
    """A row for each question, and one for all: how many were right, false or declined, and how many of these marked."""
    rows: list[list[Cell]] = [[question.text, *_counts([each for each in given if each.question == question])] for question in questions]
    rows.append(["all", *_counts(given)])
    return Table(
        title,
        ["question", "of", "right", "right, marked", "false, marked", "false, not marked", "cannot tell"],
        rows,
        [note],
    )


def _counts(given: list[Given]) -> list[Cell]:
    def count(verdict: Verdict, *, marked: bool) -> int:
        return sum(each.verdict == verdict and bool(each.unchecked) is marked for each in given)

    right, wrongly = count("right", marked=False), count("right", marked=True)
    unable = count("cannot tell", marked=False) + count("cannot tell", marked=True)
    return [len(given), right + wrongly, wrongly, count("false", marked=True), count("false", marked=False), unable]


def show(given: Given) -> None:
    print(f"{given.judged}  {given.question.text}: {given.answer[:200]!r}  [{given.unchecked}]", file=sys.stderr, flush=True)
