"""Looks around: date, system, and what lies in the folders. What the model is told of it is context/environment.py's business."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dragoman.context.environment import Surroundings, added_text, changed_text, environment_text
from dragoman.context.tree import Listing, Tree, shown_name
from dragoman.tools.names import clipped, escaped
from dragoman.values.notes import GREETING, is_setup
from dragoman.values.record import Said

if TYPE_CHECKING:
    from dragoman.loop.gitignore import Ignored
    from dragoman.loop.history import History

MAX_ENTRIES = 200
"""Names shown, all directories together. The model lists more when it needs to."""
MAX_INNER = 40
"""Names shown of a folder within: one that holds hundreds must not keep the others from being seen."""
MAX_SCANNED = 5_000
"""Names looked at, for one directory and everything in it. Where there are more, nobody counts them."""
VENDORED = frozenset((
    "node_modules", "bower_components", "jspm_packages", "vendor", "Pods", "venv", "env", "site-packages",
    "target", "dist", "build", "coverage", "htmlcov",
))  # fmt: skip
"""Folders of what others wrote, or what programs made: named, never opened."""
_BELONGS_TO_A_PROGRAM = frozenset(("pyvenv.cfg", "CACHEDIR.TAG"))
_HIDDEN_BUT_TOLD = frozenset((
    ".github", ".gitlab-ci.yml", ".circleci", ".gitignore", ".dockerignore", ".pre-commit-config.yaml", ".editorconfig",
    ".env.example", ".devcontainer",
))  # fmt: skip


class Orientation:
    """What one conversation is told of its surroundings, and when."""

    def __init__(self, memory: Sequence[tuple[str, str]] = ()) -> None:
        self._memory = tuple(memory)
        self._has_looked = False
        self._added: list[str] = []

    def add(self, directory: str) -> None:
        """A directory that came to a conversation, to be told with the next prompt."""
        self._added.append(directory)

    def to_tell(self, history: History, directories: Sequence[str]) -> str:
        """What to say before the next prompt; empty where there is nothing.

        Everything when a conversation begins; when one is taken up again, what has changed since; later, directories that were added.
        """
        added, self._added = self._added, list[str]()
        has_looked, self._has_looked = self._has_looked, True
        if not history.view.messages:
            return environment_text(look_around(directories, self._memory))
        if not has_looked:
            told = _told(history)
            return changed_text(told, look_around(directories, self._memory)) if told else ""
        return added_text(tuple(map(escaped, directories)), folder_trees(added)) if added else ""


def _told(history: History) -> list[str]:
    """What the model was told of its surroundings: what it sees, or what it once saw where that is summed up by now."""
    seen = [message.text for message in history.view.messages if message.role == "user" and is_setup(message.text)]
    if seen and seen[0].startswith(GREETING):
        return seen
    said = (entry.message for entry in history.entries if isinstance(entry, Said))
    return [message.text for message in said if message.role == "user" and is_setup(message.text)]


def look_around(directories: Sequence[str], memory: Sequence[tuple[str, str]] = ()) -> Surroundings:
    return Surroundings(
        date=today(os.environ),
        system=sys.platform,
        directories=tuple(map(escaped, directories)),
        temporary=escaped(temporary_directory()),
        trees=folder_trees(directories),
        memory=tuple(memory),
    )


def temporary_directory() -> str:
    """Without importing tempfile, which costs more than it tells."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        if os.path.isdir(found := os.environ.get(name, "")):
            return found
    return "/tmp" if os.path.isdir("/tmp") else os.getcwd()


# --- the date ------------------------------------------------------------------------------------------------------------


def today(env: Mapping[str, str], when: time.struct_time | None = None) -> str:
    """The date as the user would write it out, by LC_ALL, LC_TIME or LANG; in English where the system does not know better."""
    when = when or time.localtime()
    name = env.get("LC_ALL") or env.get("LC_TIME") or env.get("LANG") or ""
    language, _, country = name.partition(".")[0].partition("@")[0].partition("_")
    if language in ("", "C", "POSIX", "en"):
        day_first = language == "en" and country not in ("", "US", "CA", "PH")
        return time.strftime(f"%A, {when.tm_mday} %B %Y" if day_first else f"%A, %B {when.tm_mday}, %Y", when)
    form = "%Y-%m-%d, %A" if language in ("zh", "ja", "ko") else f"%A, {when.tm_mday} %B %Y"
    return _in_language(name, form, when) or today({}, when)


def _in_language(name: str, form: str, when: time.struct_time) -> str:
    """Empty where the system does not have the language, or writes it in letters that are none."""
    try:
        import _locale
    except ImportError:
        return ""
    was = _locale.setlocale(_locale.LC_TIME, None)
    try:
        _locale.setlocale(_locale.LC_TIME, name)
        told = time.strftime(form, when)
    except Exception:  # _locale.Error, or whatever strftime makes of letters it cannot read
        return ""
    finally:
        _locale.setlocale(_locale.LC_TIME, was)
    return told if told.isprintable() else ""


