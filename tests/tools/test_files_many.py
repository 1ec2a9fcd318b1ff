"""read_many_files: paths and patterns, each file under its header, failures told one by one, all of it bounded."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools import pathglob
from dragoman.tools.files import MAX_CHARS
from dragoman.tools.pathglob import expand_braces, find_files, matches_name
from dragoman.tools.worker import Stopped, never_stop
from dragoman.values.messages import Blob
from file_tools import Desk, done, refused

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "w")
    for name in ("a.py", "b.py", "src/c.py", "src/deep/d.py", "src/deep/e.txt", ".git/config.py", "node_modules/m.py", "src/.hidden.py"):
        desk.plant(name, f"# {name}\n")
    return desk


def read(desk: Desk, *paths: str) -> str:
    return done(desk.run("read_many_files", paths=list(paths)))


def headers(text: str) -> list[str]:
    return [line[4:-4] for line in text.splitlines() if line.startswith("--- ")]


def test_each_file_stands_under_its_header_in_the_order_asked_for(desk: Desk) -> None:
    output = desk.run("read_many_files", paths=["b.py", "src/c.py", "b.py", str(desk.root / "a.py")])
    assert done(output) == "--- b.py ---\n# b.py\n\n--- src/c.py ---\n# src/c.py\n\n--- a.py ---\n# a.py\n"
    assert output.display == "3 files"
    assert all(desk.seen.has(str(desk.root / name)) for name in ("a.py", "b.py", "src/c.py"))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "b.py"]),
        ("**/*.py", ["a.py", "b.py", "src/c.py", "src/deep/d.py"]),
        ("src/**", ["src/c.py", "src/deep/d.py", "src/deep/e.txt"]),
        ("src/**/**/*.{py,txt}", ["src/c.py", "src/deep/d.py", "src/deep/e.txt"]),
        ("s?c/[a-c].py", ["src/c.py"]),
        ("*/deep/d.py", ["src/deep/d.py"]),
        ("src/.*.py", ["src/.hidden.py"]),
        (".git/*", [".git/config.py"]),
        ("./src/../*.py", ["a.py", "b.py"]),
        ("{a,b}.py", ["a.py", "b.py"]),
        ("[!a].py", ["b.py"]),
    ],
)
def test_patterns_find_files(desk: Desk, pattern: str, found: list[str]) -> None:
    assert headers(read(desk, pattern)) == found
    assert headers(read(desk, f"{desk.root}/{pattern}")) == found


def test_a_name_with_brackets_is_a_name_where_it_exists(desk: Desk) -> None:
    desk.plant("page[id].tsx", "page")
    assert read(desk, "page[id].tsx") == "--- page[id].tsx ---\npage"


def test_what_fails_is_told_and_the_rest_is_read(desk: Desk) -> None:
    desk.plant("blob", b"\x7fELF\0\0")
    desk.plant("empty")
    desk.plant("pic.png", PNG)
    output = desk.run("read_many_files", paths=["gone.py", "blob", "src", "../out", "a.py", "*.zig", "empty", "*.png", "x\0*"])
    text = done(output)
    assert "--- gone.py ---\n(not read: gone.py does not exist" in text
    assert "--- blob ---\n(not read: blob is a binary file" in text
    assert "--- src ---\n(not read: src is a directory" in text
    assert "--- ../out ---\n(not read: ../out is outside the workspace" in text
    assert "--- *.zig ---\n(not read: *.zig matches no file" in text
    assert "--- pic.png ---\n(not read: image/png, 48 bytes: look at it with read_file" in text
    assert "--- a.py ---\n# a.py\n" in text
    assert "--- empty ---\n(the file is empty)" in text
    assert output.display == "2 files read, 7 not"


def test_it_is_an_error_only_if_nothing_could_be_read(desk: Desk) -> None:
    message = refused(desk.run("read_many_files", paths=["gone.py", "*.zig"]), "not_found")
    assert "gone.py does not exist" in message
    refused(desk.run("read_many_files", paths=["../x"]), "outside")
    assert desk.intend("read_many_files", paths=["../x"]).problem
    assert not desk.intend("read_many_files", paths=["../x", "a.py"]).problem


def test_pictures_named_themselves_are_shown(desk: Desk) -> None:
    desk.plant("a.png", PNG)
    output = desk.run("read_many_files", paths=["a.png", "a.py"])
    assert done(output).startswith("--- a.png ---\n(image/png, 48 bytes: picture 1 below)\n--- a.py ---")
    assert isinstance(output.content[1], Blob)


def test_the_whole_is_bounded_and_every_file_gets_its_share(desk: Desk) -> None:
    for number in range(10):
        desk.plant(f"big/{number}.txt", "".join(f"{number} {line}\n" for line in range(10_000)))
    text = read(desk, "big/*.txt")
    assert len(text) <= MAX_CHARS
    assert len(headers(text)) == 10
    assert text.count("go on with offset=") == 10
    desk.plant("wide.txt", f"{'x' * 500}\n" * 1000)
    short_first = read(desk, "a.py", "wide.txt")
    assert len(short_first) > 0.9 * MAX_CHARS


def test_files_there_is_no_room_for_are_counted(desk: Desk) -> None:
    for number in range(400):
        desk.plant(f"many/{number:03}.txt", "x" * 300)
    output = desk.run("read_many_files", paths=["many/*", *(f"gone{number}" for number in range(500))])
    text = done(output)
    assert len(text) <= MAX_CHARS
    read_count = int(output.display.split()[0])
    assert output.display == f"{read_count} files read, {900 - read_count} not"
    assert "no room for" in text


def test_links_out_of_the_workspace_are_not_followed_by_patterns(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "w-evil").mkdir()
    (tmp_path / "w-evil" / "s.py").write_text("secret")
    (desk.root / "evil").symlink_to(tmp_path / "w-evil")
    (desk.root / "s.py").symlink_to(tmp_path / "w-evil" / "s.py")
    for pattern in ("**/s.py", "evil/*.py", "*/s.py", "../w-evil/*", "**/../w-evil/*", f"{tmp_path}/*/s.py"):
        assert "secret" not in repr(desk.run("read_many_files", paths=[pattern]))


def test_a_walk_too_wide_stops_and_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pathglob, "MAX_SCANNED", 6)
    text = read(desk, "**/*")
    assert headers(text)
    assert "the search was too wide and stopped early" in text
    monkeypatch.setattr(pathglob, "MAX_SCANNED", 50_000)
    monkeypatch.setattr(pathglob, "MAX_SECONDS", -1.0)
    assert not find_files(desk.workspace, "**/*.py", never_stop).is_complete


def test_a_walk_ends_when_it_is_told_to(desk: Desk) -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        find_files(desk.workspace, "**/*.py", stop)


# --- patterns ------------------------------------------------------------------------------------------------------------


@given(name=st.text("abA.]-^!", max_size=8), pattern=st.text("abA.*?[]-^!", max_size=8))
def test_names_match_as_fnmatch_has_it(name: str, pattern: str) -> None:
    if (name.startswith(".") and not pattern.startswith(".")) or "[^" in pattern:
        return
    # An empty range such as [b-a] matches nothing in both; fnmatch is the oracle for all else.
    assert matches_name(name, pattern) == fnmatch.fnmatchcase(name, pattern)


def test_a_hostile_pattern_comes_to_an_end() -> None:
    """Trying every way to share out the stars would take longer than the world has stood."""
    assert not matches_name("a" * 250, "*a" * 60 + "b")


def test_braces_are_expanded_and_bounded() -> None:
    assert expand_braces("a.{b,c}") == ["a.b", "a.c"]
    assert sorted(expand_braces("{a,b{c,d}}")) == ["a", "a", "bc", "bd"]
    assert expand_braces("{a") == ["{a"]
    assert expand_braces("}{") == ["}{"]
    assert expand_braces("{}") == [""]
    assert len(expand_braces("{a,b}" * 30)) <= pathglob.MAX_ALTERNATIVES


@given(st.text("ab/*?[]{},.~\\", max_size=12))
def test_no_pattern_breaks_the_walk_or_leaves_the_workspace(tmp_path_factory: pytest.TempPathFactory, pattern: str) -> None:
    desk = Desk(tmp_path_factory.mktemp("globs") / "w")
    desk.plant("a/b/a.b", "inside")
    (desk.root.parent / "a").write_text("secret")
    (desk.root / "b").symlink_to("..")
    assert "secret" not in repr(desk.run("read_many_files", paths=[pattern]))
    assert os.path.isdir(desk.root)
