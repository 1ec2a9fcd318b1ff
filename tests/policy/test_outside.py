"""Commands outside the sandbox: nothing but a person, or a rule written for it, lets one run."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.hooks import Hooks, Proceed
from dragoman.loop.hooking import Hooking
from dragoman.policy.approvals import Approvals
from dragoman.policy.grants import Grants
from dragoman.policy.judge import Law, Mode, MustAsk, judge
from dragoman.policy.rules import Rule, RuleProblem, allow, ask, deny, parse_rule
from dragoman.values.calls import Allow, Deny, Intent, Show, ToolOutput
from dragoman.values.messages import ToolCall, ToolSpec

COMMAND = "make deploy"


class Shell:
    """A tool that runs commands, and says what it would do as ours does."""

    spec = ToolSpec.of("run_shell", "", {"type": "object"}, kind="execute")

    def intend(self, args: Mapping[str, Any]) -> Intent:
        outside = str(args.get("outside") or "")
        command = str(args.get("command"))
        directory = str(args.get("directory", ""))
        return Intent(title=f"$ {command}", preview=command, command=command, directory=directory, sandboxed=not outside, outside=outside)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        raise AssertionError("only judged here")


def a_call(command: str = COMMAND, *, outside: str = "It needs the network.", id: str = "c1", **more: str) -> ToolCall:
    return ToolCall(id, "run_shell", jsontext.dumps({"command": command, "outside": outside, **more}))


class Person:
    """Who is asked, and what they say."""

    def __init__(self, answer: Allow | Deny | None = None) -> None:
        self.answer = answer or Deny("no")
        self.seen: list[Intent] = []

    async def __call__(self, call: ToolCall, intent: Intent) -> Allow | Deny:
        self.seen.append(intent)
        return self.answer


def approvals_with(
    folder: Path, person: Person | None, *rules: Rule, mode: Mode = "default", grants: Grants | None = None, **options: Any
) -> Approvals:
    law = Law(rules, (str(folder),), run_sandboxed=True)
    return Approvals(lambda name: Shell(), mode, person, grants=grants, law=lambda: law, has_sandbox=lambda: True, **options)


def decide(approvals: Approvals, call: ToolCall, hooks: Hooks | None = None) -> Allow | Deny:
    async def decided() -> Any:
        deciding = approvals.decide
        if hooks is not None:
            hooking = Hooking((hooks,))
            deciding = hooking.decide(approvals, deciding)
            if hooking.before is not None:
                await hooking.before(call)
        answer = deciding(call)
        return answer if isinstance(answer, Allow | Deny) else await answer

    return asyncio.run(decided())


MODES: tuple[Mode, ...] = ("plan", "default", "auto-edit", "auto")
RULES = {
    "none": (),
    "this command": (allow(COMMAND),),
    "all commands": (Rule("allow", "", "run_shell"),),
    "by the flag": (parse_rule("make *", "allow", tier="flag"),),
    "by the administrator": (parse_rule("make *", "allow", tier="admin"),),
    "another command outside": (allow("outside make test"),),
    "outside, by the project": (parse_rule(f"outside {COMMAND}", "allow", tier="project"),),
    "outside, as a grant": (parse_rule(f"outside {COMMAND}", "allow", tier="grant"),),
    "a program called outside": (Rule("allow", f"outside {COMMAND}"),),
    "every command outside, as no file is read": (Rule("allow", "", "outside"),),
}
GRANTS = {
    "none": (),
    "this command": (f"run_shell {COMMAND}",),
    "beginnings": ("run_shell* make", "outside* make", "outside* make deploy"),
    "the tool": ("run_shell", "outside", f"outside {COMMAND}", "edit"),
}
HOOKS = {
    "none": None,
    "allows": Hooks(before_call=lambda call: Allow()),
    "skips the question": Hooks(before_call=lambda call: Proceed(question="skip")),
    "answers the question": Hooks(before_ask=lambda call, intent: Allow(remember="session")),
    "adds it": Hooks(before_call=lambda call: Allow(a_call().arguments)),
    "adds it and skips": Hooks(before_call=lambda call: Proceed(a_call().arguments, "skip")),
}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("mode", MODES)
def test_nothing_but_a_rule_for_it_spares_the_question(tmp_path: Path, mode: Mode, rules: str) -> None:
    file = str(tmp_path / "grants.jsonl")
    for grant, hook in itertools.product(GRANTS, HOOKS):
        grants = Grants(file, str(tmp_path))
        for key in GRANTS[grant]:
            Grants(file, str(tmp_path)).add(key, saved=True)
            if not key.startswith("outside* make"):
                grants.add(key)
        person = Person()
        approvals = approvals_with(
            tmp_path,
            person,
            *RULES[rules],
            mode=mode,
            grants=grants,
            trusted=(lambda tool: True) if hook == "none" else (lambda tool: False),
        )
        inside = "adds it" in hook
        call = a_call(outside="" if inside else "why")
        answer = decide(approvals, call, HOOKS[hook])
        assert isinstance(answer, Deny)
        assert len(person.seen) == (mode != "plan"), (grant, hook)
        assert approvals.reach_of(call.id) != "outside"
        assert approvals.outside_run(call.id) is None
        assert not approvals.may_skip(a_call())
        if person.seen:
            assert person.seen[0].guarded == "outside"
            assert person.seen[0].outside
            assert person.seen[0].prefix == ""
        Path(file).unlink(missing_ok=True)


@pytest.mark.parametrize("mode", ["default", "auto-edit", "auto"])
@pytest.mark.parametrize("tier", ["user", "flag", "admin"])
def test_a_rule_for_it_lets_it_run_unasked_with_programs_from_elsewhere(tmp_path: Path, mode: Mode, tier: Any) -> None:
    person = Person()
    approvals = approvals_with(tmp_path, person, parse_rule("outside make deploy", "allow", tier=tier), mode=mode)
    assert decide(approvals, a_call()) == Allow()
    assert person.seen == []
    run = approvals.outside_run("c1")
    assert run is not None
    assert run.command == COMMAND
    assert str(tmp_path) in run.untrusted
    assert approvals.reach_of("c1") == "outside"
    assert isinstance(decide(approvals, a_call("make deploy all")), Deny)


def test_plan_mode_refuses_it_whatever_the_rules_say(tmp_path: Path) -> None:
    answer = decide(approvals_with(tmp_path, Person(Allow()), allow("outside make deploy"), mode="plan"), a_call())
    assert isinstance(answer, Deny)
    assert "plan mode" in answer.reason


@pytest.mark.parametrize("rule", [deny("make deploy"), deny("run_shell"), deny("outside make"), deny("outside")])
def test_a_refusal_holds_outside_too(tmp_path: Path, rule: Rule) -> None:
    person = Person(Allow())
    answer = decide(approvals_with(tmp_path, person, rule, allow("outside make *")), a_call())
    assert isinstance(answer, Deny)
    assert person.seen == []


def test_what_is_refused_outside_runs_inside(tmp_path: Path) -> None:
    assert decide(approvals_with(tmp_path, None, deny("outside"), mode="auto"), a_call(outside="")) == Allow()


@pytest.mark.parametrize("rule", [ask("make deploy"), ask("outside make"), parse_rule("make", "ask", tier="project")])
def test_a_rule_that_asks_is_not_lifted_by_one_that_lets_it_out(tmp_path: Path, rule: Rule) -> None:
    person = Person(Allow())
    rules = (rule, parse_rule("outside make *", "allow", tier="admin"), parse_rule("make *", "allow", tier="admin"))
    assert decide(approvals_with(tmp_path, person, *rules, mode="auto"), a_call()) == Allow()
    assert len(person.seen) == 1


def test_with_nobody_to_ask_the_model_is_told_what_to_do(tmp_path: Path) -> None:
    answer = decide(approvals_with(tmp_path, None), a_call())
    assert isinstance(answer, Deny)
    assert "nobody can be asked" in answer.reason
    assert "a rule `outside" in answer.reason


def test_a_yes_is_for_this_command_alone(tmp_path: Path) -> None:
    person = Person(Allow(remember="saved", prefix="make"))
    grants = Grants(str(tmp_path / "grants"), str(tmp_path))
    approvals = approvals_with(tmp_path, person, grants=grants)
    for number in range(2):
        assert decide(approvals, a_call(id=f"c{number}")) == person.answer
    assert len(person.seen) == 2
    assert grants.keys == frozenset()
    run = approvals.outside_run("c1")
    assert run is not None
    assert run.untrusted == ()


def test_a_call_of_the_same_id_needs_a_yes_of_its_own(tmp_path: Path) -> None:
    person = Person(Allow())
    approvals = approvals_with(tmp_path, person)
    decide(approvals, a_call())
    person.answer = Deny("no")
    decide(approvals, a_call())
    assert approvals.outside_run("c1") is None
    person.answer = Allow()
    decide(approvals, a_call())
    decide(approvals, a_call(outside=""))
    assert approvals.outside_run("c1") is None
    assert approvals.reach_of("c1") == "workspace"


def test_who_edits_a_command_of_the_sandbox_does_not_bring_it_outside(tmp_path: Path) -> None:
    person = Person(Allow(a_call().arguments))
    approvals = approvals_with(tmp_path, person, ask("make"))
    assert isinstance(decide(approvals, a_call(outside="")), Deny)
    assert approvals.outside_run("c1") is None


def test_an_edited_command_is_judged_again_and_is_what_may_run(tmp_path: Path) -> None:
    person = Person(Allow(a_call("make deploy --dry-run").arguments))
    approvals = approvals_with(tmp_path, person, deny("rm"))
    assert isinstance(decide(approvals, a_call()), Allow)
    run = approvals.outside_run("c1")
    assert run is not None
    assert run.command == "make deploy --dry-run"
    person.answer = Allow(a_call("rm -r x").arguments)
    assert isinstance(decide(approvals, a_call(id="c2")), Deny)
    assert approvals.outside_run("c2") is None


def test_what_was_put_off_is_decided_later(tmp_path: Path) -> None:
    approvals = approvals_with(tmp_path, Person())
    assert approvals.apply(a_call(), Allow()) == Allow()
    assert approvals.reach_of("c1") == "outside"


# --- rules


@pytest.mark.parametrize(
    "text", ["outside", "outside *", "outside git push && ls", "outside FOO=1 x", "outside make $X", "outside Bash(x)"]
)
def test_a_rule_that_would_let_out_anything_or_never_fit_is_refused(text: str) -> None:
    with pytest.raises(RuleProblem):
        parse_rule(text, "allow")


def test_a_rule_has_the_words_of_a_command() -> None:
    rule = parse_rule("outside git push *", "allow")
    assert (rule.tool, rule.pattern, rule.text) == ("outside", "git push *", "outside git push *")
    assert parse_rule("outside", "deny").pattern == ""


def test_a_rule_covers_no_program_of_a_folder_that_commands_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "make").write_text("#!/bin/sh\n")
    (tools / "make").chmod(0o755)
    person = Person()
    approvals = approvals_with(tmp_path, person, allow("outside make *"), allow("outside ./deploy *"), allow(f"outside {tools}/make"))
    assert decide(approvals, a_call()) == Allow()
    for command in ("./deploy x", f"{tools}/make"):
        decide(approvals, a_call(command))
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    decide(approvals, a_call())
    assert len(person.seen) == 3
    assert all("would be found in the workspace" in intent.why for intent in person.seen)


def test_every_command_of_a_line_needs_its_rule(tmp_path: Path) -> None:
    person = Person()
    approvals = approvals_with(tmp_path, person, allow("outside make deploy"), allow("ls"), allow("outside true"))
    assert decide(approvals, a_call("make deploy && true")) == Allow()
    for command in ("make deploy && ls", "make deploy; rm x", "make deploy $(id)", "cat x", "make deploy > log", "X=1 make deploy"):
        assert isinstance(decide(approvals, a_call(command)), Deny), command
    assert len(person.seen) == 6


# --- any rules, grants and modes

_WORDS = st.sampled_from(["git", "push", "make", "deploy", "*", "ls", "-f", "docker", "ps"])
_PATTERNS = st.lists(_WORDS, min_size=1, max_size=3).map(" ".join)
_RULES = st.builds(
    Rule,
    st.sampled_from(["allow", "ask", "deny"]),
    _PATTERNS | st.just(""),
    st.sampled_from(["", "run_shell", "edit", "network", "outside"]),
    tier=st.sampled_from(["default", "project", "grant", "user", "flag", "admin"]),
)
_KEYS = st.frozensets(st.builds("{} {}".format, st.sampled_from(["run_shell", "run_shell*", "outside", "edit"]), _PATTERNS))


@given(st.lists(_RULES, max_size=6), _KEYS, st.sampled_from(MODES), _PATTERNS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_the_rules_and_grants_only_a_users_rule_for_outside_lets_it_run(
    tmp_path: Path, rules: list[Rule], keys: frozenset[str], mode: Mode, command: str
) -> None:
    intent = Intent(command=command, preview=command, directory=str(tmp_path), outside="why")
    law = Law(tuple(rules), (str(tmp_path),), run_sandboxed=True)
    verdict = judge(Shell.spec, intent, mode, keys, law)
    if isinstance(verdict, Allow):
        assert mode != "plan"
        assert any(rule.tool == "outside" and rule.decision == "allow" and rule.tier in ("user", "flag", "admin") for rule in rules)
        without = [rule for rule in rules if rule.tool == "outside"]
        assert isinstance(judge(Shell.spec, intent, mode, frozenset(), Law(tuple(without), (str(tmp_path),))), Allow)
    if isinstance(verdict, MustAsk):
        assert verdict.view.guarded == "outside"
