"""`python -m benchmarks.rendered_traces`: what recorded sessions of other agents would send in all, with results as this tree gives them.

What their commands printed, and the files they read, are laid into a folder, and a scripted model has the program run and read them all
again: so every result has the form of the tree that PYTHONPATH names, with its exit code. Then the requests of each session are summed up:
the beginning that this tree sends with each (system, tools, surroundings), and everything said and returned until then, nothing pruned or
summed up. Other results, such as those of searches and edits, stay as they were recorded.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.context_traces import Trace, traces
from benchmarks.conversation import told
from benchmarks.corpora import NO_CORPORA
from benchmarks.counting import NOTHING, Tokens, request_tokens, tokens_of
from benchmarks.ours import MODELS
from benchmarks.program import run_program
from benchmarks.table import Table
from dragoman.testing import Loopback
from dragoman.testing.script_steps import CallStep, Say, ScriptedAnswer
from dragoman.values.messages import Message, ToolResult
from dragoman.values.parts import text_of
from dragoman.values.record import Said, ToolFinished

PROTOCOL, AT_ONCE = "openai_chat", 20
COMMANDS, READS = ("bash", "Bash", "run_commands"), ("read", "Read")
_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d+)\n?|\n*Command exited with code (\d+)\s*\Z")
_NUMBERED = re.compile(r"^ *\d+→", re.MULTILINE)
_REMINDER = re.compile(r"\n*<system-reminder>.*?</system-reminder>\n*", re.DOTALL)


class Recorded(NamedTuple):
    """A result as another program gave it, taken apart."""

    kind: str
    text: str
    exit_code: int = 0

    def call(self, path: str) -> CallStep:
        if self.kind == "read":
            return CallStep("read_file", json.dumps({"file_path": path}))
        return CallStep("run_shell", json.dumps({"command": f"cat {path}" + (f"; exit {self.exit_code}" if self.exit_code else "")}))


def recorded(result: ToolResult) -> Recorded | None:
    """None: it is no command's and no file's, or told of a fault of theirs."""
    text = "\n".join(getattr(part, "text", "") for part in result.content)
    if result.name in COMMANDS:
        found = _EXIT.search(text)
        code = int(found[1] or found[2]) if found else int(result.is_error)
        return Recorded("run", _EXIT.sub("", text), code)
    if result.name in READS and not result.is_error and text:
        return Recorded("read", _NUMBERED.sub("", _REMINDER.sub("\n", text)))
    return None


class Worker:
    """Asks for all of them, some at once, and keeps what came."""

    def __init__(self, calls: list[CallStep]) -> None:
        self.calls = calls
        self.first: dict[str, Any] = {}
        self.texts: list[str] = []

    def __call__(self, asked: Any) -> ScriptedAnswer:
        self.first = self.first or asked.body
        self.texts = [result.text for result in told(asked.body)]
        done = len(self.texts)
        return ScriptedAnswer(tuple(self.calls[done : done + AT_ONCE]) or (Say("Done."),))


def render(found: list[Recorded]) -> tuple[list[str], Tokens]:
    """The results in this tree's form, and the size of the beginning of a request."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-rendered-", dir="/var/tmp"))
    try:
        (folder / "work").mkdir()
        for number, each in enumerate(found):
            (folder / "work" / f"{number}.txt").write_text(each.text, encoding="utf-8", newline="")
        deployment, _, model = MODELS[PROTOCOL].partition("/")
        config = folder / "config.toml"
        config.write_text(
            f'[deployments.{deployment}.models."{model}"]\ncontext_window = 100_000_000\nmax_output_tokens = 8_000\n'
            '[context.prune]\nschedule = "off"\n[context.compress]\nenabled = false\n',
            encoding="utf-8",
        )
        worker = Worker([each.call(f"{number}.txt") for number, each in enumerate(found)])
        with Loopback(worker) as loopback:
            ran = run_program(PROTOCOL, loopback.url, folder, folder / "work", "Go", "--config", str(config), "--max-turns", "1000")
        assert len(worker.texts) == len(found), (len(worker.texts), ran.stdout[-500:], ran.stderr[-500:])
        return worker.texts, request_tokens(worker.first)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sent(trace: Trace, rendered: dict[int, str], beginning: Tokens) -> tuple[int, Tokens, Tokens]:
    """The number of requests, what they come to, and what the results that were rendered come to."""
    requests, so_far, total, ours = 0, beginning, NOTHING, NOTHING
    for entry in trace.entries:
        if isinstance(entry, Said) and entry.message.role == "assistant":
            requests, total = requests + 1, total + so_far
        match entry:
            case Said():
                so_far += tokens_of(_written(entry.message))
            case ToolFinished():
                text = rendered.get(entry.seq)
                so_far += tokens_of("\n".join(getattr(part, "text", "") for part in entry.result.content) if text is None else text)
                ours += tokens_of(text or "")
            case _:
                pass
    return requests, total, ours


def _written(message: Message) -> str:
    return "\n".join([text_of(message.parts), *(call.name + call.arguments for call in message.calls)])


def measure() -> Table:
    table = Table(
        "Recorded sessions, with results as this tree gives them: tokens",
        ["session", "requests", "results rendered", "of them, estimated", "o200k", "sent in all, estimated", "sent in all, o200k"],
    )
    sums = [0, 0, NOTHING, NOTHING]
    beginning = NOTHING
    for trace in traces():
        found = {entry.seq: each for entry in trace.entries if isinstance(entry, ToolFinished) and (each := recorded(entry.result))}
        texts, beginning = render(list(found.values()))
        requests, total, ours = sent(trace, dict(zip(found, texts, strict=True)), beginning)
        table.rows.append(_row(trace.name, requests, len(found), ours, total))
        sums = [sums[0] + requests, sums[1] + len(found), sums[2] + ours, sums[3] + total]
    table.rows.append(_row("all", *sums))
    table.notes.append(f"the beginning of each request: {beginning.estimated:,.0f} tokens, estimated; {beginning.counted} by o200k")
    return table


def _row(name: str, requests: Any, rendered: Any, ours: Any, total: Any) -> list[Any]:
    return [name, requests, rendered, round(ours.estimated), ours.counted, round(total.estimated), total.counted]


if __name__ == "__main__":
    print(measure().markdown() if traces() else NO_CORPORA)
