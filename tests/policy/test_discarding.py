"""What a command line plainly throws away."""

from __future__ import annotations

import pytest

from dragoman.policy.discarding import Discard, find_discards

W = "/w"


@pytest.mark.parametrize(
    ("line", "what", "paths"),
    [
        ("git checkout -- .", "changes", (W,)),
        ("git checkout .", "changes", (W,)),
        ("git checkout HEAD -- a.txt 'b c'", "changes", ("/w/a.txt", "/w/b c")),
        ("git checkout -f", "changes", ()),
        ("git checkout -f main", "changes", ()),
        ("git -C sub checkout -- x", "changes", ("/w/sub/x",)),
        ("cd sub && git restore .", "changes", ("/w/sub",)),
        ("git restore -s HEAD~1 a", "changes", ("/w/a",)),
        ("git restore --source HEAD --staged --worktree a", "changes", ("/w/a",)),
        ("git reset --hard", "changes", ()),
        ("git reset -q --hard HEAD~3", "changes", ()),
        ("git switch -f main", "changes", ()),
        ("git switch --discard-changes main", "changes", ()),
        ("git rm -rf src", "changes", ("/w/src",)),
        ("git merge --abort", "changes", ()),
        ("git clean -fdq", "untracked", (W,)),
        ("git clean -f -d out", "untracked", ("/w/out",)),
        ("git stash drop", "stashes", ()),
        ("git stash clear", "stashes", ()),
        ("rm -rf a/ b.txt", "files", ("/w/a", "/w/b.txt")),
        ("rm -- -x", "files", ("/w/-x",)),
        ("sudo rm x", "files", ("/w/x",)),
        ("bash -c 'rm x'", "files", ("/w/x",)),
        ("true; for f in 1; do rm *.txt; done", "files", ("/w/*.txt",)),
        ("find . -delete", "files", (W,)),
        ("find src -name '*.md' -type f -delete", "files", ("/w/src/**/*.md",)),
        ("git worktree remove --force ../w/tree", "files", ("/w/tree",)),
    ],
)
def test_it_is_found(line: str, what: str, paths: tuple[str, ...]) -> None:
    assert (what, paths) in [(each.what, each.paths) for each in find_discards(line, W)]


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        "git checkout main",
        "git checkout -b new",
        "git switch main",
        "git restore --staged .",
        "git reset HEAD~1",
        "git reset --soft HEAD~1",
        "git clean -n",
        "git clean -fdn",
        "git stash",
        "git stash pop",
        "git stash list",
        "git commit -m 'rm -rf everything'",
        "echo rm x",
        "ls rm",
        "find . -name x",
        'rm "$tmp"',
    ],
)
def test_what_throws_nothing_away_is_passed_by(line: str) -> None:
    assert find_discards(line, W) == ()


def test_ignored_files_are_named_where_they_go_too() -> None:
    assert [each.what for each in find_discards("git clean -fdx", W)] == ["untracked", "ignored"]
    assert [each.what for each in find_discards("git clean -fX", W)] == ["ignored"]


@pytest.mark.parametrize(
    ("path", "named", "fits"),
    [
        ("/w/a.txt", "/w/*.txt", True),
        ("/w/sub/a.txt", "/w/*.txt", False),
        ("/w/sub/a.txt", "/w/s*", True),
        ("/w/sub/deep/a.md", "/w/**/*.md", True),
        ("/w/ab", "/w/a", False),
    ],
)
def test_patterns_name_what_the_shell_puts_in_their_place(path: str, named: str, *, fits: bool) -> None:
    assert Discard("files", "/w", (named,)).names(path) is fits
