"""Rules that users write: what they fit, how tiers and decisions outrank each other, and how they are written down."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.app.config_tables import RuleTable
from dragoman.policy.command_rules import judge_command
from dragoman.policy.commands import ReadableFolders
from dragoman.policy.host_rules import fits_host
from dragoman.policy.judge import PREFIX_KEY, Law, MustAsk, judge
from dragoman.policy.offers import is_grave, is_still_offered, offered_prefix, prefix_rule
from dragoman.policy.rules import DECISIONS, TIERS, Rule, RuleProblem, Tier, check_rule, fits_path, parse_rule, render_rule
from dragoman.rules import allow, ask, deny
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolSpec

AROUND = ReadableFolders(("/w",))
SHELL = ToolSpec("run_shell", "", kind="execute")
EDIT = ToolSpec("write_file", "", kind="edit")
FETCH = ToolSpec("web_fetch", "", kind="fetch")
GATE = ToolSpec("network", "", kind="fetch")
READ = ToolSpec("read_file", "", kind="read", read_only=True)
SEARCH = ToolSpec("google_web_search", "", kind="search", read_only=True)
ORDER = {"allow": 0, "ask": 1, "deny": 2}


def decision(command: str, *rules: Rule) -> str:
    return judge_command(command, "/w", rules, AROUND).decision


def verdict(spec: ToolSpec, intent: Intent, *rules: Rule, mode: Any = "default", **law: Any) -> str:
    found = judge(spec, intent, mode, law=Law(tuple(rules), ("/w",), **law))
    return "allow" if isinstance(found, Allow) else "ask" if isinstance(found, MustAsk) else "deny"


# --- commands


@pytest.mark.parametrize(
    ("rule", "covered", "not_covered"),
    [
        (
            "make test",
            ["make test", "make test 2>&1 | tail -3", "cd sub && make test"],
            ["make", "make test x", "make tests", "make test; rm x"],
        ),
        ("pytest *", ["pytest", "pytest -q tests/x.py", "pytest 'a b'"], ["./pytest", "pytester", "X=1 pytest", "pytest $X", "pytest > f"]),
        ("npm run build*", ["npm run build", "npm run build:dev"], ["npm run build x", "npm run"]),
        ("git commit *", ["git commit -m 'x y'", "git commit"], ["git -c a=b commit", "git commitx"]),
        ("git log *", [], ["git logout", "git log --output=PWN", "git log --ext-diff"]),
        ("find . -exec *", ["find . -exec ls"], ["find . -delete"]),
        ("sed -n *", ["sed -n 1,3p a"], ["sed -n 'w PWN' a", "sed -n 1e\\ x a"]),
    ],
)
def test_which_commands_a_rule_allows(rule: str, covered: list[str], not_covered: list[str]) -> None:
    for command in covered:
        assert decision(command, allow(rule)) == "allow", command
    for command in not_covered:
        assert decision(command, allow(rule)) == "ask", command


def test_a_refusal_covers_whatever_begins_so() -> None:
    for command in ("git push", "git push -f origin", "ls && git push", "cd x; git push"):
        assert decision(command, allow("git *"), allow("git push *"), deny("git push")) == "deny"
    assert decision("git pushx", deny("git push")) == "ask"


def test_a_question_outranks_what_only_reads_and_an_allowance_of_the_same_tier() -> None:
    assert decision("ls", ask("ls")) == "ask"
    assert decision("make x", allow("make *"), ask("make x")) == "ask"
    assert decision("make y", allow("make *"), ask("make x")) == "allow"


def tiered(text: str, what: Any, tier: Tier) -> Rule:
    return parse_rule(text, what, tier=tier)


def test_a_higher_tier_outranks_a_lower_one_but_not_its_refusal() -> None:
    assert decision("make x", tiered("make *", "ask", "user"), tiered("make *", "allow", "flag")) == "allow"
    assert decision("make x", tiered("make *", "ask", "admin"), tiered("make *", "allow", "flag")) == "ask"
    assert decision("make x", tiered("make *", "deny", "project"), tiered("make *", "allow", "admin")) == "deny"


# --- other tools


def test_rules_for_other_tools_go_by_resolved_paths_and_hosts() -> None:
    inside = Intent(writes=("/w/src/deep/a.py",))
    assert verdict(EDIT, inside, allow("edit src/**")) == "allow"
    assert verdict(EDIT, inside, allow("write_file src/**")) == "allow"
    assert verdict(EDIT, Intent(writes=("/w/src/a.py", "/w/b.py")), allow("edit src/**")) == "ask", "both must fit"
    assert verdict(EDIT, Intent(writes=("/w/src/a.py", "/w/b.py")), deny("edit src/**"), mode="auto-edit") == "deny", "one is enough"
    assert verdict(EDIT, Intent(writes=("/w/src/.git/config",)), allow("edit src/**")) == "ask", "what is guarded asks"
    assert verdict(FETCH, Intent(scope="docs.example.org"), allow("web_fetch example.org")) == "allow"
    assert verdict(FETCH, Intent(scope="example.org.evil.test"), allow("web_fetch example.org")) == "ask"
    assert verdict(ToolSpec("deploy", ""), Intent(), allow("deploy")) == "allow"
    assert (
        verdict(ToolSpec("read_file", "", kind="read", read_only=True), Intent(reads=("/w/keys/a",)), deny("read_file keys/**")) == "deny"
    )
    assert verdict(SHELL, Intent(command="ls", directory="/w"), deny("run_shell")) == "deny"


def test_no_rule_makes_plan_mode_do_anything() -> None:
    assert verdict(SHELL, Intent(command="make"), allow("make"), mode="plan") == "deny"
    assert verdict(EDIT, Intent(writes=("/w/a",)), allow("edit **"), mode="plan") == "deny"


# --- modes


def test_a_letter_that_looks_like_another_is_named_by_its_number() -> None:
    assert "\u0456 (U+0456)" in judge_command("g\u0456t status", "/w", (), AROUND).reason
    assert "<U+202E> (U+202E)" in judge_command("echo \u202e", "/w", (), AROUND).reason


def test_sandboxed_commands_run_unasked_in_auto_and_by_a_setting_elsewhere() -> None:
    boxed = Intent(command="curl x | sh > out", directory="/w", sandboxed=True)
    assert verdict(SHELL, boxed, mode="auto") == "allow"
    assert verdict(SHELL, boxed) == "ask"
    assert verdict(SHELL, boxed, run_sandboxed=True) == "allow"
    assert verdict(SHELL, msgspec.structs.replace(boxed, sandboxed=False), mode="auto") == "ask"
    assert verdict(SHELL, boxed, deny("touch"), mode="auto") == "ask", "a refusal may be about something that cannot be read"
    assert verdict(SHELL, boxed, deny("curl"), mode="auto") == "deny"
    assert verdict(SHELL, msgspec.structs.replace(boxed, guarded="own"), mode="auto") == "ask"


def test_in_auto_our_own_tools_reach_listed_hosts_alone() -> None:
    assert verdict(FETCH, Intent(scope="docs.python.org"), mode="auto", hosts=("python.org",)) == "allow"
    assert verdict(FETCH, Intent(scope="python.org.evil.test"), mode="auto", hosts=("python.org",)) == "ask"
    assert verdict(SEARCH, Intent(), mode="auto") == "ask"
    assert verdict(SEARCH, Intent(is_by_own_service=True), mode="auto") == "allow"
    assert verdict(SEARCH, Intent(is_by_own_service=True), ask("web_search"), mode="auto") == "ask"
    assert verdict(SEARCH, Intent(is_by_own_service=True), deny("web_search"), mode="auto") == "deny"
    assert verdict(FETCH, Intent(is_by_own_service=True, scope="evil.test"), mode="auto") == "ask"
    assert verdict(SEARCH, Intent(), allow("web_search"), mode="auto") == "allow"
    assert verdict(SEARCH, Intent()) == "allow"


@pytest.mark.parametrize("host", ["docs.python.org.evil.test", "evil.test", "xdocs.python.org", ""])
def test_a_host_fits_itself_and_those_below_it(host: str) -> None:
    assert not fits_host("docs.python.org", host)
    assert fits_host("python.org", "DOCS.python.org.")


def test_an_address_has_nothing_below_it() -> None:
    for pattern, host in (("0.0.1", "127.0.0.1"), ("1", "1.1.1.1"), ("*.8.8", "8.8.8.8"), ("1]", "[2606::1]"), ("::1", "[2606::1]")):
        assert not fits_host(pattern, host), pattern
        assert not fits_host(pattern, host, is_refusal=True), pattern
    assert fits_host("8.8.8.8", "8.8.8.8")


@pytest.mark.parametrize(
    ("pattern", "url_host"),
    [
        ("example.org", "example.org:8443"),
        ("example.org", "a.EXAMPLE.org.:22"),
        ("example.org:443", "example.org"),
        ("example.org:*", "example.org:9"),
        ("b\u00fccher.de", "xn--bcher-kva.de"),
        ("2606:4700:0::1", "[2606:4700::1]"),
        ("[2606:4700::1]", "[2606:4700::1]:8080"),
        ("https://example.org/private", "example.org"),
        ("exam*.org", "www.example.org"),
        ("*", "example.org:99"),
        ("*:22", "example.org:22"),
    ],
)
def test_a_refusal_holds_for_a_host_however_it_is_written(pattern: str, url_host: str) -> None:
    for tool, spec in (("web_fetch", FETCH), ("network", GATE)):
        assert verdict(spec, Intent(scope=url_host), deny(f"{tool} {pattern}")) == "deny"
    assert verdict(FETCH, Intent(scope=url_host), ask(f"web_fetch {pattern}")) == "ask"


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        ("example.org", "example.org:8443"),
        ("example.org:8443", "example.org"),
        ("https://example.org/page", "example.org"),
        ("exam*.org", "example.evil.org"),
        ("", "example.org"),
        (":8080", "x.org:8080"),
        ("//", "example.org"),
    ],
)
def test_an_allowed_host_is_no_more_than_it_says(pattern: str, host: str) -> None:
    assert not fits_host(pattern, host)


# --- what is offered


@pytest.mark.parametrize(
    ("words", "prefix"),
    [("pytest -q x", "pytest"), ("npm run build", "npm run build"), ("git commit -m x", "git commit"), ("cargo test --all", "cargo test"),
     ("python x.py", ""), ("bash x.sh", ""), ("rm x", ""), ("git push", ""), ("npm publish", ""), ("npm install x", ""),
     ("sed -i s/a/b/ f", ""),
     ("/tmp/x/run", ""), ("env pytest", ""), ("cargo -q test", ""), ("make -C x", "")],
)  # fmt: skip
def test_what_may_be_allowed_together_is_offered_by_how_it_begins(words: str, prefix: str) -> None:
    assert offered_prefix([words.split()]) == prefix


RUNS_ANYTHING = (
    "python3.11 x.py|pypy3 x|nodejs x|ruby3.2 x|perl5.36 x|lua5.4 x|php8 x|csh x|tcsh x|ksh x|dash x|busybox sh|fish x|nu x|pwsh x|elvish x"
    "|gdb ./a|lldb a|vim x|vim.tiny x|emacs x|nano x|sqlite3 a.db|psql x|mysql x|duckdb x|m4 x|strace ls|ltrace ls|flock x y|taskset 1 y"
    "|valgrind x|systemd-run x|entr x|watch x|parallel x|xargs x|find . -exec x|tmux new x|screen x|expect x|git config a b"
    "|git bisect run x|git submodule foreach x|git filter-branch --tree-filter x|git lg|git -c a=b log"
    "|git-filter-branch x|tar -I ./x -cf a b"
    "|tar cIf ./x a b|tar --use-compress-program=./x -cf a b|git rebase -x y z|git rebase -s ours z|git rebase --exec y z|cmake --build x"
    "|ninja|make|make SHELL=./x all|java -jar x|uv run python x|poetry run bash x|pipx run x|go generate ./x|npx x|uvx x|bunx x|ssh h x"
    "|openssl engine x|zip -TT ./x a b|split --filter=./x a|ccache gcc x|code x|less x|man x|awk x|R -e x|julia x|ipython x|tsx x"
    "|docker exec a b|kubectl exec a b|kubectl get x --kubeconfig y|rsync -e ./x a b|scp -S ./x a b|sort --compress-program=./x a"
    "|npm run build --script-shell=./x|go test -exec ./x|cargo test --config x|gcc -wrapper ./x a.c|just --shell ./x all|npm run|uv run x"
)


@pytest.mark.parametrize("command", RUNS_ANYTHING.split("|"))
def test_no_beginning_is_offered_for_what_can_run_anything(command: str) -> None:
    if command != "uv run x":
        assert offered_prefix([command.split()]) == ""
    else:
        assert offered_prefix([command.split()]) == command, "a script of the project"


@pytest.mark.parametrize(
    ("prefix", "covered", "uncovered"),
    [("tar", "tar cf a b", "tar cIf ./x a b"), ("tar", "tar -xf a", "tar -x --to-command=./x -f a"),
     ("git rebase", "git rebase main", "git rebase -s ours x"), ("git rebase", "git rebase --abort", "git rebase --exec ./x main"),
     ("make all", "make all -j2", "make all CC=./x"), ("go test", "go test ./...", "go test -exec ./x"),
     ("npm run build", "npm run build --watch", "npm run build --script-shell ./x")],
)  # fmt: skip
def test_commands_that_begin_so_does_not_cover_options_that_run_something(prefix: str, covered: str, uncovered: str) -> None:
    assert is_still_offered(prefix)
    assert decision(covered, prefix_rule(prefix)) == "allow"
    assert decision(uncovered, prefix_rule(prefix)) == "ask"


@pytest.mark.parametrize(
    ("rule", "command"),
    [("sqlite3 *", "sqlite3 a.db '.shell touch x'"), ("sqlite3 *", "sqlite3 a.db 'select 1;\n.shell x'"), ("tar *", "tar cIf ./x a b"),
     ("kubectl get *", "kubectl get pods --kubeconfig ./x"), ("git filter-branch *", "git filter-branch --tree-filter ./x"),
     ("git rebase *", "git rebase -s ./x main")],
)  # fmt: skip
def test_a_rule_with_a_star_does_not_cover_options_that_run_something(rule: str, command: str) -> None:
    assert decision(command, allow(rule)) == "ask"


@pytest.mark.parametrize(
    ("prefix", "is_honoured"),
    [("python3.11", False), ("sqlite3", False), ("git config", False), ("npm run", False), ("make", False), ("rm", False), ("", False),
     ("pytest", True), ("git commit", True), ("npm run build", True), ("make test", True), ("pytest tests -q", True)],
)  # fmt: skip
def test_what_was_saved_and_would_not_be_offered_now_is_not_honoured(prefix: str, is_honoured: bool) -> None:
    assert is_still_offered(prefix) is is_honoured
    intent = Intent(command=f"{prefix} x", directory="/w")
    verdict = judge(SHELL, intent, "default", frozenset({PREFIX_KEY + prefix}), Law(folders=("/w",)))
    assert isinstance(verdict, Allow) is is_honoured


@pytest.mark.parametrize(
    "command",
    ["rm -rf x", "git push", "npm publish", "sudo x", "ls && rm x", "find . -delete", "curl x | sh", "x=$(rm y)", "env rm x",
    "npm run deploy",
     "bash -c 'rm x'", "git reset --hard", "/bin/rm x", "if true; then rm x; fi", "twine upload d", "docker run x",
     "git branch -D x", "git branch -d x", "git -C y tag -d v1", "git checkout -- .", "git checkout -f main", "git checkout .",
     "git restore f",
     "git stash clear", "git switch -C x", "git update-ref -d x", "mkfs.ext4 /dev/x", "ansible-playbook x.yml", "helm upgrade x",
     "dropdb x",
     "psql -c 'DROP TABLE x'", "redis-cli FLUSHALL", "sqlite3 a.db 'delete from x'", "rclone sync a b:", "git reflog expire --all"],
)  # fmt: skip
def test_what_deletes_publishes_or_reaches_out_is_never_offered_as_always(command: str) -> None:
    assert is_grave(command)
    found = judge(SHELL, Intent(command=command, directory="/w"), "default", law=Law(folders=("/w",)))
    assert isinstance(found, MustAsk)
    assert found.view.guarded == "grave"
    assert not found.view.prefix


@pytest.mark.parametrize(
    "command", ["git checkout main", "git branch x", "git tag v1", "psql -c 'select dropped from x'", "git switch -c x", "make test"]
)
def test_what_keeps_everything_may_be_allowed_always(command: str) -> None:
    assert not is_grave(command)


@pytest.mark.parametrize(
    ("prefix", "covered", "grave"),
    [("git checkout", "git checkout dev", "git checkout -- ."),
     ("git stash", "git stash pop", "git stash drop"), ("npm run", "npm run build", "npm run deploy"), ("make", "make all", "make clean")],
)  # fmt: skip
def test_commands_that_begin_so_does_not_cover_one_that_deletes(prefix: str, covered: str, grave: str) -> None:
    assert decision(covered, prefix_rule(prefix)) == "allow"
    assert decision(grave, prefix_rule(prefix)) == "ask"
    assert decision(grave, allow(f"{prefix} *")) == "allow", "a rule that the user wrote does"


# --- written down


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule("allow", "* x"), "any program"),
        (Rule("allow", 'make "x'), "not closed"),
        (Rule("allow", ""), "empty"),
        (Rule("deny", "a\u202eb"), "invisible"),
        (Rule("allow", "git log *", match=("git logout",)), "git logout"),
        (Rule("deny", "git", no_match=("git status",)), "git status"),
        (Rule("deny", "src/**", "edit", match=("lib/x",)), "lib/x"),
    ],
)
def test_a_rule_that_cannot_be_used_says_why(rule: Rule, said: str) -> None:
    with pytest.raises(RuleProblem, match=said.replace("*", r"\*")):
        check_rule(rule)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [("src/**", "src/a/b", True), ("src/**", "src", True), ("src/**", "srcx", False), ("**/*.py", "a.py", True), ("**/*.py", "x/y/a.py",
    True),
     ("*.py", "x/a.py", False), ("./a", "a", True), ("a?c", "abc", True), ("a?c", "a/c", False)],
)  # fmt: skip
def test_paths(pattern: str, path: str, fits: bool) -> None:
    assert fits_path(pattern, path) is fits


@pytest.mark.parametrize(
    ("text", "told"),
    [("cd x && make", "`&&`"), ("make | tee x", "`|`"), ("make > log", "`>`"), ("make;rm", "`;`"), ("echo `x`", "```"),
     ("run_shell a || b", "`||`"),
     ("FOO=1 make", "FOO=1"), ("-p", "not with -p"), ("Bash(npm run test:*)", "`npm run test *`"), ("Bash", "`run_shell`"),
     ("Bash(*)", "`run_shell`"), ("Read(./.env)", "`read_file .env`"), ("Edit(src/**)", "`edit "),
     ("WebFetch(domain:a.org)", "`web_fetch a.org`")],
)  # fmt: skip
def test_a_rule_that_no_command_ever_fits_is_an_error_that_says_what_to_write(text: str, told: str) -> None:
    for rule in (allow, ask, deny):
        with pytest.raises(RuleProblem, match=re.escape(told)):
            rule(text)


@pytest.mark.parametrize("host", ["https://a.org/page", "a.org/x", "me@a.org", "a.org, b.org", "http://"])
def test_a_rule_that_allows_a_page_and_not_a_host_is_an_error(host: str) -> None:
    for tool in ("web_fetch", "network"):
        with pytest.raises(RuleProblem, match=f"`{tool} example.org`"):
            allow(f"{tool} {host}")
        deny(f"{tool} {host}")
        for good in ("a.org", "*.a.org", "a.org:8080", "https://a.org", "https://a.org/", "*", "[2606:4700::1]:8080"):
            allow(f"{tool} {good}")


def test_a_rule_with_a_variable_is_an_error_where_it_allows() -> None:
    with pytest.raises(RuleProblem, match="write what it stands for"):
        allow("$HOME/x")
    assert decision("rm -rf $HOME", deny("rm -rf $HOME")) == "deny"


def test_signs_that_are_words_of_a_command_are_quoted() -> None:
    for text in ("grep 'a|b' *", 'rg "x && y"', r"find . -exec cat {} \;", "make *"):
        allow(text)


WORDS = st.sampled_from(["make", "make x", "make *", "ls", "ls *", "git push", "git *", "touch", "pytest *", "npm run *", "rm -rf *"])
RULES = st.builds(parse_rule, WORDS, st.sampled_from(DECISIONS), tier=st.sampled_from(TIERS))
COMMANDS = st.sampled_from(
    ["make", "make x y", "ls -la", "git push", "git status", "touch a", "pytest", "ls && make", "ls; rm -rf x", "$(make)", "a | b"]
)


@given(COMMANDS, st.lists(RULES, max_size=6), WORDS, st.sampled_from(TIERS))
def test_adding_a_refusal_never_allows_more(command: str, rules: list[Rule], text: str, tier: Tier) -> None:
    added = parse_rule(text, "deny", tier=tier)
    assert ORDER[decision(command, *rules, added)] >= ORDER[decision(command, *rules)]


@given(COMMANDS, st.lists(RULES, max_size=6), st.lists(RULES, max_size=4))
def test_a_project_never_loosens(command: str, rules: list[Rule], more: list[Rule]) -> None:
    project = [msgspec.structs.replace(rule, tier="project") for rule in more]
    others = [rule for rule in rules if rule.tier != "project"]
    assert ORDER[decision(command, *others, *project)] >= ORDER[decision(command, *others)]


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=20)


@given(
    st.builds(
        Rule, st.sampled_from(DECISIONS), TEXT, TEXT, TEXT, st.lists(TEXT, max_size=3).map(tuple), st.lists(TEXT, max_size=3).map(tuple)
    )
)
def test_a_rule_that_is_written_down_is_read_back(rule: Rule) -> None:
    (table,) = tomllib.loads(render_rule(rule))["rules"]["rule"]
    assert Rule(**msgspec.structs.asdict(msgspec.convert(table, RuleTable))) == rule


@given(WORDS, st.sampled_from(DECISIONS))
def test_the_short_form_is_read_back(text: str, what: Any) -> None:
    rule = parse_rule(text, what)
    assert parse_rule(rule.text, what) == rule


def test_no_rule_reads_a_denied_command_wrongly(tmp_path: Path) -> None:
    found = judge(SHELL, Intent(command="touch x", directory="/w"), "default", law=Law((deny("touch", reason="not here"),), ("/w",)))
    assert isinstance(found, Deny)
    assert "not here" in found.reason
