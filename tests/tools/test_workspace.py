"""Paths of the model's: inside the workspace, as they really are, or refused in one line that says what to do."""

from __future__ import annotations

import os
import re
import string
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import beneath
from dragoman.tools.names import escape_name, unescape_name
from dragoman.tools.workspace import PathRefusal, Workspace
from file_tools import Desk, refused, text_of

SECRET = "the secret of the neighbour"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A workspace `w` and beside it `w-evil`, whose name begins alike."""
    evil = tmp_path / "w-evil"
    evil.mkdir()
    (evil / "secret.txt").write_text(SECRET)
    (evil / "out.txt").write_text("as it was")
    desk = Desk(tmp_path / "w")
    (desk.root / "link").symlink_to(evil / "out.txt")
    (desk.root / "d").symlink_to(evil)
    return desk


def refusal(workspace: Workspace, path: str, *, writing: bool = False) -> PathRefusal:
    with pytest.raises(PathRefusal) as caught:
        workspace.resolve(path, writing=writing)
    assert "\n" not in caught.value.message
    return caught.value


def test_relative_paths_are_relative_to_the_root_and_absolute_ones_may_lie_inside(desk: Desk) -> None:
    inside = str(desk.root / "src" / "a.py")
    assert desk.workspace.resolve("src/a.py") == inside
    assert desk.workspace.resolve("./src/../src//a.py") == inside
    assert desk.workspace.resolve(inside) == inside
    assert desk.workspace.resolve(".") == str(desk.root)
    assert desk.workspace.display_path(inside) == "src/a.py"
    assert desk.workspace.display_path(str(desk.root)) == "."


@pytest.mark.parametrize(
    "path", ["..", "../w-evil/secret.txt", "/etc/passwd", "/", "src/../../x", "/proc/self/cwd/../x", "/proc/self/root/etc"]
)
def test_what_lies_outside_is_refused_with_what_to_do(desk: Desk, path: str) -> None:
    error = refusal(desk.workspace, path)
    assert error.error_type == "outside"
    assert "let you work in that directory too" in error.message


def test_a_sibling_whose_name_begins_alike_is_outside(desk: Desk) -> None:
    assert refusal(desk.workspace, str(desk.root) + "-evil/secret.txt").error_type == "outside"
    assert refusal(desk.workspace, str(desk.root) + "-evil").error_type == "outside"


def test_links_are_resolved_also_those_of_parents_of_what_does_not_exist_yet(desk: Desk) -> None:
    assert "w-evil" in refusal(desk.workspace, "link").message  # the real target is told
    assert refusal(desk.workspace, "d/not/yet/there.txt", writing=True).error_type == "outside"
    (desk.root / "real").mkdir()
    (desk.root / "alias").symlink_to("real")
    assert desk.workspace.resolve("alias/new.txt", writing=True) == str(desk.root / "real" / "new.txt")


def test_a_workspace_reached_through_a_link_is_its_real_self(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    workspace = Workspace(tmp_path / "alias")
    assert workspace.root == os.path.realpath(tmp_path / "real")
    assert workspace.resolve(str(tmp_path / "alias" / "a.txt")) == os.path.join(workspace.root, "a.txt")


def test_included_directories_are_read_and_written_readable_ones_only_read(tmp_path: Path) -> None:
    for name in ("w", "more", "spill"):
        (tmp_path / name).mkdir()
    (tmp_path / "spill" / "1.txt").write_text("the whole output")
    desk = Desk(tmp_path / "w", include=[str(tmp_path / "more")], readable=[str(tmp_path / "spill")])
    assert desk.run("write_file", file_path=str(tmp_path / "more" / "a.txt"), content="x").changed == (str(tmp_path / "more" / "a.txt"),)
    assert desk.read(str(tmp_path / "spill" / "1.txt")) == "the whole output"
    assert refusal(desk.workspace, str(tmp_path / "spill" / "1.txt"), writing=True).error_type == "read_only"
    refused(desk.run("write_file", file_path=str(tmp_path / "spill" / "1.txt"), content="x"), "read_only")
    assert refusal(desk.workspace, str(tmp_path)).error_type == "outside"


def test_a_path_with_nul_or_no_path_at_all_is_refused(desk: Desk) -> None:
    assert refusal(desk.workspace, "a\0b").error_type == "invalid"
    assert refusal(desk.workspace, "").error_type == "invalid"
    assert refusal(desk.workspace, "a\ud800b").error_type == "invalid"
    assert refusal(desk.workspace, "../" + "\n" * 5).error_type == "outside"


def test_the_home_directory_is_reached_by_a_tilde_where_it_is_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    workspace = Workspace(tmp_path / "project")
    assert workspace.resolve("~/project/a.txt") == str(tmp_path / "project" / "a.txt")
    assert refusal(workspace, "~/.ssh/id").error_type == "outside"
    assert refusal(workspace, "~").error_type == "outside"
    assert workspace.resolve("~other") == str(tmp_path / "project" / "~other")
    assert workspace.display_path(str(tmp_path / "project" / "~" / "x")) == "./~/x"
    assert workspace.resolve("./~/x") == str(tmp_path / "project" / "~" / "x")


def test_links_in_a_circle_and_names_too_long_end_in_a_message(desk: Desk) -> None:
    (desk.root / "a").symlink_to("b")
    (desk.root / "b").symlink_to("a")
    refused(desk.run("read_file", file_path="a"), "symlink")
    refused(desk.run("write_file", file_path="a", content="x"), "symlink")
    refused(desk.run("read_file", file_path="x" * 5000), "invalid")
    refused(desk.run("write_file", file_path="x" * 300, content="x"), "invalid")


# --- corpora/security_dev.jsonl ------------------------------------------------------------------------------------------


def calls_of(corpora: Path, case: str, desk: Desk) -> list[tuple[str, str]]:
    """The tool and path of each call in a case's action, moved to where the test's workspace lies."""
    rows = [msgspec.json.decode(line) for line in (corpora / "security_dev.jsonl").read_bytes().splitlines()]
    action = next(row["action"] for row in rows if row["id"] == case)
    found = re.findall(r"(read_file|write_file|edit) '([^']+)'", action)
    return [(tool, path.replace("/tmp/w", str(desk.root))) for tool, path in found]


def test_fs01_what_lies_outside_is_never_read(desk: Desk, corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.root)
    calls = calls_of(corpora, "FS01", desk)
    assert len(calls) == 3
    for tool, path in calls:
        output = desk.run(tool, file_path=path)
        assert SECRET not in repr(output)
        refused(output, "outside")
        assert desk.intend(tool, file_path=path).problem == text_of(output)
        assert desk.run("read_many_files", paths=[path]).error_type == "outside"


def test_fs02_nothing_is_written_through_a_link(desk: Desk, corpora: Path, tmp_path: Path) -> None:
    calls = calls_of(corpora, "FS02", desk)
    assert len(calls) == 3
    for tool, path in calls:
        args: dict[str, Any] = {"content": "pwned"} if tool == "write_file" else {"old_string": SECRET, "new_string": "pwned"}
        message = refused(desk.run(tool, file_path=path, **args), "outside")
        assert "w-evil" in message
        intent = desk.intend(tool, file_path=path, **args)
        assert (intent.problem, intent.writes) == (message, ())
    assert sorted(os.listdir(tmp_path / "w-evil")) == ["out.txt", "secret.txt"]
    assert (tmp_path / "w-evil" / "out.txt").read_text() == "as it was"
    assert (tmp_path / "w-evil" / "secret.txt").read_text() == SECRET


# --- whatever the path ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    base = tmp_path_factory.mktemp("planted")
    evil = base / "w-evil"
    (evil / "deep").mkdir(parents=True)
    for place in (evil, evil / "deep", base):
        (place / "secret.txt").write_text(SECRET)
    desk = Desk(base / "w")
    desk.plant("sub/in.txt", "inside")
    desk.plant("sub/secret.txt", "inside")
    for name, target in [
        ("evil", "../w-evil"),
        ("up", ".."),
        ("self", "."),
        ("sub/root", "/"),
        ("sub/back", "../sub"),
        ("out", str(evil / "secret.txt")),
        ("dangling", "../w-evil/new.txt"),
        ("loop", "loop"),
        ("chain", "sub/back/../../evil"),
    ]:
        (desk.root / name).symlink_to(target)
    return desk


PARTS = st.sampled_from(
    [
        "..",
        ".",
        "",
        "sub",
        "evil",
        "up",
        "self",
        "root",
        "back",
        "out",
        "dangling",
        "loop",
        "chain",
        "w",
        "w-evil",
        "deep",
        "secret.txt",
        "in.txt",
        "new",
    ]
)
SPELLINGS = st.one_of(
    st.lists(PARTS, max_size=8).map("/".join),
    st.lists(PARTS, max_size=6).map(lambda parts: "ROOT/" + "/".join(parts)),
    st.lists(PARTS, max_size=4).map(lambda parts: "/proc/self/cwd/" + "/".join(parts)),
    st.text(alphabet=string.printable + "~\\\0é\u202e", max_size=20),
)


@given(spelling=SPELLINGS, writing=st.booleans())
def test_no_path_resolves_to_the_outside(planted: Desk, spelling: str, writing: bool) -> None:
    path = spelling.replace("ROOT", str(planted.root))
    real = os.path.realpath(os.path.join(planted.root, path)) if "\0" not in path else ""
    is_inside = real == str(planted.root) or real.startswith(f"{planted.root}/")
    is_plain = bool(path) and "\\" not in path and not path.startswith("~")
    try:
        resolved = planted.workspace.resolve(path, writing=writing)
    except PathRefusal:
        assert not (is_inside and is_plain)
        return
    assert resolved == str(planted.root) or resolved.startswith(f"{planted.root}/")
    if is_plain:
        assert is_inside
        assert resolved == real
    assert SECRET not in repr(planted.run("read_file", file_path=path))


@pytest.mark.parametrize("by_descriptor", [True, False])
def test_a_link_that_comes_between_check_and_use_is_not_followed(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_descriptor: bool
) -> None:
    monkeypatch.setattr(beneath, "BY_DESCRIPTOR", by_descriptor)
    desk.plant("x/secret.txt", "inside")
    path = desk.workspace.resolve("x/secret.txt")
    (desk.root / "x").rename(desk.root / "y")
    (desk.root / "x").symlink_to(tmp_path / "w-evil")
    with pytest.raises(PathRefusal), desk.workspace.open_file(path):
        pytest.fail("opened a file outside")
    with pytest.raises(PathRefusal), desk.workspace.directory(os.path.dirname(path), create=True):
        pytest.fail("opened a directory outside")


# --- names ---------------------------------------------------------------------------------------------------------------

NAMES = st.one_of(
    st.binary(min_size=1, max_size=20).map(lambda data: os.fsdecode(data.replace(b"\0", b"").replace(b"/", b"") or b"x")),
    st.text(alphabet="ab\\xnut\n\t 09-~é\u200b\u202e\x7f\x85", min_size=1, max_size=10),
)


@given(name=NAMES)
def test_a_name_shown_is_one_line_of_valid_unicode_and_leads_back(name: str) -> None:
    shown = escape_name(name)
    shown.encode()
    assert shown.isprintable()
    assert shown == shown.strip()
    assert unescape_name(shown) == name


@given(name=NAMES)
def test_a_file_of_any_name_is_listed_and_read_under_the_name_shown(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    if name in (".", "..") or len(os.fsencode(name)) > 200:
        return
    desk = Desk(tmp_path_factory.mktemp("names"))
    (desk.root / name).write_text("found")
    listed = text_of(desk.run("list_directory")).removesuffix("  5 bytes")
    assert listed.isprintable()
    assert not listed.startswith(("-", "~/"))
    assert desk.read(listed) == "found"
    assert desk.read(desk.workspace.display_path(str(desk.root / name))) == "found"


def test_a_new_file_goes_into_a_directory_named_as_it_was_shown(desk: Desk) -> None:
    odd = os.fsdecode(b"caf\xe9")
    (desk.root / odd).mkdir()
    assert desk.run("write_file", file_path="caf\\xe9/new.txt", content="x").changed == (str(desk.root / odd / "new.txt"),)
    assert desk.run("write_file", file_path="plain\\xe9.txt", content="x").changed == (str(desk.root / "plain\\xe9.txt"),)
