"""Completion, lists to pick from, the reader of folded texts and the history of prompts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.tui.calls import Folded
from dragoman.tui.completion import FileIndex, Menu, Suggestion, menu_for
from dragoman.tui.composer import Composer
from dragoman.tui.history import PromptHistory
from dragoman.tui.keys import Key
from dragoman.tui.layout import lay_out
from dragoman.tui.line import plain
from dragoman.tui.overlay import OverlayPainter, Viewer
from dragoman.tui.picker import Picker, PickerItem
from dragoman.tui.prompt import PromptInput
from dragoman.tui.theme import Theme

COMMANDS = {"/help": "keys and commands", "/model": "another model", "/compress": "sum up", "/context": "what the model sees"}


def written(text: str) -> Composer:
    composer = Composer()
    composer.insert(text)
    return composer


def index(*paths: str) -> FileIndex:
    files = FileIndex(".")
    files.set_paths(paths)
    return files


def suggestions(menu: Menu | None) -> list[str]:
    return [each.text for each in menu.suggestions] if menu is not None else []


def test_a_numbered_list_takes_a_row_by_alt_and_its_number_whatever_is_typed() -> None:
    taken: list[str] = []
    names = [f"model-{number}" for number in range(12)]
    picker = Picker("Models", [PickerItem(name, (name,)) for name in names], taken.append, is_numbered=True)
    shown = [plain(row).rstrip() for row in picker.rows(40, 20)]
    assert shown[3:14] == ["› model-0", *(f"{number} model-{number - 1}" for number in range(2, 10)), "  model-9", "  model-10"]
    picker.press(Key("alt-3"))
    picker.press(Key("1", "1"))  # a digit alone is a part of a name
    picker.press(Key("alt-2"))
    assert picker.press(Key("alt-9")), "there is no ninth"
    assert taken == ["model-2", "model-10"]


@pytest.mark.parametrize(("sessions", "rows", "noted"), [(9, 11, 0), (2, 11, 2), (9, 24, 3)])
def test_in_a_small_window_the_list_is_shown_rather_than_what_is_said_of_one_row(sessions: int, rows: int, noted: int) -> None:
    items = [PickerItem(str(number), (f"session {number}",), note="asked\nanswered\nwhere") for number in range(sessions)]
    picker = Picker("Go on with …", items, lambda key: None, keys=" · ".join(["a long key that does something"] * 3))
    shown = [plain(row).strip() for row in picker.rows(40, rows)]
    assert len([row for row in shown if "session" in row]) >= min(sessions, 4)
    assert [row for row in shown if row in ("asked", "answered", "where")] == ["asked", "answered", "where"][:noted]


def test_a_slash_at_the_beginning_offers_commands() -> None:
    assert suggestions(menu_for(written("/co"), COMMANDS, index())) == ["/compress", "/context"]
    assert menu_for(written("say /co"), COMMANDS, index()) is None
    assert menu_for(written("/home/x"), COMMANDS, index()) is None


def test_what_may_follow_a_command_is_offered() -> None:
    def offered(text: str) -> list[str]:
        return suggestions(menu_for(written(text), COMMANDS, index()))

    assert offered("/approval ") == ["plan", "default", "auto-edit", "auto"]
    assert offered("/effort m") == ["medium", "max"]
    assert offered("/tools ") == offered("effort m") == offered("/approval plan m") == []


def test_enter_sends_a_command_as_it_is_where_nothing_that_may_follow_was_begun_or_chosen() -> None:
    """A blank behind `/approval`, as Tab leaves it, is no choice of what stands first in the menu."""
    menu = menu_for(composer := written("/approval "), COMMANDS, index())
    assert menu is not None
    assert menu.is_written(composer)
    menu.move(1)
    assert not menu.is_written(composer)
    begun = menu_for(composer := written("/approval pl"), COMMANDS, index())
    assert begun is not None
    assert not begun.is_written(composer)


def test_an_at_sign_offers_files_the_best_first() -> None:
    files = index("docs/calc.md", "src/calc.py", "src/calculator/main.py", "tests/test_calc.py", "misc/recalc.txt")
    found = suggestions(menu_for(written("compare @calc"), COMMANDS, files))
    assert found[:2] == ["@src/calc.py", "@docs/calc.md"]
    assert set(found) == {"@docs/calc.md", "@src/calc.py", "@src/calculator/main.py", "@tests/test_calc.py", "@misc/recalc.txt"}
    assert suggestions(menu_for(written("@tstclc"), COMMANDS, files)) == ["@tests/test_calc.py"]
    assert menu_for(written("mail a@calc"), COMMANDS, files) is None


def test_what_is_taken_stands_in_place_of_the_word() -> None:
    composer = written("compare @ca")
    menu = menu_for(composer, COMMANDS, index("src/calc.py"))
    assert menu is not None
    menu.take(composer)
    assert composer.text == "compare @src/calc.py "


def test_a_name_with_blanks_is_quoted() -> None:
    assert suggestions(menu_for(written("@sh"), COMMANDS, index("my shot.png"))) == ['@"my shot.png"']


def test_one_writes_on_in_a_folder_with_blanks(tmp_path: Path) -> None:
    (tmp_path / "my dir").mkdir()
    (tmp_path / "my dir" / "a file.txt").write_text("word " * 1_000)
    files = FileIndex(str(tmp_path))
    files.set_paths(["my dir/", "my dir/a file.txt"])
    composer = written("see @my")
    menu = menu_for(composer, COMMANDS, files)
    assert menu is not None
    menu.take(composer)
    assert composer.text == 'see @"my dir/'
    composer.insert("a f")
    menu = menu_for(composer, COMMANDS, files)
    assert menu is not None
    assert [plain(row) for row in menu.lines(60, 4)] == ['› @"my dir/a file.txt"  about 1,250 tokens']
    menu.take(composer)
    assert composer.text == 'see @"my dir/a file.txt" '
    assert menu_for(composer, COMMANDS, files) is None


def test_a_menu_says_how_much_there_is_and_keeps_its_columns() -> None:
    menu = Menu(0, [Suggestion(f"/{'x' * size}", "what it does") for size in range(1, 12)])
    first = [plain(row) for row in menu.lines(60, 4)]
    assert first[-1].startswith("  1 of 11")
    menu.move(-1)
    last = [plain(row) for row in menu.lines(60, 4)]
    assert last[-1].startswith("  11 of 11")
    assert {row.index("what") for row in (*first[:-1], *last[:-1])} == {first[0].index("what")}
    assert [plain(row).split()[0] for row in Menu(0, menu.suggestions[:3]).lines(60, 4)][1:] == ["/xx", "/xxx"]


def test_the_files_of_a_tree_are_listed_while_keys_are_heeded(tmp_path: Path) -> None:
    for name in ("src/calc.py", "docs/计算.md", "built/out.o"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / ".ignore").write_text("built\n")
    files = FileIndex(str(tmp_path))

    async def list_all() -> None:
        listed = asyncio.Event()
        files.on_listed = listed.set
        files.list_when_old()
        await listed.wait()

    asyncio.run(list_all())
    assert sorted(files.find("")) == sorted((".ignore", "docs/", "src/", "docs/计算.md", "src/calc.py"))
    assert files.find("计") == ["docs/计算.md"]
    assert files.find("scp") == ["src/calc.py"]


def test_a_picker_filters_and_takes() -> None:
    taken: list[str] = []
    picker = Picker("Go on with", [PickerItem(str(number), (f"session {number}", "2m")) for number in range(100)], taken.append)
    for char in "42":
        assert picker.press(Key(char, char))
    assert any("session 42" in plain(row) for row in picker.rows(60, 20))
    assert not picker.press(Key("enter"))
    assert taken == ["42"]


def test_a_picker_with_nothing_to_take_stays_open() -> None:
    picker = Picker("Go on with", [], lambda key: None)
    assert picker.press(Key("enter"))
    assert not picker.press(Key("esc"))


def test_the_reader_pages_and_goes_to_other_texts() -> None:
    viewer = Viewer([Folded("first", "one"), Folded("second", "\n".join(f"line {number}" for number in range(100)))])
    rows = [plain(row) for row in viewer.rows(60, 13)]
    assert len(rows) == 13
    assert "line 0" in rows
    viewer.press(Key("pagedown"))
    assert "line 10" in [plain(row) for row in viewer.rows(60, 13)]
    viewer.press(Key("end"))
    assert "line 99" in [plain(row) for row in viewer.rows(60, 13)]
    viewer.press(Key("left"))
    assert "one" in [plain(row) for row in viewer.rows(60, 13)]
    assert not viewer.press(Key("q"))


def test_only_rows_that_changed_are_painted() -> None:
    viewer = Viewer([Folded("title", "\n".join(f"line {number}" for number in range(5)))])
    painter = OverlayPainter()
    assert "line 3" in painter.frame(viewer, Theme("mono"), (60, 13))
    assert painter.frame(viewer, Theme("mono"), (60, 13)) == ""


def test_prompts_come_back_in_the_next_conversation(tmp_path: Path) -> None:
    path = tmp_path / "data" / "prompts.jsonl"
    history = PromptHistory(str(path))
    for prompt in ("first", "two\nlines", "two\nlines", "third"):
        history.add(prompt)
    assert path.stat().st_mode & 0o077 == 0, "for the user alone"
    again = PromptHistory(str(path))
    assert again.prompts == ["first", "two\nlines", "third"]
    assert again.earlier("draft") == "third"
    assert again.earlier("third") == "two\nlines"
    assert again.later() == "third"
    assert again.later() == "draft"
    assert again.later() is None
    assert again.search("LINES") == (1, "two\nlines")
    assert again.search("first", 0) is None


def test_a_history_without_a_place_is_kept_nowhere() -> None:
    history = PromptHistory("")
    history.add("secret")
    assert history.earlier("") == "secret"
    assert PromptHistory("").prompts == []


def test_a_damaged_history_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b'"one"\n{broken\n\xff\xfe\n"two"\n')
    assert PromptHistory(str(path)).prompts == ["one", "two"]


def test_the_cursor_stands_where_one_writes_in_a_list() -> None:
    picker, painter = Picker("Go on with", [PickerItem("a", ("one",))], lambda key: None), OverlayPainter()
    for char in "中o":
        picker.press(Key(char, char))
    assert painter.frame(picker, Theme("mono"), (60, 10)).endswith("\x1b[2;6H")
    assert painter.frame(picker, Theme("mono"), (60, 10)) == ""
    picker.press(Key("left"))
    assert painter.frame(picker, Theme("mono"), (60, 10)).endswith("\x1b[2;5H")


def test_numbers_in_a_list_stand_under_each_other_by_their_last_digit() -> None:
    items = [PickerItem("a", ("one", "[60]", "11,631", "63.7%", "2m")), PickerItem("b", ("two", "[2]", "42", "0.2%", "1m"))]
    rows = [plain(row) for row in Picker("Context", items, lambda key: None).rows(60, 10)]
    assert [row for row in rows if "one" in row or "two" in row] == ["› one  [60]  11,631  63.7%  2m", "  two   [2]      42   0.2%  1m"]


def test_the_cursor_stands_where_one_writes_in_a_search(tmp_path: Path) -> None:
    history = PromptHistory(str(tmp_path / "prompts.jsonl"))
    history.add("关于苹果的问题")
    prompt = PromptInput(Composer(), history, index(), lambda: COMMANDS)
    for key in (Key("ctrl-r"), Key("苹", "苹"), Key("果", "果")):
        prompt.press(key, 60)
    frame = lay_out(prompt.composer, Theme("mono"), (60, 24), menu=prompt.menu_lines(59, 6), menu_caret=prompt.menu_caret)
    row, column = frame.caret
    assert frame.rows[row].columns == column == len("search: ") + 4
    assert "关于苹果的问题" in frame.rows[row + 1].text


def test_no_key_of_a_list_is_parted_from_its_words() -> None:
    picker = Picker("Go on", [PickerItem("a", ("one",))], lambda key: None, keys="Enter goes on · ^X delete · ^E export")
    assert [plain(row) for row in picker.rows(24, 12)][-2:] == ["Enter goes on", "^X delete · ^E export"]
