"""Judging a command line ends soon, whatever the line is: the work is counted and bounded, and past the bound the user is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.policy.command_rules import CommandRuling, judge_command
from dragoman.policy.commands import ReadableFolders
from dragoman.policy.judge import Law, MustAsk, judge
from dragoman.policy.offers import is_grave
from dragoman.policy.rules import Rule
from dragoman.policy.work import MAX_WORK, WorkDone
from dragoman.rules import allow, ask, deny
from dragoman.values.calls import Allow, Intent
from dragoman.values.messages import ToolSpec

SHELL = ToolSpec("run_shell", "", kind="execute")
RULES = (deny("git push"), ask("npm publish"), allow("make *"), deny("terraform apply -auto-approve"))
LONG = bool(os.environ.get("DRAGOMAN_LONG"))
SMALL = 16_000 if LONG else 5_000
MAX_CPU_S = 30.0
"""Far more than the work takes on a slow machine: only an explosion reaches it."""
ONE_STEP = 200_000
"""The most that is counted at once, so the most by which the bound is passed."""


def nested(begin: str, end: str, inner: str = "x") -> Callable[[int], str]:
    return lambda count: begin * count + inner + end * count


FAMILIES: dict[str, Callable[[int], str]] = {
    "bash -c": lambda count: "bash -c " * count + "x",
    "env": lambda count: "env " * count + "x",
    "env with options": lambda count: "env -u A " * count + "x",
    "xargs": lambda count: "xargs -n 1 " * count + "x",
    "sudo": lambda count: "sudo -u me " * count + "x",
    "timeout": lambda count: "timeout 5 nice -n 5 " * count + "x",
    "git foreach": lambda count: "git " + "foreach -x " * count,
    "direnv": lambda count: "direnv " + "exec " * count,
    "options": lambda count: "git " + "-a " * count,
    "find": lambda count: "find . " + "-exec rm {} + " * count,
    "substitutions": nested("$(", ")"),
    "commands in substitutions": nested("a $(b ", ")"),
    "in double quotes": nested('"$(', ')"'),
    "backticks": lambda count: "`a " * count,
    "process substitutions": nested("cat <(", ")"),
    "expansions": nested("${", "}"),
    "expansions with defaults": nested("${a:-", "}"),
    "arithmetic": nested("((", "))"),
    "arithmetic expansion": nested("$((", "))"),
    "old arithmetic": nested("$[", "]"),
    "tests": nested("[[ ", " ]]"),
    "case": nested("case a in b) ", ";; esac"),
    "alternations": lambda count: "case a in " + "b|" * count + "b) x;; esac",
    "extended patterns": nested("@(", ")", "a"),
    "arrays": nested("a=(", ")"),
    "here-documents": lambda count: "cat <<A\n" * count + "A\n" * count,
    "here-documents in a line": lambda count: "cat " + "<<A " * count + "\n" + "A\n" * count,
    "one here-document after another": lambda count: "".join(f"cat <<A{at}\nx\nA{at}\n" for at in range(count)),
    "brace expansions": lambda count: "echo " + "{a,b}" * count,
    "braces in braces": nested("echo {a,", "}"),
    "groups": nested("{ ", "; }"),
    "subshells": nested("(", ")"),
    "functions": nested("f() { ", "; }"),
    "conditions": nested("if a; then ", "; fi"),
    "loops": nested("while a; do ", "; done"),
    "pipelines": lambda count: "a | " * count + "x",
    "lists": lambda count: "a && " * count + "x",
    "folders": lambda count: "cd a; " * count + "ls",
    "reading": lambda count: "git log; " * count,
    "patterns": lambda count: "ls " + "* " * count,
    "deep patterns": lambda count: "ls " + "*/" * count,
    "stars": lambda count: "ls " + "*a" * count,
    "words": lambda count: "a " * count,
    "digits": lambda count: "1" * count + "x",
    "a program of digits": lambda count: "a" + "1." * count + "x",
    "assignments": lambda count: "A=b " * count + "x",
    "strings with blanks": lambda count: "bash " + "'a b' " * count,
    "strings in strings": lambda count: "bash -c 'eval \"" + "env " * count + "\"'",
    "redirections": lambda count: "x " + "> a " * count,
    "open brackets": lambda count: "<" * count,
    "faulty": lambda count: "`<<" * count + "}" * count,
    "quotes": lambda count: "'" * count,
    "dollars": lambda count: 'echo "' + "$ " * count + '"',
    "code": lambda count: "python3 -c '" + "git push " * count + "'",
    "sed": lambda count: "sed -n '" + "s/a/b/;" * count + "'",
    "removals": lambda count: "rm -rf " + "$A/* " * count,
    "variables": lambda count: "".join(f"v{at}=/; " for at in range(count)) + "rm -rf $v1",
}


def judged(command: str, folder: str, rules: tuple[Rule, ...] = RULES) -> tuple[CommandRuling, int]:
    """The ruling, and the work it took; with the processor's time looked at for what no count sees."""
    work, graver, begun = WorkDone(), WorkDone(), time.process_time()
    ruling = judge_command(command, folder, rules, ReadableFolders((folder,), (), ("**/.env",)), work=work)
    is_grave(command, graver)
    assert time.process_time() - begun < MAX_CPU_S, command[:60]
    assert max(work.done, graver.done) <= MAX_WORK + ONE_STEP
    return ruling, work.done + graver.done


