"""The user's permanent approvals in all folders: listing and revoking them, for every front end.

That is grants (`always` in a conversation) and what was said about folders (trust.py). Whatever else is ever allowed for good is another
`kind` of the same list.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.app.setup import Setup
from dragoman.base.places import Places
from dragoman.base.text import did_you_mean, one_line
from dragoman.base.visible import escape_hidden
from dragoman.policy.grants import SavedGrant, covered_by, read_grants, revoke_grants
from dragoman.policy.trust import TrustDecision, forget_decisions, read_decisions
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.rules import Rule


class Approval(msgspec.Struct, frozen=True):
    """One row of the list."""

    id: str
    kind: Literal["grant", "trust"]
    key: str
    folder: str
    saved_ms: int | None = None
    session: str = ""

    @property
    def words(self) -> str:
        """What it covers, every character visible."""
        if self.kind == "trust":
            return say("approval_covers_trust" if self.key == "trust" else "approval_covers_distrust")
        covers, tool, what = covered_by(self.key)
        words = say(f"approval_covers_{covers}", tool=tool, what=escape_hidden(what, one_line=True))
        return words if self.is_used else say("approval_not_used", words=words)

    @property
    def is_used(self) -> bool:
        """Whether it is honoured. One that covers more than would be offered now is not."""
        return self.kind == "trust" or _is_used(self.key)


def _is_used(key: str) -> bool:
    covers, _, what = covered_by(key)
    if covers != "prefix":
        return True
    from dragoman.policy.offers import is_still_offered  # only where one was saved

    return is_still_offered(what)


def unused_notice(keys: Iterable[str]) -> tuple[str, ...]:
    """What the user is told of saved approvals that are no longer honoured: one sentence, or none."""
    unused = sorted(covered_by(key)[2] for key in keys if not _is_used(key))
    if not unused:
        return ()
    return (say("approvals_not_used", count=len(unused), what=", ".join(f"`{escape_hidden(each, one_line=True)}`" for each in unused)),)


def saved_approvals(places: Places) -> list[Approval]:
    """All of them: what was said about folders, then grants, oldest first. Raises InputError if a file cannot be read."""
    file = places.trust_file
    try:
        trusted = [_trust_row(decision) for decision in read_decisions(file).values()]
        file = places.grants_file
        return [*trusted, *(_row(grant) for grant in read_grants(file))]
    except OSError as error:
        raise InputError(say("approvals_unreadable", path=file, reason=error.strerror or error)) from error


def approvals_for(places: Places, folder: str) -> list[Approval]:
    """The grants that hold in a folder. What cannot be read grants nothing."""
    try:
        rows = saved_approvals(places)
    except InputError:
        return []
    real = os.path.realpath(folder)
    return [row for row in rows if row.folder == real and row.kind == "grant"]


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
    """Take these back, and return those that were there. Raises InputError, and then that file has not changed."""
    file = places.trust_file
    try:
        forgotten = forget_decisions(file, {row.id for row in rows if row.kind == "trust"})
        file = places.grants_file
        revoked = revoke_grants(file, {row.id for row in rows if row.kind == "grant"})
    except OSError as error:
        raise InputError(say("approvals_not_revoked", path=file, reason=error.strerror or error)) from error
    return [*map(_trust_row, forgotten), *map(_row, revoked)]


def files_of_rows(places: Places, rows: Sequence[Approval]) -> list[str]:
    """The files that hold these."""
    files = {"trust": places.trust_file, "grant": places.grants_file}
    return list(dict.fromkeys(files[row.kind] for row in rows))


def find_approval(rows: Sequence[Approval], name: str) -> Approval:
    """The one with this id, or the only one whose id begins so. Raises InputError."""
    found = [row for row in rows if row.id.startswith(name.lower())] if name else []
    if len(found) == 1:
        return found[0]
    shown = one_line(name, 40)
    if found:
        raise InputError(say("approval_ambiguous", name=shown, ids=", ".join(row.id for row in found)))
    raise InputError(say("approval_unknown", name=shown, hint=did_you_mean(name, [row.id for row in rows])))


def as_json(row: Approval) -> dict[str, Any]:
    covers, tool, what = covered_by(row.key) if row.kind == "grant" else (row.key, "", "")
    return {
        "id": row.id,
        "kind": row.kind,
        "covers": {"what": covers, "tool": tool or None, "text": what or None},
        "words": row.words,
        "used": row.is_used,
        "folder": row.folder,
        "saved_ms": row.saved_ms,
        "session": row.session or None,
    }


def _row(grant: SavedGrant) -> Approval:
    return Approval(grant.id, "grant", grant.key, grant.folder, grant.saved_ms, grant.session)


def _trust_row(decision: TrustDecision) -> Approval:
    return Approval(decision.id, "trust", "trust" if decision.trusted else "distrust", decision.folder, decision.saved_ms)
