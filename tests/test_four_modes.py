"""docs/reference/four-modes.md and its Chinese twin: the table of the documents, section 6, read off requests that a service received."""

from __future__ import annotations

import pytest
from checks import four_modes
from checks.four_modes import ABOUT, BESIDE, MODES, PAGES, PARTS, PROMPT, RESULT, Seen, path_of, paths, role_of, table
from checks.marked import Part


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    return four_modes.seen()


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.page.name)
def test_the_page_shows_the_requests_of_today(part: Part) -> None:
    page = part.page.read_text(encoding="utf-8")
    assert part.filled(page) == page, "make docs writes the tables anew"


def test_the_pages_have_the_same_rows_and_each_mode(seen: dict[str, Seen]) -> None:
    english, chinese = (table(seen, language).splitlines() for language in PAGES)
    assert len(english) == len(chinese) == 8
    assert {line.count(" | ") for line in (english[0], *english[2:], chinese[0], *chinese[2:])} == {len(MODES)}


@pytest.mark.parametrize("mode", MODES)
def test_the_documents_own_cells_hold(seen: dict[str, Seen], mode: str) -> None:
    """What the document's table says of a mode, in its own words."""
    its, gemini, in_text = seen[mode], mode.startswith("gemini"), MODES[mode].in_text
    assert its.form == ("contents" if gemini else "messages")
    assert ("tools" in its.last) == (not in_text)
    definition = {"gemini": "tools[0].functionDeclarations[0]", "openai": "tools[0].function"}.get(mode, its.form)
    assert path_of(its.last, ABOUT).startswith(definition)
    assert [role_of(its.last, text) for text in (PROMPT, "Seven.")] == ["user", "model" if gemini else "assistant"]
    assert role_of(its.last, RESULT) == ("tool" if mode == "openai" else "user")
    fields = {where.rpartition(".")[2] for where, _ in paths(its.last)}
    assert ("tool_call_id" in fields) == (mode == "openai")
    assert any("functionCall" in where for where, _ in paths(its.last)) == (mode == "gemini")
    assert any(BESIDE in text for _, text in paths(its.without[-1])) == (not in_text), "preserve_context is about calls in text"
