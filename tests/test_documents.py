"""docs/reference/documents.md and its Chinese twin: names are there, lines and commands run, and no word of the documents is missing."""

from __future__ import annotations

import ast
import asyncio
import base64
import importlib
import inspect
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from documents_names import names
from dragoman.conversation.commands import find_command
from program import Place, service

ROOT = Path(__file__).resolve().parent.parent
ENGLISH, CHINESE = ROOT / "docs" / "reference" / "documents.md", ROOT / "docs" / "reference" / "documents.zh-CN.md"
TERMS = Path(__file__).with_name("documents_terms.txt")
"""Document, tab, word: all that the page has to lead on from."""
GIVEN = ROOT.parent / "shared" / "documents-terms.tsv"
"""Words the documents' readers began with, where they lie beside the project."""
SEEDS = ROOT.parent / "shared" / "seeds"
PICTURE = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
"""A PNG of one pixel."""
CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    document: str
    terms: tuple[str, ...]
    python: tuple[str, ...]
    command: str
    page: str
    line: str
    otherwise: str


def rows_of(page: Path) -> list[Row]:
    """The rows of the five sections."""
    rows, document = [], ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"## (00[0-4])", line):
            document = found[1]
        if not document or not line.startswith("| `"):
            continue
        cells = [each.strip() for each in line[1:-1].split(" |")]
        assert len(cells) == 6, line
        terms, python, command, where, code, otherwise = cells
        rows.append(
            Row(document, tuple(CODE.findall(terms)), tuple(CODE.findall(python)), command.strip("`"), where, code.strip("`"), otherwise)
        )
    return rows


ROWS = rows_of(ENGLISH)


def in_turn(kind: str) -> list[str]:
    """Every cell of a kind, once."""
    return list(dict.fromkeys(value for row in ROWS if (value := getattr(row, kind))))


def test_both_pages_have_the_same_rows() -> None:
    """Only headings and reasons are translated, and a reason is there in both."""

    def shape(page: Path) -> list[tuple[Any, ...]]:
        return [
            (each.document, each.terms, each.python, each.command, in_english(each.page), each.line, bool(each.otherwise))
            for each in rows_of(page)
        ]

    assert shape(CHINESE) == shape(ENGLISH)
    assert len(ROWS) > 250


def in_english(link: str) -> str:
    """The page of a row without its heading, which has other words in Chinese."""
    return re.sub(r"#[^)]*", "", link.replace(".zh-CN.md", ".md"))


def test_no_word_of_the_documents_is_missing() -> None:
    told = {(row.document, term) for row in ROWS for term in row.terms}
    assert sorted(set(terms_in(TERMS)) - told) == []


def test_no_row_leads_nowhere() -> None:
    """A row has a name or a command, or says why there is none."""
    assert [row.terms for row in ROWS if not row.python and not row.command and not row.otherwise] == []


@pytest.mark.skipif(not GIVEN.is_file(), reason="the list is not beside the project")
def test_the_list_holds_every_word_readers_began_with() -> None:
    assert sorted(set(terms_in(GIVEN)) - set(terms_in(TERMS))) == []


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the documents are not beside the project")
def test_the_documents_declare_nothing_that_the_list_lacks() -> None:
    """Every type, function, method and constant that they declare."""
    declared = re.compile(
        r"\b(?:interface|class|enum|type|function|def) (\w+)|^\s*(?:private |async |static )*\*?(\w+)\([^;{]*\)[^;{=]*[;{]?$", re.M
    )
    found = {one or other for seed in SEEDS.glob("00*") for one, other in declared.findall(seed.read_text(encoding="utf-8"))}
    assert "getHistory" in found
    assert sorted(found - NOT_WORDS - {term for _, term in terms_in(TERMS)}) == []


NOT_WORDS = frozenset(("Message", "__init__", "constructor", "main", "print", "super"))
"""Words of the languages and of examples."""


def terms_in(listed: Path) -> Iterator[tuple[str, str]]:
    for line in listed.read_text(encoding="utf-8").splitlines():
        document, _, term = line.partition("\t")
        yield document, term


