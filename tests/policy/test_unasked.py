"""Which commands run with the workspace read-only instead of being asked about, and what stands above that."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.policy.approvals import Approvals
from dragoman.policy.grants import Grants
from dragoman.policy.judge import Law, MustAsk
from dragoman.policy.rules import Rule, allow, ask, deny
from dragoman.policy.sandbox.write_refusals import find_refused_write
from dragoman.values.calls import Allow, Deny, Intent, Show, ToolOutput
from dragoman.values.messages import ToolCall, ToolSpec

WORKSPACE = "/w"
RUNS, WRITES, ASKED, REFUSED = "read-only", "workspace", "asked", "refused"


class Shell:
    """run_shell as far as it is judged."""

    spec = ToolSpec.of("run_shell", "", {"type": "object"}, kind="execute")

    def __init__(self, *, has_read_only: bool = True, outside: str = "") -> None:
        self._has_read_only = has_read_only
        self._outside = outside

    def intend(self, args: Mapping[str, Any]) -> Intent:
        command = str(args["command"])
        writing = ("wanted" if args.get("writes") else "tried") if self._has_read_only else ""
        return Intent(command, command, command=command, directory=WORKSPACE, sandboxed=True, writing=writing, outside=self._outside)  # type: ignore[arg-type]

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        raise AssertionError


def approvals_of(
    mode: Any = "default", rules: Sequence[Rule] = (), *, shell: Shell | None = None, answer: Any = None, **options: Any
) -> tuple[Approvals, list[Intent]]:
    asked: list[Intent] = []
    tool = shell or Shell()

    def ask_person(call: ToolCall, intent: Intent) -> Allow | Deny:
        asked.append(intent)
        return answer or Allow()

    law = Law(rules=tuple(rules), folders=(WORKSPACE,), run_sandboxed=options.pop("run_sandboxed", False))
    made = Approvals(lambda name: tool, mode, ask_person, law=lambda: law, has_sandbox=lambda: True, **options)  # type: ignore[arg-type]
    return made, asked


def decide(approvals: Approvals, call: ToolCall) -> Allow | Deny:
    answer = approvals.decide(call)
    if isinstance(answer, Coroutine):
        try:
            answer.send(None)  # nobody waits: the person here answers at once
        except StopIteration as ended:
            answer = ended.value
    assert isinstance(answer, Allow | Deny)
    return answer


def call_of(command: str, **more: Any) -> ToolCall:
    return ToolCall("c", "run_shell", jsontext.dumps({"command": command, **more}))


def outcome(made: tuple[Approvals, list[Intent]], command: str = "make", **more: Any) -> str:
    approvals, asked = made
    before = len(asked)
    answer = decide(approvals, call_of(command, **more))
    if len(asked) > before:
        return ASKED
    return REFUSED if isinstance(answer, Deny) else approvals.reach_of("c")


@pytest.mark.parametrize(
    ("mode", "command", "expected"),
    [
        ("default", "make", RUNS),
        ("auto-edit", "make", RUNS),
        ("plan", "make", RUNS),
        ("auto", "make", WRITES),
        ("default", "git status", RUNS),
        ("plan", "git log", RUNS),
        ("auto", "git status", WRITES),
        ("default", "rm -rf build", RUNS),
        ("default", "git push --force", RUNS),
        ("default", "echo $(make) > a", RUNS),
        ("default", "rm -rf /w", ASKED),
        ("plan", "rm -rf /w", REFUSED),
        ("auto", "rm -rf /w", ASKED),
    ],
)
def test_the_mode_decides_where_nothing_else_does(mode: Any, command: str, expected: str) -> None:
    assert outcome(approvals_of(mode), command) == expected


@pytest.mark.parametrize("mode", ["default", "auto-edit", "plan"])
@pytest.mark.parametrize(
    ("rule", "expected", "in_plan_mode"),
    [
        (deny("make"), REFUSED, REFUSED),
        (ask("make"), ASKED, REFUSED),
        (allow("make"), WRITES, RUNS),
        (allow("make *"), WRITES, RUNS),
        (ask("git push"), RUNS, RUNS),
        (deny("run_shell"), REFUSED, REFUSED),
    ],
)
def test_rules_stand_above_it(mode: Any, rule: Rule, expected: str, in_plan_mode: str) -> None:
    assert outcome(approvals_of(mode, [rule])) == (in_plan_mode if mode == "plan" else expected)


@pytest.mark.parametrize(("mode", "expected"), [("default", ASKED), ("auto-edit", ASKED), ("plan", REFUSED), ("auto", WRITES)])
def test_without_a_read_only_way_it_is_as_it_was(mode: Any, expected: str) -> None:
    assert outcome(approvals_of(mode, shell=Shell(has_read_only=False))) == expected


def test_one_that_says_it_writes_is_asked_about_or_refused() -> None:
    assert outcome(approvals_of(), writes=True) == ASKED
    assert outcome(approvals_of("plan"), writes=True) == REFUSED
    assert outcome(approvals_of("auto"), writes=True) == WRITES
    assert outcome(approvals_of(run_sandboxed=True), writes=True) == WRITES


def test_one_that_is_to_run_outside_is_not_run_inside_instead() -> None:
    assert outcome(approvals_of(shell=Shell(outside="docker"))) != RUNS


def test_a_grant_lets_it_write() -> None:
    grants = Grants()
    grants.add("run_shell* make test", saved=False)
    assert outcome(approvals_of(grants=grants), "make test") == WRITES
    assert outcome(approvals_of("plan", grants=grants), "make test") == RUNS


@pytest.mark.parametrize("mode", ["default", "plan"])
@pytest.mark.parametrize("is_held", [True, False])
def test_limits_of_agents_and_skills_stand_above_it(mode: Any, is_held: bool) -> None:
    approvals, _ = made = approvals_of(mode)
    if is_held:
        approvals.tighten(lambda spec, intent, law: MustAsk(intent))
    else:
        approvals.narrowed = lambda spec, intent, law: MustAsk(intent)
    assert outcome(made) == (REFUSED if mode == "plan" else ASKED)


def test_what_somebody_else_may_have_written_is_asked_about() -> None:
    assert outcome(approvals_of(doubted=lambda call, spec: True)) == ASKED
    assert outcome(approvals_of(doubted=lambda call, spec: True), "git status") == ASKED


def test_the_answer_for_the_session_holds_until_it_is_taken_back() -> None:
    approvals, _ = made = approvals_of(answer=Allow(commands_write=True))
    assert not approvals.commands_write
    assert [outcome(made, writes=True), outcome(made, writes=True), outcome(made, "touch x")] == [ASKED, WRITES, WRITES]
    assert approvals.commands_write
    approvals.mode = "plan"
    assert outcome(made) == RUNS
    approvals.mode = "default"
    approvals.commands_write = False
    assert [outcome(made), outcome(made, writes=True)] == [RUNS, ASKED]


def test_it_is_the_same_for_those_that_work_for_an_agent() -> None:
    caller, _ = approvals_of()
    inner, _ = made = approvals_of()
    inner.work_for(caller)
    caller.commands_write = True
    assert outcome(made) == WRITES


def test_what_is_grave_is_not_a_moment_to_let_everything_write() -> None:
    approvals, asked = made = approvals_of(answer=Allow(commands_write=True))
    assert outcome(made, "rm -rf build", writes=True) == ASKED
    assert asked[0].guarded == "grave"
    assert not approvals.commands_write


def test_a_configured_permission_can_be_taken_back_for_the_session() -> None:
    approvals, _ = made = approvals_of(run_sandboxed=True)
    assert approvals.commands_write
    approvals.commands_write = False
    assert outcome(made) == RUNS


def test_a_hook_that_allows_does_not_make_plan_mode_write() -> None:
    approvals, _ = approvals_of("plan")
    assert approvals.forbids(call_of("touch x")) is None
    assert approvals.reach_of("c") == RUNS
    approvals, _ = approvals_of()
    assert approvals.forbids(call_of("touch x")) is None
    assert approvals.reach_of("c") == WRITES, "somebody has decided"


def test_how_far_one_call_reached_says_nothing_of_the_next_with_its_id() -> None:
    approvals, _ = made = approvals_of()
    assert outcome(made) == RUNS
    assert approvals.may_skip(call_of("touch x"))
    assert approvals.reach_of("c") == WRITES


_PROGRAMS = st.sampled_from(["make", "git", "rm", "npm", "sudo", "env", "bash", "touch"])
_WORDS = st.sampled_from(["push", "status", "-rf", "x", "install", "test", "make", "rm", "-c", "."])
_COMMANDS = st.tuples(_PROGRAMS, st.lists(_WORDS, max_size=2)).map(lambda words: " ".join((words[0], *words[1])))
_LINES = st.lists(_COMMANDS, min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from(["; ", " && ", " | ", " || ", "\n"]).map(lambda between: between.join(parts))
)
_RULES = st.lists(st.tuples(st.sampled_from([allow, ask, deny]), _COMMANDS, st.sampled_from(["", " *"])), max_size=4)


@given(_LINES, _RULES, st.sampled_from(["plan", "default", "auto-edit"]), st.booleans())
def test_no_call_that_a_rule_asks_about_or_refuses_runs_unasked(
    line: str, written: list[tuple[Any, str, str]], mode: Any, writes: bool
) -> None:
    rules = [make(f"{command}{end}") for make, command, end in written]
    before = outcome(approvals_of("default", rules, shell=Shell(has_read_only=False)), line)
    in_auto = outcome(approvals_of("auto", rules), line)
    found = outcome(approvals_of(mode, rules), line, writes=writes)
    if in_auto in (ASKED, REFUSED):
        assert found in (ASKED, REFUSED), "where even the mode auto asks, a rule does"
    if found == WRITES:
        assert before == WRITES, "nothing writes unasked that was asked about before"
    if mode == "plan":
        assert found in (RUNS, REFUSED)


# --- what a command says that was refused to write

REFUSALS = {
    "touch": "touch: cannot touch 'b': Read-only file system",
    "mkdir": "mkdir: cannot create directory ‘c’: Read-only file system",
    "git": "fatal: Unable to create '/w/.git/index.lock': Read-only file system",
    "npm": "npm error code EROFS\nnpm error rofs EROFS: read-only file system, open '/w/package.json'",
    "npm, a new folder": "npm error path /w/node_modules\nnpm error enoent ENOENT: no such file or directory, mkdir '/w/node_modules'",
    "node, a new folder": "Error: ENOENT: no such file or directory, mkdir 'dist/assets'\n    at Object.mkdirSync (node:fs:1372:26)",
    "tar": "tar: x.tar: Cannot open: Read-only file system\ntar: Error is not recoverable: exiting now",
    "bash": "/bin/bash: line 1: a: Read-only file system",
    "ld": "/usr/bin/ld: cannot open output file a.out: Read-only file system",
    "go": "go build x: copying /tmp/go-build37/b001/exe/a.out: open m: read-only file system",
    "java": "A.java:1: error: error while writing A: /w/A.class: Read-only file system",
    "rust": "error: failed to write `/w/target`\n\nCaused by:\n  Read-only file system (os error 30)",
    "python": "OSError: [Errno 30] Read-only file system: 'zz'",
    "node": "Error: EROFS: read-only file system, open 'x'\n  errno: -30,\n  code: 'EROFS',",
    "sqlite": "Error: stepping, attempt to write a readonly database (8)",
    "zip": "zip I/O error: Read-only file system",
    "curl": "curl: (23) Failure writing output to destination",
    "Chinese": "touch: 无法触碰 'b': 只读文件系统",
    "German": "touch: 'b' kann nicht berührt werden: Das Dateisystem ist nur lesbar",
}
OTHERS = {
    "a failing test": "FAILED tests/test_b.py::test_a - assert 0",
    "a cache": "PytestCacheWarning: could not create cache path /w/.c: [Errno 30] Read-only file system: '/w/pytest-cache-files'",
    "outside": "touch: cannot touch '/etc/foo': Read-only file system",
    "npm's cache": "npm error code EROFS\nnpm error path /root/.npm/x\nnpm error rofs EROFS: read-only file system, open '/root/.npm/x'",
    "node outside": "Error: EROFS: read-only file system, open '/usr/x'\n  errno: -30,\n  code: 'EROFS',\n  path: '/usr/x'",
    "a missing file": "Error: ENOENT: no such file or directory, open '/w/settings.json'",
    "npm's new folder elsewhere": "npm error enoent ENOENT: no such file or directory, mkdir '/root/.npm/_cacache'",
    "permission": "cat: secret: Permission denied",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_to_write_is_recognised(name: str) -> None:
    line = find_refused_write(f"before\n{REFUSALS[name]}\nafter", [WORKSPACE])
    assert line
    assert line in REFUSALS[name]


@pytest.mark.parametrize("name", OTHERS)
def test_what_was_not_refused_is_not_taken_for_it(name: str) -> None:
    assert find_refused_write(OTHERS[name], [WORKSPACE]) == ""


@given(st.text(), st.lists(st.text(max_size=20), max_size=3))
def test_any_output_is_read(output: str, folders: list[str]) -> None:
    assert "\n" not in find_refused_write(output, folders)
