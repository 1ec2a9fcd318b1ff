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
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import everyday
from benchmarks.table import Cell, Table
from dragoman.cli.program import run
from dragoman.local.weights import find


class Task(NamedTuple):
    question: str
    answer: str = ""
    """Stands in the answer, whatever its case."""
    leaves: tuple[str, str] = ("", "")
    """A file that is there afterwards, and what stands in it, whatever its case; the answer is of no account then."""


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
WORK = {
    "a value in a file": Task("how many seconds is the timeout in service.toml?", "45"),
    "a name in a folder": Task("which file is in the fixtures folder?", "orders.json"),
    "what a program prints": Task("run `python3 total.py` and tell me the number it prints", "5151"),
    "what a program complains of": Task("run `sh check.sh` and tell me which line of the ledger is wrong", "88"),
    "how a program ends": Task("run `sh gate.sh` and tell me its exit code", "3"),
    "which test fails": Task("run `python3 checks.py` and tell me the name of the check that fails", "check_tax"),
    "a value out of many lines": Task("run `sh report.sh` and tell me the number of errors in the last line", "17"),
    "where something is": Task("search the files for parse_header: in which file is it?", "reader.py"),
    "a new file": Task("write the words good morning into a new file hello.txt", leaves=("hello.txt", "good morning")),
    "a changed file": Task("edit greeting.py: replace Hello with Goodbye", leaves=("greeting.py", 'print("goodbye, ada")')),
}
"""Commands, searches and edits, with more tools than such a model is offered by itself: what the results look like matters most here."""
WORK_FILES = {
    "service.toml": '[service]\nname = "quay"\ntimeout_s = 45\n',
    "fixtures/orders.json": "[]\n",
    "total.py": "print(sum(range(1, 102)))\n",
    "check.sh": 'echo "ledger.csv: line 88 is not a number" >&2\nexit 1\n',
    "gate.sh": "exit 3\n",
    "checks.py": 'print("check_price: ok")\nprint("check_tax: FAILED, 19 is not 7")\nprint("check_total: ok")\nraise SystemExit(1)\n',
    "report.sh": 'for n in 1 2 3 4 5 6 7 8 9; do echo "batch $n: done"; done\necho "42 orders, 17 errors"\n',
    "reader.py": "def parse_header(line):\n    return line.split(':', 1)\n",
    "greeting.py": 'print("Hello, Ada")\n',
}
WORK_TOOLS = """\
[deployments.local.models."{name}".small]
answer_after_calls = 2
[deployments.local.models."{name}".small.few_tools]
read_file = ["file_path"]
list_directory = ["path"]
run_shell = ["command"]
grep = ["pattern"]
write_file = ["file_path", "content"]
edit = ["file_path", "old_string", "new_string"]
"""
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


class Subject(NamedTuple):
    tasks: Mapping[str, Task]
    files: Mapping[str, str]
    settings: str = ""
    """More of the configuration, with the model's name in it."""
    approval: str = "default"


SUBJECTS = {"seen": Subject(TASKS, FILES), "unseen": Subject(UNSEEN, FILES), "work": Subject(WORK, WORK_FILES, WORK_TOOLS, "auto")}


def attempt(subject: Subject, task: Task, model: str, seed: int, folder: Path) -> Try:
    code, told, seconds = ask(subject, task.question, model, seed, folder)
    answer = str(told.get("response", ""))
    is_done = _is_left(task, folder / "workspace") if task.leaves[0] else is_right(task, answer)
    return Try(code == 0 and is_done, answer or json.dumps(told.get("error", "")), seconds)


def ask(subject: Subject, question: str, model: str, seed: int, folder: Path) -> tuple[int, dict[str, Any], float]:
    """Run the program once. Returns its exit code, the object that it prints, and the seconds it took."""
    config, workspace = folder / "config.toml", folder / "workspace"
    more = subject.settings.format(name=model.removeprefix("local/"))
    config.write_text(f"[deployments.local.extra_body]\nseed = {seed}\n{more}", encoding="utf-8")
    _lay_out(subject.files, workspace)
    began = time.monotonic()
    arguments = ["-m", model, "-C", str(workspace), "--config", str(config), "--output-format", "json"]
    arguments += ["--approval", subject.approval, "-p", question]
    # A file and not a buffer: the program writes to the descriptor.
    with (folder / "answer.json").open("w+", encoding="utf-8") as out:
        with contextlib.redirect_stdout(out):
            code = run(arguments)
        out.seek(0)
        told = json.loads(out.read() or "{}")
    return code, told, time.monotonic() - began


