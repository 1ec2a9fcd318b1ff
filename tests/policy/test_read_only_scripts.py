"""Scripts of sed and awk: those that print what they read run unasked, and nothing else does."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.policy.read_only_programs import find_reads

READ = [
    "sed 's/a/b/'", "sed -n 1,5p f", "sed -n '/x/,/y/p' f", r"sed -E 's/([a-z]+) x/\1/g'", "sed 's|/a/b|c|g;/^$/d'", "sed -n '$p' f",
    "sed 10q f", "sed 's/[^a-z]//g'", r"sed 's/^\s*//'", "sed -n -e 5p f", "sed '1!d' f", "awk '{print $1}' f", "awk -F: '{print $1, $NF}'",
    """awk -F , 'NR==1 || $2 == "x" {print NR": "$0}' f""", r"""awk '/new Map\($/,/)$/{print NR": "$0}' f""", "awk '{s+=$1} END{print s}'",
    "awk 'length($0) < 5' f", "command -v git", "type git", "df -h", "uptime", "free -m",
    "awk 'NR>3' f", "awk 'NR>=2 && NR<=4{print}' f", "find . -type f -exec cat {} +", r"find a b -type f -name '*.c' -exec grep -l x {} \;",
    "find . -type f -not -path './x/*' -exec wc -l {} +", "[ -f x ]", "egrep -n 'a|b' f", "git grep -n x -- src", "git tag",
    "git tag -l v1",
    "git tag --sort=-creatordate", "git stash list", "git stash show -p", "git worktree list", "git reflog", "git reflog show -3 HEAD",
    "git log --grep signature", "git grep signature", "uniq -c f", "printf %d 5",
    "git remote get-url origin", "git cat-file -p HEAD", "git rev-list --count HEAD", "git config user.email", "git --version",
]  # fmt: skip
ASK = [
    "sed -i s/a/b/ f", "sed 's/a/b/w out'", "sed s/a/b/e", "sed 'e ls'", "sed '1e ls'", "sed 'w x'",
    "sed 's/[/]/x/w f/'", "sed 's/a/b/;w x'",
    "sed 'r /etc/passwd'", "sed -f x",
    "sed 's/a/b/\nw x'", "sed p -i f", "sed --in-place p f", r"sed 's/a\/b/c/w x/'", "sed 'R x'", "sed -n",
    """awk '{print > "x"}'""", """awk 'BEGIN{system("x")}'""", """awk '{print | "sh"}'""", "awk -f x", "awk -i inplace '{print}'",
    """awk 'BEGIN{while((getline l < "x")) print l}'""", """awk 'BEGIN{ARGV[1]="x"}'""", """awk '@load "x"; {y()}'""", "awk '{print}' a=b",
    "awk -v x=1 '{print}'", """awk 'BEGIN{print ENVIRON["A"]}'""", """awk '/"/{system("x")} /"/'""", "awk --source='{print}'",
    """awk 'BEGIN{sys\\\ntem("x")}'""", "awk '{unknown($1)}'", "command ls", "command -p ls", "type -a", "free 1 -s", "uptime x",
    """awk '{print>"x"}'""", """awk 'NR>1{print >"x"}'""", """awk '{print>>"x"}'""", "find . -exec cat {} +",
    "find . -not -type f -exec cat {} +", "find . -type l -exec cat {} +", "find . -type f -o -name l -exec cat {} +",
    r"find . -type f -exec sort {} x + -o -name \;", r"find . -type f -exec uniq {} y \;", "find . -type f -exec sort -o y {} +",
    r"find . -type f -exec sh -c x {} \;", r"find . -type f -exec cat x \;",
    r"find . -type f -exec diff {} src \;", "find . -type f -exec grep -r x {} +", "find . -type f -exec",
    "find . -type f -execdir cat {} +", "[ -f x", "[ -v x ]", "[ a = b ]", "git tag v1", "git tag --sort -l v1", "git tag -d v1",
    "git stash", "git stash drop", "git reflog expire", "git worktree add x", "git remote add a b", "git config user.email x",
    "git config --list", "git config http.extraheader", "git grep -Oless x", "git cat-file --textconv HEAD:x",
    "git log --format=%GG", "git log --format=%+GG", "git log '--format=% G?'", "git show --pretty=tformat:%-GS",
    "git for-each-ref --format='%(signature:grade)'", "git for-each-ref '--format=%(*signature)'", "git for-each-ref --sort=signature",
    "git tag --sort -signature", "git branch --sort=*signature", "uniq f -c", "uniq f -f 1", "uniq f -- g", "printf %d 'a[$(x)]'",
]  # fmt: skip


@pytest.mark.parametrize("command", READ)
def test_what_only_prints_runs(command: str) -> None:
    assert find_reads(shlex.split(command)) is not None


@pytest.mark.parametrize("command", ASK)
def test_what_may_do_more_asks(command: str) -> None:
    assert find_reads(shlex.split(command)) is None


pieces = st.sampled_from(
    ["s", "/", "x", "w PWN", "e touch PWN", "e", "w", "p", "d", ";", "1", "$", ",", "!", "[", "]", "^", "\\", "|", "#", "g", "I", "{", "}",
     " ", "PWN", "r", "\\n", "&", "\\1", "(", ")", "=", "q", "b", "t", ":a", "M", "i\\", "a PWN"]
)  # fmt: skip


@given(st.lists(pieces, min_size=1, max_size=9).map("".join))
def test_a_script_of_sed_that_is_allowed_leaves_nothing(script: str) -> None:
    if find_reads(["sed", script, "in"]) is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in").write_text("x touch PWN\ny/x]w PWN\n")
        subprocess.run(["sed", script, "in"], cwd=folder, capture_output=True, timeout=60, check=False)
        assert [path.name for path in Path(folder).iterdir()] == ["in"]


@pytest.mark.parametrize(
    "script", [" " * 499, "s/" + "[" * 400, "/" * 499, "1!" * 200, ";" * 499, "p ; " * 120 + "x", "s/" + "[a]" * 150 + "/"]
)
def test_no_script_takes_long_to_read(script: str) -> None:
    began = time.process_time()
    assert find_reads(["sed", script]) is None
    assert time.process_time() - began < 5, "a millisecond; without a bound, for ever"
