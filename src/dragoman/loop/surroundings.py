"""Gathers the surroundings: date, system, and the contents of the folders. context/environment.py turns them into messages to the model."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from dragoman.base.found_files import read_found, read_found_text
from dragoman.base.places import temporary_folders
from dragoman.context.environment import (
    Lines,
    Surroundings,
    added_text,
    changed_lines,
    changed_text,
    conditions_text,
    environment_text,
    told_branch,
    told_conditions,
)
from dragoman.context.tree import Listing, Tree, escape_tree_name
from dragoman.tools.names import escape_name, truncate_path
from dragoman.values.notes import is_setup
from dragoman.values.record import About, Said

if TYPE_CHECKING:
    from dragoman.loop.gitignore import IgnoreRules, ReadBudget
    from dragoman.loop.history import History

MAX_ENTRIES = 200
"""Maximum names shown, all directories together. The model lists more when it needs to."""
MAX_INNER = 40
"""Maximum names shown of a nested folder: one with hundreds must not crowd out the others."""
MAX_SCANNED = 5_000
"""Maximum names examined for one directory and everything in it. Beyond that they are not counted."""
VENDORED = frozenset((
    "node_modules", "bower_components", "jspm_packages", "vendor", "Pods", "venv", "env", "site-packages",
    "target", "dist", "build", "coverage", "htmlcov",
))  # fmt: skip
"""Folders of third-party code or generated files: named, never opened."""
_BRANCHES = "ref: refs/heads/"
_MAX_HEAD_BYTES = 1_000
_BELONGS_TO_A_PROGRAM = frozenset(("pyvenv.cfg", "CACHEDIR.TAG"))
_HIDDEN_BUT_TOLD = frozenset((
    ".github", ".gitlab-ci.yml", ".circleci", ".gitignore", ".dockerignore", ".pre-commit-config.yaml", ".editorconfig",
    ".env.example", ".devcontainer",
))  # fmt: skip


class Orientation:
    """What one conversation says about its surroundings, and when."""

    def __init__(self, memory: Sequence[tuple[str, str]] = (), temporary: str = "") -> None:
        self._memory = tuple(memory)
        self._temporary = temporary
        self.skills: tuple[tuple[str, str], ...] = ()
        """Name and description of skills that the model is told of."""
        self.makes_folder = True
        """Whether the project's temporary folder is made; not where it is only said what would be told."""
        self.status: GitStatus | None = None
        """Looks at the repository while the first answer is waited for; None: nobody does."""
        self._has_looked = False
        self._added: list[str] = []
        self._unsaid: Lines = {}
        """Conditions in a session that was told of none so far: those from which a change is counted."""
        self._read: tuple[tuple[int, ...], Lines, str] = (), {}, ""
        """Which messages were read for the conditions and the branch that they tell, and what these say."""

    def add(self, directory: str) -> None:
        """Announce a directory that was added to the conversation with the next prompt."""
        self._added.append(directory)

    def look_again(self) -> None:
        """With the next prompt, as on resume: what the model was told may have left its view."""
        self._has_looked = False

    async def next_text(self, history: History, directories: Sequence[str], conditions: Lines) -> tuple[About, str]:
        """The message to send before the next prompt; empty if there is none. Folders are looked at in a thread.

        Everything when a conversation begins, or began elsewhere and was never told; on resume, what has changed since; later, directories
        that were added, the branch and conditions that have changed.
        """
        added = tuple(self._added)
        described = _earlier_descriptions(history) if not self._has_looked else []
        about: About = "changed"
        text = ""
        if not history.view.messages or not (self._has_looked or described):
            about, text = "environment", environment_text(await asyncio.to_thread(self._gather, directories, conditions))
        elif described:
            self._unsaid = self._unsaid or conditions
            text = changed_text(described, await asyncio.to_thread(self._gather, directories, conditions))
        else:
            branch = await asyncio.to_thread(read_branch, directories[0]) if directories else ""
            branch = branch if self._is_new_branch(history, branch) else ""
            if added:
                trees = await asyncio.to_thread(folder_trees, added)
                lines = self._changed_conditions(history, conditions)
                text = added_text(tuple(map(escape_name, directories)), trees, lines, branch=branch)
            else:
                text = self.changes(history, conditions, branch)
        # Not before: a prompt that was cancelled meanwhile has told the model nothing.
        self._has_looked, self._added = True, self._added[len(added) :]
        return about, text

    def changes(self, history: History, conditions: Lines, branch: str = "") -> str:
        """The message to send before the next request, where conditions have changed or the status of git has become known. `branch`: where
        another one is checked out."""
        if not history.view.messages:
            return ""
        status = self.status.take(history) if self.status is not None else ""
        return conditions_text(self._changed_conditions(history, conditions), branch=branch, status=status)

    def _is_new_branch(self, history: History, branch: str) -> bool:
        """Whether the messages in view name another. A session that was told of no conditions is told of no branches either."""
        return self._read_told(history) and bool(self._read[1]) and branch != self._read[2]

    def _read_told(self, history: History) -> bool:
        """Whether the model was told anything."""
        seqs = tuple(item.seq for item in history.view.items if is_setup(item.about))
        if not seqs or self._read[0] != seqs:
            described = _earlier_descriptions(history)
            if not described:
                return False
            self._read = seqs, told_conditions(described), told_branch(described)
        return True

    def _changed_conditions(self, history: History, conditions: Lines) -> list[str]:
        """The lines about conditions that differ from what the messages in view say. A session of a version that told nothing of them
        goes on so, until one changes: then it is told all."""
        if not self._read_told(history):
            return []
        if self._read[1]:
            return changed_lines(self._read[1], conditions)
        self._unsaid = self._unsaid or conditions
        return list(conditions.values()) if conditions != self._unsaid else []

    def _gather(self, directories: Sequence[str], conditions: Lines) -> Surroundings:
        facts = gather_surroundings(directories, self._memory, self._temporary, self.skills, make_folder=self.makes_folder)
        return replace(facts, branch=read_branch(directories[0]) if directories else "", conditions=conditions)