def measure_everyday(model: str, questions: tuple[everyday.Question, ...], tries: int, *, shows: bool) -> Table:
    subject = Subject({}, everyday.FILES, approval="auto-edit")
    given: list[everyday.Given] = []
    began = time.monotonic()
    with _own_folder() as folder:
        for question in questions:
            for seed in range(1, tries + 1):
                code, told, seconds = ask(subject, question.text, model, seed, folder)
                answer = str(told.get("response", "")) or json.dumps(told.get("error", ""))
                verdict = everyday.judge(question, answer, folder / "workspace") if code == 0 else "false"
                given.append(everyday.Given(question, answer, str(told.get("unchecked", "")), seconds, verdict))
                if shows:
                    everyday.show(given[-1])
    took = f"{time.monotonic() - began:,.0f} s in all; the median of an answer took {median(each.seconds for each in given):.1f} s"
    return everyday.table_of(f"{model}: everyday questions", questions, given, took)


@contextlib.contextmanager
def _own_folder() -> Iterator[Path]:
    """Always the same path: the model is told of it, so another would be another prompt."""
    folder = Path(tempfile.gettempdir(), "dragoman-bench-local")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lay_out(files: Mapping[str, str], workspace: Path) -> None:
    """As at the beginning, whatever the try before changed."""
    shutil.rmtree(workspace, ignore_errors=True)
    for path, text in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text, encoding="utf-8")


def _is_left(task: Task, workspace: Path) -> bool:
    path, text = task.leaves
    return (workspace / path).is_file() and text in (workspace / path).read_text(encoding="utf-8", errors="replace").lower()


def is_right(task: Task, answer: str) -> bool:
    """The word alone is not enough: a call, written out, is no answer, and neither is one that says there is no such file."""
    return task.answer in answer.lower() and '"arguments"' not in answer and not _DENIAL.search(answer)


def measure(model: str, subject: Subject, tries: int, *, shows: bool = False) -> Table:
    rows: list[list[Cell]] = []
    began = time.monotonic()
    with _own_folder() as folder:
        for what, task in subject.tasks.items():
            done: list[Try] = []
            for seed in range(1, tries + 1):
                done.append(attempt(subject, task, model, seed, folder))
                if shows:
                    verdict = "right" if done[-1].is_right else "WRONG"
                    print(f"{verdict}  {what}, seed {seed}: {done[-1].answer[:160]!r}", file=sys.stderr, flush=True)
            rows.append([what, sum(each.is_right for each in done), tries, median(each.seconds for each in done)])
    took = f"{time.monotonic() - began:,.0f} s in all, the loading of the weights and the first reading of the prompt included"
    return Table(f"{model}: tasks done", ["task", "right", "of", "seconds (median)"], rows, [took])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local/qwen2.5-coder-0.5b")
    parser.add_argument("--tries", type=int, default=0, help="for each task; 20, or 10 with the larger model")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--unseen", action="store_true", help="tasks by which nothing was chosen, instead of those by which it was")
    what.add_argument("--work", action="store_true", help="ten tasks with commands, a search and edits instead, with more tools")
    what.add_argument(
        "--everyday", action="store_true", help="ten everyday questions: right, false, and which of them are marked as not checked"
    )
    parser.add_argument("--show", action="store_true", help="print every answer")
    given = parser.parse_args()
    if not os.environ.get("DRAGOMAN_LOCAL_MODEL") and find(given.model) is None:
        parser.error(f"the weights of {given.model} are not here: dragoman models pull {given.model.removeprefix('local/')}")
    tries = given.tries or (10 if "1.5b" in given.model else 20)
    # Its sessions are nobody's.
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = state
        if given.everyday:
            for questions in (everyday.QUESTIONS, everyday.UNSEEN):
                print(measure_everyday(given.model, questions, given.tries or 3, shows=given.show).markdown())
            return
        subject = SUBJECTS["unseen" if given.unseen else "work" if given.work else "seen"]
        print(measure(given.model, subject, tries, shows=given.show).markdown())


if __name__ == "__main__":
    main()
