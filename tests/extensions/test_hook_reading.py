"""Reading hooks and their answers: files with lines, matchers, and whatever a command may print."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.extensions.hooks.answers import MAX_WORDS_CHARS, Answer, HookEnd, join_answers, read_answer
from dragoman.extensions.hooks.definitions import FoundHooks, Hook, read_json_hooks
from dragoman.extensions.hooks.matching import fits, hooks_for
from dragoman.extensions.hooks.names import BLOCKING_EVENTS, EVENTS, tool_names
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Origin, Program

PROGRAMS: list[Program] = ["dragoman", "claude", "codex", "gemini"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ["continue", "stopReason", "systemMessage", "suppressOutput", "decision", "reason", "hookSpecificOutput"]
OWN_FIELDS = [
    "hookEventName",
    "permissionDecision",
    "permissionDecisionReason",
    "updatedInput",
    "additionalContext",
    "decision",
    "tool_input",
]
VALUES = JSON | st.sampled_from(["allow", "deny", "ask", "block", "approve", True, False, "PreToolUse", {"behavior": "deny"}])
ANSWERS = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES)) | st.fixed_dictionaries(
    {"hookSpecificOutput": st.fixed_dictionaries({}, optional=dict.fromkeys(OWN_FIELDS, VALUES))}
)


def folder(program: Program, project: str = "") -> ProgramFolder:
    return ProgramFolder(program, "project" if project else "user", f"/home/.{program}", project)


def read(text: str, program: Program = "claude") -> FoundHooks:
    return read_json_hooks(text, "/f.json", folder(program))


# --- files


def test_a_hook_is_read_with_its_line_and_comments_are_allowed() -> None:
    text = """{
  // mine
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [
        {"type": "command", "command": "a"},
        {"type": "command", "command": "b", "timeout": 5, "async": true, "args": ["x y"]}, /* the last */
      ]},
    ],
  },
}"""
    first, second = read(text).hooks
    assert (first.command, first.origin.line, first.timeout_s, first.is_async) == ("a", 6, 600, False)
    assert (second.line, second.origin.line, second.timeout_s, second.is_async) == ("b x y", 7, 5, True)


def test_gemini_cli_counts_milliseconds_and_has_names_of_its_own() -> None:
    row = '{"type": "command", "command": "a", "timeout": 1500, "name": "n"}'
    text = f'{{"hooks": {{"BeforeTool": [{{"matcher": "write_.*", "hooks": [{row}]}}], "AfterModel": [{{"hooks": [{row}]}}]}}}}'
    found = read(text, "gemini")
    assert [(hook.event, hook.named, hook.timeout_s) for hook in found.hooks] == [("PreToolUse", "BeforeTool", 1.5)]
    assert len(found.notices) == 1
    assert "AfterModel" in found.notices[0]
    switched_off = text.replace('{"hooks"', '{"hooksConfig": {"disabled": ["n"]}, "hooks"', 1)
    assert read(switched_off, "gemini").hooks == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"hooks": {"Stop": [\n}', "/f.json:2"),
        ('{"hooks": 3}', "a table was expected"),
        ('{"hooks": {"Stop": {}}}', "must be a list"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}', "this hook of the type prompt is not run"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "x"}]}]}}', "its url is x"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://x", "headers": 3}]}]}}', "`headers`"),
        ('{"allowedHttpHookUrls": ["http://y/*"], "hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://x/"}]}]}}', "http://x/"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}', "`command` must be text"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a", "timeout": -1}]}]}}', "`timeout`"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a", "if": 3}]}]}}', "`if`"),
        ('{"hooks": {"Stop": [3, 4]}}', "1 more problem"),
        ('{"hooks": {"Setup": [{"hooks": []}]}}', "Setup"),
        ("[" * 200, "truncated"),
    ],
)
def test_what_is_wrong_is_one_notice_that_names_the_place(text: str, words: str) -> None:
    found = read(text)
    assert found.hooks == ()
    assert len(found.notices) == 1
    assert words in found.notices[0]
    assert "/f.json" in found.notices[0]


@given(JSON, st.sampled_from(PROGRAMS))
def test_any_json_is_read_without_a_fault(value: Any, program: Program) -> None:
    for event in ("Stop", "BeforeTool"):
        assert len(read(json.dumps({"hooks": {event: value}}), program).notices) <= 1


# --- matchers


@pytest.mark.parametrize(
    ("matcher", "tool", "is_fitting"),
    [
        ("Bash", "run_shell", True),
        ("run_shell", "run_shell", True),
        ("run_shell_command", "run_shell", True),
        ("Edit|Write", "write_file", True),
        ("Edit, Write", "edit", True),
        ("replace", "edit", True),
        ("Edit|Write", "read_file", False),
        ("Bas", "run_shell", False),
        ("Notebook.*|Ba.*", "run_shell", True),
        ("^(Read|Grep)$", "grep", True),
        ("mcp__memory__.*", "mcp__memory__store", True),
        ("mcp__.*__store", "mcp__memory__store", True),
        ("mcp__memory", "mcp__memory__store", False),
        ("mcp_memory_.*", "mcp__memory__store", True),
        ("", "todo", True),
        ("*", "todo", True),
        ("(a+)+$", "todo", False),
        ("[", "todo", False),
    ],
)
def test_matchers_mean_our_tools_by_every_program_s_names(matcher: str, tool: str, is_fitting: bool) -> None:
    assert fits(matcher, tool_names(tool)) == is_fitting


@settings(deadline=1000)
@given(st.text(alphabet="ab()+*|.^$[]?{}0,\\ ", max_size=40), st.text(alphabet="ab_", max_size=60))
def test_no_matcher_takes_long_or_raises(matcher: str, name: str) -> None:
    assert fits(matcher, (name,)) in (True, False)


@given(st.lists(st.sampled_from(["Bash", "Edit", "run_shell", "grep", "x_1"]), min_size=1), st.sampled_from(["Bash", "Edit", "x", "grep"]))
def test_a_list_of_names_is_a_set(names: list[str], name: str) -> None:
    assert fits("|".join(names), (name,)) == (name in names)


def test_the_same_command_runs_once_for_an_event() -> None:
    hook = Hook("PreToolUse", "PreToolUse", "a", Origin("claude", "user", "/f"), "Bash")
    other = Hook("PreToolUse", "PreToolUse", "a", Origin("claude", "user", "/f"), "Ba.*")
    third = Hook("PostToolUse", "PostToolUse", "a", Origin("claude", "user", "/f"))
    assert hooks_for([hook, other, third], "PreToolUse", "run_shell") == [hook]


# --- answers


@given(st.sampled_from(EVENTS), st.sampled_from(PROGRAMS), ANSWERS, st.integers(0, 255))
def test_any_object_is_an_answer(event: Any, program: Program, data: dict[str, Any], code: int) -> None:
    answer = read_answer(event, program, HookEnd(code, json.dumps(data).encode(), b"why"))
    assert not answer.blocks or event in BLOCKING_EVENTS
    assert not answer.blocks or answer.reason
    assert answer.arguments is None or isinstance(answer.arguments, dict)
    assert len(answer.context) <= MAX_WORDS_CHARS
    assert code in (0, 2) or answer.warnings
    for text in (answer.reason, answer.context, answer.stop_reason, *answer.messages, *answer.warnings):
        text.encode()
        assert not re.search("[\x00-\x08\x1b\u202e]", text)


@given(
    st.sampled_from(EVENTS), st.sampled_from(PROGRAMS), st.binary(max_size=300), st.binary(max_size=100), st.integers(0, 255), st.booleans()
)
def test_any_bytes_are_an_answer(event: Any, program: Program, out: bytes, err: bytes, code: int, is_cut: bool) -> None:
    for stdout in (out, b"{" + out, b'{"systemMessage": "' + out + b'"}'):
        answer = read_answer(event, program, HookEnd(code, stdout, err, is_cut=is_cut))
        assert isinstance(answer, Answer)
        assert not answer.stops
        for text in (answer.reason, answer.context, *answer.messages):
            text.encode()


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', "{" * 5000, '{"reason": "\\ud800", "decision": "block"}', '{"decision": 1e999}', '{"a":' * 300 + "1" + "}" * 300]
)
def test_hostile_json_does_no_harm(text: str) -> None:
    answer = read_answer("PreToolUse", "claude", HookEnd(0, text.encode()))
    assert answer.reason.encode().decode() == answer.reason


def test_a_hook_that_ran_out_of_time_decides_nothing() -> None:
    answer = read_answer("PreToolUse", "claude", HookEnd(2, b'{"decision": "block"}', b"no", timed_out=True))
    assert not answer.blocks
    assert len(answer.warnings) == 1


@given(
    st.lists(
        st.sampled_from(
            [Answer(), Answer(permission="allow"), Answer(permission="ask"), Answer(blocks=True, permission="deny", reason="r")]
        )
    )
)
def test_of_several_answers_the_strictest_holds(answers: list[Answer]) -> None:
    joined = join_answers(answers)
    order = ["", "allow", "ask", "deny"]
    assert joined.permission == max((each.permission for each in answers), key=order.index, default="")
    assert joined.blocks == any(each.blocks for each in answers)
    assert join_answers([joined]) == joined


def test_an_event_without_a_list_is_named_with_its_line() -> None:
    text = '{\n "hooks": {\n  "Stop": [],\n  "preEditHook": {"command": "x"}\n }\n}'
    told = read_json_hooks(text, "/w/.claude/settings.json", folder("claude")).notices
    assert len(told) == 1
    assert "settings.json:4: this hook is not run: preEditHook must be a list" in told[0]
