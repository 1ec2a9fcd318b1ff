"""What the user has allowed from now on: for this session, or permanently for a folder.

The file is the truth about what is saved: it is read again when it has changed, so what is revoked elsewhere asks again at the next call.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Literal

import msgspec

from dragoman.base.clock import now_ms
from dragoman.base.lock import hold
from dragoman.base.saved_lines import append_line, read_lines, replace_lines

Covers = Literal["edits", "command", "prefix", "outside", "tool", "scope"]
OUTSIDE_KEY = "outside* "
"""What a grant begins with that covers all commands with a beginning, outside the sandbox. It is never saved."""


class SavedGrant(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the file."""

    folder: str
    key: str
    """What it covers, as `judge.grant_key` writes it."""
    saved_ms: int | None = None
    """When; None: it was saved before this was kept."""
    session: str = ""
    """The session in which it was saved, if that is known."""

    @property
    def id(self) -> str:
        """Short, and the same for as long as the grant means the same."""
        return sha256(f"{self.folder}\0{self.key}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


def covered_by(key: str) -> tuple[Covers, str, str]:
    """What a key covers: all edits, one command, commands with one beginning, a tool, or a tool within a scope; then the tool's name, and
    the command, beginning or scope."""
    if key == "edit":
        return "edits", "", ""
    tool, space, rest = key.partition(" ")
    if not space:
        return "tool", tool, ""
    if tool == "run_shell*":
        return "prefix", "run_shell", rest
    if tool == "outside*":
        return "outside", "run_shell", rest
    if tool == "run_shell":
        command, _, directory = rest.partition("\0")
        return "command", tool, f"{command} (in {directory})" if directory else command
    return "scope", tool, rest


class Grants:
    """Keys of calls that run without asking. With a file, saved grants also apply to later sessions in the folder."""

    def __init__(self, file: str = "", folder: str = "") -> None:
        self.file = file
        self.folder = folder
        self.of_session: frozenset[str] = frozenset()
        """Those that end with the session."""
        self._saved: frozenset[str] = frozenset()
        self._read_at: tuple[int, ...] | None = None

    @property
    def keys(self) -> frozenset[str]:
        return self.of_session | self.saved

    @property
    def saved(self) -> frozenset[str]:
        """The saved ones of this folder, as the file has them now."""
        if not self.file:
            return self._saved
        state = _state_of(self.file)
        if state != self._read_at or state is None:
            self._read_at = state
            self._saved = frozenset(
                grant.key for grant in _read_or_none(self.file) if grant.folder == self.folder and not grant.key.startswith(OUTSIDE_KEY)
            )
        return self._saved

    def add(self, key: str, *, saved: bool = False, session: str = "") -> str:
        """Returns why it could not be saved, or an empty string; it then holds for the session."""
        if not saved or not self.file or key.startswith(OUTSIDE_KEY):
            self.of_session |= {key}
            return ""
        try:
            append_line(self.file, SavedGrant(self.folder, key, now_ms(), session))
        except OSError as error:
            self.of_session |= {key}
            return error.strerror or str(error)
        return ""

    def end(self, key: str) -> None:
        """Take back one that was given for the session."""
        self.of_session -= {key}


def read_grants(file: str) -> list[SavedGrant]:
    """All saved grants, of every folder, oldest first. Torn or damaged lines grant nothing. Raises OSError if it cannot be read."""
    grants: dict[str, SavedGrant] = {}
    for grant in read_lines(file, SavedGrant):
        grants.setdefault(grant.id, grant)
    return list(grants.values())


def revoke_grants(file: str, ids: Collection[str]) -> list[SavedGrant]:
    """Take back the grants with these ids, and return those there were. Raises OSError, and then nothing has changed."""
    if not os.path.exists(file):
        return []
    with hold(file):
        grants = read_grants(file)
        revoked = [grant for grant in grants if grant.id in ids]
        if revoked:
            replace_lines(file, [grant for grant in grants if grant.id not in ids])
    return revoked


def _read_or_none(file: str) -> Sequence[SavedGrant]:
    try:
        return read_grants(file)
    except OSError:
        return ()  # the user is asked again


def _state_of(file: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