class GitStatus(Protocol):
    """Looks at a repository beside the conversation. Nothing waits for it."""

    def begin(self, history: History) -> None:
        """Start looking, soon. Called before each request."""
        ...

    def take(self, history: History) -> str:
        """What to tell, once; empty: nothing, or not yet."""
        ...


def _earlier_descriptions(history: History) -> list[str]:
    """The messages that described the surroundings: those in view, or all earlier ones if they have been summarised."""
    seen = [item for item in history.view.items if is_setup(item.about)]
    if not history.view.items or (seen and seen[0].about == "environment"):
        return [item.message.text for item in seen]
    from dragoman.context.compress import current_entries

    return [entry.message.text for entry in current_entries(history.entries) if isinstance(entry, Said) and is_setup(entry.about)]


def gather_surroundings(
    directories: Sequence[str],
    memory: Sequence[tuple[str, str]] = (),
    temporary: str = "",
    skills: Sequence[tuple[str, str]] = (),
    *,
    make_folder: bool = True,
) -> Surroundings:
    """`temporary` is the project's own folder, made here; if it is not given or cannot be made, the model is told of the system's."""
    private = os.path.realpath(temporary) if temporary and not make_folder else _make_private(temporary)
    return Surroundings(
        date=today(os.environ),
        system=sys.platform,
        directories=tuple(map(escape_name, directories)),
        temporary=escape_name(private or temporary_directory()),
        owns_temporary=bool(private),
        trees=folder_trees(directories),
        memory=tuple(memory),
        skills=tuple(skills),
    )


def read_branch(folder: str) -> str:
    """The branch that is checked out in the repository around a folder, read from git's own file; empty where that cannot be told.
    git itself is not run."""
    root = repository_root(folder)
    if not root:
        return ""
    try:
        inner = os.path.join(root, ".git")
        if os.path.isfile(inner):  # a linked worktree, or a submodule
            found = read_found_text(inner, _MAX_HEAD_BYTES, cut=True, errors="replace").strip()
            inner = os.path.join(root, found.removeprefix("gitdir: "))
        head = read_found_text(os.path.join(inner, "HEAD"), _MAX_HEAD_BYTES, cut=True, errors="replace").strip()
    except (OSError, ValueError):
        return ""
    if head.startswith(_BRANCHES):
        return escape_name(head.removeprefix(_BRANCHES))
    is_commit = len(head) in (40, 64) and all(char in "0123456789abcdef" for char in head)
    return f"none, at commit {head[:8]}" if is_commit else ""


