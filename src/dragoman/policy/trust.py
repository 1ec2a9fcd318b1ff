"""Which folders the user trusts: what lies in them may then configure the program and instruct the model.

A decision is about the real path of one folder. A yes covers the folders inside it, down to the next repository: a repository that was
cloned into a trusted folder is somebody else's, and is asked about by itself. A no covers the folder alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Literal

import msgspec

from dragoman.base.clock import now_ms
from dragoman.base.lock import hold
from dragoman.base.saved_lines import append_line, read_lines, replace_lines

TrustState = Literal["trusted", "refused", "unasked"]


class TrustDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the file. The last one about a folder holds."""

    folder: str
    trusted: bool
    saved_ms: int | None = None

    @property
    def id(self) -> str:
        """Short, and the same for as long as the decision is about the same folder."""
        return sha256(f"trust\0{self.folder}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


def read_decisions(file: str) -> dict[str, TrustDecision]:
    """The saved decisions by folder. Damaged lines are ignored. Raises OSError if the file cannot be read."""
    return {decision.folder: decision for decision in read_lines(file, TrustDecision)}


def save_decision(file: str, folder: str, *, trusted: bool) -> TrustDecision:
    """Remember what the user said about the real path of a folder. Raises OSError."""
    decision = TrustDecision(folder, trusted, now_ms())
    append_line(file, decision)
    return decision


def forget_decisions(file: str, ids: Collection[str]) -> list[TrustDecision]:
    """Take these back and return those there were: the folders are asked about again. Raises OSError, and then nothing has changed."""
    if not ids or not os.path.exists(file):
        return []
    with hold(file):
        decisions = list(read_decisions(file).values())
        forgotten = [each for each in decisions if each.id in ids]
        if forgotten:
            replace_lines(file, [each for each in decisions if each.id not in ids])
    return forgotten


def judge_folder(folder: str, decisions: Mapping[str, TrustDecision]) -> tuple[TrustState, str]:
    """Whether a real path is trusted, and the folder whose decision says so; empty if there is none."""
    at = folder
    while True:
        decision = decisions.get(at)
        if decision is not None and decision.trusted:
            return "trusted", at
        if decision is not None:
            return ("refused", at) if at == folder else ("unasked", "")
        above = os.path.dirname(at)
        if above == at or os.path.lexists(os.path.join(at, ".git")):
            return "unasked", ""
        at = above


def is_too_wide(folder: str, home: str) -> bool:
    """Whether a real path is never trusted as a whole: the home folder, whatever holds it (`/`), and folders that everybody may write
    to, as /tmp is."""
    if folder == os.path.dirname(folder) or _holds(folder, os.path.realpath(home)):
        return True
    try:
        mode = os.stat(folder).st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH)


def _holds(folder: str, home: str) -> bool:
    return home == folder or home.startswith(folder.rstrip(os.sep) + os.sep)
