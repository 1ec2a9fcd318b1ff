"""Which folders are trusted: what a decision covers, and that nothing but a whole line of the file decides."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.policy.trust import TrustDecision, forget_decisions, is_too_wide, judge_folder, read_decisions, save_decision


def test_a_yes_covers_what_is_inside_and_a_no_the_folder_alone(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    top, sub = str(tmp_path), str(tmp_path / "a")
    yes, no = {top: TrustDecision(top, True)}, {top: TrustDecision(top, False)}
    assert judge_folder(str(inner), yes) == ("trusted", top)
    assert judge_folder(top, no) == ("refused", top)
    assert judge_folder(str(inner), no) == ("unasked", "")
    both = yes | {sub: TrustDecision(sub, False)}
    assert judge_folder(sub, both) == ("refused", sub)
    assert judge_folder(str(inner), both) == ("unasked", ""), "a no stands between it and the yes"
    assert judge_folder(f"{top}-evil", yes) == ("unasked", "")


def test_a_yes_ends_at_the_next_repository(tmp_path: Path) -> None:
    cloned = tmp_path / "cloned" / "src"
    cloned.mkdir(parents=True)
    (tmp_path / "cloned" / ".git").mkdir()
    yes = {str(tmp_path): TrustDecision(str(tmp_path), True)}
    assert judge_folder(str(cloned), yes) == ("unasked", "")
    assert judge_folder(str(tmp_path / "cloned"), yes) == ("unasked", "")


def test_home_what_holds_it_and_what_everybody_writes_to_are_too_wide(tmp_path: Path) -> None:
    home = tmp_path / "users" / "me"
    home.mkdir(parents=True)
    (home / "project").mkdir()
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for wide in ("/", str(home), str(home.parent), str(tmp_path), str(shared)):
        assert is_too_wide(wide, str(home)), wide
    assert not is_too_wide(str(home / "project"), str(home))
    link = tmp_path / "link"
    link.symlink_to(home)
    assert is_too_wide(str(home), str(link)), "the home folder by another name"


def test_the_last_decision_holds_and_is_taken_back(tmp_path: Path) -> None:
    file = str(tmp_path / "data" / "trust.jsonl")
    before = os.umask(0)
    try:
        save_decision(file, "/w", trusted=True)
        decision = save_decision(file, "/w", trusted=False)
    finally:
        os.umask(before)
    save_decision(file, "/v", trusted=True)
    assert {folder: each.trusted for folder, each in read_decisions(file).items()} == {"/w": False, "/v": True}
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode) == 0o700
    assert forget_decisions(file, {decision.id}) == [decision]
    assert list(read_decisions(file)) == ["/v"]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    file = tmp_path / "trust.jsonl"
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        save_decision(str(file), "/w", trusted=True)
    assert not (tmp_path / "elsewhere").exists()


def test_a_name_that_is_not_utf8_cannot_be_saved_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"multibyte|sequence"):
        save_decision(str(tmp_path / "trust.jsonl"), "/w\udcff", trusted=True)


def test_a_line_that_is_not_utf8_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "trust.jsonl"
    save_decision(str(file), "/a", trusted=True)
    file.write_bytes(file.read_bytes() + b'{"folder":"\x80"}\n')
    assert list(read_decisions(str(file))) == ["/a"]


@given(st.data())
def test_a_damaged_file_never_trusts_another_folder(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Cut anywhere, or with any bytes put in: what it trusts is one of what was said."""
    file = str(tmp_path_factory.mktemp("trust") / "trust.jsonl")
    said = {"/a": True, "/b": False, "/c d": True}
    for folder, trusted in said.items():
        save_decision(file, folder, trusted=trusted)
    whole = Path(file).read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    put_in = data.draw(st.binary(max_size=8).filter(lambda put: b"\n" not in put))
    Path(file).write_bytes(whole[:at] + put_in + b"\n" if data.draw(st.booleans()) else whole[:at])
    found = read_decisions(file)
    assert all(said.get(folder) == each.trusted for folder, each in found.items())
