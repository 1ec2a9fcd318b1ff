"""Each kind of entry says which folds read it, and each fold names just those: a new kind that nobody decided about is found here."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import get_args

import pytest

import dragoman
from dragoman.values import record
from dragoman.values.record import Entry, Fold

SOURCE = Path(dragoman.__path__[0])
KINDS = {kind.__name__: kind for kind in get_args(Entry)}
BASE = record.Titled.__bases__[0]
FOLDS = get_args(Fold)


def folds_in(source: str) -> dict[str, list[set[str]]]:
    """For each fold that a module marks: the kinds of entries that its function names."""
    found: dict[str, list[set[str]]] = defaultdict(list)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "fold":
                [name] = [argument.value for argument in mark.args if isinstance(argument, ast.Constant)]
                found[str(name)].append({each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & set(KINDS))
    return found


def all_folds() -> dict[str, list[set[str]]]:
    found: dict[str, list[set[str]]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        if "@fold(" in (text := path.read_text(encoding="utf-8")):
            for name, kinds in folds_in(text).items():
                found[name] += kinds
    return found


def differences(folds: dict[str, list[set[str]]], read_by: dict[str, frozenset[str]]) -> list[str]:
    """What does not agree, one sentence each."""
    wrong: list[str] = []
    for name in FOLDS:
        if len(folds.get(name, [])) != 1:
            wrong.append(f"the fold {name} is made by {len(folds.get(name, []))} functions, not by one")
            continue
        for kind, readers in read_by.items():
            if name in readers and kind not in folds[name][0]:
                wrong.append(f"{kind}.read_by names {name}, which does not read it")
            if name not in readers and kind in folds[name][0]:
                wrong.append(f"the fold {name} reads {kind}, whose read_by does not name it")
    return wrong + [f"{name} is no fold: choose from {', '.join(FOLDS)}" for name in folds if name not in FOLDS]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_itself_who_reads_it(kind: str) -> None:
    assert "read_by" in vars(KINDS[kind]), f"give {kind} a read_by: which of {', '.join(FOLDS)} read it"
    assert KINDS[kind].read_by <= set(FOLDS)
    assert KINDS[kind].read_by, f"nobody reads {kind}: then it need not be written"


def test_every_kind_is_in_the_union() -> None:
    made = {name for name, kind in vars(record).items() if isinstance(kind, type) and kind is not BASE and issubclass(kind, BASE)}
    assert sorted(made - set(KINDS)) == [], "add it to Entry: it would be read as a kind that nobody knows"


def test_folds_read_what_the_kinds_say() -> None:
    assert differences(all_folds(), {name: kind.read_by for name, kind in KINDS.items()}) == []


def test_what_is_forgotten_is_named() -> None:
    """The check itself, on small planted folds."""
    source = """
@fold("summary")
def take(entry):
    match entry:
        case Titled() | Said():
            ...
"""
    folds = {**{name: [set[str]()] for name in FOLDS}, **folds_in(source)}
    read_by = {"Titled": frozenset({"summary", "transcript"}), "Said": frozenset[str]()}
    assert differences(folds, read_by) == [
        "the fold summary reads Said, whose read_by does not name it",
        "Titled.read_by names transcript, which does not read it",
    ]
    assert differences({**folds, "view": []}, read_by)[0] == "the fold view is made by 0 functions, not by one"
