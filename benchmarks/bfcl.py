"""`python -m benchmarks.bfcl`: how often a small model on this machine makes the right call, by how tools are told to it.

Questions, tools and judge are the Berkeley leaderboard's: the wheel `bfcl-eval`, unpacked into a folder. The prompt and the reading are
ours. One answer a question, at a fixed seed and temperature 0. Each is appended to a file, so a run that was stopped goes on where it was.

    python -m pip install --no-deps --target data bfcl-eval==2026.3.23 tenacity \\
        tree_sitter==0.21.3 tree_sitter_java==0.21.0 tree_sitter_javascript==0.21.4
    python -m benchmarks.bfcl --data data --model qwen2.5-coder-0.5b --cases 25
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import random
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.table import Table
from dragoman.loop.model import Models
from dragoman.loop.options import Connector
from dragoman.providers.catalog import Catalog, builtin_catalog
from dragoman.providers.connect import connect
from dragoman.text_tools.options import TextOptions
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.contracts import BlobStore, Provider
from dragoman.values.messages import Request, Settings, ToolSpec, user

CATEGORIES = ("simple_python", "multiple")
WAYS = ("native", "dragoman", "fenced_json", "pythonic", "auto")
SEED = 7
_KINDS = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "any": "string"}


class Case(NamedTuple):
    id: str
    category: str
    question: str
    functions: list[dict[str, Any]]
    answers: list[dict[str, Any]]


def cases(data: Path, category: str, count: int) -> list[Case]:
    asked = _lines(data / f"bfcl_eval/data/BFCL_v4_{category}.json")
    answers = {each["id"]: each["ground_truth"] for each in _lines(data / f"bfcl_eval/data/possible_answer/BFCL_v4_{category}.json")}
    chosen = random.Random(SEED).sample(asked, count)
    return [Case(each["id"], category, each["question"][0][-1]["content"], each["function"], answers[each["id"]]) for each in chosen]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def spec_of(function: dict[str, Any]) -> ToolSpec:
    """Services take no dot in a name."""
    return ToolSpec.of(function["name"].replace(".", "_"), function["description"], _schema(function["parameters"]))


def _schema(node: Any) -> Any:
    match node:
        case dict():
            return {
                key: _KINDS.get(value, value) if key == "type" and isinstance(value, str) else _schema(value) for key, value in node.items()
            }
        case list():
            return [_schema(item) for item in node]
        case _:
            return node


def model_in(way: str, name: str) -> Any:
    """The model with its tools told in one of the ways. `auto` is what the program does by itself."""
    catalog = _catalog(name) if way != "auto" else builtin_catalog()

    def connect_local(model: str, blobs: BlobStore) -> Provider:
        return connect(model, catalog=catalog, blobs=blobs)

    calling = way if way in ("native", "auto") else "text"
    models = Models(Connector(connect_local, catalog=catalog), MemoryBlobs(), calling, TextOptions(way) if calling == "text" else None)  # type: ignore[arg-type]
    return models.use(f"local/{name}")


def _catalog(name: str) -> Catalog:
    """Without the help that small models get, so that the ways can be compared."""
    row = {"context_window": 8_192, "max_output_tokens": 512, "strict_template": True, "first_event_s": 600, "between_events_s": 300}
    plain = builtin_catalog()
    rows = {model: profile for model, profile in plain["local"].models.items() if model != name}
    local = msgspec.structs.replace(plain["local"], models=rows)
    return Catalog({**plain.deployments, "local": local}).with_rows({"local": {"models": {name: row}}}, "the benchmark")


async def answer(way: str, name: str, case: Case) -> dict[str, Any]:
    model = model_in(way, name)
    tools = tuple(map(spec_of, case.functions))
    request = Request(
        model.name,
        (user(case.question),),
        "Call the tool that answers the question.",
        tools,
        Settings(temperature=0.0, max_output_tokens=256),
    )
    began = time.monotonic()
    try:
        response = await model.provider.generate(request)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300], "seconds": round(time.monotonic() - began, 1), "calls": [], "text": ""}
    calls = [{call.name: call.args or {}} for call in response.message.calls]
    text = response.message.text
    return {"calls": calls, "text": text[:2_000], "detail": response.detail[:300], "seconds": round(time.monotonic() - began, 1)}


class Judge:
    """The leaderboard's own checker."""

    def __init__(self, data: Path) -> None:
        sys.path.insert(0, str(data))
        stand_in = types.ModuleType("bfcl_eval.constants.model_config")
        stand_in.MODEL_CONFIG_MAPPING = _Configs()  # type: ignore[attr-defined]
        sys.modules[stand_in.__name__] = stand_in
        from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]
        from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # type: ignore[import-not-found]

        self._check, self._python = ast_checker, Language.PYTHON

    def is_right(self, case: Case, calls: list[dict[str, Any]]) -> bool:
        names = {function["name"].replace(".", "_"): function["name"] for function in case.functions}
        read = [{names.get(name, name): args for name, args in call.items()} for call in calls]
        try:
            return bool(self._check(case.functions, copy.deepcopy(read), case.answers, self._python, case.category, "dragoman")["valid"])
        except Exception:
            return False


class _Configs(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        return types.SimpleNamespace(underscore_to_dot=False)


def todo(options: argparse.Namespace, done: set[tuple[str, str, str]]) -> Iterator[tuple[str, Case]]:
    for category in CATEGORIES:
        for case in cases(options.data, category, options.cases):
            for way in options.ways:
                if (options.model, way, case.id) not in done:
                    yield way, case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--cases", type=int, default=25)
    parser.add_argument("--ways", nargs="+", default=list(WAYS))
    parser.add_argument("--record", type=Path, default=Path("bfcl-local.jsonl"))
    options = parser.parse_args()
    judge = Judge(options.data)
    rows = _lines(options.record) if options.record.exists() else []
    done = {(row["model"], row["way"], row["id"]) for row in rows}
    with options.record.open("a", encoding="utf-8") as file:
        for way, case in todo(options, done):
            found = asyncio.run(answer(way, options.model, case))
            row = {
                "model": options.model,
                "way": way,
                "id": case.id,
                "category": case.category,
                "right": judge.is_right(case, found["calls"]),
                **found,
            }
            rows.append(row)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
    print(table(rows).markdown())
    return 0


def table(rows: list[dict[str, Any]]) -> Table:
    made = Table("Right calls of the Berkeley leaderboard's questions", ["model", "tools told", *CATEGORIES, "no call", "seconds"])
    for model, way in dict.fromkeys((row["model"], row["way"]) for row in rows):
        own = [row for row in rows if (row["model"], row["way"]) == (model, way)]
        right = [
            f"{sum(row['right'] for row in own if row['category'] == each)} of {sum(row['category'] == each for row in own)}"
            for each in CATEGORIES
        ]
        made.rows.append(
            [model, way, *right, sum(not row["calls"] for row in own), round(sum(row["seconds"] for row in own) / len(own), 1)]
        )
    return made


if __name__ == "__main__":
    sys.exit(main())