def _make_private(folder: str) -> str:
    """The folder, for the user alone; empty if it cannot be made."""
    if not folder:
        return ""
    from dragoman.base.private import make_directory

    try:
        make_directory(folder)
    except OSError:
        return ""
    return os.path.realpath(folder)


def temporary_directory() -> str:
    """Without importing tempfile, which is slow to import."""
    return next((folder for folder in temporary_folders() if os.path.isdir(folder)), "") or os.getcwd()


# --- the date ------------------------------------------------------------------------------------------------------------


def today(env: Mapping[str, str], when: time.struct_time | None = None) -> str:
    """The date as the user would write it out, by LC_ALL, LC_TIME or LANG; in English if we do not know the language.

    The system's own locales are not asked: few are installed, and setting one would change it for the whole process.
    """
    when = when or time.localtime()
    name = env.get("LC_ALL") or env.get("LC_TIME") or env.get("LANG") or ""
    language, _, country = name.partition(".")[0].partition("@")[0].partition("_")
    if language not in ("", "C", "POSIX", "en"):
        from dragoman.base.dates import write_date

        if text := write_date(when, language, country):
            return text
    weekday, month = _WEEKDAYS[when.tm_wday], _MONTHS[when.tm_mon - 1]
    if language == "en" and country not in ("", "US", "CA", "PH"):
        return f"{weekday}, {when.tm_mday} {month} {when.tm_year}"
    return f"{weekday}, {month} {when.tm_mday}, {when.tm_year}"


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


# --- the folders ---------------------------------------------------------------------------------------------------------


def folder_trees(directories: Sequence[str], limit: int = MAX_ENTRIES) -> dict[str, Tree]:
    """By directory, as it is shown: its contents. Together they name at most `limit`; what one does not need, others get."""
    wanted = tuple(dict.fromkeys(directories))[:limit]
    share = limit // max(1, len(wanted))
    trees = _gather(wanted, share)
    short = [directory for directory, tree in trees.items() if _size(tree) >= share or tree[""].more]
    if short and len(wanted) > 1:
        larger = (limit - sum(_size(tree) for directory, tree in trees.items() if directory not in short)) // len(short)
        trees |= _gather(short, larger) if larger > share else {}
    return {escape_name(directory): tree for directory, tree in trees.items()}


def _gather(directories: Sequence[str], limit: int) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    if len(directories) == 1:
        _gather_into(found, directories[0], limit)
    else:
        threads = [Thread(target=_gather_into, args=(found, directory, limit)) for directory in directories]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return {directory: found[directory] for directory in directories if directory in found}


def _gather_into(found: dict[str, Tree], directory: str, limit: int) -> None:
    tree = folder_tree(directory, limit)
    if tree:
        found[directory] = tree


