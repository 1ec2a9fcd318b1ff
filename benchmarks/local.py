"""`python -m benchmarks.local`: how often a small model on this machine does a small task, through the program itself.

Each try is one run of the program (`-p`) with a seed of its own, in one process, so that the weights are loaded and the beginning of the
prompt is read once. What is counted is the answer the user gets.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.table import Cell, Table
from dragoman.cli.program import run
from dragoman.local.weights import find


class Task(NamedTuple):
    question: str
    answer: str
    """Stands in the answer, whatever its case."""


TASKS = {
    "a word in a file": Task("what is the secret word in secret.txt?", "marmalade"),
    "a day in a file": Task("on which day is the meeting in notes.txt?", "thursday"),
    "a name in a folder": Task("which file is in the data folder?", "prices.csv"),
}
"""The prompt, the tools offered and the number of calls in the catalog were chosen with these in view."""
UNSEEN = {
    "a number in a file": Task("which port does settings.ini set?", "8443"),
    "a person in a file": Task("who wrote report.md?", "okafor"),
    "a name in another folder": Task("what is the name of the file in the pictures folder?", "harbour.png"),
    "another value of a file": Task("what is the host in settings.ini?", "example.test"),
    "a thing to do": Task("what should I buy according to notes.txt?", "milk"),
    "a person to call": Task("whom do I have to call, by notes.txt?", "anna"),
    "which way it went": Task("did sales go up or down, by report.md?", "up"),
    "the folder itself": Task("which text files are in this folder?", "secret.txt"),
    "no matter of files": Task("what is the capital of Italy?", "rome"),
}
"""Nothing was chosen by these: what a user may rather expect."""
FILES = {
    "secret.txt": "The secret word is marmalade.\n",
    "notes.txt": "Buy milk.\nThe meeting is on Thursday at ten.\nCall Anna.\n",
    "data/prices.csv": "name,price\ntea,3\n",
    "settings.ini": "[server]\nhost = example.test\nport = 8443\n",
    "report.md": "# Report\n\nWritten by Ada Okafor.\n\nSales went up.\n",
    "pictures/harbour.png": "not really a picture",
}


_DENIAL = re.compile(
    r"(?:do|does|did)(?: not|n[o'’]t) (?:exist|contain|say|have)|not (?:been )?(?:found|exist)|no such|there is no\b|"
    r"(?:can|could|was|is|am|are)(?: ?not|n['’]t| unable to) (?:be )?(?:read|find|found|open|access|list|available|tell|determine)",
    re.IGNORECASE,
)


class Try(NamedTuple):
    is_right: bool
    answer: str
    seconds: float


def attempt(task: Task, model: str, seed: int, folder: Path) -> Try:
    config = folder / "config.toml"
    config.write_text(f"[deployments.local.extra_body]\nseed = {seed}\n", encoding="utf-8")
    began = time.monotonic()
    arguments = ["-m", model, "-C", str(folder / "workspace"), "--config", str(config), "--output-format", "json", "-p", task.question]
    # A file and not a buffer: the program writes to the descriptor.
    with (folder / "answer.json").open("w+", encoding="utf-8") as out:
        with contextlib.redirect_stdout(out):
            code = run(arguments)
        out.seek(0)
        told = json.loads(out.read() or "{}")
    answer = str(told.get("response", ""))
    return Try(code == 0 and is_right(task, answer), answer or json.dumps(told.get("error", "")), time.monotonic() - began)


def is_right(task: Task, answer: str) -> bool:
    """The word alone is not enough: a call, written out, is no answer, and neither is one that says there is no such file."""
    return task.answer in answer.lower() and '"arguments"' not in answer and not _DENIAL.search(answer)


def measure(model: str, tasks: Mapping[str, Task], tries: int, *, shows: bool = False) -> Table:
    # Always the same path: the model is told of it, so another would be another prompt.
    folder = Path(tempfile.gettempdir(), "dragoman-bench-local")
    shutil.rmtree(folder, ignore_errors=True)
    rows: list[list[Cell]] = []
    began = time.monotonic()
    try:
        for path, text in FILES.items():
            (folder / "workspace" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "workspace" / path).write_text(text, encoding="utf-8")
        for what, task in tasks.items():
            done: list[Try] = []
            for seed in range(1, tries + 1):
                done.append(attempt(task, model, seed, folder))
                if shows:
                    verdict = "right" if done[-1].is_right else "WRONG"
                    print(f"{verdict}  {what}, seed {seed}: {done[-1].answer[:160]!r}", file=sys.stderr, flush=True)
            rows.append([what, sum(each.is_right for each in done), tries, median(each.seconds for each in done)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    took = f"{time.monotonic() - began:,.0f} s in all, the loading of the weights and the first reading of the prompt included"
    return Table(f"{model}: tasks done", ["task", "right", "of", "seconds (median)"], rows, [took])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local/qwen2.5-coder-0.5b")
    parser.add_argument("--tries", type=int, default=0, help="for each task; 20, or 10 with the larger model")
    parser.add_argument("--unseen", action="store_true", help="tasks by which nothing was chosen, instead of those by which it was")
    parser.add_argument("--show", action="store_true", help="print every answer")
    given = parser.parse_args()
    if not os.environ.get("DRAGOMAN_LOCAL_MODEL") and find(given.model) is None:
        parser.error(f"the weights of {given.model} are not here: dragoman models pull {given.model.removeprefix('local/')}")
    tries = given.tries or (10 if "1.5b" in given.model else 20)
    # Its sessions are nobody's.
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = state
        print(measure(given.model, UNSEEN if given.unseen else TASKS, tries, shows=given.show).markdown())


if __name__ == "__main__":
    main()
