"""edit: exact, or refused in words that help; line endings and encodings stay as they were."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import atomic
from dragoman.tools import replace
from dragoman.tools.edit import UNSEEN_NOTE
from dragoman.tools.replace import replace_text
from dragoman.tools.seen import WHOLE_FILE_BYTES
from dragoman.tools.textfile import to_lf
from dragoman.tools.workspace import ToolRefusal
from file_tools import Desk, done, refused, text_of


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "w")


def edit(desk: Desk, data: bytes | str, old: str, new: str, *, replace_all: bool = False) -> bytes:
    """What becomes of a file that was read and then edited."""
    path = desk.plant("a.txt", data)
    desk.run("read_file", file_path="a.txt")
    args = {"file_path": "a.txt", "old_string": old, "new_string": new, "replace_all": replace_all}
    intent = desk.intend("edit", **args)
    assert path.read_bytes() == (data.encode() if isinstance(data, str) else data)  # intending changes nothing
    output = desk.run("edit", **args)
    assert intent.problem == (text_of(output) if output.is_error else "")
    done(output)
    assert intent.writes == output.changed == (str(path),)
    return path.read_bytes()


def edit_refused(desk: Desk, data: bytes | str, old: str, new: str, error_type: str) -> str:
    path = desk.plant("a.txt", data)
    desk.run("read_file", file_path="a.txt")
    before = path.read_bytes()
    args = {"file_path": "a.txt", "old_string": old, "new_string": new}
    intent = desk.intend("edit", **args)
    message = refused(desk.run("edit", **args), error_type)
    assert (intent.title, intent.problem, intent.preview, intent.writes) == ("edit a.txt", message, "", ())
    assert path.read_bytes() == before
    return message


def test_one_occurrence_is_replaced_and_the_change_is_told_to_all(desk: Desk) -> None:
    desk.plant("src/a.py", "one\ntwo\nthree\n")
    desk.read("src/a.py")
    args = {"file_path": "src/a.py", "old_string": "two", "new_string": "2\n2b"}
    diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n"
    intent = desk.intend("edit", **args)
    assert (intent.title, intent.preview, intent.problem) == ("edit src/a.py", diff, "")
    output = desk.run("edit", **args)
    assert done(output) == "changed src/a.py (+2 -1 lines)"
    assert output.display == f"+2 -1 src/a.py\n{diff}".rstrip("\n")
    assert output.changed == (str(desk.root / "src" / "a.py"),)
    assert (desk.root / "src" / "a.py").read_text() == "one\n2\n2b\nthree\n"


def test_a_text_that_is_not_there_gets_the_nearest_lines(desk: Desk) -> None:
    message = edit_refused(desk, "alpha = 1\nbeta_value = compute(x)\ngamma\n", "beta_valu = compute(x)", "b", "not_found")
    assert message == "old_string was not found in a.txt; the nearest lines are:\nline 2: beta_value = compute(x)"
    assert "nor a line close to it" in edit_refused(desk, "alpha\n", "zzzzzz", "b", "not_found")
    message = edit_refused(desk, "def step_4(amount: int, rate: int = 7) -> int:\n", "def step_3(", "def x(", "not_found")
    assert message.endswith("the nearest lines are:\nline 1: def step_4(amount: int, rate: int = 7) -> int:")
    assert "whitespace alone" in edit_refused(desk, "alpha", "\n\n", "b", "not_found")


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ("def f():\n  return 1", "lines 1-2; copy it exactly:\ndef f():\n    return 1"),
        ("def f():\n    return 1\n\n\n", "lines 1-2; copy it exactly:\ndef f():\n    return 1"),
        ("return  1", "line 2; copy it exactly:\n    return 1"),
        ("\treturn 1", "line 2; copy it exactly:\n    return 1"),
    ],
)
def test_a_text_that_differs_in_whitespace_is_shown_as_it_is(desk: Desk, old: str, told: str) -> None:
    message = edit_refused(desk, "def f():\n    return 1\n", old, "x", "not_found")
    assert message == f"old_string was not found in a.txt: only whitespace differs from {told}"


def test_several_occurrences_are_ambiguous_and_their_lines_are_named(desk: Desk) -> None:
    message = edit_refused(desk, "x = 1\ny\nx = 1\n", "x = 1", "x = 2", "ambiguous")
    assert message == "old_string occurs 2 times (lines 1, 3) in a.txt: add lines around it, or set replace_all"
    assert "(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)" in edit_refused(desk, "a\n" * 30, "a", "b", "ambiguous")
    assert edit(desk, "x = 1\ny\nx = 1\n", "x = 1", "x = 2", replace_all=True) == b"x = 2\ny\nx = 2\n"


def test_occurrences_that_overlap_are_ambiguous_too(desk: Desk) -> None:
    edit_refused(desk, "\n\n\n", "\n\n", "\n", "ambiguous")
    assert edit(desk, "aaa", "aa", "b", replace_all=True) == b"ba"


def test_equal_strings_are_refused(desk: Desk) -> None:
    assert "nothing would change" in edit_refused(desk, "a", "a", "a", "no_change")


def test_too_many_occurrences_are_left_to_a_stream_editor(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace, "MAX_OCCURRENCES", 10)
    desk.plant("a.txt", "a" * 11)
    desk.read("a.txt")
    refused(desk.run("edit", file_path="a.txt", old_string="a", new_string="b", replace_all=True), "too_many")


def test_an_edit_applies_wherever_its_text_occurs_once_in_the_file_as_it_is_now(desk: Desk) -> None:
    path = desk.plant("a.txt", "one\n")
    assert done(desk.run("edit", file_path="a.txt", old_string="one", new_string="two")) == "changed a.txt (+1 -1 lines)"
    path.write_text("two\nby a formatter\n")
    args = {"file_path": "a.txt", "old_string": "two", "new_string": "three"}
    assert UNSEEN_NOTE not in desk.intend("edit", **args).preview  # of no use to the user
    assert done(desk.run("edit", **args)) == f"changed a.txt (+1 -1 lines)\n[{UNSEEN_NOTE}]"
    assert path.read_text() == "three\nby a formatter\n"


def test_changes_that_were_not_seen_are_told_once_and_keep_the_file_from_being_replaced(desk: Desk) -> None:
    path = desk.plant("a.txt", "one\ntwo\n")
    desk.read("a.txt")
    path.write_text("one\ntwo\nthree\n")
    assert UNSEEN_NOTE in done(desk.run("edit", file_path="a.txt", old_string="one", new_string="1"))
    assert UNSEEN_NOTE not in done(desk.run("edit", file_path="a.txt", old_string="two", new_string="2"))
    assert "changed since it was read" in refused(desk.run("write_file", file_path="a.txt", content="x"), "stale")
    path.write_text("1\n2\nthree\nfour\n")
    assert UNSEEN_NOTE in done(desk.run("edit", file_path="a.txt", old_string="three", new_string="3"))
    desk.read("a.txt")
    assert UNSEEN_NOTE not in done(desk.run("edit", file_path="a.txt", old_string="four", new_string="4"))
    done(desk.run("write_file", file_path="a.txt", content="x"))


def test_an_edit_is_made_anew_if_the_file_changes_while_it_is_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = desk.plant("a.txt", "one\n")
    real, written = atomic._write, list[bytes]()

    def interrupt(descriptor: int, data: bytes, stop: Any) -> None:
        real(descriptor, data, stop)
        written.append(data)
        if len(written) == 1:
            path.write_text("theirs\none\n")

    monkeypatch.setattr(atomic, "_write", interrupt)
    done(desk.run("edit", file_path="a.txt", old_string="one", new_string="two"))
    assert (written, path.read_text()) == ([b"two\n", b"theirs\ntwo\n"], "theirs\ntwo\n")


def test_an_empty_old_string_creates_a_file_and_only_that(desk: Desk) -> None:
    output = desk.run("edit", file_path="new/a.txt", old_string="", new_string="hello\n")
    assert done(output) == "created new/a.txt (+1 -0 lines)"
    assert output.display == "+1 -0 new/a.txt\n--- /dev/null\n+++ b/new/a.txt\n@@ -0,0 +1,1 @@\n+hello"
    refused(desk.run("edit", file_path="new/a.txt", old_string="", new_string="again"), "exists")
    assert (desk.root / "new" / "a.txt").read_text() == "hello\n"
    refused(desk.run("edit", file_path="gone.txt", old_string="x", new_string="y"), "not_found")


def test_binary_large_and_odd_files_are_refused(desk: Desk) -> None:
    edit_refused(desk, b"\x7fELF\0\0", "ELF", "x", "binary")
    edit_refused(desk, b"\xff\xfea", "a", "b", "binary")
    path = desk.plant("large", b"x\n" * 5000)
    os.truncate(path, WHOLE_FILE_BYTES + 1)
    desk.read("large")
    assert "10.0 MB" in refused(desk.run("edit", file_path="large", old_string="x", new_string="y"), "too_large")
    (desk.root / "dir").mkdir()
    refused(desk.run("edit", file_path="dir", old_string="x", new_string="y"), "is_directory")
    refused(desk.run("edit", file_path="../x", old_string="x", new_string="y"), "outside")
    refused(desk.run("edit", file_path="a.txt", old_string="x", new_string="\ud800"), "invalid")


# --- line endings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\ny", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "a\n", "", b"b\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"unix\ndos\r\nunix\n", "dos", "dos\nmore", b"unix\ndos\r\nmore\r\nunix\n"),
        (b"unix\ndos\r\nend\n", "unix", "unix\nmore", b"unix\nmore\ndos\r\nend\n"),
        (b"unix\ndos\r\nend", "end", "end\nmore", b"unix\ndos\r\nend\r\nmore"),
        (b"one line", "line", "a\r\nb", b"one a\r\nb"),
        (b"a\nb\n", "a\n", "a\r\n", b"a\r\nb\n"),
        (b"a\r\nb\r\n", "a\r\n", "a\n", b"a\nb\r\n"),
        (b"lone\rcr\r\n", "lone\rcr", "x\ry", b"x\ry\r\n"),
        (b"no newline at the end", "end", "END", b"no newline at the END"),
        (b"newline at the end\n", "end\n", "end", b"newline at the end"),
    ],
)
def test_line_endings_stay_as_they_are(desk: Desk, data: bytes, old: str, new: str, expected: bytes) -> None:
    assert edit(desk, data, old, new) == expected


def test_a_line_end_is_not_taken_apart(desk: Desk) -> None:
    edit_refused(desk, b"a\r\nb\r\n", "\n", "\r\n", "not_found")
    assert edit(desk, b"a\r\nb\nc\n", "\n", "\r\n", replace_all=True) == b"a\r\nb\r\nc\r\n"


UNITS = st.lists(st.sampled_from(["a", "b", "ab", " ", "é", "世", "\n", "\r\n", "\n\n"]), max_size=14).map("".join)
ENCODINGS = {"utf-8": b"", "utf-8-sig": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "latin-1": b""}


def encoded(text: str, encoding: str) -> bytes:
    return ENCODINGS[encoding] + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)


@given(text=UNITS, old=UNITS.filter(bool), new=UNITS)
def test_replacing_is_str_replace_with_line_ends_left_alone(text: str, old: str, new: str) -> None:
    if to_lf(old) == to_lf(new):
        return
    count = to_lf(text).count(to_lf(old))
    try:
        replaced = replace_text(text, old, new, replace_all=True, shown="a.txt")
    except ToolRefusal as error:
        assert (error.error_type, count) == ("not_found", 0)  # noqa: PT017
        return
    assert count > 0
    assert to_lf(replaced.text) == replaced.shown_new == to_lf(text).replace(to_lf(old), to_lf(new))
    if "\r\n" not in text and "\n" in text:
        assert "\r" not in replaced.text
    if "\n" not in text.replace("\r\n", "") and "\r\n" in text:
        assert "\n" not in replaced.text.replace("\r\n", "")


@given(
    before=UNITS,
    middle=UNITS,
    after=UNITS,
    old=st.sampled_from(["X", "X\nX", "X\n\nX"]),
    new=UNITS,
    ends=st.lists(st.booleans(), min_size=2),
)
def test_what_stands_around_a_replacement_is_untouched(before: str, middle: str, after: str, old: str, new: str, ends: list[bool]) -> None:
    """In a file of mixed line ends the old text is found however its lines end."""
    present = old
    for is_crlf in ends[:2]:
        present = present.replace("\n", "\r\0" if is_crlf else "\0", 1)
    present = present.replace("\0", "\n")
    text = f"{before}{present}{middle}{after}"
    replaced = replace_text(text, old, new, replace_all=False, shown="a.txt").text
    assert replaced.startswith(before)
    assert replaced.endswith(middle + after)
    assert to_lf(replaced[len(before) : len(replaced) - len(middle + after)]) == to_lf(new)


@given(text=UNITS, old=UNITS.filter(bool), new=UNITS, encoding=st.sampled_from(sorted(ENCODINGS)), replace_all=st.booleans())
def test_an_edited_file_keeps_its_encoding(
    tmp_path_factory: pytest.TempPathFactory, text: str, old: str, new: str, encoding: str, replace_all: bool
) -> None:
    if encoding == "latin-1":
        text, old, new = (each.replace("世", "ü") for each in (text + "ÿ", old, new))
    desk = Desk(tmp_path_factory.mktemp("encodings"))
    path = desk.plant("a.txt", encoded(text, encoding))
    desk.run("read_file", file_path="a.txt")
    output = desk.run("edit", file_path="a.txt", old_string=old, new_string=new, replace_all=replace_all)
    if output.is_error:
        assert output.error_type in {"not_found", "ambiguous", "no_change"}
        assert path.read_bytes() == encoded(text, encoding)
        return
    expected = replace_text(text, old, new, replace_all=replace_all, shown="a.txt").text
    assert path.read_bytes() == encoded(expected, encoding)


def test_what_an_encoding_cannot_hold_is_refused(desk: Desk) -> None:
    message = edit_refused(desk, b"caf\xe9\n", "café", "世", "encoding")
    assert message == "a.txt is encoded in cp1252, which has no '世': write it another way, or convert the file first"
    assert edit(desk, b"caf\xe9\n", "café", "naïve") == b"na\xefve\n"


def test_the_hint_is_quick_in_a_large_file(desk: Desk) -> None:
    text = "".join(f"line {number} of a file with many words in it\n" for number in range(200_000))
    with pytest.raises(ToolRefusal) as caught:
        replace_text(text, "lane 17 of a fyle with many words in it", "x", replace_all=False, shown="a.txt")
    assert "line 18: line 17 of a file" in caught.value.message


def test_a_control_character_in_a_change_is_shown_to_whoever_approves_it(desk: Desk) -> None:
    desk.plant("a.txt", "x\n")
    desk.read("a.txt")
    intent = desk.intend("edit", file_path="a.txt", old_string="x", new_string="a\u202eb\x1b[2Jc")
    assert "+a<U+202E>b<U+001B>[2Jc" in intent.preview
