"""`dragoman approvals`, and `/approvals` in a conversation: lists permanent approvals and revokes them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.app.approvals import Approval, as_json, files_of_rows, find_approval, revoke, rule_as_json, rule_lines, saved_approvals
from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up
from dragoman.app.trust import read_or_nothing
from dragoman.base import jsontext
from dragoman.base.places import Places
from dragoman.base.text import one_line, strip_controls
from dragoman.base.visible import escape_hidden
from dragoman.conversation.actions import Action, Output, find_action, refuse_options
from dragoman.policy.grants import OUTSIDE_KEY, Grants, SavedGrant
from dragoman.policy.trust import judge_folder
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.approvals import Approvals
    from dragoman.policy.rules import Rule


def run_approvals(options: Options) -> Output:
    name, action = find_action(options, ACTIONS)
    if len(options.words) > (2 if name == "revoke" else 1):
        raise InputError(say("too_many_words", command=f"approvals {name}", word=one_line(options.words[-1], 60)))
    refuse_options(options, action, f"approvals {name}")
    return action.run(options)


def _list(options: Options) -> str:
    setup = set_up(options)
    rows = _this_folder_first(saved_approvals(setup.places), setup)
    if options.output_format == "json":
        listed = {"approvals": [as_json(row) for row in rows], "rules": [rule_as_json(rule) for rule in setup.loaded.rules]}
        return jsontext.dumps({**listed, "file": setup.places.grants_file}) + "\n"
    lines = [*lines_of(rows), "", say("approvals_legend")] if rows else [say("approvals_none")]
    return "\n".join([*lines, *_rule_section(setup.loaded.rules)]) + "\n"


def _rule_section(rules: Sequence[Rule]) -> list[str]:
    return ["", say("approvals_rules"), *(f"  {line}" for line in rule_lines(rules))] if rules else []


def _revoke(options: Options) -> str:
    names = options.words[1:]
    takes_all = options.all or names == ("all",)  # as in a conversation
    if bool(names) == options.all:
        raise InputError(say("approvals_revoke_what"))
    setup = set_up(options)
    rows = saved_approvals(setup.places)
    revoked = revoke(setup.places, rows if takes_all else [find_approval(rows, names[0])])
    if options.output_format == "json":
        return jsontext.dumps({"revoked": [as_json(row) for row in revoked], "file": setup.places.grants_file}) + "\n"
    return revoked_words(revoked, setup.places) + "\n"


ACTIONS: dict[str, Action[Options]] = {
    "list": Action(_list),
    "revoke": Action(_revoke, "ID", ("all",)),
}


def _this_folder_first(rows: Sequence[Approval], setup: Setup) -> list[Approval]:
    here = os.path.realpath(setup.workspace)
    return sorted(rows, key=lambda row: (row.folder != here, row.folder))


# --- in words


def lines_of(rows: Sequence[Approval]) -> list[str]:
    """Two lines for each, and nothing is cut: what was allowed must be seen whole."""
    lines: list[str] = []
    for row in rows:
        lines += [f"{row.id}  {row.words}", f"{'':8}  {_origin(row)}"]
    return lines


def revoked_words(rows: Sequence[Approval], places: Places) -> str:
    if not rows:
        return say("approvals_nothing_revoked")
    lines = [say("approval_revoked", id=row.id, words=row.words, folder=_folder(row)) for row in rows]
    return "\n".join([*lines, *(say("approvals_changed", path=strip_controls(file)) for file in files_of_rows(places, rows))])


def _origin(row: Approval) -> str:
    when = (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(row.saved_ms / 1000)) if row.saved_ms is not None else say("approval_when_unknown")
    )
    if row.kind == "trust":
        return say("approval_origin_trust", folder=_folder(row), when=when)
    return say(
        "approval_origin",
        folder=_folder(row),
        when=when,
        session=escape_hidden(row.session, one_line=True) or say("approval_session_unknown"),
    )


def _folder(row: Approval) -> str:
    return escape_hidden(row.folder, one_line=True)


# --- in a conversation


def is_for_every_folder(setup: Setup, approvals: Approvals, words: Sequence[str]) -> bool:
    """Whether `/approvals …` is meant as in the shell: listing all, taking all back, or one of another folder."""
    if any(word.startswith("-") for word in words) or words[:1] == ["list"]:
        return True
    if len(words) != 2 or words[0] != "revoke" or words[1] == "all":
        return False
    saved, session = _here(setup, approvals.grants)
    return not any(row.id.startswith(words[1]) for row in (*saved, *session))


def _here(setup: Setup, grants: Grants) -> tuple[list[Approval], list[Approval]]:
    """What was saved for this folder, and what holds for this session."""
    here = os.path.realpath(setup.workspace)
    of_trust = judge_folder(here, read_or_nothing(setup.places))[1]
    saved = [row for row in saved_approvals(setup.places) if row.folder == (of_trust if row.kind == "trust" else here)]
    return saved, [Approval(SavedGrant("", key).id, "grant", key, "") for key in sorted(grants.of_session)]


def for_conversation(setup: Setup, approvals: Approvals, words: Sequence[str]) -> str:
    """What `/approvals …` says. Raises InputError."""
    grants = approvals.grants
    saved, session = _here(setup, grants)
    if not words:
        return "\n".join([*_conversation_lines(saved, session), *_rule_section(approvals.rules)])
    if words[0] == "keep" and len(words) == 2:
        return _keep_here(setup, approvals, find_approval(session, words[1]))
    if words[0] != "revoke" or len(words) != 2:
        raise InputError(say("approvals_slash_usage"))
    if words[1] == "all":
        return _revoke_here(setup, grants, saved, session)
    found = find_approval([*saved, *session], words[1])
    return _revoke_here(setup, grants, [row for row in saved if row == found], [row for row in session if row == found])


def _conversation_lines(saved: Sequence[Approval], session: Sequence[Approval]) -> list[str]:
    if not saved and not session:
        return [say("approvals_none_here")]
    lines = [line for row in session for line in (f"{row.id}  {row.words}", f"{'':8}  {say('approval_for_session')}")]
    return [*lines, *lines_of(saved), say("approvals_slash_legend")]


def _keep_here(setup: Setup, approvals: Approvals, row: Approval) -> str:
    """Keep for this folder what holds for this session. Raises InputError where it cannot be kept."""
    grants = approvals.grants
    if not grants.file or row.key.startswith(OUTSIDE_KEY):
        raise InputError(say("approval_not_kept", words=row.words))
    if reason := grants.add(row.key, saved=True, session=approvals.session):
        raise InputError(say("approvals_not_saved", path=setup.places.grants_file, reason=reason))
    grants.end(row.key)
    return say("approval_kept", id=SavedGrant(grants.folder, row.key).id, words=row.words)


def _revoke_here(setup: Setup, grants: Grants, saved: Sequence[Approval], session: Sequence[Approval]) -> str:
    for row in session:
        grants.end(row.key)
    lines = [say("approval_ended", id=row.id, words=row.words) for row in session]
    revoked = revoke(setup.places, saved) if saved else []
    if revoked or not lines:
        lines.append(revoked_words(revoked, setup.places))
    return "\n".join(lines)
