"""What the user has allowed for good, in every folder: listed and revoked, for every front end.

So far that is grants (`always` in a conversation). Whatever else is ever allowed for good is another `kind` of the same list.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.app.setup import Setup
from dragoman.base.places import Places
from dragoman.base.text import closest, one_line
from dragoman.base.visible import escape_hidden
from dragoman.base.words import say
from dragoman.policy.grants import SavedGrant, covered_by, read_grants, revoke_grants
from dragoman.values.errors import InputError

if TYPE_CHECKING:
    from dragoman.policy.rules import Rule


class Approval(msgspec.Struct, frozen=True):
    """One row of the list."""

    id: str
    kind: Literal["grant"]
    key: str
    folder: str
    saved_ms: int | None = None
    session: str = ""

    @property
    def words(self) -> str:
        """What it covers, every character visible."""
        covers, tool, what = covered_by(self.key)
        return say(f"approval_covers_{covers}", tool=tool, what=escape_hidden(what, one_line=True))


def saved_approvals(places: Places) -> list[Approval]:
    """All of them, oldest first. Raises InputError if the file cannot be read."""
    try:
        return [_row(grant) for grant in read_grants(places.grants_file)]
    except OSError as error:
        raise InputError(say("approvals_unreadable", path=places.grants_file, reason=error.strerror or error)) from error


def approvals_for(places: Places, folder: str) -> list[Approval]:
    """Those that hold in a folder. What cannot be read grants nothing."""
    try:
        rows = saved_approvals(places)
    except InputError:
        return []
    real = os.path.realpath(folder)
    return [row for row in rows if row.folder == real]


def approvals_words(setup: Setup) -> str:
    """How many hold in the folder of a command."""
    count = len(approvals_for(setup.places, setup.workspace))
    return say("approvals_count", count=count) if count else say("approvals_count_none")


def rule_lines(rules: Sequence[Rule]) -> list[str]:
    """The rules in force, each with where it stands: that is where it is changed."""
    return [
        f"{rule.decision:<5}  {escape_hidden(rule.text, one_line=True)}  ({escape_hidden(rule.origin, one_line=True)})"
        for rule in sorted(rules, key=lambda rule: rule.decision)
    ]


def rule_as_json(rule: Rule) -> dict[str, Any]:
    return {"decision": rule.decision, "rule": rule.text, "reason": rule.reason or None, "origin": rule.origin, "tier": rule.tier}


def revoke(places: Places, rows: Sequence[Approval]) -> list[Approval]:
    """Take these back, and return those that were there. Raises InputError, and then nothing has changed."""
    try:
        return [_row(grant) for grant in revoke_grants(places.grants_file, {row.id for row in rows})]
    except OSError as error:
        raise InputError(say("approvals_not_revoked", path=places.grants_file, reason=error.strerror or error)) from error


def find_approval(rows: Sequence[Approval], name: str) -> Approval:
    """The one with this id, or the only one whose id begins so. Raises InputError."""
    found = [row for row in rows if row.id.startswith(name.lower())] if name else []
    if len(found) == 1:
        return found[0]
    shown = one_line(name, 40)
    if found:
        raise InputError(say("approval_ambiguous", name=shown, ids=", ".join(row.id for row in found)))
    close = closest(name, [row.id for row in rows])
    raise InputError(say("approval_unknown", name=shown, hint=say("did_you_mean", name=close[0]) if close else ""))


def as_json(row: Approval) -> dict[str, Any]:
    covers, tool, what = covered_by(row.key)
    return {
        "id": row.id,
        "kind": row.kind,
        "covers": {"what": covers, "tool": tool or None, "text": what or None},
        "words": row.words,
        "folder": row.folder,
        "saved_ms": row.saved_ms,
        "session": row.session or None,
    }


def _row(grant: SavedGrant) -> Approval:
    return Approval(grant.id, "grant", grant.key, grant.folder, grant.saved_ms, grant.session)
