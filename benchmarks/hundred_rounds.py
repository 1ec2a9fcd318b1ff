"""`python -m benchmarks.hundred_rounds`: what a session of 100 rounds sends in all, and whether its beginning is still known at its end.

A scripted model works in a small project through the program: it reads, searches, edits, runs tests that fail and pass, builds, looks at
git's status. In a small window outdated results are pruned and the conversation is compressed several times; the summaries are
written by a script that does mechanically what the prompt for them says. Then tokens are summed up over all requests, and the last one is
searched for what the person wished and what was found out at the beginning. Run it with another tree on PYTHONPATH to compare.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.conversation import told, words
from benchmarks.counting import NOTHING, Tokens, request_tokens, tokens_of
from benchmarks.ledger_project import ERROR_CODE, MODULES, PORT, QUOTA_FILE, WISH, lay_out
from benchmarks.ours import MODELS
from benchmarks.program import recorded_entries, recorded_results, run_program
from benchmarks.table import Table
from dragoman.testing import Loopback
from dragoman.testing.script_steps import CallStep, Say, ScriptedAnswer

ROUNDS, WINDOWS = 100, (48_000, 64_000, 96_000, 1_000_000)
PROMPTS = (
    f"Make the ledger ready for the new quotas. {WISH} Begin with docs/handover.md and config/service.toml.",
    "Go on with the next modules, one after the other, and keep the tests green.",
    "Now the modules that are left. Look at the build as well.",
    "Look at everything once more, and tell me what you changed and what is still open.",
)
FACTS = {"the person's wish": WISH, "the port": PORT, "the file": QUOTA_FILE, "the error code": ERROR_CODE}
_PIECE = re.compile(r"^(THE PERSON SAID|THE MODEL SAID|THE PROGRAM SAID|THE MODEL USED THE TOOL|EARLIER SNAPSHOT)", re.MULTILINE)
_SECTION = re.compile(r"<(knowledge|files|done)>\n(.*?)\n</\1>", re.DOTALL)


class Worker:
    """The model: what it does in a round depends on the number of the round alone, so that every tree is asked the same."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.done = 0
        self.summaries = self.pruned = 0
        self.sent = NOTHING
        self.last: dict[str, Any] = {}
        self.is_due = False

    def __call__(self, asked: Any) -> ScriptedAnswer:
        self.sent += request_tokens(asked.body)
        if not asked.body.get("tools"):
            self.summaries += 1
            return ScriptedAnswer((Say(write_snapshot(words(asked.body))),))
        self.last = asked.body
        quarter = self.rounds // len(PROMPTS)
        if self.is_due and self.done % quarter == 0:
            self.is_due = False
            return ScriptedAnswer((Say("This part is done: the modules named above are changed, and their tests pass."),))
        self.is_due = True
        steps = tuple(self._steps(self.done))
        self.done += 1
        return ScriptedAnswer(steps)

    def _steps(self, number: int) -> Iterator[Any]:
        module = MODULES[number // 10 % len(MODULES)]
        path, cycle = f"src/ledger/{module}.py", number // 10
        match number % 10:
            case 0:
                yield _call("read_file", file_path="docs/handover.md" if not number else path)
            case 1:
                if number == 1:
                    yield Say(f"Noted: the quotas are read from {QUOTA_FILE}.")
                yield _call("read_file", file_path="config/service.toml")
                yield _call("grep", pattern=f"def {module}_step_[0-9]+", path="src")
            case 2:
                if number == 2:
                    yield Say(f"Noted: the service listens on port {PORT}.")
                yield _run("python -m pytest -q -p no:cacheprovider tests/test_quotas.py")
            case 3:
                if number == 3:
                    yield Say(f"Noted: {ERROR_CODE} means that accounts from 1060 on have no quota yet.")
                yield _call("read_file", file_path=path, offset=1 + 7 * (cycle % 4), limit=60)
            case 4:
                yield _call(
                    "edit", file_path=path, old_string=f"def {module}_step_{cycle % 10}(", new_string=f"def {module}_stage_{cycle % 10}("
                )
            case 5:
                yield _run(f"python -m pytest -q -p no:cacheprovider tests/test_{module}.py")
            case 6:
                yield _call(
                    "edit", file_path=path, old_string=f"def {module}_stage_{cycle % 10}(", new_string=f"def {module}_step_{cycle % 10}("
                )
                yield _run("git status --short && git diff --stat")
            case 7:
                yield _run(f"python build.py {(60, 250, 900)[cycle % 3]}")
            case 8:
                yield _call("grep", pattern="amount is not negative", path="src", max_results=100)
                yield _run("ls -la src/ledger tests")
            case _:
                yield _run("python -m pytest -v -p no:cacheprovider tests")


def _call(name: str, **arguments: object) -> CallStep:
    return CallStep(name, json.dumps(arguments))


def _run(command: str) -> CallStep:
    return _call("run_shell", command=command)


def write_snapshot(asked: str) -> str:
    """What the prompt for a summary asks for, as far as a script can: the person's words, what the model noted, files, commands."""
    person, notes, files, done = [], [], [], []
    pieces = _PIECE.split(asked)
    for kind, text in zip(pieces[1::2], pieces[2::2], strict=True):
        match kind:
            case "THE PERSON SAID":
                person.append(text.removeprefix(":").partition("===== transcript")[0].strip())
            case "EARLIER SNAPSHOT":
                parts = dict(_SECTION.findall(text))
                notes += parts.get("knowledge", "").splitlines()
                files += parts.get("files", "").splitlines()
                done += parts.get("done", "").splitlines()
            case "THE MODEL SAID":
                notes += [line for line in text.splitlines() if line.startswith("Noted: ")]
            case "THE MODEL USED THE TOOL":
                files += re.findall(r"^  file_path: (.+)$", text, re.MULTILINE)
                done += [f"ran {command}" for command in re.findall(r"^  command: (.+)$", text, re.MULTILINE)]
            case _:
                pass
    parts = {
        "goal": person[:1] + person[-1:],
        "rules": person,
        "knowledge": notes,
        "files": sorted(set(files)),
        "done": list(dict.fromkeys(done)),
        "open": ["Go on with the next module."],
    }
    return "\n".join(
        [
            "<snapshot>",
            *(f"<{name}>\n{chr(10).join(dict.fromkeys(lines)) or 'none'}\n</{name}>" for name, lines in parts.items()),
            "</snapshot>",
        ]
    )


def measure(window: int, rounds: int = ROUNDS, protocol: str = "openai_chat") -> Table:
    worker, results = work(window, rounds, protocol)
    return _table(worker, f"{protocol}, window {window:,}", results)


def work(window: int, rounds: int, protocol: str) -> tuple[Worker, dict[str, Tokens]]:
    """The model after the session, and the size of the results of each tool."""
    worker = Worker(rounds)
    folder = Path(tempfile.mkdtemp(prefix="dragoman-rounds-", dir="/var/tmp"))
    try:
        lay_out(folder / "ledger")
        config = folder / "config.toml"
        config.write_text(_settings(protocol, window), encoding="utf-8")
        with Loopback(worker) as loopback:
            for number, prompt in enumerate(PROMPTS):
                more = ["--config", str(config), "--max-turns", str(rounds + 50), *(["--continue"] if number else [])]
                ran = run_program(protocol, loopback.url, folder, folder / "ledger", prompt, *more)
                assert ran.returncode == 0, ran.stdout + ran.stderr
        pruned = (entry for entry in recorded_entries(folder / "home") if entry["kind"] == "pruned")
        worker.pruned = sum(len(entry["call_ids"]) for entry in pruned)
        return worker, _sizes(folder / "home")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def known(body: dict[str, Any]) -> list[str]:
    """Which of the facts stand in a request."""
    shown = words(body)
    return [name for name, fact in FACTS.items() if fact in shown]


def _settings(protocol: str, window: int) -> str:
    deployment, _, model = MODELS[protocol].partition("/")
    return (
        f'[deployments.{deployment}.models."{model}"]\ncontext_window = {window}\nmax_output_tokens = 8_000\n'
        "[context.prune]\nage_minutes = 0\n"
    )


def _sizes(home: Path) -> dict[str, Tokens]:
    sizes: dict[str, Tokens] = {}
    for name, text, outcome in recorded_results(home):
        key = name if outcome == "finished" else f"{name}, {outcome}"
        sizes[key] = sizes.get(key, NOTHING) + tokens_of(text)
    return sizes


def _table(worker: Worker, how: str, results: dict[str, Tokens]) -> Table:
    table = Table(f"A session of {worker.done} rounds, {how}", ["what", "tokens, estimated", "tokens, o200k"])
    table.rows.append(["sent in all", *_cells(worker.sent)])
    table.rows.append(["the last request", *_cells(request_tokens(worker.last))])
    table.rows += [[f"results of {name}", *_cells(size)] for name, size in sorted(results.items())]
    kept = known(worker.last)
    table.notes.append(
        f"{worker.pruned} results were pruned; compressed {worker.summaries} times; {len(told(worker.last))} results in the last request"
    )
    table.notes.append(f"of what was known at the beginning, in the last request: {', '.join(kept) or 'nothing'}")
    table.notes += [f"LOST: {name}" for name in FACTS if name not in kept]
    return table


def _cells(tokens: Tokens) -> list[Any]:
    return [round(tokens.estimated), tokens.counted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--protocol", choices=MODELS, default="openai_chat")
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOWS, help="tokens; in the last one nothing need be compressed")
    given = parser.parse_args()
    for window in given.windows:
        print(measure(window, given.rounds, given.protocol).markdown(), flush=True)


if __name__ == "__main__":
    main()
