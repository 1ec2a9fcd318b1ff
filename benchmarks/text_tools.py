"""Reading calls out of text: what is right of other projects' cases, by format; each rendering of `fenced_json`; and how fast it goes.

`python -m benchmarks.text_tools`. The cases are read from the shared corpora beside the checkout and never copied.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.corpora import CORPORA
from benchmarks.table import Table, machine
from dragoman.text_tools import StreamParser, parse

CORPUS = CORPORA / "text_tools_dev.jsonl"
TIERS = ("positive", "positive_stream", "negative_plain", "negative_tool_choice_none", "negative_marked")
CHUNK = 20
TOOLS: list[dict[str, Any]] = [
    {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
    {"name": "get_weather", "parameters": None},
]


def run(*, quick: bool = False) -> list[Table]:
    tables = [fenced_json_table(quick), speed_table(quick)]
    if CORPUS.is_file():
        cases = [case for line in CORPUS.read_text(encoding="utf-8").splitlines() if not (case := json.loads(line)).get("quirk")]
        tables = [*corpus_tables(cases, splits=2 if quick else 10), *tables]
    return tables


# --- the corpus


def corpus_tables(cases: list[dict[str, Any]], splits: int) -> list[Table]:
    right: Counter[tuple[str, str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    differing = 0
    for number, case in enumerate(cases):
        total[case["format"], case["tier"]] += 1
        for how in ("auto", "named"):
            dialect = "auto" if how == "auto" else case["format"]
            parsed = parse(case["model_output"], tools_of(case), dialect=dialect, tool_choice=choice_of(case))
            right[case["format"], case["tier"], how] += is_right(case, parsed.calls)
            differing += differences(case, dialect, splits, number)
    by_format = Table("Calls read out of text, by format", ["format", "tier", "cases", "auto", "dialect named"])
    by_tier = Table("Calls read out of text, by tier", ["tier", "cases", "auto", "dialect named"])
    for (name, tier), count in sorted(total.items()):
        by_format.rows.append([name, tier, count, right[name, tier, "auto"], right[name, tier, "named"]])
    for tier in TIERS:
        counted = [(name, each, count) for (name, each), count in total.items() if each == tier]
        sums = [sum(right[name, each, how] for name, each, _ in counted) for how in ("auto", "named")]
        by_tier.rows.append([tier, sum(count for *_, count in counted), *sums])
    positives = [sum(right[name, tier, how] for name, tier in total if tier.startswith("positive")) for how in ("auto", "named")]
    all_positives = sum(count for (_, tier), count in total.items() if tier.startswith("positive"))
    shares = [f"{positive / all_positives:.1%}" for positive in positives]
    by_tier.notes.append(
        f"positives right: {shares[0]} without, {shares[1]} with the dialect named; readings that changed under some cut: {differing}"
    )
    return [by_format, by_tier]


def tools_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    if case["tools"] is None:
        return [{"name": name} for name in dict.fromkeys(call["name"] for call in case["expected"])]
    tools = [dict(tool.get("function", tool)) for tool in case["tools"]]
    return [{"name": tool["name"]} for tool in tools] if case.get("no_schema") else tools


def choice_of(case: dict[str, Any]) -> str:
    return "none" if case["tier"] == "negative_tool_choice_none" else "auto"


def is_right(case: dict[str, Any], calls: Any) -> bool:
    got = [(call.name, _tagged(call.args)) for call in calls]
    return got == [(call["name"], _tagged(call["arguments"])) for call in case["expected"]]


def _tagged(value: Any) -> Any:
    """Equal as JSON values only: true is not 1."""
    match value:
        case bool():
            return ("boolean", value)
        case dict():
            return {key: _tagged(each) for key, each in value.items()}
        case list():
            return [_tagged(each) for each in value]
        case _:
            return value


def differences(case: dict[str, Any], dialect: str, splits: int, seed: int) -> int:
    text, rng = case["model_output"], random.Random(seed)
    whole = parse(text, tools_of(case), dialect=dialect, tool_choice=choice_of(case))
    changed = 0
    for number in range(splits + 1):
        bounds = range(len(text)) if not number else sorted(rng.randrange(len(text) + 1) for _ in range(6))
        parser = StreamParser(tools_of(case), dialect=dialect, tool_choice=choice_of(case))
        for start, end in zip([0, *bounds], [*bounds, len(text)], strict=True):
            parser.feed(text[start:end])
        parser.finish()
        changed += parser.result != whole
    return changed


# --- the dialect fenced_json


def fenced_json_table(quick: bool) -> Table:
    table = Table("fenced_json, by rendering", ["rendering", "texts", "fenced_json", "auto"])
    count = 50 if quick else 400
    for name, texts in renderings(count).items():
        right = dict.fromkeys(("fenced_json", "auto"), 0)
        for text, expected in texts:
            for how in right:
                right[how] += [(call.name, call.args) for call in parse(text, TOOLS, dialect=how).calls] == expected
        table.rows.append([name, len(texts), *(f"{right[how] / len(texts):.1%}" for how in right)])
    return table


def renderings(count: int) -> dict[str, list[tuple[str, list[tuple[str, dict[str, Any]]]]]]:
    rng = random.Random(11)
    made: dict[str, list[tuple[str, list[tuple[str, dict[str, Any]]]]]] = {}
    for _ in range(count):
        args = _arguments(rng)
        written = json.dumps({"tool_call": {"name": "get_weather", "arguments": args}}, ensure_ascii=False)
        as_string = json.dumps({"tool_call": {"name": "get_weather", "arguments": json.dumps(args)}})
        fence = f"```json\n{written}\n```"
        one = [("get_weather", args)]
        for name, text, expected in (
            ("one fence", f"I look.\n{fence}", one),
            ("inline", f"I look: {written} and wait.", one),
            ("two fences", f"{fence}\nand\n{fence}", one * 2),
            ("untagged fence", f"```\n{written}\n```", one),
            ("missing closers", f"```json\n{written[: -rng.randint(1, 2)]}\n```", one),
            ("draft before a bare </think>", f"Perhaps {written}.\n</think>\n{fence}", one),
            ("trailing comma", f"```json\n{written[:-2]},}}}}\n```", one),
            ("Python literals", f"```json\n{ {'tool_call': {'name': 'get_weather', 'arguments': args}}!r}\n```", one),
            ("args as a string", f"```json\n{as_string}\n```", one),
        ):
            made.setdefault(name, []).append((text, expected))
    return made


def _arguments(rng: random.Random) -> dict[str, Any]:
    texts = ["Paris", "a\nb", "it's", 'say "hi"', "{x}", "语言 😀", "C:\\dir", "a, b: c]", ""]
    scalars = [True, False, None, 3, -1.5, [], ["x", {"y": None}], {"deep": {"er": [1, 2]}}]
    return {"city": rng.choice(texts), "more": {"a": rng.choice(scalars), "b": [rng.choice(texts) for _ in range(rng.randint(0, 3))]}}


# --- speed


def hard_texts() -> Iterator[tuple[str, str]]:
    """Text made to keep a reader busy, a million characters of each."""
    yield "nested braces", '{"name":' * 125_000
    yield "braces alone", "{" * 1_000_000
    yield "brackets alone", "[" * 1_000_000
    yield "beginnings of a marker", "<tool_cal" * 111_111
    yield "markers without a call", "<tool_call>" * 90_909
    yield "a call without an end", '<tool_call>{"name": "x", "arguments": {"a": "' + "x" * 999_950
    yield "tags without an end", "<function=a><parameter=b>" * 40_000
    yield "end tags without an end", "<tool_call>x<arg_key>k</arg_key><arg_value>" + "</arg_value>" * 83_000
    yield "quotes in code", '<|tool_call_start|>[f(a="' + '"' * 999_975
    yield "fences", '```json\n{"name": ' * 58_823
    yield "backticks", "`" * 1_000_000
    yield "headings", "<|channel|>" * 90_909
    yield "thinking without an end", "<think>" * 142_857


def speed_table(quick: bool) -> Table:
    table = Table(
        f"Speed of reading, in chunks of {CHUNK} characters",
        ["text", "MB/s", "whole: MB/s", "time for twice as much", "whole: for twice as much"],
    )
    repeat = 1 if quick else 3
    prose = ("The quick brown fox jumps over the lazy dog, and then (of course) it rests. " * 12 + "\n") * 1100
    for name, text in (("prose", prose[:1_000_000]), *hard_texts()):
        size = len(text) // (10 if quick else 1)
        text = text[:size]
        cut, whole = (min(seconds(text, chunk) for _ in range(repeat)) for chunk in (CHUNK, 0))
        twice_cut, twice_whole = (min(seconds(text * 2, chunk) for _ in range(repeat)) for chunk in (CHUNK, 0))
        table.rows.append([name, size / cut / 1e6, size / whole / 1e6, twice_cut / cut, twice_whole / whole])
    table.notes.append("prose goes by one search for the beginning of any marker; what holds none is passed on as it came")
    return table


def seconds(text: str, chunk: int) -> float:
    parts = [text[at : at + chunk] for at in range(0, len(text), chunk)] if chunk else [text]
    parser = StreamParser(TOOLS)
    started = time.perf_counter()
    for part in parts:
        parser.feed(part)
    parser.finish()
    return time.perf_counter() - started


if __name__ == "__main__":
    print(f"{machine()}\n")
    for each in run(quick="--quick" in sys.argv):
        print(each.markdown(), flush=True)
