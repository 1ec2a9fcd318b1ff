"""Several edits in one call, all or none; and text that is found though its quotes and spaces are other ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.edit_list import ALIKE_NOTE
from dragoman.tools.replace import replace_text
from file_tools import Desk, done, refused


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "w")


def several(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"file_path": "a.py", "edits": [{"old_string": old, "new_string": new, **more} for old, new in pairs]}


def test_several_edits_are_made_in_order_with_one_diff(desk: Desk) -> None:
    path = desk.plant("a.py", "one\ntwo\nthree\n")
    args = several(("one", "1"), ("1\ntwo", "1\n2"), ("three", "3"))
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n-three\n+3\n"
    intent = desk.intend("edit", **args)
    assert (intent.preview, intent.writes) == (diff, (str(path),))
    output = desk.run("edit", **args)
    assert (done(output), output.display) == ("changed a.py (+3 -3 lines)", f"+3 -3 a.py\n{diff}".rstrip("\n"))
    assert path.read_text() == "1\n2\n3\n"


def test_if_one_edit_fails_none_is_made_and_it_is_named_with_the_nearest_lines(desk: Desk) -> None:
    path = desk.plant("a.py", "def one():\n    return 1\n")
    args = several(("return 1", "return 2"), ("def won():", "def two():"), ("x", "y"))
    told = refused(desk.run("edit", **args), "not_found")
    assert told == (
        "edit 2 of 3 failed after the edits before it, so none was made: "
        "old_string was not found in a.py; the nearest lines are:\nline 1: def one():"
    )
    assert desk.intend("edit", **args).problem == told
    assert path.read_text() == "def one():\n    return 1\n"
    twice = several(("e", "E"), ("def", "DEF"))
    assert refused(desk.run("edit", **twice), "ambiguous").startswith("edit 1 of 2 failed, so none was made: old_string occurs 3 times")
    done(desk.run("edit", **several(("e", "E"), ("dEf", "DEF"), replace_all=True)))
    assert path.read_text() == "DEF onE():\n    rEturn 1\n"


def test_several_edits_may_begin_with_a_new_file(desk: Desk) -> None:
    assert done(desk.run("edit", **several(("", "one\ntwo\n"), ("two", "2")))) == "created a.py (+2 -0 lines)"
    assert (desk.root / "a.py").read_text() == "one\n2\n"
    refused(desk.run("edit", **several(("one", "1"), ("", "x"))), "invalid")
    desk.plant("empty.py")
    done(desk.run("edit", file_path="empty.py", old_string="", new_string="x\n"))


def test_both_forms_in_one_call_must_not_contradict_each_other(desk: Desk) -> None:
    path = desk.plant("a.py", "one\n")
    both = {"old_string": "two", "new_string": "2"}
    assert "not both" in refused(desk.run("edit", **several(("one", "1")), **both), "invalid")
    assert "old_string and new_string must be given, or edits" in refused(desk.run("edit", file_path="a.py"), "invalid")
    assert "new_string must be given" in refused(desk.run("edit", file_path="a.py", old_string="one", edits=[]), "invalid")
    done(desk.run("edit", **several(("one", "1")), old_string="", new_string=""))
    done(desk.run("edit", **several(("1", "one")), old_string="1", new_string="one"))
    assert path.read_text() == "one\n"


def test_several_edits_keep_line_endings(desk: Desk) -> None:
    path = desk.plant("a.py", b"one\r\ntwo\r\nthree\r\n")
    done(desk.run("edit", **several(("one\ntwo", "1\nnew\n2"), ("new\n2", "2"))))
    assert path.read_bytes() == b"1\r\n2\r\nthree\r\n"
    done(desk.run("edit", **several(("1\r\n", "1\n"), ("three", "3"))))
    assert path.read_bytes() == b"1\n2\r\n3\r\n"


# --- quotes and spaces that models do not write ----------------------------------------------------------------------------


def test_curly_quotes_and_hard_spaces_match_plain_ones_and_stay(desk: Desk) -> None:
    path = desk.plant("a.md", "She said “it’s 5\u00a0km” and left.\n“Fine”, he said.\n")
    told = done(desk.run("edit", file_path="a.md", old_string='said "it\'s 5 km" and left', new_string='said "it\'s 6 km" and "ran"'))
    assert told.endswith(f"[{ALIKE_NOTE}]")
    assert path.read_text() == 'She said “it’s 6\u00a0km” and "ran".\n“Fine”, he said.\n'


def test_plain_quotes_match_curly_ones_too_but_only_in_one_place(desk: Desk) -> None:
    path = desk.plant("a.md", "say 'one'\nsay “two”\nsay “two”\n")
    done(desk.run("edit", file_path="a.md", old_string="say ‘one’", new_string="say ‘1’"))
    assert path.read_text() == "say '1'\nsay “two”\nsay “two”\n"
    told = refused(desk.run("edit", file_path="a.md", old_string='say "two"', new_string="x", replace_all=True), "not_found")
    assert "line 2: say “two”" in told


@given(
    pieces=st.lists(st.sampled_from(["a", "b", " ", "“", "”", '"', "’", "'", "\u00a0", "\n"]), min_size=1, max_size=12),
    new=st.text(alphabet="ab \"'\n", max_size=12),
)
def test_whatever_is_alike_the_text_around_is_untouched_and_nothing_is_lost(pieces: list[str], new: str) -> None:
    plain = str.maketrans("“”’\u00a0", '""\' ')
    found = "".join(pieces)
    old = found.translate(plain)
    if old in ("", new) or old == found:
        return
    replaced = replace_text(f"<{found}>", f"<{old}>", f"<{new}>", replace_all=False, shown="a.txt")
    assert (replaced.text[0], replaced.text[-1], replaced.text[1:-1].translate(plain)) == ("<", ">", new)
