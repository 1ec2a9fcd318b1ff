"""Model outputs from other projects' parser tests. They are read in place, never copied."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.text_tools import choice_of, tools_of

from dragoman.text_tools import parse
from dragoman.text_tools.calls import CallReady
from dragoman.text_tools.parser import StreamParser
from text_tools.reading import cases, cuts, is_right, read

SPLITS = 50


@pytest.mark.parametrize("how", ["auto", "named"])
def test_the_bars_are_met(corpora: Path, how: str) -> None:
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for case in cases(corpora):
        kind = "positive" if case["tier"].startswith("positive") else case["tier"]
        dialect = "auto" if how == "auto" else case["format"]
        parsed = parse(case["model_output"], tools_of(case), dialect=dialect, tool_choice=choice_of(case))
        total[kind] += 1
        right[kind] += is_right(case, parsed)
    assert right["positive"] / total["positive"] >= 0.97
    assert right["negative_plain"] == total["negative_plain"] > 0
    assert right["negative_tool_choice_none"] == total["negative_tool_choice_none"] > 0


@pytest.mark.parametrize("part", range(8))
def test_no_case_depends_on_how_it_is_cut(corpora: Path, part: int) -> None:
    for number, case in enumerate(cases(corpora)[part::8]):
        text, tools, choice = case["model_output"], tools_of(case), choice_of(case)
        dialect = "auto" if number % 2 else case["format"]
        whole, _ = read([text], tools, dialect=dialect, tool_choice=choice)
        for parts in cuts(text, SPLITS, seed=number):
            assert read(parts, tools, dialect=dialect, tool_choice=choice)[0] == whole, case["id"]


@pytest.mark.parametrize("part", range(8))
def test_every_prefix_of_every_case_can_be_read_and_readies_nothing(corpora: Path, part: int) -> None:
    for case in cases(corpora)[part::8]:
        text, tools = case["model_output"], tools_of(case)
        running = StreamParser(tools, tool_choice=choice_of(case))
        for end in range(1, len(text) + 1):
            events = running.feed(text[end - 1 : end])
            assert not any(isinstance(event, CallReady) for event in events)
            assert len(running.result.text) + len(running.result.reasoning) <= end

        running.finish()
        assert running.result == parse(text, tools, tool_choice=choice_of(case))
        for end in range(0, len(text), 7):
            cut = parse(text[:end], tools, tool_choice=choice_of(case), finish="length")
            assert len(cut.calls) <= len(running.result.calls) or not running.result.calls
