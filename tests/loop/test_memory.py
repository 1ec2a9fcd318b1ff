"""Memory files: found in the user's folder and from the project's root down, imports put in, nothing read that should not be."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.loop import memory
from dragoman.loop.memory import MAX_BYTES, MAX_DEPTH, MAX_FILE_BYTES, MAX_IMPORTS, Memory, load_memory
from dragoman.tools import save_memory


class Home:
    """A project with a user's folder beside it."""

    def __init__(self, root: Path) -> None:
        self.user, self.project = root / "config", root / "project"
        (self.project / ".git").mkdir(parents=True)
        self.user.mkdir()

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def recall(self, folder: str = ".", *, trusted: bool = True) -> Memory:
        return load_memory(str(self.project / folder), str(self.user), trusted=trusted)

    def texts(self, folder: str = ".") -> dict[str, str]:
        found = self.recall(folder)
        assert found.problems == ()
        return dict(found.files)

    def refused(self) -> list[tuple[str, str, str]]:
        return [(problem.kind, problem.path, problem.by) for problem in self.recall().problems]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# --- where they are found ------------------------------------------------------------------------------------------------


def test_the_users_own_come_first_then_from_the_root_down(home: Home) -> None:
    (home.user / "DRAGOMAN.md").write_text("user")
    home.write("CLAUDE.md", "root, last")
    home.write("AGENTS.md", "root, first")
    home.write("a/GEMINI.md", "between")
    home.write("a/b/AGENTS.md", "here")
    home.write("a/b/c/AGENTS.md", "below")
    assert list(home.texts("a/b").items()) == [
        (str(home.user / "DRAGOMAN.md"), "user"),
        ("../../AGENTS.md", "root, first"),
        ("../../CLAUDE.md", "root, last"),
        ("../GEMINI.md", "between"),
        ("AGENTS.md", "here"),
    ]


def test_without_a_repository_only_the_folder_itself_counts(home: Home) -> None:
    (home.project / ".git").rmdir()
    home.write("AGENTS.md", "above")
    home.write("a/AGENTS.md", "here")
    assert home.texts("a") == {"AGENTS.md": "here"}


def test_a_worktree_is_a_project_too(home: Home) -> None:
    home.write("AGENTS.md", "above")
    home.write("tree/.git", "gitdir: elsewhere")
    home.write("tree/AGENTS.md", "here")
    assert home.texts("tree") == {"AGENTS.md": "here"}


def test_an_untrusted_project_is_named_and_not_opened(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """ARCHITECTURE 9: nothing found in a folder is believed before it is trusted. The user's own is the user's own."""
    (home.user / "AGENTS.md").write_text("mine")
    home.write("CLAUDE.md", "Obey.")
    home.write("a/AGENTS.md", "@../../config/secret.md")
    opened: list[str] = []
    bytes_of = memory._bytes_of
    monkeypatch.setattr(memory, "_bytes_of", lambda real, base: (opened.append(real), bytes_of(real, base))[1])
    found = home.recall("a", trusted=False)
    assert found == Memory(((str(home.user / "AGENTS.md"), "mine"),), ("../CLAUDE.md", "AGENTS.md"))
    assert opened == [str(home.user / "AGENTS.md")]


def test_a_link_and_a_copy_are_told_once(home: Home) -> None:
    home.write("AGENTS.md", "Be kind.")
    (home.project / "CLAUDE.md").symlink_to("AGENTS.md")
    home.write("GEMINI.md", "\ufeffBe kind.\n\n")
    os.link(home.project / "AGENTS.md", home.project / "DRAGOMAN.md")
    assert home.texts() == {"AGENTS.md": "Be kind."}


def test_a_file_that_only_points_to_another_says_nothing_of_its_own(home: Home) -> None:
    home.write("AGENTS.md", "Be kind.")
    home.write("CLAUDE.md", "@AGENTS.md\n")
    home.write("GEMINI.md", "@AGENTS.md\nAnd brief.")
    assert home.texts() == {"AGENTS.md": "Be kind.", "GEMINI.md": "[told elsewhere: AGENTS.md]\nAnd brief."}


def test_an_empty_file_is_passed_over(home: Home) -> None:
    home.write("AGENTS.md", " \n\n")
    assert home.texts() == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [(b"\xff\xfe\xff", "not_text"), (b"x" * (MAX_FILE_BYTES + 1), "too_long")],
)
def test_what_cannot_be_used_is_told(home: Home, text: bytes, kind: str) -> None:
    home.write("AGENTS.md", text)
    home.write("CLAUDE.md", "fine")
    found = home.recall()
    assert [(problem.kind, problem.path) for problem in found.problems] == [(kind, "AGENTS.md")]
    assert found.files == (("CLAUDE.md", "fine"),)


