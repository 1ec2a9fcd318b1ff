"""What of the page is not ours is what its authors published, and the page is small."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import dragoman as dm
from dragoman.conversation.session_page.assets import PREFIX, asset, page_words
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
    assert {family for family in families if not any(key.startswith(family) for key in known)} == set()
    in_tables = {
        key for text in (path.read_text(encoding="utf-8") for path in STATIC.glob("*.js")) for key in re.findall(r"\"(\w+)\"", text)
    }
    unsaid = {key for key in known - keys if not key.startswith(tuple(families)) and key not in in_tables}
    assert unsaid == set()
    assert {key for key in known if lookup(f"{PREFIX}{key}", "zh") is None} == set()
