"""Which folders the user trusts: what lies in them may then configure the program and instruct the model.

A decision is about the real path of one folder. A yes covers the folders inside it, down to the next repository: a repository that was
cloned into a trusted folder is somebody else's, and is asked about by itself. A no covers the folder alone.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Literal

import msgspec

from dragoman.base.atomic import replace_file
from dragoman.base.clock import now_ms
from dragoman.base.lock import hold
from dragoman.base.private import make_directory, write_whole

MAX_FILE_BYTES = 16_000_000
"""A longer file decides nothing."""
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
    try:
        with open(file, "rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return {}
    if len(data) > MAX_FILE_BYTES:
        return {}
    found: dict[str, TrustDecision] = {}
    for line in data.splitlines():
        try:
            decision = msgspec.json.decode(line, type=TrustDecision)
        except msgspec.DecodeError:
            continue
        found[decision.folder] = decision
    return found


def save_decision(file: str, folder: str, *, trusted: bool) -> TrustDecision:
    """Remember what the user said about the real path of a folder. Raises OSError."""
    decision = TrustDecision(folder, trusted, now_ms())
    try:
        line = msgspec.json.encode(decision)
    except UnicodeEncodeError as error:  # a name that is not UTF-8: JSON has no form for it
        raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ)) from error
    make_directory(os.path.dirname(file))
    with hold(file):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(file, flags, 0o600)
        try:
            write_whole(descriptor, b"\n" + line + b"\n")  # a leading newline: it never joins a torn line
        finally:
            os.close(descriptor)
    return decision


def forget_decisions(file: str, ids: Collection[str]) -> list[TrustDecision]:
    """Take these back and return those there were: the folders are asked about again. Raises OSError, and then nothing has changed."""
    if not ids or not os.path.exists(file):
        return []
    with hold(file):
        decisions = list(read_decisions(file).values())
        forgotten = [each for each in decisions if each.id in ids]
        if forgotten:
            kept = [each for each in decisions if each.id not in ids]
            replace_file(file, b"".join(msgspec.json.encode(each) + b"\n" for each in kept))
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
