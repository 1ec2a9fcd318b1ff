"""grep, with the real ripgrep over real files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.tools import matches, ripgrep, search
from dragoman.tools.matches import Counts, Matches, Paths
from dragoman.tools.ripgrep import Enough, SearchStatus, run_ripgrep
from dragoman.tools.search import Grep
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import ToolOutput
from file_tools import text_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    return root


def write(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)


def run(root: Path, pattern: str, **args: Any) -> ToolOutput:
    return asyncio.run(Grep(Workspace(root)).run({"pattern": pattern, **args}, lambda text: None))


def found(root: Path, pattern: str, **args: Any) -> list[str]:
    """Each line with the path that stands above it."""
    output = run(root, pattern, **args)
    assert not output.is_error, output
    lines, path = list[str](), ""
    text = text_of(output)
    if text.startswith("No matches"):
        return []
    if text.startswith("No line") or args.get("output_mode", "content") != "content":
        return text.split("\n")
    for each in text.split("\n\n"):
        path, *below = each.split("\n")
        lines += [line if line.startswith("(") or line == "--" else f"{path}{line.lstrip('0123456789')[0]}{line}" for line in below]
    return lines


def test_each_path_stands_once_above_its_lines_and_numbers(root: Path) -> None:
    write(root, "b.txt", "x\nneedle one\nneedle two\r\n")
    write(root, "a/z.txt", "a needle")
    write(root, "a.txt", "needle")
    assert text_of(run(root, "needle")) == "a/z.txt\n1: a needle\n\na.txt\n1: needle\n\nb.txt\n2: needle one\n3: needle two"
    assert text_of(run(root, "two", context=1)) == "b.txt\n2- needle one\n3: needle two"
    assert found(root, "needle") == ["a/z.txt:1: a needle", "a.txt:1: needle", "b.txt:2: needle one", "b.txt:3: needle two"]


def test_case_counts_unless_told(root: Path) -> None:
    write(root, "a", "Needle\nneedle\n")
    assert found(root, "needle") == ["a:2: needle"]
    assert found(root, "needle", case_sensitive=False) == ["a:1: Needle", "a:2: needle"]


def test_context_is_told_from_matches_and_gaps_are_shown(root: Path) -> None:
    write(root, "a", "".join(f"line {number}\n" for number in range(1, 21)))
    assert found(root, "line (3|15)$", context=1) == [
        "a-2- line 2",
        "a:3: line 3",
        "a-4- line 4",
        "--",
        "a-14- line 14",
        "a:15: line 15",
        "a-16- line 16",
    ]


def test_paths_or_counts_alone(root: Path) -> None:
    write(root, "b", "x\nx\n")
    write(root, "a", "x\n")
    write(root, "c", "y\n")
    assert found(root, "x", output_mode="files") == ["a", "b"]
    assert found(root, "x", output_mode="count") == ["a: 1", "b: 2"]


def test_a_file_or_a_directory_can_be_searched(root: Path) -> None:
    write(root, "a/b.txt", "x")
    write(root, "a/c.txt", "x")
    assert found(root, "x", path="a/b.txt") == ["a/b.txt:1: x"]
    assert found(root, "x", path="a") == ["a/b.txt:1: x", "a/c.txt:1: x"]
    assert found(root, "x", path="a/b.txt", include="*.txt") == ["a/b.txt:1: x"]
    assert found(root, "x", path="a/b.txt", include="*.py") == []


@pytest.mark.parametrize(
    ("include", "paths"),
    [
        ("*.py", ["a.py", "src/b.py"]),
        ("src/**/*.ts", ["src/c.ts"]),
        ("src/*", ["src/b.py", "src/c.ts"]),
        ("*.{py,ts}", ["a.py", "src/b.py", "src/c.ts"]),
        ("**/*", ["a.py", "src/b.py", "src/c.ts"]),
        (".hidden.py", [".hidden.py"]),
        ("*.none", []),
    ],
)
def test_only_the_files_meant_are_searched_and_gitignore_holds(root: Path, include: str, paths: list[str]) -> None:
    for path in ("a.py", "src/b.py", "src/c.ts", "ignored.py", ".hidden.py", "vendor/d.py", ".venv/e.py"):
        write(root, path, "needle")
    write(root, ".gitignore", "ignored.py\nvendor/\n")
    for mode in ("content", "files", "count"):
        assert [line.partition(":")[0] for line in found(root, "needle", include=include, output_mode=mode)] == paths


def test_hidden_files_only_where_asked_and_git_never(root: Path) -> None:
    for path in (".env", ".config/x", ".git/config", "plain"):
        write(root, path, "needle")
    assert found(root, "needle", output_mode="files") == ["plain"]
    assert found(root, "needle", output_mode="files", hidden=True) == [".config/x", ".env", "plain"]
    assert found(root, "needle", output_mode="files", hidden=True, include="*") == [".config/x", ".env", "plain"]
    assert found(root, "needle", output_mode="files", path=".config") == [".config/x"]


def test_nothing_outside_is_ever_found(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.txt", "needle")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file_link").symlink_to(tmp_path / "outside" / "secret.txt")
    (root / "loop").symlink_to(".")
    write(root, "inside", "needle")
    assert found(root, "needle") == ["inside:1: needle"]
    for path in ("link", "file_link", "../outside", str(tmp_path / "outside")):
        output = run(root, "needle", path=path)
        assert (output.is_error, output.error_type) == (True, "outside")


def test_no_match_is_a_plain_answer(root: Path) -> None:
    write(root, "a", "x")
    output = run(root, "needle")
    assert not output.is_error
    assert text_of(output) == "No matches. Hidden files and those that .gitignore names are left out. So are files of more than 200 MB."
    assert output.display.startswith("no matches\n")


@pytest.mark.parametrize(
    ("args", "words", "error_type"),
    [
        ({"pattern": "("}, "unclosed group", "bad_pattern"),
        ({"pattern": "(?=x"}, "search failed", "bad_pattern"),
        ({"pattern": "(?=(x)"}, "missing closing parenthesis", "bad_pattern"),
        ({"pattern": "a{1000}{1000}{1000}"}, "search failed", "bad_pattern"),
        ({"pattern": ""}, "empty", "invalid"),
        ({"pattern": "x" * 20_000}, "10,000", "invalid"),
        ({"pattern": "a\0b"}, "NUL", "invalid"),
        ({"pattern": "x", "path": "none"}, "none does not exist", "not_found"),
        ({"pattern": "x", "include": "/etc/*"}, "relative", "invalid"),
    ],
)
def test_what_cannot_work_is_an_error_with_a_reason(root: Path, args: dict[str, Any], words: str, error_type: str) -> None:
    write(root, "a", "x")
    output = run(root, **args)
    assert (output.is_error, output.error_type) == (True, error_type)
    assert words in text_of(output)


def test_patterns_that_look_around_or_back_are_searched_within_bounds(root: Path) -> None:
    write(root, "a", "foobar\nfoobaz\nhoho\n")
    write(root, "unreadable", "foobar\n")
    (root / "unreadable").chmod(0)
    assert found(root, "foo(?=bar)")[0] == "a:1: foobar"
    assert found(root, "(?<!x)(ho)\\1", path="a") == ["a:3: hoho"]
    assert found(root, "fo+(?!bar)b", path="a", output_mode="count") == ["a: 1"]
    write(root, "long", f"{'a' * 5000}\n")
    output = run(root, "^(a|aa)+(?=c)")  # which takes exponential time: a line is given up after so many steps
    assert (output.is_error, "took too long" in text_of(output)) == (False, True)


def test_where_ripgrep_cannot_look_around_something_that_works_is_advised(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a", "foobar\n")

    async def without(program: str, options: Sequence[str], *args: Any) -> SearchStatus:
        if "--pcre2" in options:
            return SearchStatus("rg: PCRE2 is not available in this build of ripgrep")
        return await run_ripgrep(program, options, *args)

    monkeypatch.setattr(search, "run_ripgrep", without)
    output = run(root, "foo(?=bar)")
    assert (output.is_error, output.error_type) == (True, "bad_pattern")
    assert "grep -P" in text_of(output)
    assert "--pcre2" not in text_of(output)
    assert "--multiline" not in text_of(run(root, r"a\nb"))


@pytest.mark.parametrize("pattern", ["--files", "-e", "--pre=touch PWN", "-v", "--", "--version", "-"])
def test_a_pattern_is_never_an_option(root: Path, pattern: str) -> None:
    write(root, "a", f"x {pattern} y\nother\n")
    assert found(root, pattern) == [f"a:1: x {pattern} y"]


def test_odd_names_are_data(root: Path) -> None:
    """DO04: names with a line break, invalid UTF-8 and a leading dash; shown escaped, never taken for options."""
    odd = [b"new\nline", b"bad\xff", b"-rf", b"--files", b"a:1: b", b"\x1b[2K"]
    for name in odd:
        Path(os.fsdecode(os.path.join(os.fsencode(root), name))).write_text("needle\n")
    workspace = Workspace(root)
    for mode in ("content", "files", "count"):
        lines = found(root, "needle", output_mode=mode)
        assert len(lines) == len(odd)
        ends = {"content": ":1: needle", "files": "", "count": ": 1"}[mode]
        assert {os.fsencode(os.path.basename(workspace.resolve(line.removesuffix(ends)))) for line in lines} == set(odd)
        assert not [line for line in lines if line.startswith("-") or "\x1b" in line]
    assert found(root, "needle", path="-rf") == ["./-rf:1: needle"]


def test_text_that_is_no_utf8_is_shown_as_far_as_it_can_be(root: Path) -> None:
    write(root, "latin", b"caf\xe9 needle\n")
    write(root, "binary", b"needle\0\n")
    assert found(root, "needle") == ["latin:1: caf\ufffd needle"]


def test_long_lines_are_cut_around_the_match(root: Path) -> None:
    write(root, "a", "x" * 5000 + "needle" + "y" * 5000)
    write(root, "b", "é" * 300 + "needle" + "y" * 500)
    write(root, "c", "needle" + "z" * 1000)
    a, b, c = found(root, "needle")
    assert a == "a:1: …" + "x" * 100 + "needle" + "y" * 294 + "…"
    assert b == "b:1: …" + "é" * 100 + "needle" + "y" * 294 + "…"
    assert c == "c:1: needle" + "z" * 394 + "…"


def test_endless_lines_are_passed_over(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "_MAX_RECORD_BYTES", 200_000)
    write(root, "big", "x" * 1_000_000 + "needle")
    assert found(root, "needle")[0] == "No line that can be shown matches."
    write(root, "small", "needle")
    lines = found(root, "needle")
    assert lines[0] == "small:1: needle"
    assert "1 matches are in lines of more than a megabyte" in lines[1]


def test_more_than_wanted_are_counted_not_shown(root: Path) -> None:
    write(root, "a", "x\n" * 150)
    write(root, "b", "x\n" * 150)
    lines = found(root, "x")
    assert len(lines) == 101
    assert lines[99] == "a:100: x"
    assert lines[100] == "(100 of 300 matches: narrow it by path or include)"
    assert len(found(root, "x", max_results=200)) == 201


def test_far_too_many_are_read_in_order_and_no_further_than_needed(root: Path) -> None:
    for number in range(40):
        write(root, f"{number:02}", "x\n" * 100)
    lines = found(root, "x")
    assert lines[:100] == [f"00:{number}: x" for number in range(1, 101)]
    assert lines[100] == "(100 of more than 100 matches: narrow it by path or include)"
    for mode in ("files", "count"):
        lines = found(root, "x", output_mode=mode, max_results=10)
        assert len(lines) == 11
        assert lines[10] == "(10 of 40 files: narrow it by path or include)"


def test_far_too_many_files_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "UNSORTED_RESULTS", 5)
    for number in range(40):
        write(root, f"{number:02}", "x\n")
    for mode in ("files", "count"):
        lines = found(root, "x", output_mode=mode, max_results=10)
        assert [line.partition(":")[0] for line in lines[:10]] == [f"{number:02}" for number in range(10)]
        assert lines[10].startswith("(10 of more than")


def test_the_last_match_shown_keeps_its_own_context_only(root: Path) -> None:
    write(root, "a", "".join(f"{'x' if number in (2, 6) else '-'}{number}\n" for number in range(1, 10)))
    lines = found(root, "x", context=2, max_results=1)
    assert lines[:4] == ["a-1- -1", "a:2: x2", "a-3- -3", "a-4- -4"]
    assert lines[4] == "(1 of 2 matches: narrow it by path or include)"


def test_the_whole_answer_is_bounded(root: Path) -> None:
    for number in range(30):
        write(root, f"f{number}", ("x" * 390 + "\n") * 30)
    text = text_of(run(root, "x", max_results=1000, context=10))
    assert len(text) < 41_000
    assert "too long to show" in text


def test_files_that_cannot_be_read_do_not_spoil_the_rest(root: Path) -> None:
    write(root, "a", "needle")
    os.mkfifo(root / "pipe")
    (root / "dangling").symlink_to("nowhere")
    write(root, "closed", "needle")
    (root / "closed").chmod(0)
    assert "a:1: needle" in found(root, "needle")


def test_the_user_is_shown_the_first_lines(root: Path) -> None:
    write(root, "a", "x\x1b[2K\n" * 50)
    display = run(root, "x").display.split("\n")
    assert display[0] == "50 matches in 1 file"
    assert display[1:3] == ["a", "1: x<U+001B>[2K"]
    assert display[21] == "… 31 more lines"


# Reading what ripgrep writes, in pieces


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


paths = st.binary(min_size=1, max_size=8).filter(lambda name: b"\0" not in name)
cuttings = st.lists(st.integers(0, 10_000), max_size=12)


@given(names=st.lists(paths, max_size=6), cuts=cuttings)
def test_any_chunking_of_paths_gives_the_same(names: list[bytes], cuts: list[int]) -> None:
    collected = Paths(lambda path: True, 100)
    for piece in pieces(b"".join(name + b"\0" for name in names), cuts):
        collected.take(piece)
    assert [os.fsencode(path) for path in collected.found] == names


@given(counted=st.dictionaries(paths, st.integers(1, 10_000), max_size=6), cuts=cuttings)
def test_any_chunking_of_counts_gives_the_same(counted: dict[bytes, int], cuts: list[int]) -> None:
    collected = Counts(lambda path: True, 100)
    for piece in pieces(b"".join(name + b"\0%d\n" % count for name, count in counted.items()), cuts):
        collected.take(piece)
    assert {os.fsencode(path): count for path, count in collected.found.items()} == counted


@given(lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20), max_size=6), cuts=cuttings)
def test_any_chunking_of_matches_gives_the_same(lines: list[str], cuts: list[int]) -> None:
    records = [
        {"type": "match", "data": {"path": {"text": "a"}, "lines": {"text": line + "\n"}, "line_number": number, "submatches": []}}
        for number, line in enumerate(lines, 1)
    ]
    collected = Matches(lambda path: True, 100)
    for piece in pieces(b"".join(jsontext.encode(record) + b"\n" for record in records), cuts):
        collected.take(piece)
    assert [line.text for line in collected.found.get("a", [])] == lines


@pytest.mark.parametrize("collector", [Paths, Counts])
def test_enough_is_enough(collector: type[Paths] | type[Counts]) -> None:
    collected = collector(lambda path: True, 3)
    with pytest.raises(Enough):
        collected.take(b"".join(b"%d\0" % number + (b"1\n" if collector is Counts else b"") for number in range(10)))


def test_a_huge_file_is_passed_over(root: Path) -> None:
    """ripgrep would hold all of it in memory, were it one line."""
    write(root, "small", "needle")
    with (root / "huge").open("wb") as file:
        file.write(b"needle")
        file.truncate(300_000_000)
    assert found(root, "needle") == ["small:1: needle"]


def test_both_searches_of_a_call_end_together_and_keep_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each had its own time, so that hostile .gitignore files cost nearly twice as much, and the first search's results were lost."""
    work = tmp_path / "work"
    work.mkdir()
    program = tmp_path / "rg"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--sort=path*) exec sleep 1000;; esac\n'
        f"i=0; while [ $i -le 2100 ]; do printf '{work}/%04d.txt\\0' $i; i=$((i+1)); done; exec sleep 1000\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(search, "find_ripgrep", lambda root: str(program))
    monkeypatch.setattr(ripgrep, "TIMEOUT_S", 2.0)
    given: list[float] = []
    real = search.run_ripgrep

    async def noted(*args: Any) -> Any:
        given.append(args[-1])
        return await real(*args)

    monkeypatch.setattr(search, "run_ripgrep", noted)
    output = asyncio.run(Grep(Workspace(work)).run({"pattern": "x", "output_mode": "files", "max_results": 3}, lambda text: None))
    text = str(output.content)
    assert "0000.txt" in text
    assert "took too long" in text
    assert "3 of more than 2" in text
    assert given[0] == 2.0
    assert given[1] < 2.0, "what the first has left"


def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """Reading a FIFO waited for a writer until the search was ended."""
    os.mkfifo(tmp_path / "pipe")
    found = Grep(Workspace(tmp_path))
    arguments = {"pattern": "x", "path": "pipe"}
    assert "pipe is a FIFO" in found.intend(arguments).problem
    output = asyncio.run(found.run(arguments, lambda text: None))
    assert (output.is_error, output.error_type) == (True, "not_regular")
    (tmp_path / "a.txt").write_text("x\n")
    beside = asyncio.run(found.run({"pattern": "x"}, lambda text: None))
    assert "a.txt\\n1: x" in str(beside.content), "one beside other files is passed over"
