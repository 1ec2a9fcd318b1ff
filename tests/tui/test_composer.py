"""The composer: whatever is pressed, the text and the caret stay sound, and what was pasted is sent whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.graphemes import clusters, width
from dragoman.tui.composer import _ACTIONS, Composer
from dragoman.tui.layout import lay_out
from dragoman.tui.line import line
from dragoman.tui.theme import Theme

TEXTS = st.text(st.sampled_from("ab \n你ü😀👩‍👩‍👧é\t"), max_size=40)


def written(text: str) -> Composer:
    composer = Composer()
    composer.insert(text)
    return composer


@given(st.lists(st.one_of(st.sampled_from([*_ACTIONS]), TEXTS), max_size=40), st.integers(8, 40))
def test_any_keys_leave_the_caret_at_a_boundary_inside_the_text(steps: list[str], columns: int) -> None:
    composer = Composer()
    for step in steps:
        if step in _ACTIONS:
            composer.press(step)
        else:
            composer.insert(step)
        ends = {0}
        at = 0
        for cluster in clusters(composer.text):
            at += len(cluster)
            ends.add(at)
        assert composer.caret in ends
        rows, (row, column) = composer.layout(columns)
        assert 0 <= row < len(rows)
        assert 0 <= column <= columns
        assert all(width(each) <= columns for each in rows)


@given(TEXTS)
def test_the_rows_hold_the_text(text: str) -> None:
    composer = written(text)
    rows, _ = composer.layout(20)
    assert "".join("".join(rows).split()) == "".join(text.split())


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Co"]), min_size=1001, max_size=1200), TEXTS)
def test_a_paste_is_folded_and_sent_whole(pasted: str, before: str) -> None:
    composer = written(before)
    composer.paste(pasted)
    assert len(composer.text) <= len(before) + 1
    assert composer.take() == before + pasted
    assert composer.is_empty


def test_a_folded_paste_is_deleted_as_one_character() -> None:
    composer = written("see ")
    composer.paste("line\n" * 300)
    assert composer.layout(60)[0] == ["see [paste 1: 300 lines]"]
    assert composer.folded_pastes() == [(1, "line\n" * 300)]
    composer.press("backspace")
    assert composer.text == "see "
    assert composer.folded_pastes() == []


def test_what_was_written_by_hand_comes_back_to_be_edited() -> None:
    composer = Composer()
    composer.set("\n".join(f"row {number}" for number in range(14)))
    assert composer.layout(60)[0][-1] == "row 13"
    composer.set("row\n" * 300)
    assert composer.layout(60)[0] == ["[paste 1: 300 lines]"]


def test_words_are_killed_and_come_back() -> None:
    composer = written("one two three")
    composer.press("ctrl-w")
    assert composer.text == "one two "
    composer.press("ctrl-a")
    composer.press("ctrl-y")
    assert composer.text == "threeone two "
    composer.press("ctrl-_")
    composer.press("ctrl-_")
    assert composer.text == "one two three"


def test_kills_that_follow_each_other_come_back_together() -> None:
    composer = written("one two three four")
    for key in ("alt-b", "ctrl-w", "ctrl-w", "ctrl-k"):
        composer.press(key)
    assert composer.text == "one "
    composer.press("ctrl-y")
    assert composer.text == "one two three four"


def test_a_word_holds_the_marks_on_its_letters() -> None:
    composer = written("one e\u0301x हिन्दी end")
    composer.press("ctrl-home")
    seen: list[int] = []
    while composer.caret < len(composer.text):
        composer.press("alt-f")
        seen.append(composer.caret)
    assert seen == [3, 7, 14, 18]
    for place in (15, 8, 4, 0):
        composer.press("alt-b")
        assert composer.caret == place


def test_joiners_are_typed() -> None:
    composer = Composer()
    for char in "می\u200cخواهم 👩\u200d👧":
        assert composer.press(char, char)
    assert composer.text == "می\u200cخواهم 👩\u200d👧"


def test_characters_change_places_whole() -> None:
    composer = written("xe\u0301")
    composer.press("ctrl-t")
    assert composer.text == "e\u0301x"


def test_up_and_down_keep_the_column() -> None:
    composer = written("a long first line\nab\nanother long line")
    composer.press("home")
    for _ in range(9):
        composer.press("right")
    assert composer.move_up(40)
    assert composer.layout(40)[1] == (1, 2)
    assert composer.move_up(40)
    assert composer.layout(40)[1] == (0, 9)
    assert not composer.move_up(40)


def test_a_word_goes_to_the_next_row_whole() -> None:
    assert written("some words that wrap").layout(12)[0] == ["some words ", "that wrap"]


@pytest.mark.parametrize("rows", range(2, 8))
@pytest.mark.parametrize("columns", [8, 10, 20])
def test_the_region_fits_the_smallest_window(columns: int, rows: int) -> None:
    frame = lay_out(
        written("some words that wrap"),
        Theme("mono"),
        (columns, rows),
        above=[line("what is under way")] * 3,
        menu=[line("/help keys and commands")] * 3,
        status=line("ask first   opus-5   ctx 3%"),
    )
    assert 1 <= len(frame.rows) <= rows
    assert all(row.columns < columns for row in frame.rows)
    assert frame.caret[0] < len(frame.rows)
    assert frame.caret[1] < columns
