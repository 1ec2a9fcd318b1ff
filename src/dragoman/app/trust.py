"""Trust in the workspace: until the user gives it, nothing in the folder is read as configuration, memory or rules.

Only names are looked at, to say what would be read. A folder without such files is not asked about. git is not run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Literal

from msgspec.structs import replace

from dragoman.app.config import own_files
from dragoman.app.config_tables import FolderTrust
from dragoman.app.options import Options
from dragoman.base.beneath import is_inside
from dragoman.base.places import Places
from dragoman.base.visible import escape_hidden
from dragoman.loop.surroundings import repository_root
from dragoman.policy.trust import TrustDecision, is_too_wide, judge_folder, read_decisions, save_decision
from dragoman.values.errors import UntrustedFolder
from dragoman.words import say

MAX_NAMES = 6
Answer = Literal["yes", "no"]
AskTrust = Callable[[FolderTrust], Answer]
"""Asks the user. Raises EOFError if they leave instead."""


def trust_names(trust: FolderTrust) -> str:
    """The files that would be read, or those of them that are doubted; every character visible."""
    files = trust.doubted or trust.files
    shown = [escape_hidden(name, one_line=True) for name in files[:MAX_NAMES]]
    more = len(files) - MAX_NAMES
    return ", ".join([*shown, say("trust_more", count=more)] if more > 0 else shown)


def trust_notices(trust: FolderTrust) -> tuple[str, ...]:
    """Notices for the user before the first run."""
    lines = [say("trust_not_saved", reason=trust.problem)] if trust.problem else []
    if trust.is_trusted or not trust.files:
        return tuple(lines)
    key = {"too_wide": "trust_too_wide", "doubted": "trust_doubted"}.get(trust.state, "trust_not_given")
    return (*lines, say(key, names=trust_names(trust)))


def require_trust(trust: FolderTrust) -> None:
    """For actions about what a folder brings: raises UntrustedFolder if its files were not read."""
    if not trust.is_trusted and trust.files:
        raise UntrustedFolder(trust_notices(trust)[-1])


def find_trust(options: Options, env: Mapping[str, str], places: Places, workspace: str) -> FolderTrust:
    """What the user has said about a folder, on the command line or earlier. What cannot be read trusts nothing."""
    real = os.path.realpath(workspace)
    home = home_of(env)
    main = _main_of(real)  # a worktree is trusted as its repository is
    offered = folder_to_ask(main or real, home)
    if options.trust:
        return _folder_trust("trusted", offered, real, places.config_file, "flag")
    decisions = read_or_nothing(places)
    state, by = judge_folder(main or real, decisions)
    if not by and offered in decisions:  # a no to the repository, and this is a folder in it
        state, by = judge_folder(offered, decisions)
    if by and not is_too_wide(by, home):
        found = _folder_trust(state, by, real, places.config_file, "saved")
        return _doubt(found, env, places, real) if found.is_trusted and has_commands(places) else found
    return _folder_trust("too_wide" if is_too_wide(offered, home) else "unasked", offered, real, places.config_file)


def has_commands(places: Places) -> bool:
    """Whether a command ever ran. Where none did, nothing is loaded to look what it may have changed."""
    return os.path.lexists(places.commands_file)


def _doubt(trust: FolderTrust, env: Mapping[str, str], places: Places, real: str) -> FolderTrust:
    from dragoman.app.doubts import with_doubts

    return with_doubts(trust, env, places, real)


def believe_files(trust: FolderTrust, env: Mapping[str, str], places: Places, workspace: str) -> tuple[tuple[str, ...], str]:
    """Believe what a folder holds as it is now, and return what was doubted, and why that could not be remembered."""
    if not has_commands(places):
        return (), ""
    from dragoman.app.doubts import find_doubts, remember

    doubts = find_doubts(trust, env, places, workspace)
    return doubts.files, remember(doubts, places)


class Once:
    """A call that is made once, whoever makes it: others wait until it is done."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call
        self._lock = Lock()

    def __call__(self) -> None:
        with self._lock:
            call, self._call = self._call, None
            if call is not None:
                call()


def remember_believed(trust: FolderTrust, env: Mapping[str, str], places: Places, workspace: str) -> None:
    """Remember the files of a trusted folder as they are before the first command of a session: what it writes can be told from them. Where
    a command of another session has changed one of them meanwhile, nothing is: the next start asks."""
    from dragoman.app.doubts import find_doubts, remember

    doubts = find_doubts(trust, env, places, workspace, always=True)
    if not doubts.files:
        remember(doubts, places)


def _main_of(real: str) -> str:
    """The main tree, if this is a worktree that `--worktree` made; else empty, and nothing is loaded to find that out."""
    root = repository_root(real)
    if not root or not os.path.isfile(os.path.join(root, ".git")):
        return ""
    from dragoman.app.worktrees import main_of

    return main_of(root)


def _folder_trust(
    state: Literal["trusted", "refused", "unasked", "too_wide"],
    folder: str,
    workspace: str,
    users_file: str,
    by: Literal["", "flag", "saved"] = "",
) -> FolderTrust:
    project = repository_root(workspace) or workspace
    root = folder if is_inside(folder, project) else project
    return FolderTrust(state, folder, root, own_files(workspace, root, users_file), by)


def ask_once(trust: FolderTrust, env: Mapping[str, str], places: Places, workspace: str, ask: AskTrust | None) -> FolderTrust:
    """Ask where it is asked about and there is something to ask for; the answer is remembered. A no to files that a command may have
    changed is not: the folder stays trusted, and they are asked about at the next start. Raises EOFError if the user leaves."""
    if ask is None or trust.state not in ("unasked", "doubted") or not trust.files:
        return trust
    is_trusted = ask(trust) == "yes"
    if trust.state == "doubted" and not is_trusted:
        return trust
    problem = believe_files(trust, env, places, workspace)[1] if is_trusted else ""
    try:
        if trust.state == "unasked":
            save_decision(places.trust_file, trust.folder, trusted=is_trusted)
    except OSError as error:
        problem = error.strerror or str(error)
    return replace(trust, state="trusted" if is_trusted else "refused", by="answer", problem=problem)


def folder_to_ask(real: str, home: str) -> str:
    """The repository that a folder belongs to: its files are read from there down. The folder itself where there is none, or where the
    repository is the home folder."""
    root = repository_root(real)
    return root if root and not is_too_wide(root, home) else real


def read_or_nothing(places: Places) -> dict[str, TrustDecision]:
    try:
        return read_decisions(places.trust_file)
    except OSError:
        return {}


def home_of(env: Mapping[str, str]) -> str:
    return env.get("HOME") or os.path.expanduser("~")