@pytest.mark.parametrize("word", ["getHistory", "sendMessage", "functionResponse", "文本劫持", "精简"])
def test_a_search_for_a_word_finds_the_page(word: str) -> None:
    assert word in ENGLISH.read_text(encoding="utf-8")
    assert word in CHINESE.read_text(encoding="utf-8")


def test_a_page_of_each_row_speaks_of_a_name_of_it() -> None:
    """Or of the class that the name belongs to. Pages for the terminal have the commands; those for Python stand beside them."""
    silent = []
    for row in ROWS:
        pages = " ".join((ENGLISH.parent / link).read_text(encoding="utf-8") for link in re.findall(r"\(([^)#]+)", row.page))
        words = {word for name in row.python for word in name.split(".")[-2:] if word[0].isupper() or name.endswith(word)}
        if row.python and not any(re.search(rf"\b{re.escape(word)}\b", pages, re.IGNORECASE) for word in words):
            silent.append((row.terms[0], row.python, row.page))
    assert silent == []


def test_every_name_is_there() -> None:
    missing = []
    for name in dict.fromkeys(name for row in ROWS for name in row.python):
        try:
            find(name)
        except (AttributeError, ImportError):
            missing.append(name)
    assert missing == []


def find(name: str) -> Any:
    """`dm.chat.Chat.history`: a public name, or what belongs to one."""
    _, first, *rest = name.split(".")
    found = getattr(dm, first) if first in dm.__all__ else importlib.import_module(f"dragoman.{first}")
    for each in rest:
        found = getattr(found, each)
    return found


@pytest.mark.parametrize("document", ["000", "001", "002", "003", "004"])
def test_every_line_runs(document: str, tmp_path: Path) -> None:
    """A comparison has to be true; `await` stands where it may in `python -m asyncio`."""
    faults = []
    for number, line in enumerate(dict.fromkeys(row.line for row in ROWS if row.document == document and row.line)):
        place = tmp_path / str(number)
        place.mkdir()
        if fault := run_line(line, place):
            faults.append(f"{line}: {fault}")
    assert faults == []


def run_line(line: str, place: Path) -> str:
    """What is wrong with it; empty: nothing."""
    return asyncio.run(fault_in(line, names(place, line)))


async def fault_in(line: str, known: dict[str, Any]) -> str:
    try:
        value = eval(compile(line, "documents.md", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), known)
        value = await value if inspect.iscoroutine(value) else value
    except Exception as error:
        return repr(error)
    return "" if not isinstance(value, bool) or value else "is not true"


def test_the_lines_hold_one_after_the_other_too(tmp_path: Path) -> None:
    """So they are pasted: all with the same names, which a reader may make anew in between."""

    async def paste() -> list[tuple[str, str]]:
        known = names(tmp_path)
        faults = [(line, fault) for line in in_turn("line") if (fault := await fault_in(line, known))]
        known = names(tmp_path)
        return faults or [(line, fault) for line in in_turn("line")[:3] if (fault := await fault_in(line, known))]

    assert asyncio.run(paste()) == []


@pytest.mark.parametrize("line", ["1 == 2", "dm.nothing", "await dm.nothing()"])
def test_a_line_that_does_not_hold_is_found(line: str, tmp_path: Path) -> None:
    assert run_line(line, tmp_path)


def test_every_command_runs(tmp_path: Path) -> None:
    """One after the other, in a folder with one session, against services on loopback."""
    place = Place(tmp_path)
    with service("script: end=repeat\ntext: <snapshot><goal>read a.txt</goal></snapshot>") as place.service:
        place.more_env = {"DRAGOMAN_MODEL": "gemini/gemini-2.5-pro"}
        (place.work / "shot.png").write_bytes(PICTURE)
        assert place.ask("What does a.txt say?", model="gemini/gemini-2.5-pro").code == 0
        faults = []
        for command in in_turn("command"):
            if command.startswith("/"):
                continue
            program, *arguments = shlex.split(command)
            assert program == "dragoman", command
            done = place.run(*arguments, stdin="/quit\n" if not arguments else None)
            if done.code != 0:
                faults.append(f"{command}: {done}")
    assert faults == []


def test_every_slash_command_is_there() -> None:
    named = [command.split()[0] for command in in_turn("command") if command.startswith("/")]
    assert [each for each in named if find_command(each, "plain") is None] == []
