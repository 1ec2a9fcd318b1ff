"""Says what was found after a command: to the model in English, to the user in their own language."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.base.beneath import is_inside
from dragoman.base.text import size
from dragoman.policy.sandbox.guard import Findings
from dragoman.policy.sandbox.hard_links import SharedFiles
from dragoman.words import say

_SHOWN = 5
_UNDONE = "Undone after the command, because git would have gone by it: {paths}. In the sandbox .git can be worked in, not led elsewhere."
_NOT_UNDONE = "It could not be undone that the command made or changed {paths}: tell the user before git is used there."
_RUNNING = "Made or changed while the command ran, and git would run something of it: {paths}. The user is told."
_BELIEVED = "Made or changed while the command ran: {paths}. Other programs or agents go by such files; the user is told."
_READ_ONLY = (
    "Files in {folders} are hard links to files outside the workspace, so they are read-only in the sandbox. "
    "They are copied before the next command: run this one again."
)
_STAYS_READ_ONLY = (
    "Files in {folders} are hard links to files outside the workspace, so they are read-only in the sandbox; they are too large "
    "to be copied unasked. Tell the user: a copy of the folder in its place (cp -a) makes it writable."
)


class Remarks(NamedTuple):
    """One thing, for both."""

    model: str = ""
    user: str = ""

    def __bool__(self) -> bool:
        return bool(self.model or self.user)


def tell_findings(findings: Findings, left: Sequence[str], roots: Sequence[str]) -> Remarks:
    """`left`: what could not be undone. `roots`: paths in them are shown as they are called from there."""
    kinds = (
        (_UNDONE, "policy.guard_undone", [path for path in findings.undone if path not in left]),
        (_NOT_UNDONE, "policy.guard_not_undone", left),
        (_RUNNING, "policy.guard_running", findings.running),
        (_BELIEVED, "policy.guard_believed", findings.believed),
    )
    said = [
        (words.format(paths=name_paths(paths, roots)), say(key, paths=name_paths(paths, roots))) for words, key, paths in kinds if paths
    ]
    return Remarks(" ".join(each for each, _ in said), "\n".join(each for _, each in said))


def tell_read_only(shared: SharedFiles, roots: Sequence[str]) -> Remarks:
    """When it is first found: the model need not know before it wants to write there."""
    return Remarks(user=say("policy.links_read_only", count=shared.count, size=size(shared.size), folders=_tops(shared.folders, roots)))


def tell_copied(shared: SharedFiles, roots: Sequence[str]) -> Remarks:
    return Remarks(user=say("policy.links_copied", count=shared.count, size=size(shared.size), folders=_tops(shared.folders, roots)))


def tell_refused(shared: SharedFiles, roots: Sequence[str]) -> str:
    return say("policy.links_refused", count=shared.count, size=size(shared.size), folders=_tops(shared.folders, roots))


def explain_read_only(covers: Sequence[str], roots: Sequence[str], *, is_copied: bool) -> str:
    return (_READ_ONLY if is_copied else _STAYS_READ_ONLY).format(folders=_tops(covers, roots))


def name_paths(paths: Iterable[str], roots: Sequence[str]) -> str:
    named = [_name(path, roots) for path in paths]
    return ", ".join(named[:_SHOWN]) + (f" (+{len(named) - _SHOWN})" if len(named) > _SHOWN else "")


def _name(path: str, roots: Sequence[str]) -> str:
    return os.path.relpath(path, roots[0]) if roots and is_inside(path, roots[0]) else path


def _tops(folders: Iterable[str], roots: Sequence[str]) -> str:
    """The uppermost folders in the workspace that hold them."""
    tops = dict.fromkeys(_name(path, roots).split(os.sep)[0] or path for path in folders)
    return name_paths(tops, ())