# --- the folders ---------------------------------------------------------------------------------------------------------


def folder_trees(directories: Sequence[str], limit: int = MAX_ENTRIES) -> dict[str, Tree]:
    """By directory, as it is shown: what lies in it. All together name at most `limit`; what one does not need, others get."""
    wanted = tuple(dict.fromkeys(directories))[:limit]
    share = limit // max(1, len(wanted))
    trees = _gather(wanted, share)
    short = [directory for directory, tree in trees.items() if _size(tree) >= share or tree[""].more]
    if short and len(wanted) > 1:
        larger = (limit - sum(_size(tree) for directory, tree in trees.items() if directory not in short)) // len(short)
        trees |= _gather(short, larger) if larger > share else {}
    return {escaped(directory): tree for directory, tree in trees.items()}


def _gather(directories: Sequence[str], limit: int) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    if len(directories) == 1:
        _gather_into(found, directories[0], limit)
    else:
        from threading import Thread

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
    """What lies in a directory, breadth first, until `limit` names are found. Links are not followed; empty where it cannot be read.

    Hidden and git-ignored files are left out; folders that are ignored or hold what others made are named and not opened.
    """
    tree: dict[str, Listing] = {}
    scanned = 0
    base, ignored_above = _ignored_above(directory)
    waiting = deque([("", "", ignored_above)])
    while waiting and limit > 0 and scanned < MAX_SCANNED:
        folder, shown_folder, ignored = waiting.popleft()
        path = os.path.join(directory, folder)
        found = _scan(path, MAX_SCANNED - scanned)
        if found is None or (folder and not _BELONGS_TO_A_PROGRAM.isdisjoint(found)):
            continue
        scanned += len(found)
        if ".gitignore" in found:
            ignored = _with_file(ignored, path, base + folder)
        entries = _kept(found, base + folder, ignored)
        shown = entries[: min(limit, MAX_INNER if folder else max(1, limit * 3 // 5))]
        limit -= len(shown)
        tree[shown_folder] = Listing(tuple(_shown(name) for name, _ in shown), len(entries) - len(shown) if scanned < MAX_SCANNED else -1)
        inner = (name for name, is_closed in shown if not is_closed)
        waiting.extend((folder + name, shown_folder + _shown(name), ignored) for name in inner)
    return tree


def _kept(found: Mapping[str, bool], folder: str, ignored: Ignored | None) -> list[tuple[str, bool]]:
    """The names that are shown, folders first, each with whether it stays closed."""
    folders: list[tuple[str, bool]] = []
    files: list[tuple[str, bool]] = []
    for name in sorted(found):
        if name == "__pycache__" or (name.startswith(".") and name not in _HIDDEN_BUT_TOLD):
            continue
        is_folder = found[name]
        is_ignored = ignored is not None and ignored.leaves_out(folder + name, is_folder)
        if is_folder:
            folders.append((f"{name}/", is_ignored or name in VENDORED))
        elif not is_ignored:
            files.append((name, True))
    return folders + files


def _scan(path: str, most: int) -> dict[str, bool] | None:
    """Names in a folder, not more than so many, each with whether it is a folder; None where it cannot be read."""
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


def _shown(name: str) -> str:
    return shown_name(clipped(escaped(name.removesuffix("/")))) + ("/" if name.endswith("/") else "")


def _size(tree: Tree) -> int:
    return sum(len(listing.names) for listing in tree.values())


# --- what git leaves out -------------------------------------------------------------------------------------------------


def repository_root(directory: str) -> str:
    """The nearest folder, from here upwards, that is a git repository; empty where there is none. git itself is not asked."""
    at = os.path.realpath(directory)
    while not os.path.lexists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return ""
        at = above
    return at


def _ignored_above(directory: str) -> tuple[str, Ignored | None]:
    """Where a directory lies in its repository, and what the .gitignore files above it leave out. One that is ignored itself heeds none."""
    root = repository_root(directory)
    inside = os.path.relpath(os.path.realpath(directory), root).replace(os.sep, "/") if root else "."
    if inside == ".":
        return "", None
    ignored: Ignored | None = None
    prefix = ""
    for part in inside.split("/"):
        ignored = _with_file(ignored, os.path.join(root, prefix), prefix)
        prefix += part
        if ignored is not None and ignored.leaves_out(prefix, True):
            return "", None
        prefix += "/"
    return prefix, ignored


def _with_file(ignored: Ignored | None, folder: str, prefix: str) -> Ignored | None:
    """With the .gitignore of a folder, where there is one. Like git, we do not follow it elsewhere."""
    path = os.path.join(folder, ".gitignore")
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return ignored
        from dragoman.loop.gitignore import MAX_FILE_BYTES, Ignored, IgnoreFile

        with open(path, "rb") as file:
            return (ignored or Ignored()).within(prefix, IgnoreFile(file.read(MAX_FILE_BYTES)))
    except OSError:
        return ignored