def folder_tree(directory: str, limit: int = MAX_ENTRIES) -> dict[str, Listing]:
    """The contents of a directory, breadth first, until `limit` names are found. Links are not followed; empty if it cannot be read.

    Hidden and git-ignored files are left out; folders that are ignored or hold third-party or generated files are named and not opened.
    So are those whose .gitignore there was no budget left to read.
    """
    tree: dict[str, Listing] = {}
    scanned = 0
    reader = _IgnoreReader()
    base, ignored_above = _ignored_above(directory, reader)
    waiting = deque([("", "", ignored_above)])
    while waiting and limit > 0 and scanned < MAX_SCANNED:
        folder, shown_folder, ignored = waiting.popleft()
        path = os.path.join(directory, folder)
        found = _scan(path, MAX_SCANNED - scanned)
        if found is None or (folder and not _BELONGS_TO_A_PROGRAM.isdisjoint(found)):
            continue
        scanned += len(found)
        if ".gitignore" in found:
            ignored = reader.add_file(ignored, path, base + folder)
            if folder and not reader.is_whole:
                continue  # it stays closed: which of its files are ignored is not known
        entries = _visible_names(found, base + folder, ignored)
        shown = entries[: min(limit, MAX_INNER if folder else max(1, limit * 3 // 5))]
        limit -= len(shown)
        tree[shown_folder] = Listing(
            tuple(_display_name(name) for name, _ in shown), len(entries) - len(shown) if scanned < MAX_SCANNED else -1
        )
        inner = (name for name, is_closed in shown if not is_closed)
        waiting.extend((folder + name, shown_folder + _display_name(name), ignored) for name in inner)
    return tree


def _visible_names(found: Mapping[str, bool], folder: str, ignored: IgnoreRules | None) -> list[tuple[str, bool]]:
    """The names that are shown, folders first, each with whether it stays closed."""
    folders: list[tuple[str, bool]] = []
    files: list[tuple[str, bool]] = []
    for name in sorted(found):
        if name == "__pycache__" or (name.startswith(".") and name not in _HIDDEN_BUT_TOLD):
            continue
        is_folder = found[name]
        is_ignored = ignored is not None and ignored.ignores(folder + name, is_folder)
        if is_folder:
            folders.append((f"{name}/", is_ignored or name in VENDORED))
        elif not is_ignored:
            files.append((name, True))
    return folders + files


def _scan(path: str, most: int) -> dict[str, bool] | None:
    """At most `most` names in a folder, each with whether it is a folder; None if it cannot be read."""
    found: dict[str, bool] = {}
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                found[entry.name] = entry.is_dir(follow_symlinks=False)
                if len(found) >= most:
                    break
    except OSError:
        return found or None
    return found


def _display_name(name: str) -> str:
    return escape_tree_name(truncate_path(escape_name(name.removesuffix("/")))) + ("/" if name.endswith("/") else "")


def _size(tree: Tree) -> int:
    return sum(len(listing.names) for listing in tree.values())


# --- .gitignore ----------------------------------------------------------------------------------------------------------


def repository_root(directory: str) -> str:
    """The nearest folder, from here upwards, that is a git repository; empty if there is none. git itself is not run."""
    at = os.path.realpath(directory)
    while not os.path.lexists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return ""
        at = above
    return at


def _ignored_above(directory: str, reader: _IgnoreReader) -> tuple[str, IgnoreRules | None]:
    """A directory's path in its repository, and the .gitignore rules above it. If it is ignored itself, none apply."""
    root = repository_root(directory)
    inside = os.path.relpath(os.path.realpath(directory), root).replace(os.sep, "/") if root else "."
    if inside == ".":
        return "", None
    ignored: IgnoreRules | None = None
    prefix = ""
    for part in inside.split("/"):
        ignored = reader.add_file(ignored, os.path.join(root, prefix), prefix)
        prefix += part
        if ignored is not None and ignored.ignores(prefix, True):
            return "", None
        prefix += "/"
    return prefix, ignored


class _IgnoreReader:
    """Reads the .gitignore files of one tree, all of them together within bounds: anybody may have written them."""

    def __init__(self) -> None:
        self.is_whole = True
        """Whether the last file was read to its end."""
        self._budget: ReadBudget | None = None

    def add_file(self, ignored: IgnoreRules | None, folder: str, prefix: str) -> IgnoreRules | None:
        """The rules including a folder's own .gitignore, if it has one. Like git, we do not follow it if it is a link."""
        path = os.path.join(folder, ".gitignore")
        self.is_whole = True
        try:
            if not stat.S_ISREG(os.lstat(path).st_mode):
                return ignored
            from dragoman.loop.gitignore import MAX_FILE_BYTES, IgnoreFile, IgnoreRules, ReadBudget

            self._budget = self._budget or ReadBudget()
            read = IgnoreFile(read_found(path, MAX_FILE_BYTES + 1, cut=True, follow=False), self._budget)
        except OSError:
            return ignored
        self.is_whole = read.is_whole
        return (ignored or IgnoreRules()).within(prefix, read)
