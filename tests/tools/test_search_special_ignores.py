"""Ignore files that are pipes or have no end: a search ends, in bounded memory, and says that it is not whole."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from dragoman.tools import ripgrep
from dragoman.tools.search import Glob, Grep
from dragoman.tools.workspace import Workspace
from dragoman.tui.completion import FileIndex
from file_tools import text_of
from special_files import KINDS, can_plant, plant, watchdog

MOST_KB = 2_500_000
kinds = pytest.mark.parametrize("kind", [kind for kind in KINDS if can_plant(kind)])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "TIMEOUT_S", 1.0)


@kinds
@pytest.mark.parametrize("name", [".gitignore", "sub/.ignore"])
def test_a_search_ends_and_says_what_is_missing(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("a needle")
    plant(tmp_path / name, kind)
    for tool in (Grep(Workspace(tmp_path)), Glob(Workspace(tmp_path))):
        with watchdog():
            output = asyncio.run(tool.run({"pattern": "needle" if isinstance(tool, Grep) else "**/*.txt"}, lambda text: None))
        text = text_of(output)
        assert "a.txt" in text or "took too long" in text or "the search failed" in text, text
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < MOST_KB


@kinds
def test_files_are_completed_all_the_same(tmp_path: Path, kind: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "harbour.txt").write_text("words")
    plant(tmp_path / ".gitignore", kind)

    async def complete() -> list[str]:
        index, listed = FileIndex(str(tmp_path)), asyncio.Event()
        index.on_listed = listed.set
        index.list_when_old()
        await listed.wait()
        return list(index.find("harbour"))

    with watchdog():
        assert asyncio.run(complete()) == ["sub/harbour.txt"]
