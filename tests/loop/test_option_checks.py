"""Options that cannot be meant are refused when the agent is made, with what is allowed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman import mcp
from dragoman.loop.option_checks import _FIELDS
from dragoman.options import Account, AnswerPolicy, Budget, CompressSettings, LoopLimits, PruneRule, PruneSettings, choose_language
from dragoman.policy.judge import Mode
from dragoman.testing.scripted import ScriptedProvider


def make(**options: Any) -> dm.Agent:
    return dm.Agent(ScriptedProvider("text: Hello."), **options)


@dm.tool
def a_tool() -> None:
    "Does nothing."


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an approval that does not exist": (
        {"approval": "yolo"},
        "approval.mode must be one of 'plan', 'default', 'auto-edit', 'auto', or ApprovalOptions(mode, ask)",
    ),
    "a rule that is a text": ({"approval": dm.ApprovalOptions(rules=["pytest *"])}, "approval.rules[0] must be a rule"),  # type: ignore[list-item]
    "a rule for any program": (
        {"approval": dm.ApprovalOptions(rules=[dm.rules.Rule("allow", "* x")])},
        "approval.rules[0]: the rule * x cannot be used",
    ),
    "a rule that decides something else": (
        {"approval": dm.ApprovalOptions(rules=[dm.rules.Rule("Deny", "touch")])},  # type: ignore[arg-type]
        "approval.rules[0]: the rule touch cannot be used: its decision is 'Deny', and must be one of allow, ask, deny",
    ),
    "a host that is a page": (
        {"approval": dm.ApprovalOptions(hosts=["https://a.org/page"])},
        "approval.hosts[0] must be the name of a host alone, such as example.org",
    ),
    "the same in the options": ({"approval": dm.ApprovalOptions("yes")}, "approval.mode must be one of"),  # type: ignore[arg-type]
    "someone to ask who cannot be asked": ({"approval": dm.ApprovalOptions(ask="me")}, "approval.ask must be a function, not 'me'"),  # type: ignore[arg-type]
    "a workspace that is not there": ({"workspace": "/no/such/folder"}, "workspace.root: there is no folder /no/such/folder"),
    "a workspace that is a file": ({"workspace": __file__}, "workspace.root: there is no folder"),
    "a workspace that is no path": ({"workspace": 3}, "workspace.root must be the path of a folder, not 3"),
    "an included folder that is not there": (
        {"workspace": dm.WorkspaceOptions(include=["/no/such"])},
        "workspace.include[0]: there is no folder /no/such",
    ),
    "one include instead of a list": (
        {"workspace": dm.WorkspaceOptions(include="/tmp")},
        "workspace.include must be a list or tuple, not '/tmp'",
    ),
    "the name of a tool": ({"tools": ["read_file"]}, "tools.own[0] must be a tool"),
    "one tool instead of a list": ({"tools": a_tool}, "tools must be a list or tuple, not a FunctionTool"),
    "a text instead of tools": ({"tools": "read_file"}, "tools must be a list or tuple, not 'read_file'"),
    "one built-in tool instead of a list": ({"tools": dm.ToolOptions(builtin="grep")}, "tools.builtin must be a list or tuple, not 'grep'"),
    "a way of calling": ({"tools": dm.ToolOptions(calling="xml")}, "tools.calling must be one of 'auto', 'native', 'text', not 'xml'"),  # type: ignore[arg-type]
    "a way of searching": ({"tools": dm.ToolOptions(web=dm.WebAccess("bing"))}, "tools.web.search must be one of"),  # type: ignore[arg-type]
    "an HTTP client": ({"tools": dm.ToolOptions(web=dm.WebAccess(client="curl"))}, "tools.web.client must be one of 'own', 'httpx'"),  # type: ignore[arg-type]
    "settings as a dict": ({"settings": {"temperature": 1}}, "settings must be a dragoman.Settings, not a dict"),
    "a temperature below zero": ({"settings": dm.Settings(temperature=-1)}, "settings.temperature must be a number of at least 0, not -1"),
    "a share above one": ({"settings": dm.Settings(top_p=2)}, "settings.top_p must be a number from 0 to 1, not 2"),
    "no output at all": (
        {"settings": dm.Settings(max_output_tokens=0)},
        "settings.max_output_tokens must be a whole number of at least 1, not 0",
    ),
    "an effort": ({"settings": dm.Settings(thinking=dm.Thinking("huge"))}, "settings.thinking.effort must be one of 'off', 'low'"),  # type: ignore[arg-type]
    "one stop text instead of several": ({"settings": dm.Settings(stop="END")}, "settings.stop must be a list or tuple, not 'END'"),  # type: ignore[arg-type]
    "limits as a number": ({"limits": 10}, "limits must be a dragoman.Limits, not 10"),
    "no turns": ({"limits": dm.Limits(max_turns=0)}, "limits.max_turns must be a whole number of at least 1, not 0"),
    "half a turn": ({"limits": dm.Limits(max_turns=1.5)}, "limits.max_turns must be a whole number of at least 1, not 1.5"),  # type: ignore[arg-type]
    "True turns": ({"limits": dm.Limits(max_turns=True)}, "limits.max_turns must be a whole number"),
    "no time": ({"limits": dm.Limits(shell_timeout_s=0)}, "limits.shell_timeout_s must be a number above 0, not 0"),
    "no time at all": ({"limits": dm.Limits(shell_timeout_s=float("nan"))}, "limits.shell_timeout_s must be a number of at least 0"),
    "no attempts": (
        {"limits": dm.Limits(answers=AnswerPolicy(attempts=0))},
        "limits.answers.attempts must be a whole number of at least 1",
    ),
    "a negative count": (
        {"limits": dm.Limits(loop=LoopLimits(same_call=-1))},
        "limits.loop.same_call must be a whole number of at least 0",
    ),
    "a schedule": ({"context": dm.ContextSettings(PruneSettings("daily"))}, "context.prune.schedule must be one of 'auto'"),  # type: ignore[arg-type]
    "a negative age": (
        {"context": dm.ContextSettings(PruneSettings(rule=PruneRule(age_ms=-2)))},
        "context.prune.rule.age_ms must be a number",
    ),
    "a threshold": (
        {"context": dm.ContextSettings(compress=CompressSettings(threshold=70))},
        "context.compress.threshold must be a number from 0 to 1, not 70",
    ),
    "a session as a dict": (
        {"session": {}},
        "session.store must be a folder for sessions, a store (dragoman.stores), a History or SessionOptions, not a dict",
    ),
    "bytes without a store": ({"session": dm.SessionOptions(blobs=3)}, "session.blobs must be a store with put and get"),  # type: ignore[arg-type]
    "a fallback": ({"fallback": [3]}, "fallback.models[0] must be the name of a model, or a dragoman.Provider, not 3"),
    "a system prompt": ({"system": ["Be kind."]}, "system must be a text, not a list"),
    "a budget as a number": ({"budget": 5}, "budget must be a dragoman.options.Budget, not 5"),
    "a function that is asked": (
        {"approval": print},
        "approval.mode must be one of 'plan', 'default', 'auto-edit'",
    ),
    "a hook that cannot be called": ({"hooks": dm.hooks.Hooks(before_call=5)}, "hooks[0].before_call must be a function, not 5"),  # type: ignore[arg-type]
    "a file of memory": (
        {"workspace": dm.WorkspaceOptions(memory=["AGENTS.md"])},  # type: ignore[list-item]
        "workspace.memory[0] must be a pair of texts: the path of a file and what it says, not 'AGENTS.md'",
    ),
    "a file for sessions": ({"session": __file__}, f"session.store: {__file__} is a file; name a folder"),
    "a session of no store": ({"session": dm.SessionOptions(resume="latest")}, "a session is resumed from the store it is in"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_option_is_refused_with_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(dm.InputError) as caught:
        make(**options)
    assert str(caught.value).startswith(message)


class Mapped:
    def __init__(self, place: object) -> None:
        self.place = place


def a_closed_agent() -> dm.Agent:
    agent = make()
    agent.close()
    return agent


WRONG_CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "a class as a model": (lambda: dm.Agent(ScriptedProvider), "the class ScriptedProvider is neither the name of a model nor"),  # type: ignore[arg-type]
    "a number as a prompt": (lambda: make().run(5), "5 cannot be said to a model: give a text"),  # type: ignore[arg-type]
    "bytes as a prompt": (lambda: make().run([b"\x89PMG"]), "how these bytes begin does not tell what they are"),  # type: ignore[list-item]
    "settings of a run as a dict": (lambda: make().run("x", settings={}), "settings must be a dragoman.Settings, not a dict"),  # type: ignore[call-overload]
    "texts as messages": (lambda: make().set_history(["hi"]), "messages[0] must be a Message"),  # type: ignore[list-item]
    "an agent by its name": (lambda: make().hand_over("purser"), "agent must be an Agent, not 'purser'"),  # type: ignore[arg-type]
    "a call that does not wait": (lambda: make().resume_sync({"x": dm.Allow()}), "there is no call 'x' that waits; agent.pending has"),
    "a run after the end": (lambda: a_closed_agent().run_sync("x"), "this agent is closed; make another one"),
    "a change after the end": (lambda: a_closed_agent().clear(), "this agent is closed; make another one"),
    "a type without a schema": (lambda: make(output=Mapped), "Mapped has no JSON Schema ("),
    "a list of servers": (lambda: mcp.Servers([]), "servers must be names with their servers, such as dict("),  # type: ignore[arg-type]
    "one name of a tool": (lambda: mcp.Servers({}, include="tide"), "include must be a list or tuple, not 'tide'"),
    "one argument of a server": (lambda: mcp.Servers({"a": mcp.StdioServer("sh", "x")}), "a.args must be a list or tuple, not 'x'"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("call", "message"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_wrong_call_is_refused_in_one_sentence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(dm.InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_whoever_takes_a_run_for_its_result_is_told_to_wait_for_it() -> None:
    run = make().run("x")
    with pytest.raises(AttributeError, match="a Run has no 'text': `await` it"):
        _ = run.text  # type: ignore[attr-defined]
    assert not hasattr(run, "nonsense")
    run.cancel()


def test_a_forgotten_await_is_told() -> None:
    with pytest.warns(RuntimeWarning, match="a run was never begun, so the model was not asked: `await agent.run"):
        make().run("x")


@pytest.mark.parametrize("copy_of", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_cannot_be_copied_says_what_to_do(copy_of: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match=r"an Agent holds connections and a thread, .* make another one"):
        copy_of(make())
    with pytest.raises(TypeError, match="an Account is shared by the agents of one process"):
        copy_of(Account(Budget(usd=1)))


@pytest.mark.parametrize("group", _FIELDS, ids=lambda group: group.__name__)
def test_options_can_be_copied_and_pickled(group: type) -> None:
    options = group()
    assert pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == options


def test_settings_are_checked_when_they_are_changed_too() -> None:
    agent = make()
    with pytest.raises(dm.InputError, match="temperature must be"):
        agent.settings = dm.Settings(temperature=-1)
    assert agent.settings == dm.Settings(), "and the old ones stay"


def test_what_is_meant_is_accepted(tmp_path: Path) -> None:
    for mode in set(get_args(Mode)) - {"auto"}:  # which needs a sandbox
        make(approval=mode)
    make(
        workspace=tmp_path,
        tools=(tool for tool in [a_tool]),
        session=tmp_path / "new folder for sessions",
        fallback="gemini/gemini-3.8-flash",
    )
    make(tools=dm.ToolOptions([a_tool], builtin={"grep"}), fallback=[ScriptedProvider("")], system="")
    make(limits=dm.Limits(), settings=dm.Settings(0, 1, 1, 1, dm.Thinking("off", 0)), context=dm.ContextSettings())


@pytest.mark.parametrize("group", _FIELDS, ids=lambda group: group.__name__)
def test_every_default_is_allowed_and_every_check_is_of_a_field(group: type) -> None:
    for field, check in _FIELDS[group].items():
        check(field, getattr(group(), field))


@pytest.mark.parametrize("group", _FIELDS, ids=lambda group: group.__name__)
@given(
    value=st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2), st.just(object())
    )
)
def test_whatever_is_given_it_is_accepted_or_refused_in_words(group: type, value: object) -> None:
    for field, check in _FIELDS[group].items():
        refusal: dm.InputError | None = None
        try:
            check(field, value)
        except dm.InputError as error:
            refusal = error
        if refusal is not None:
            assert str(refusal).startswith(field)
            assert refusal.key.startswith("loop.")


# --- the words in a pruned result's place


@pytest.mark.parametrize(("language", "words"), [("", "(outdated output, removed to save room)"), ("zh", "此命令返回内容已过时")])
def test_what_stands_for_a_pruned_result_is_in_the_chosen_language(language: str, words: str) -> None:
    """The library said it in Chinese whatever the language."""
    try:
        choose_language(language)
        agent = make()
        agent.run_sync("Hello.")
        agent.close()
    finally:
        choose_language("en")
    assert agent.history.view.placeholder == words


def test_auto_without_a_sandbox_is_refused_before_a_session_is_begun(tmp_path: Path) -> None:
    with pytest.raises(dm.errors.SandboxError, match="use auto-edit"):
        make(approval="auto", session=tmp_path / "sessions")
    assert not (tmp_path / "sessions").exists()
