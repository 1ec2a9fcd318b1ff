"""Which fleets the user started here. A fleet's folder may have come with a repository, and says by itself which configuration, sandbox and
trust its tasks run with: that counts only if our data folder remembers the very file that says so.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from dragoman.app.asking import FirstQuestion, LineQuestions, question_terminal
from dragoman.app.console import Messages
from dragoman.app.options import Options
from dragoman.base.clock import now_ms
from dragoman.base.found_files import read_found
from dragoman.base.lock import hold
from dragoman.base.places import find_places
from dragoman.base.saved_lines import append_line, read_lines, replace_lines
from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.fleet.folder import Fleet, Lock
from dragoman.fleet.task import GitSource, Task
from dragoman.values.errors import InputError, UntrustedFolder
from dragoman.words import say

MOST_SAVED_BYTES = 4_000_000
MOST_SAVED = 5_000
"""So many fleets are remembered once the file has become long; of older ones it is asked."""
MOST_CONFIG_BYTES = 1_000_000
MOST_NAMED = 6
MOST_SHOWN_CHARS = 300
Owner = Literal["own", "changed", "other"]


class OwnFleet(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the file. The last one about an id holds."""

    id: str
    lock_sha256: str
    config_sha256: str = ""
    """Of the configuration that was named for it; empty: none was."""
    folder: str = ""
    saved_ms: int = 0


def owner_of(fleet: Fleet) -> Owner:
    """Whether the user started this fleet here, or agreed to it; `changed`: it, or its configuration, is another one since."""
    try:
        saved = read_lines(find_places().fleets_file, OwnFleet)
    except OSError:
        return "other"
    for each in reversed(saved):
        if each.id == fleet.lock.id:
            is_same = each.lock_sha256 == fleet.lock_sha256 and each.config_sha256 == _config_hash(fleet.lock.config)
            return "own" if is_same else "changed"
    return "other"


def remember_fleet(lock: Lock, lock_sha256: str, folder: str) -> None:
    """Remember a fleet as the user's own. Where that cannot be written, it is said: a resume will ask."""
    file = find_places().fleets_file
    try:
        append_line(file, OwnFleet(lock.id, lock_sha256, _config_hash(lock.config), folder, now_ms()))
        if os.stat(file).st_size > MOST_SAVED_BYTES:
            with hold(file):
                replace_lines(file, {each.id: each for each in read_lines(file, OwnFleet)[-MOST_SAVED:]}.values())
    except OSError as error:
        Messages().line(say("fleet.not_remembered", path=file, reason=error.strerror or error))


def require_own(fleet: Fleet, options: Options) -> None:
    """Let only a fleet of the user's own go on. Others are shown, and asked about in a terminal, or taken over by `--take-over`.

    Raises UntrustedFolder where nobody can be asked, InputError for a no."""
    owner = owner_of(fleet)
    if owner == "own":
        return
    messages, shown = Messages(), list(describe(fleet))
    why = say("fleet.was_changed" if owner == "changed" else "fleet.is_not_own", name=fleet.name)
    if options.take_over:
        messages.line(why)
        for line in shown:
            messages.line(line)
    elif question_terminal() is not None and sys.stdin is not None and sys.stdin.isatty():
        intro = [str(why), *(f"  {line}" for line in shown)]
        try:
            answer = LineQuestions()(FirstQuestion(tuple(intro), say("fleet.ask_take_over"), {"y": "", "n": ""}))
        except EOFError:
            answer = ""
        if answer != "y":
            raise InputError(say("left_alone"))
    else:
        settings = "; ".join(shown)
        flags = [flag for flag, is_given in (("--failed", options.failed), ("--atif", options.form == "atif")) if is_given]
        command = " ".join(("dragoman fleet", *map(shlex.quote, options.words), *flags, "--take-over"))
        raise UntrustedFolder(say("fleet.refused_as_other", why=why, settings=settings, command=command))
    remember_fleet(fleet.lock, fleet.lock_sha256, fleet.folder)


def describe(fleet: Fleet) -> Iterator[str]:
    """What a fleet would run with, and what its tasks ask for: every character visible."""
    lock, asked = fleet.lock, AskedFor()
    for task in fleet.tasks():
        asked.add(task)
    settings = {
        "fleet.uses_config": lock.config,
        "fleet.uses_sandbox": lock.sandbox,
        "fleet.uses_approval": ", ".join(dict.fromkeys([lock.approval or "auto", *asked.approvals])),
        "fleet.uses_model": ", ".join(filter(None, dict.fromkeys([lock.model, *asked.models]))),
    }
    for key, value in settings.items():
        yield say(key, value=_visible(value) if value else say("fleet.uses_your_own"))
    yield say("fleet.uses_trust" if lock.trust else "fleet.uses_no_trust")
    yield from asked.lines()


class AskedFor:
    """What the tasks of a fleet ask for beside a model's work: hosts, folders, other models and modes."""

    def __init__(self) -> None:
        self.tasks = 0
        self.hosts: dict[str, None] = {}
        self.workspaces: dict[str, None] = {}
        self.models: dict[str, None] = {}
        self.approvals: dict[str, None] = {}

    def add(self, task: Task) -> None:
        self.tasks += 1
        workspace = task.workspace.git if isinstance(task.workspace, GitSource) else task.workspace
        for found, names in (
            (self.hosts, task.network),
            (self.workspaces, (workspace,) if workspace else ()),
            (self.models, (task.model,) if task.model else ()),
            (self.approvals, (task.approval,) if task.approval else ()),
        ):
            for name in names:
                if len(found) < 1_000:
                    found[name] = None

    def lines(self) -> Iterator[str]:
        if self.workspaces:
            yield say("fleet.uses_workspaces", names=_named(self.workspaces))
        if hosts := self.hosts_line:
            yield hosts

    @property
    def hosts_line(self) -> str:
        """Empty: commands reach no host but those of the user's own settings."""
        return say("fleet.uses_hosts", names=_named(self.hosts)) if self.hosts else ""


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    listed.sort(key=lambda name: "*" not in name)  # what allows most stands first
    shown = [_visible(name) for name in listed[:MOST_NAMED]]
    more = len(listed) - MOST_NAMED
    return ", ".join([*shown, say("trust_more", count=more)] if more > 0 else shown)


def _visible(text: str) -> str:
    return clip(escape_hidden(text, one_line=True), MOST_SHOWN_CHARS)


def _config_hash(path: str) -> str:
    if not path:
        return ""
    try:
        return hashlib.sha256(read_found(path, MOST_CONFIG_BYTES)).hexdigest()
    except (OSError, ValueError):
        return "unreadable"