def test_what_is_no_file_is_told_and_never_waited_for(home: Home) -> None:
    (home.project / "AGENTS.md").mkdir()
    os.mkfifo(home.project / "CLAUDE.md")
    (home.project / "GEMINI.md").symlink_to("gone")
    (home.project / "DRAGOMAN.md").symlink_to("DRAGOMAN.md")
    assert {(kind, path) for kind, path, _ in home.refused()} >= {
        ("no_file", "AGENTS.md"),
        ("no_file", "CLAUDE.md"),
        ("missing", "GEMINI.md"),
    }
    assert len(home.refused()) == 4


def test_a_projects_file_stays_in_the_project_and_a_users_may_be_a_link(home: Home, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.md").write_text("elsewhere")
    (home.project / "AGENTS.md").symlink_to(tmp_path / "dotfiles.md")
    assert home.refused() == [("outside", "AGENTS.md", "")]
    (home.project / "AGENTS.md").unlink()
    (home.user / "DRAGOMAN.md").symlink_to(tmp_path / "dotfiles.md")
    assert home.texts() == {str(home.user / "DRAGOMAN.md"): "elsewhere"}


def test_all_together_are_bounded(home: Home) -> None:
    for at, name in enumerate(("AGENTS.md", "DRAGOMAN.md", "GEMINI.md", "CLAUDE.md")):
        home.write(name, f"{at}" * MAX_FILE_BYTES)
    found = home.recall()
    assert sum(len(text) for _, text in found.files) <= MAX_BYTES
    assert [problem.kind for problem in found.problems] == ["too_much", "too_much"]


# --- imports -------------------------------------------------------------------------------------------------------------


def test_an_import_takes_the_place_of_its_line_or_follows_it(home: Home) -> None:
    home.write("docs/style.md", "Short lines.\n")
    home.write("docs/my notes.txt", "Notes.")
    home.write("README", "About.")
    home.write("AGENTS.md", "Style:\n@docs/style.md\nSee @README, and\n- @docs/my\\ notes.txt\nEnd.")
    assert home.texts()["AGENTS.md"].split("\n") == [
        *("Style:", "[docs/style.md says:]", "Short lines.", "[end of docs/style.md]"),
        *("See @README, and", "[README says:]", "About.", "[end of README]"),
        *("- @docs/my\\ notes.txt", "[docs/my notes.txt says:]", "Notes.", "[end of docs/my notes.txt]"),
        "End.",
    ]


def test_imports_are_relative_to_the_file_that_names_them(home: Home) -> None:
    home.write("docs/a.md", "@b.md")
    home.write("docs/b.md", "@../c.md")
    home.write("c.md", "deep")
    home.write("AGENTS.md", "@./docs/a.md")
    assert "deep" in home.texts()["AGENTS.md"]
    (home.user / "AGENTS.md").write_text("@mine.md")
    (home.user / "mine.md").write_text("of the user's")
    assert "of the user's" in home.texts()[str(home.user / "AGENTS.md")]


@pytest.mark.parametrize(
    "text",
    [
        "mail me@x.md",
        "`@x.md`",
        "``a ` @x.md``",
        "```\n@x.md\n```",
        "~~~md\n```\n@x.md\n~~~",
        "a\n   ````\n```\n@x.md\n````",
        "\\@x.md",
        "@ x.md",
        "(@x.md)",
        "@types/node @alice @",
        "@docs",
    ],
)
def test_what_is_no_import_stays_as_it_is(home: Home, text: str) -> None:
    home.write("x.md", "IMPORTED")
    home.write("docs/y.md", "")
    home.write("AGENTS.md", text)
    assert home.texts() == {"AGENTS.md": text}


@pytest.mark.parametrize("text", ["` @x.md", "`code` @x.md `code`", "```\ncode\n```\n@x.md.", "a @x.md, b", "\t@x.md", "~~\n@x.md"])
def test_what_is_one_is_found(home: Home, text: str) -> None:
    home.write("x.md", "IMPORTED")
    home.write("AGENTS.md", text)
    assert "IMPORTED" in home.texts()["AGENTS.md"]


def test_circles_are_refused_where_they_stand(home: Home) -> None:
    home.write("AGENTS.md", "one\n@b.md\nend")
    home.write("b.md", "two\n@AGENTS.md\n@b.md")
    assert home.refused() == [("circle", "AGENTS.md", "b.md"), ("circle", "b.md", "b.md")]
    text = dict(home.recall().files)["AGENTS.md"]
    assert text.split("\n")[:5] == [
        "one",
        "[b.md says:]",
        "two",
        *(f"[{name} is not put in here: it would go round in a circle]" for name in ("AGENTS.md", "b.md")),
    ]


def test_imports_go_five_deep(home: Home) -> None:
    for depth in range(8):
        home.write(f"f{depth}.md", f"depth {depth}\n@f{depth + 1}.md")
    home.write("AGENTS.md", "@f1.md")
    text = dict(home.recall().files)["AGENTS.md"]
    assert f"depth {MAX_DEPTH}" in text
    assert f"depth {MAX_DEPTH + 1}" not in text
    assert home.refused() == [("too_deep", "f6.md", "f5.md")]


@pytest.mark.parametrize(
    "name", ["../secret.md", "{outside}/secret.md", "~/secret.md", "docs/../../secret.md", "link.md", "folder/secret.md"]
)
def test_nothing_outside_is_imported(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "secret.md").write_text("SECRET")
    (home.project / "link.md").symlink_to(tmp_path / "secret.md")
    (home.project / "folder").symlink_to(tmp_path)
    name = name.format(outside=tmp_path)
    home.write("AGENTS.md", f"@{name}\nRest.")
    found = home.recall()
    assert found.files == (("AGENTS.md", f"[{name} is not put in here: it lies outside of what may be read here]\nRest."),)
    assert home.refused() == [("outside", name, "AGENTS.md")]


def test_a_users_import_stays_in_the_users_folder(home: Home) -> None:
    home.write("x.md", "of the project")
    (home.user / "AGENTS.md").write_text("@../project/x.md")
    assert home.refused() == [("outside", "../project/x.md", str(home.user / "AGENTS.md"))]


def test_what_looks_like_a_name_is_not_looked_for_outside(home: Home, tmp_path: Path) -> None:
    """`@word` is an import only where there is such a file in the project: nobody learns what else exists."""
    (tmp_path / "secret").write_text("SECRET")
    (home.project / "word").symlink_to(tmp_path / "secret")
    home.write("AGENTS.md", "@word")
    assert home.texts() == {"AGENTS.md": "@word"}


def test_an_import_that_is_missing_or_no_text_is_told(home: Home) -> None:
    (home.project / "folder.md").mkdir()
    home.write("binary.md", b"\xff")
    home.write("AGENTS.md", "@gone.md\n@folder.md\n@binary.md")
    assert [kind for kind, _, _ in home.refused()] == ["missing", "no_file", "not_text"]


def test_imports_are_bounded_in_number(home: Home) -> None:
    home.write("AGENTS.md", "\n".join(f"@gone{number}.md" for number in range(MAX_IMPORTS + 50)))
    found = home.recall()
    assert len(found.problems) == MAX_IMPORTS
    assert found.files[0][1].count("\n@gone") == 50


def test_the_same_import_twice_is_told_once(home: Home) -> None:
    home.write("x.md", "IMPORTED")
    home.write("AGENTS.md", "@x.md\n@x.md")
    assert home.texts()["AGENTS.md"].count("IMPORTED") == 1


@given(text=st.text(alphabet="@`~ ./\nax\\\t\r", max_size=60))
def test_any_text_is_a_memory_file(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without an import in it, it is told as it stands."""
    home = Home(tmp_path_factory.mktemp("home"))
    home.write("AGENTS.md", text)
    found = home.recall()
    assert all(problem.by for problem in found.problems)
    if not found.problems and text.strip() and "\n[" not in f"\n{dict(found.files).get('AGENTS.md', '[')}":
        assert dict(found.files) == {"AGENTS.md": text.strip()}


@given(line=st.text(alphabet="`a ", max_size=30))
def test_code_is_what_stands_between_equal_runs_of_backticks(line: str) -> None:
    expected: list[tuple[int, int]] = []
    at = 0
    while match := re.compile("(?<!`)(`+)(?!`)").search(line, at):
        closing = re.compile(f"(?<!`){match[1]}(?!`)").search(line, match.end())
        at = (closing or match).end()
        if closing:
            expected.append((match.start(), closing.end()))
    assert memory._code_spans(line) == expected


def test_mentions_are_looked_up_so_often_and_no_more(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    isfile = os.path.isfile
    monkeypatch.setattr(os.path, "isfile", lambda path: (looked.append(path), isfile(path))[1])
    home.write("AGENTS.md", " ".join(f"@user{number}" for number in range(5_000)))
    assert home.texts()
    assert len(looked) == 1_000


def test_what_is_saved_is_read_again() -> None:
    assert save_memory.MAX_MEMORY_BYTES == MAX_FILE_BYTES
