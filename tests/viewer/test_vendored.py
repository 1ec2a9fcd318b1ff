"""What of the page is not ours is what its authors published, and the page is small."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

import dragoman as dm
from dragoman.context.plan_items import Kind, State
from dragoman.conversation.pages.context_simulate import POLICIES
from dragoman.conversation.session_page.assets import PREFIX, asset, page_words
from dragoman.conversation.types import ViewState
from dragoman.fleet.result import Outcome
from dragoman.words import lookup

STATIC = Path(dm.__file__).parent / "conversation" / "session_page" / "static"
HASHES = {
    "htm-preact.js": "62c4ffea400078c0eda7f435b22726b4961ebdf74c8506f188e92bec41d8ac51",
    "uplot.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uplot.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
MOST_BYTES = 150_000
SAID = re.compile(r"\bt\(\s*(?:\w+ \? )?\"(\w+)\"(?: : \"(\w+)\")?")
FAMILIES = re.compile(r"\bt\(`(\w+)\$\{")


def text_of(script: str) -> str:
    return (STATIC / script).read_text(encoding="utf-8")


def listed_in(script: str, name: str) -> list[str]:
    """A table of texts at the top of a script: `const NAME = ["a", "b"];`."""
    found = re.search(rf"^const {name} = (\[.*\]);$", text_of(script), re.MULTILINE)
    assert found is not None, f"{script} has no {name}"
    return json.loads(found[1])


FILLED_IN: Mapping[str, Callable[[], Iterable[Any]]] = {
    "file_": lambda: re.findall(r"\"(\w+)\"", re.findall(r"const kind = .*", text_of("files.js"))[0]),
    "item_": lambda: {*get_args(State)} - {"kept"},
    "key_": lambda: range(len(listed_in("main.js", "KEYS"))),
    "kind_": lambda: get_args(Kind),
    "live_": lambda: {*re.findall(r"onState\(\"(\w+)\"\)", text_of("source.js"))} - {"live"},  # what is as it should be is not said
    "outcome_": lambda: [each.replace(" ", "_") for each in (*get_args(Outcome), "begun", "open")],
    "part_": lambda: [*listed_in("context.js", "PART_NAMES"), "output"],
    "policy_": lambda: POLICIES,
    "rule_": lambda: ("terminal", "superseded", "all"),
    "state_": lambda: {*get_args(ViewState)} - {"", "gone"},
    "view_": lambda: listed_in("request.js", "VIEWS"),
}
"""The beginnings of keys that the scripts put together, with all that is filled in behind them."""


@pytest.mark.parametrize("name", HASHES)
def test_vendored_files_are_as_they_were_published(name: str) -> None:
    assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == HASHES[name]


def test_every_vendored_file_has_its_licence_beside_it() -> None:
    found = {path.name for path in (STATIC / "vendor").iterdir()}
    assert found == {*HASHES, "README.md", "htm-LICENSE.txt", "preact-LICENSE.txt", "uplot-LICENSE.txt"}


def test_the_whole_page_is_small() -> None:
    """All its files as a browser is sent them."""
    names = [path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.suffix in {".js", ".css", ".html", ".svg"}]
    assert sum(len(found.packed) for name in (*names, "words.json") if (found := asset(name)) is not None) <= MOST_BYTES


def test_nothing_outside_the_folder_is_a_part_of_the_page() -> None:
    assert asset("main.js") is not None
    assert [asset(path) for path in ("../assets.py", "vendor/../../assets.py", "/etc/passwd", "vendor", "vendor/README.md", "")] == [
        None
    ] * 6


def said_by_the_page() -> tuple[set[str], set[str]]:
    """Keys that the scripts name, and beginnings of those that they put together."""
    texts = [path.read_text(encoding="utf-8") for path in STATIC.glob("*.js")]
    keys = {key for text in texts for found in SAID.findall(text) for key in found if key}
    return keys, {family for text in texts for family in FAMILIES.findall(text)}


def test_each_sentence_that_the_page_says_is_there_in_both_languages_and_each_that_is_there_is_said() -> None:
    keys, families = said_by_the_page()
    known = set(page_words()["words"])
    assert keys - known == set()
    assert families == set(FILLED_IN), "say in FILLED_IN what stands behind a beginning"
    made = {f"{family}{value}" for family, values in FILLED_IN.items() for value in values()}
    assert sorted(made - known) == []
    assert sorted(key for key in known - made - keys if key.startswith(tuple(families))) == [], "the page never says these"
    in_tables = {
        key for text in (path.read_text(encoding="utf-8") for path in STATIC.glob("*.js")) for key in re.findall(r"\"(\w+)\"", text)
    }
    unsaid = {key for key in known - keys if not key.startswith(tuple(families)) and key not in in_tables}
    assert unsaid == set()
    assert {key for key in known if lookup(f"{PREFIX}{key}", "zh") is None} == set()
