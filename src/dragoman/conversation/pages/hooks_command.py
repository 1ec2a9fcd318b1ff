"""`dragoman hooks`, and `/hooks` in a conversation: which commands run at which events, agreeing to a project's, and trying one."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.app.command_hooks import CommandHooks
from dragoman.app.finding_hooks import HooksOf, find_hooks
from dragoman.app.notices import one_for_each_file
from dragoman.app.opening import run_loop
from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up
from dragoman.app.trust import require_trust, trust_notices
from dragoman.base import jsontext
from dragoman.base.places import shorten_home
from dragoman.base.text import one_line
from dragoman.base.visible import escape_hidden
from dragoman.conversation.actions import Action, Output, find_action, refuse_options
from dragoman.conversation.code_lines import code_lines
from dragoman.extensions.hooks.agreement import agree, code_run_by, take_back
from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.inputs import Occasion
from dragoman.extensions.hooks.names import EVENTS, TOOL_EVENTS, Event
from dragoman.extensions.hooks.running import HookDone
from dragoman.values.errors import InputError
from dragoman.words import say


def run_hooks(options: Options) -> Output:
    name, action = find_action(options, ACTIONS)
    if name == "list" and len(options.words) > 1:
        raise InputError(say("too_many_words", command="hooks list", word=one_line(options.words[1], 60)))
    refuse_options(options, action, f"hooks {name}")
    return action.run(options)


def _list(options: Options) -> str:
    found = _with_wrong_files(set_up(options))
    if options.output_format == "json":
        return jsontext.dumps({"hooks": [as_json(hook, found) for hook in found.hooks], "notices": list(found.notices)}) + "\n"
    return "\n".join(lines_of(found)) + "\n"


def _with_wrong_files(setup: Setup) -> HooksOf:
    """With notices about files that may define hooks, and are broken as a whole or not read because the folder is not trusted."""
    found = find_hooks(setup)
    notices = (*setup.wrong_files, *found.notices, *trust_notices(setup.trust))
    return msgspec.structs.replace(found, notices=one_for_each_file(notices))


def _approve(options: Options) -> str:
    setup = set_up(options)
    found = find_hooks(setup)
    chosen = _chosen(setup, found, options.words[1:]) or found.bound(hook for hook in found.hooks if found.state(hook) != "runs")
    if not chosen:
        require_trust(setup.trust)
    _save(setup, lambda: agree(setup.places.hooks_file, chosen))
    return _report_change(options, "approved", chosen)


def _revoke(options: Options) -> str:
    setup = set_up(options)
    found = find_hooks(setup)
    chosen = _chosen(setup, found, options.words[1:]) or found.bound(found.hooks)
    _save(setup, lambda: take_back(setup.places.hooks_file, chosen))
    return _report_change(options, "revoked", chosen)


def _report_change(options: Options, done: str, hooks: Sequence[Hook]) -> str:
    if options.output_format == "json":
        return jsontext.dumps({done: [{"id": hook.id, "command": hook.line, "place": str(hook.origin)} for hook in hooks]}) + "\n"
    return changed_words(done, hooks) + "\n"


def changed_words(done: str, hooks: Sequence[Hook]) -> str:
    if not hooks:
        return say("hooks_nothing_to_approve" if done == "approved" else "approvals_nothing_revoked")
    return "\n".join([say(f"hooks_{done}"), *(f"  {hook_line(hook)}" for hook in hooks)])


def _test(options: Options) -> tuple[str, int]:
    """Run what fits an event, with made-up input, and show what comes of it."""
    words = options.words[1:]
    event: Event | None = next((each for each in EVENTS if words and each == words[0]), None)
    if event is None:
        raise InputError(say("hooks_test_what", events=", ".join(EVENTS)))
    setup = set_up(options)
    hooks = CommandHooks(setup, find_hooks(setup))
    occasion = _made_up(setup, event, words[1] if len(words) > 1 else "")
    began = time.monotonic()
    done = run_loop(lambda: hooks.runner.run_each(occasion))
    ms = int((time.monotonic() - began) * 1000)
    code = 1 if any(each.answer.warnings for each in done) else 0
    if options.output_format == "json":
        return jsontext.dumps({"hooks": [_tested_json(each) for each in done], "ms": ms}) + "\n", code
    lines = [line for each in done for line in _tested_lines(each, ms)]
    return "\n".join(lines or [say("hooks_tested_none", event=event, subject=occasion.subject)]) + "\n", code


ACTIONS: dict[str, Action[Options]] = {
    "list": Action(_list, options=("trust",)),
    "approve": Action(_approve, options=("trust",)),
    "revoke": Action(_revoke, options=("trust",)),
    "test": Action(_test, options=("trust",)),
}


def _made_up(setup: Setup, event: Event, subject: str) -> Occasion:
    subject = subject or ("run_shell" if event in TOOL_EVENTS else "")
    given: dict[str, Any] = (
        {"command": "echo hello"} if subject == "run_shell" else {"file_path": os.path.join(setup.workspace, "example.txt")}
    )
    details: dict[str, dict[str, Any]] = {
        "UserPromptSubmit": {"prompt": "hello"},
        "SessionStart": {"source": subject or "startup"},
        "PostToolUse": {"text": "hello"},
        "PostToolUseFailure": {"text": "it failed"},
        "PreCompact": {"trigger": subject or "manual"},
        "PostCompact": {"trigger": subject or "manual"},
        "Stop": {"stop_hook_active": False, "last_assistant_message": "hello"},
        "SubagentStop": {"stop_hook_active": False, "last_assistant_message": "hello", "agent_transcript_path": None},
        "Notification": {"message": "hello", "notification_type": subject or "permission_prompt"},
        "SessionEnd": {"reason": "other"},
    }
    return Occasion(
        event,
        "test",
        directory=os.path.realpath(setup.workspace),
        model="test/model",
        mode=setup.config.approval,
        turn_id="test#1",
        subject=subject,
        call_id="test_call",
        tool_input=given if event in TOOL_EVENTS else {},
        details=details.get(event, {}),
    )


def _tested_json(done: HookDone) -> dict[str, Any]:
    ended = done.ended
    return {
        "id": done.hook.id,
        "command": done.hook.line,
        "place": str(done.hook.origin),
        "exit_code": ended.code if ended is not None else None,
        "answer": msgspec.to_builtins(done.answer, enc_hook=str),
    }


def _tested_lines(done: HookDone, ms: int) -> list[str]:
    place, command = str(done.hook.origin), escape_hidden(done.hook.line, one_line=True)
    if done.ended is None:
        head = say("hooks_tested_not_run", place=place, command=command)
    else:
        head = say("hooks_tested", place=place, command=command, code=done.ended.code, ms=ms)
    lines = [head]
    for name, value in msgspec.structs.asdict(done.answer).items():
        told = value if isinstance(value, tuple) else (value,) if value else ()
        lines += [f"  {name}: {escape_hidden(str(each), one_line=True)}" for each in told]
    return lines


# --- in words


def hook_line(hook: Hook) -> str:
    """What is agreed to, whole and with every character visible."""
    about = code_lines(code_run_by(hook), hook.project) if hook.project else []
    line = f"{hook.id}  {hook.named} {hook.when}  {hook.line}  ({'; '.join([shorten_home(str(hook.origin)), *about])})"
    return escape_hidden(line, one_line=True)


def lines_of(found: HooksOf) -> list[str]:
    if not found.hooks:
        return [*found.notices, say("hooks_none")]
    lines = [line for hook in found.hooks for line in (hook_line(hook), f"{'':8}  {say(f'hooks_state_{found.state(hook)}')}")]
    return [*lines, "", *found.notices, say("hooks_legend")]


def as_json(hook: Hook, found: HooksOf) -> dict[str, Any]:
    return {**msgspec.to_builtins(hook), "id": hook.id, "state": found.state(hook), "place": str(hook.origin)}


def _chosen(setup: Setup, found: HooksOf, ids: Sequence[str]) -> tuple[Hook, ...]:
    if unknown := [each for each in ids if not any(hook.id == each for hook in found.hooks)]:
        require_trust(setup.trust)
        raise InputError(say("hooks_no_such", id=one_line(unknown[0], 40)))
    return found.bound(hook for hook in found.hooks if hook.id in ids)


def _save(setup: Setup, change: Any) -> None:
    try:
        change()
    except OSError as error:
        raise InputError(say("hooks_file_unwritable", path=setup.places.hooks_file, reason=error.strerror or error)) from error


# --- in a conversation


def for_conversation(setup: Setup, words: Sequence[str]) -> str:
    """What `/hooks …` says. Raises InputError, UntrustedFolder."""
    found = _with_wrong_files(setup)
    if not words:
        return "\n".join(lines_of(found))
    if words[0] != "approve" or len(words) > 2:
        raise InputError(say("hooks_slash_usage"))
    chosen = _chosen(setup, found, words[1:]) or found.bound(hook for hook in found.hooks if found.state(hook) != "runs")
    if not chosen:
        require_trust(setup.trust)
    _save(setup, lambda: agree(setup.places.hooks_file, chosen))
    return changed_words("approved", chosen)