def sized(family: str, size: int) -> str:
    make = FAMILIES[family]
    each = (len(make(200)) - len(make(100))) / 100
    return make(max(1, int(size / each)))


@pytest.mark.parametrize("family", FAMILIES)
def test_twice_the_line_is_twice_the_work_up_to_the_bound(family: str, tmp_path: Path) -> None:
    """Lines of a few kB may cost more than long ones: they are parsed, and text that is not valid shell costs more."""
    judged(sized(family, 4_000), str(tmp_path))
    small, large = (judged(sized(family, size), str(tmp_path)) for size in (SMALL, 2 * SMALL))
    assert large[1] <= 2.2 * small[1] + 2_000 or large[1] >= MAX_WORK


@pytest.mark.parametrize("family", FAMILIES if LONG else ("bash -c", "substitutions", "backticks", "deep patterns", "faulty", "folders"))
def test_a_line_of_100_kb_is_judged_within_the_bound(family: str, tmp_path: Path) -> None:
    """All families with DRAGOMAN_LONG set."""
    assert judged(sized(family, 100_000), str(tmp_path))[0].decision in ("ask", "deny")


@pytest.mark.parametrize("command", ["bash -c " * 1_000 + "x", "bash -c " * 4_000 + "git push"])
def test_what_is_past_the_bound_asks_in_every_mode_and_says_why(command: str) -> None:
    intent = Intent(command=command, preview=command, directory="/w", sandboxed=True)
    for rules in ((), RULES, (allow("bash *"), allow("run_shell"))):
        verdict = judge(SHELL, intent, "auto", law=Law(rules, ("/w",)))
        assert isinstance(verdict, MustAsk)
        assert "too complicated" in verdict.view.why
        assert not verdict.view.prefix


def test_lines_hidden_in_each_other_ask_past_a_depth() -> None:
    line = "git push"
    decisions: list[str] = []
    for _ in range(8):
        decisions.append(judge_command(line, "/w", (deny("git push"),), ReadableFolders(("/w",))).decision)
        line = "bash -c '" + line.replace("'", "'\\''") + "'"
    assert decisions[:4] == ["deny"] * 4
    assert set(decisions[4:]) <= {"deny", "ask"}


def test_an_ordinary_long_line_is_judged_as_before(tmp_path: Path) -> None:
    """Text that is written into a file by a here-document, a list of files, a long script."""
    intents = [
        "cat > page.html <<'EOF'\n" + '<p class="a">(text) [more] {x} `y`</p>\n' * 1_500 + "EOF",
        "npx prettier --check " + " ".join(f"src/components/part_{at}/index.ts" for at in range(400)),
        "python3 - <<'EOF'\n" + "print(f({'a': [1, 2]}))\n" * 2_000 + "EOF",
        "set -e\n" + "make part && echo done\n" * 400,
    ]
    for command in intents:
        intent = Intent(command=command, directory=str(tmp_path), sandboxed=True)
        assert judge(SHELL, intent, "auto", law=Law((), (str(tmp_path),))) == Allow(), command[:40]


SIGNS = (
    "$( ` <( >( ${ } ) ( (( )) [[ ]] [ ] case in esac ;; a b = =( + - * ? ! # % ^ ~ < > << <<< <<A <<-A A && || | & ; |& { , ' \" \\ $ $a "
    "$' $\" $[ $(( for do done if then fi while until select function f() : @( !( ?( 1 == -f coproc time >& &> >| <& .. / // :- := bash -c "
    "env xargs sudo timeout nice rm -rf git push find . -exec {} + python3 eval sed s/a/b/ awk {print} cd cat 1.1.1 --a=b A=b"
)  # fmt: skip
PIECES = st.sampled_from([*SIGNS.split(" "), "\n", " ", " ", " ", "\t", "\\\n", "'a b'", '"c d"', "é", "\0", "\ud800"])


@settings(
    max_examples=1_000 if LONG else 15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    parts=st.lists(st.tuples(st.lists(PIECES, min_size=1, max_size=5), st.integers(1, 4_000)), min_size=1, max_size=4),
    end=st.lists(PIECES, max_size=3),
    between=st.sampled_from(["", " "]),
)
def test_any_text_is_judged_within_the_bound(parts: list[tuple[list[str], int]], end: list[str], between: str, tmp_path: Path) -> None:
    text = "".join((between.join(pieces) + between) * count for pieces, count in parts) + "".join(end) * 1_000
    ruling, _ = judged(text[:100_000], str(tmp_path))
    assert ruling.decision in ("ask", "deny", "allow")
