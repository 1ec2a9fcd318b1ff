"""Listing and searching: quick, true to the files, and unharmed by whatever else lies there."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.graphemes import clusters, width_of
from dragoman.sessions.log import read_log
from dragoman.sessions.search_text import excerpt, fold, words_of
from dragoman.sessions.store import FileStore
from dragoman.sessions.transcript import read_transcript
from dragoman.values.messages import Text, ToolResult, assistant, user
from dragoman.values.notes import GREETING
from dragoman.values.record import About, ModelChanged, Said, Titled, ToolFinished
from dragoman.values.usage import Usage
from sessions.stores import NOW_MS, add, append, entries, opened, session_id, store, workspace

__all__ = ["opened", "store", "workspace"]


def index_file(store: FileStore) -> Path:
    return Path(store.root) / "index.sqlite"


def titles(store: FileStore, workspace: Path | None = None) -> list[str]:
    return [each.title for each in store.list(workspace)]


# Listing


def test_a_summary_tells_what_a_list_shows(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 7, f"{GREETING} Today is Sunday.", "hm", "Fix  the\nparser", "Done.")
    append(
        path, ToolFinished(7, NOW_MS, ToolResult("c", "read_file", (Text("result"),))), ModelChanged(8, NOW_MS + 9_000_000, "model-three")
    )
    (told,) = store.list(workspace)
    assert (told.session_id, told.path, told.workspace) == (session_id(7), str(path), str(workspace))
    assert (told.title, told.first_prompt) == ("Fix the parser", "Fix the parser")
    assert (told.started_ms, told.updated_ms) == (NOW_MS + 7_000_000, NOW_MS + 9_000_000)
    assert (told.messages, told.model, told.entries, told.size) == (3, "model-three", 8, path.stat().st_size)
    assert told.usage == Usage(20, 10, 0, 6)
    assert told.is_understood


@pytest.mark.parametrize("title", ["重构解析器", "إصلاح المحلل", "🚀 Ship it 👩🏽‍💻", "Исправить"])
def test_a_given_title_goes_before_the_prompt_in_any_script(store: FileStore, workspace: Path, title: str) -> None:
    path = add(store, workspace, 1, "some prompt", title=title)
    assert titles(store, workspace) == [title]
    append(path, Titled(9, NOW_MS, "another"))
    assert titles(store, workspace) == ["another"]
    append(path, Titled(10, NOW_MS, ""))
    assert titles(store, workspace) == ["some prompt"]


def test_the_session_used_last_comes_first(store: FileStore, workspace: Path) -> None:
    paths = [add(store, workspace, number) for number in (1, 2, 3)]
    assert titles(store, workspace) == ["Question 3", "Question 2", "Question 1"]
    append(paths[0], Said(5, NOW_MS + 99_000_000, user("back again"), by="person"))
    assert titles(store, workspace) == ["Question 1", "Question 3", "Question 2"]


def test_folders_have_lists_of_their_own_and_one_together(store: FileStore, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "my project2"
    other.mkdir()
    add(store, workspace, 1)
    add(store, other, 2)
    assert titles(store, workspace) == ["Question 1"]
    assert titles(store, other) == ["Question 2"]
    assert titles(store) == ["Question 2", "Question 1"]


def test_an_empty_store_has_no_sessions_and_makes_no_files(store: FileStore, workspace: Path) -> None:
    assert list(store.list()) == list(store.list(workspace)) == list(store.search("x")) == []
    assert not os.path.exists(store.root)


def test_a_second_list_of_a_thousand_sessions_opens_no_log(store: FileStore, workspace: Path, opened: list[str]) -> None:
    add(store, workspace, 0)
    first = Path(store.list(workspace)[0].path)
    lines = first.read_bytes()
    for number in range(1, 1000):
        first.with_name(f"{session_id(number)}.jsonl").write_bytes(lines)
    opened.clear()
    assert len(store.list(workspace)) == 1000
    assert len(opened) == 999
    opened.clear()
    assert len(FileStore(store.root).list(workspace)) == 1000
    assert opened == []


def test_only_what_changed_is_opened_and_only_its_new_lines_are_read(
    store: FileStore, workspace: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [add(store, workspace, number) for number in range(5)]
    store.list(workspace)
    opened.clear()
    append(paths[3], Said(5, NOW_MS, user("more"), by="person"), Said(6, NOW_MS, assistant("and more"), "m", Usage(1), by="model"))
    from dragoman.sessions import summary

    decoded: list[bytes] = []
    decode = summary.decode_line
    monkeypatch.setattr(summary, "decode_line", lambda line: decoded.append(line) or decode(line))
    told = {each.session_id: each for each in store.list(workspace)}[session_id(3)]
    assert opened == [f"{session_id(3)}.jsonl"]
    assert len(decoded) == 2
    assert (told.messages, told.entries, told.usage, told.title) == (4, 6, Usage(11, 5, 0, 3), "Question 3")


def test_a_line_that_is_being_written_counts_once_it_is_whole(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1)
    append(path, Said(5, NOW_MS, user("third"), by="person"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert [each.messages for each in store.list(workspace)] == [2]
    path.write_bytes(whole)
    (told,) = store.list(workspace)
    assert (told.messages, told.damaged) == (3, 0)


def test_a_log_that_was_replaced_is_read_anew(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1, "old words", "old answer")
    assert store.search("old")
    assert titles(store, workspace) == ["old words"]
    again = add(FileStore(str(store.root) + "2"), workspace, 1, "new words and many more of them", "new answer")
    path.write_bytes(again.read_bytes())  # same inode
    assert titles(store, workspace) == ["new words and many more of them"]
    assert store.search("old") == []
    assert len(store.search("new")) == 1


def test_a_deleted_log_leaves_the_list(store: FileStore, workspace: Path) -> None:
    paths = [add(store, workspace, number) for number in range(3)]
    store.list(workspace)
    paths[1].unlink()
    assert titles(store, workspace) == ["Question 2", "Question 0"]
    assert store.search("Question 1") == []


# Whatever else lies there


def test_foreign_and_damaged_files_do_not_break_the_list(store: FileStore, workspace: Path) -> None:
    good = add(store, workspace, 1, "the good one")
    folder = good.parent
    (folder / "notes.txt").write_text("hello")
    (folder / "backup.jsonl").write_bytes(good.read_bytes())
    (folder / f"{session_id(2)}.jsonl").write_bytes(b"")
    (folder / f"{session_id(3)}.jsonl").write_bytes(os.urandom(5000))
    (folder / f"{session_id(4)}.jsonl").write_bytes(b'{"type":"session","version":3}\n{"a":1}\n')
    (folder / f"{session_id(5)}.jsonl").mkdir()
    (folder / f"{session_id(6)}.jsonl").symlink_to(good)
    (folder / f"{session_id(7)}.jsonl").symlink_to(folder / "nowhere")
    os.mkfifo(folder / f"{session_id(8)}.jsonl")
    (folder / f"{session_id(9)}.jsonl").write_bytes(b"\0" * 1000 + b"\n" * 1000)
    (folder / "é\udcff.jsonl").touch()
    (Path(store.root) / "file-among-projects").touch()
    for _ in range(2):
        assert titles(store, workspace) == titles(store) == ["the good one"]
        assert [hit.summary.title for hit in store.search("good")] == ["the good one"]


def test_a_session_that_lost_lines_is_listed_and_says_so(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1, "prompt", "answer", "second", "third")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b"garbage\n", *lines[1:4], lines[4].replace(b"second", b"secomd"), *lines[5:]]))
    (told,) = store.list(workspace)
    assert (told.session_id, told.title, told.damaged, told.messages) == (session_id(1), "prompt", 2, 3)
    assert not told.is_understood


def test_a_line_in_the_wrong_place_counts_as_damage_as_it_does_for_readers(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1)
    append(path, Said(2, NOW_MS, user("from another writer"), by="person"), Said(5, NOW_MS, user("third"), by="person"))
    (told,) = store.list(workspace)
    assert (told.damaged, told.messages) == (len(store.read(path).damage), 3) == (1, 3)


def test_a_file_that_cannot_be_opened_is_left_out(store: FileStore, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, workspace, 1)
    bad = add(store, workspace, 2)
    from dragoman.sessions import summary

    open_file = summary.open_file

    def refusing(path: str, **options: Any) -> int:
        if path == str(bad):
            raise PermissionError(13, "Permission denied", path)
        return open_file(path, **options)

    monkeypatch.setattr(summary, "open_file", refusing)
    assert titles(store, workspace) == ["Question 1"]


@given(junk=st.lists(st.binary(max_size=80), max_size=6))
def test_any_bytes_among_the_lines_leave_the_rest(junk: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    store = FileStore(folder / "sessions")
    path = add(store, folder, 1, "the prompt", "the answer")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(piece.replace(b"\n", b"") + b"\n" + line for piece, line in zip([*junk, b"", b"", b""], lines, strict=False)))
    assert len(store.list(folder)) <= 1
    if len(junk) + 3 >= len(lines):
        assert titles(store, folder) == ["the prompt"]


# The table may be anything


@pytest.mark.parametrize("harm", ["missing", "garbage", "empty", "cut", "other version", "no tables", "bad rows", "a folder", "a link"])
def test_whatever_happened_to_the_index_the_list_is_true(store: FileStore, workspace: Path, tmp_path: Path, harm: str) -> None:
    for number in range(30):
        add(store, workspace, number, f"prompt {number} " + "x" * 2000)
    before = list(store.list(workspace))
    assert len(store.search("prompt 2")) == 12
    file = index_file(store)
    for end in ("-wal", "-shm"):
        Path(f"{file}{end}").unlink(missing_ok=True)
    match harm:
        case "missing":
            file.unlink()
        case "garbage":
            file.write_bytes(os.urandom(10_000))
        case "empty":
            file.write_bytes(b"")
        case "cut":
            file.write_bytes(file.read_bytes()[:5000])
        case "other version" | "no tables" | "bad rows":
            change = {
                "other version": "PRAGMA user_version=77",
                "no tables": "DROP TABLE sessions",
                "bad rows": "UPDATE sessions SET summary = x'7b', offset = 'x'",
            }
            table = sqlite3.connect(file)
            table.execute(change[harm])
            table.commit()
            table.close()
        case "a folder":
            file.unlink()
            file.mkdir()
        case "a link":
            file.unlink()
            (tmp_path / "elsewhere").touch()
            file.symlink_to(tmp_path / "elsewhere")
    assert list(store.list(workspace)) == before
    assert len(store.search("prompt 2")) == 12
    assert list(store.list(workspace)) == before
    if harm == "a link":
        assert (tmp_path / "elsewhere").read_bytes() == b""


def test_while_another_process_writes_the_index_the_list_is_true(
    store: FileStore, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, workspace, 1)
    store.list(workspace)
    add(store, workspace, 2)
    monkeypatch.setattr("dragoman.sessions.index._LOCKED_FOR_S", 0.0)
    other = sqlite3.connect(index_file(store), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    before = index_file(store).stat().st_ino
    assert titles(store, workspace) == ["Question 2", "Question 1"]
    assert len(store.search("Question")) == 2
    other.execute("ROLLBACK")
    other.close()
    assert index_file(store).stat().st_ino == before


def test_without_trigrams_search_still_finds(store: FileStore, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, workspace, 1, "修复解析器中的错误", "the answer")
    connect = sqlite3.connect

    class Old(sqlite3.Connection):
        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, factory=Old, **kwargs))
    assert [hit.seq for hit in store.search("解析器")] == [3]
    assert [hit.seq for hit in store.search("ANSWER")] == [4]
    store.delete(store.list(workspace)[0].path)


def test_the_index_is_for_the_user_alone(store: FileStore, workspace: Path) -> None:
    """SE02: whatever the umask."""
    before = os.umask(0)
    try:
        add(store, workspace, 1)
        store.search("Question")
        reader = sqlite3.connect(index_file(store))  # keeps the files beside it there
        reader.execute("SELECT * FROM sessions").fetchall()
        files = list(Path(store.root).rglob("*"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}
        reader.close()
    finally:
        os.umask(before)
    assert {name for name in modes if name.startswith("index")} >= {"index.sqlite", "index.sqlite-wal"}
    assert {mode for path, mode in zip(files, modes.values(), strict=True) if path.is_file()} == {0o600}


def test_sqlite_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, dragoman.sessions.store as s; s.FileStore('/nonexistent').list(); assert 'sqlite3' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Searching


SAID = {
    "chinese": "请帮我修复解析器中的错误，谢谢",
    "arabic": "اُكتُبْ لي برنامجاً يقرأ الملفّات",
    "emoji": "Ship it 🚀 now 👩🏽‍💻 with ❤️ please",
    "heart": "I ♥ it, العــربية too",
    "german": "Die Straße nach München ist GESPERRT",
    "russian": "Почини ёлку, пожалуйста",
    "hindi": "नमस्ते दुनिया, कोड ठीक करो",
    "korean": "파서의 오류를 고쳐 주세요",
    "code": 'print("100%_done") and \\n AND NOT "x" OR NEAR(a, b) *',
    "wide": "ＦＵＬＬ　ｗｉｄｔｈ",
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("解析器", "chinese"),
        ("解析", "chinese"),
        ("错", "chinese"),
        ("修复 谢谢", "chinese"),
        ("برنامجا", "arabic"),
        ("اكتب", "arabic"),
        ("الملفات", "arabic"),
        ("لي", "arabic"),
        ("🚀", "emoji"),
        ("👩🏽‍💻", "emoji"),
        ("❤", "emoji"),
        ("❤️", "emoji"),
        ("♥️", "heart"),
        ("العربية", "heart"),
        ("strasse", "german"),
        ("STRASSE", "german"),
        ("munchen", "german"),
        ("gesperrt münchen", "german"),
        ("елку", "russian"),
        ("ПОЧИНИ", "russian"),
        ("दुनिया", "hindi"),
        ("오류", "korean"),
        ("파서", "korean"),
        ("100%_done", "code"),
        ("%_", "code"),
        ('"x"', "code"),
        ("NEAR(a,", "code"),
        ("*", "code"),
        ("\\n", "code"),
        ("full width", "wide"),
    ],
)
def test_search_finds_in_any_script(store: FileStore, workspace: Path, query: str, found: str) -> None:
    for number, text in enumerate(SAID.values()):
        add(store, workspace, number, text, "…")
    assert [hit.summary.session_id for hit in store.search(query, workspace)] == [session_id(list(SAID).index(found))]


@pytest.mark.parametrize("query", ["", "  ", "\0", "nowhere", "解释器", "🛸", '"', "'; DROP TABLE sessions; --", "\ud800", "x" * 10_000])
def test_a_search_without_a_match_finds_nothing(store: FileStore, workspace: Path, query: str) -> None:
    add(store, workspace, 1, "hello", "world")
    assert store.search(query) == []


def test_search_looks_at_prompts_answers_and_titles_and_nowhere_else(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1, f"{GREETING} environment-word", "answer-word", "prompt-word", title="title-word")
    append(path, ToolFinished(9, NOW_MS, ToolResult("c", "read_file", (Text("result-word"),))))
    roles = {word: [hit.role for hit in store.search(f"{word}-word")] for word in ("prompt", "answer", "title", "environment", "result")}
    assert roles == {"prompt": ["user"], "answer": ["assistant"], "title": ["title"], "environment": [], "result": []}


@pytest.mark.parametrize("about", [about for about in get_args(About) if about])
def test_a_note_of_the_program_is_no_prompt(store: FileStore, workspace: Path, about: About) -> None:
    """It was found, counted, and could become the title."""
    path = add(store, workspace, 1, "Question", "Answer")
    [before] = store.list(workspace)
    append(path, Said(9, NOW_MS, user("Your last answer held note-words"), by="program", about=about))
    assert store.search("note-words") == []
    [after] = store.list(workspace)
    assert (after.title, after.messages) == (before.title, before.messages)


def test_an_imported_session_is_searched_and_named_by_the_persons_own_words(store: FileStore, workspace: Path) -> None:
    surroundings = "<environment_context>\n<cwd>/hidden-word</cwd>\n</environment_context>"
    head, *rest = entries(1, workspace, surroundings, "Hm.", f"{surroundings}\nFix the parser", "Done.")
    path = Path(store.add(workspace, [msgspec.structs.replace(head, imported_from="codex /x"), *rest]))
    [found] = store.list(workspace)
    assert (found.title, found.first_prompt) == ("Fix the parser", "Fix the parser")
    assert store.search("hidden-word") == []
    assert [hit.role for hit in store.search("parser")] == ["user"]
    append(path, Said(9, NOW_MS, user(f"{surroundings} And later"), by="person"))
    assert store.search("hidden-word") == [], "nor in what came after the first search"
    assert [hit.excerpt for hit in store.search("later")] == ["And later"]
    assert read_transcript(read_log(path).entries).first_prompt == "Fix the parser"


def test_a_hit_says_where_and_how_often(store: FileStore, workspace: Path) -> None:
    add(store, workspace, 1, "the needle", "no", "needle again", "a long answer " * 30 + "with the NEEDLE inside " + "and more " * 30)
    (hit,) = store.search("needle")
    assert (hit.matches, hit.seq, hit.role) == (3, 6, "assistant")
    assert hit.excerpt.startswith("…")
    assert hit.excerpt.endswith("…")
    assert "with the NEEDLE inside" in hit.excerpt


def test_words_may_stand_apart_but_in_one_message(store: FileStore, workspace: Path) -> None:
    add(store, workspace, 1, "alpha then beta", "gamma")
    assert len(store.search("beta alpha")) == 1
    assert store.search("alpha gamma") == []


def test_what_was_said_since_the_last_search_is_found(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1)
    assert store.search("later") == []
    append(path, Said(5, NOW_MS, user("said later"), by="person"))
    assert [hit.seq for hit in store.search("later")] == [5]
    store.list()
    append(path, Said(6, NOW_MS, user("said even later"), by="person"))
    store.list()
    assert [(hit.seq, hit.matches) for hit in store.search("later")] == [(6, 2)]


def test_search_keeps_to_a_folder_and_to_a_limit(store: FileStore, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    add(store, tmp_path / "other", 1, "needle")
    for number in range(2, 6):
        add(store, workspace, number, f"needle {number}")
    assert len(store.search("needle")) == 5
    assert [hit.summary.title for hit in store.search("needle", workspace, limit=2)] == ["needle 5", "needle 4"]


def test_deleting_a_session_leaves_nothing_of_it_in_the_index(store: FileStore, workspace: Path) -> None:
    """Also while another process has the index open, which keeps the files beside it there."""
    path = add(store, workspace, 1, "my password is xyzzy-plugh-1234 " + "filler " * 3000)
    add(store, workspace, 2, "something else")
    assert store.search("xyzzy")
    reader = sqlite3.connect(index_file(store))
    reader.execute("SELECT * FROM sessions").fetchall()
    assert b"xyzzy-plugh" in _bytes_of_the_index(store)
    store.delete(path)
    left = _bytes_of_the_index(store)
    reader.close()
    assert [part for part in (b"xyzzy", b"password", b"plu", b"-pl", b"rd ", b"fil") if part in left] == []
    assert len(store.search("something")) == 1


def _bytes_of_the_index(store: FileStore) -> bytes:
    return b"".join(file.read_bytes() for file in Path(store.root).glob("index.sqlite*"))


@given(st.text(max_size=200), st.data())
def test_any_part_of_a_text_is_found_in_it(text: str, data: st.DataObject) -> None:
    folded = fold(text)
    words = folded.split()
    if not words:
        assert words_of(text) == []
        return
    word = data.draw(st.sampled_from(words))
    assert all(each in folded for each in words_of(word))
    line = excerpt(text, [word])
    assert sum(map(width_of, clusters(line))) <= 100
    assert "\n" not in line


@given(st.text(max_size=200))
def test_folding_twice_changes_nothing_that_matters(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_an_excerpt_shows_the_place_in_any_script() -> None:
    text = "é" * 300 + " 你好世界 " + "ß" * 300
    assert "你好世界" in excerpt(text, ["好世"])
    assert "👩🏽‍💻" in excerpt("👩🏽‍💻 " * 3 + "needle", ["needle"])
