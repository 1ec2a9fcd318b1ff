"""Looks at the files of the workspace: which are there, which have changed since the last look, and which of them git holds.

git holds a file whose content is committed at HEAD. Everything else that is not ignored is work that a command could destroy for good.
Nothing of git is run: index, commits and trees are read as data. Looking again costs one `lstat` for each folder and file, or only in
folders where the system has noted a change; a folder is listed again, and a file read again, only if it has changed since. No link is
followed, and nothing but regular files is opened.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha1
from operator import attrgetter
from typing import Literal, NamedTuple

from dragoman.base.folder_events import FolderEvents, is_local
from dragoman.base.found_files import read_found
from dragoman.loop.gitignore import MAX_FILE_BYTES, IgnoreFile, IgnoreRules, ReadBudget
from dragoman.policy.git_index import MAX_INDEX_BYTES, IndexEntry, read_index
from dragoman.policy.git_objects import GitObjects
from dragoman.policy.sandbox.repositories import worktree_behind
from dragoman.sessions.file_state import NOTHING, is_hash, read_file_states

MAX_WALKED = 50_000
"""So many files are looked at; those in the upper folders first."""
MAX_FILES = 5_000
"""So many files that git does not hold are kept,"""
MAX_BYTES = 100_000_000
"""and of so many bytes together;"""
MAX_COPIED_BYTES = 1_000_000_000
"""of files that change again and again, so many bytes in a session."""
_NEVER_ENTERED = frozenset({".git", ".hg", ".jj", "node_modules", "__pycache__", ".venv", "venv"})
_TICK_NS = 100_000_000
"""File systems count time in ticks. What changed within the last one may change again without another time."""
_CONFIG_BYTES = 200_000
_IDENTITY = attrgetter("st_ctime_ns", "st_ino", "st_size")
_Identity = tuple[int, int, int]
RefuseCopy = Callable[[str, bytes], Literal["", "hidden", "key"]]
"""Takes a path and the file's bytes."""


class FileSeen(NamedTuple):
    """A file as it was seen."""

    content: str
    """As in FileState; empty where only its name in git is known."""
    git_id: str
    """The SHA-1 that git gives it; empty where it was not read."""
    mode: int
    is_held: bool
    """Whether git holds it."""
    is_kept: bool = True
    """Whether its bytes are kept or held: not those of links, too large files, and what lies past the bounds."""
    size: int = 0
    refused: Literal["", "hidden", "key"] = ""
    """Why no copy of it may be made: it is hidden from commands and tools, which could read the copy, or it holds a key of ours."""

    def is_as(self, other: FileSeen | None) -> bool:
        if other is None or self.mode != other.mode:
            return False
        if self.content and other.content:
            return self.content == other.content
        return bool(self.git_id) and self.git_id == other.git_id


class Change(NamedTuple):
    """What became of a file between two looks."""

    path: str
    before: FileSeen | None
    after: FileSeen | None


class _Folder(NamedTuple):
    times: tuple[int, ...]
    """Empty where it had just changed when it was listed: then it may change again without showing it."""
    paths: tuple[str, ...]
    """The files in it that count."""
    inner: tuple[tuple[str, bool], ...]
    """The folders to look into, and whether only tracked and watched files count there."""
    rules: IgnoreRules
    repository: _Repository | None


class _Repository:
    """A git repository: what its index and its HEAD say of files. `top`: the folder that its names begin at."""

    def __init__(self, top: str) -> None:
        self.top = top
        self.prefix = f"{top.rstrip('/')}/"
        self.names: dict[str, str] = {}
        """By path: the object that is committed and in the index; empty where the two differ."""
        self.entries: dict[str, IndexEntry] = {}
        self.folders: frozenset[str] = frozenset()
        """Those with tracked files in them."""
        self.trusts_times = False
        """Whether a file that has the times the index knows has the content it knows: no filter or line ending can come between."""
        self.folder, shared = _git_folder(top)
        self.objects = GitObjects(self.folder, shared)
        self.written_ns = 0
        """When the index was written: what changed since then, or just then, it does not know of."""
        self._index: tuple[int, ...] | None = None
        self._head = self._index_head = ""
        self._committed: dict[bytes, str] = {}

    def refresh(self) -> bool:
        """Read again what has changed. Returns whether something has."""
        try:
            head = self.objects.head()
        except ValueError:
            head = "?"
        index = _times(os.path.join(self.folder, "index"), stat.S_ISREG)
        if index == self._index and head == self._index_head and self._index is not None:
            return False
        self._index, self._index_head, self.written_ns = index, head, index[3] if index else 0
        self._read(head)
        return True

    def _read(self, head: str) -> None:
        self.names, self.entries, self.folders = dict[str, str](), dict[str, IndexEntry](), frozenset()
        try:
            settings = _found(os.path.join(self.objects.shared, "config"), _CONFIG_BYTES).decode("utf-8", "replace").lower()
            if head == "?" or "partialclone" in settings or "sha256" in settings:
                return
            entries = list(read_index(_found(os.path.join(self.folder, "index"), MAX_INDEX_BYTES)))
            if head != self._head:
                self._committed = self.objects.files_at(head) if head else {}
                self._head = head
        except (OSError, ValueError):
            return  # then git holds nothing that we know of, and everything is kept
        for entry in entries:
            path = self.prefix + os.fsdecode(entry.name)
            is_committed = entry.stage == 0 and self._committed.get(entry.name) == entry.object_id
            self.names[path] = entry.object_id if is_committed else ""
            self.entries[path] = entry
        self.folders = frozenset(_folders_of(self.names))
        self.trusts_times = "autocrlf" not in settings and not self._has_attributes()

    def _has_attributes(self) -> bool:
        home = os.path.expanduser("~")
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        for path in ("/etc/gitconfig", os.path.join(home, ".gitconfig"), os.path.join(config, "git", "config")):
            text = _found(path, _CONFIG_BYTES).lower() if os.path.lexists(path) else b""
            if b"autocrlf" in text or b"attributesfile" in text or b"include" in text:
                return True
        further = (
            "/etc/gitattributes",
            os.path.join(config, "git", "attributes"),
            os.path.join(self.objects.shared, "info", "attributes"),
        )
        return any(map(os.path.lexists, further)) or any(path.endswith("/.gitattributes") for path in self.names)


class WorkTree:
    """`folders`: of the workspace, resolved. `is_watched`: of ignored files, those that count nevertheless. `keep`: is given the bytes of
    each file that git does not hold, and returns whether they are kept. `refuse_copy`: why no copy of a file may be made.

    One thread at a time may look.
    """

    def __init__(
        self,
        folders: Callable[[], Sequence[str]],
        is_watched: Callable[[str], bool],
        keep: Callable[[Sequence[bytes]], bool],
        *,
        refuse_copy: RefuseCopy = lambda path, data: "",
    ) -> None:
        self.files: dict[str, FileSeen] = {}
        """All files, as of the last look."""
        self.is_whole = True
        """False: there were more files than are looked at."""
        self._roots = folders
        self._is_watched, self._refuse_copy = is_watched, refuse_copy
        self._room = _Room(keep)
        self._folders: dict[str, _Folder] = {}
        self._identity: dict[str, _Identity] = {}
        """Of each file, as it was when it was read; not of one that may change again without showing it."""
        self._present: set[str] = set()
        self._repositories: dict[str, _Repository] = {}
        self._budget = ReadBudget()
        self._has_looked = self._was_relisted = False
        self._events = FolderEvents()
        self._is_local: dict[str, bool] = {}
        self._unsettled: set[str] = set()
        """Folders with files that may change again without showing it."""
        self._passed_by: frozenset[str] = frozenset()
        """Folders whose files are not looked at."""

    def look(self, *, wholly: bool = True) -> list[Change]:
        """What has changed since the last look; the first time, nothing. Never raises for what is on the disk. `wholly`: look at every
        file; else only in folders in which the system has noted a change since then."""
        is_first, self._has_looked = not self._has_looked, True
        unchanged = self._events.unchanged()  # asked first: what changes from here on is noted for the next look
        self._passed_by = frozenset() if wholly or is_first else frozenset(unchanged).difference(self._unsettled)
        changed = [repository for repository in self._repositories.values() if repository.refresh()]
        if changed:
            self._folders.clear()
        self._walk()
        stale = self._stale()
        if not is_first and any(path.endswith("/.gitignore") for path in stale):
            self._budget = ReadBudget()
            self._folders.clear()
            self._walk()
            stale = self._stale()
        if changed:
            stale = {path: _identity_of(path) for path in self._held_otherwise()} | stale
        if not self._was_relisted and not stale:
            return []
        changes = [Change(path, self._forget(path), None) for path in self.files.keys() - self._present]
        changes += self._read(stale, is_first=is_first)
        return [] if is_first else changes

    def is_tracked(self, path: str) -> bool:
        folder = self._folders.get(path.rpartition("/")[0])
        return folder is not None and folder.repository is not None and path in folder.repository.names

    def has_tracked(self, folder: str) -> bool:
        """Whether git knows files beneath a folder."""
        known = self._folders.get(folder)
        return known is not None and known.repository is not None and folder in known.repository.folders

    def git_folder(self, folder: str) -> str:
        """The git directory around a folder of the workspace, where stashes are listed; empty if there is none."""
        known = self._folders.get(folder)
        return known.repository.objects.shared if known is not None and known.repository is not None else ""

    def object_bytes(self, path: str, git_id: str) -> bytes | None:
        """The bytes of a file that git held; None if they are not there any more."""
        for repository in self._repositories.values():
            if path.startswith(repository.prefix) and (found := repository.objects.read(git_id)) is not None:
                return found.data
        return None

    # --- walking

    def _walk(self) -> None:
        """Find the folders, the upper ones first."""
        waiting: list[tuple[str, bool, _Folder | None]] = [(root, False, None) for root in self._roots()]
        found: dict[str, _Folder] = {}
        count = 0
        self.is_whole = True
        for path, only_tracked, above in waiting:
            if path in found:
                continue
            if count >= MAX_WALKED:
                self.is_whole = False
                break
            folder = self._folder(path, above, only_tracked=only_tracked)
            if folder is None:
                continue
            found[path] = folder
            count += len(folder.paths)
            waiting += [(inner, is_only, folder) for inner, is_only in folder.inner]
        self._was_relisted = found.keys() != self._folders.keys() or any(self._folders[path] is not each for path, each in found.items())
        self._folders = found
        if self._was_relisted:
            self._present = {path for folder in found.values() for path in folder.paths}

    def _folder(self, path: str, above: _Folder | None, *, only_tracked: bool) -> _Folder | None:
        times = _times(path, stat.S_ISDIR)
        known = self._folders.get(path)
        if times is None:
            return None
        if known is not None and known.times == times:
            return known
        is_new = time.time_ns() - times[-1] < _TICK_NS
        if self._may_watch(path):
            self._events.watch(path)
        try:
            with os.scandir(path) as scanned:
                entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in scanned)
        except OSError:
            return None
        names = {name for name, _ in entries}
        repository, rules = (above.repository, above.rules) if above is not None else self._around(path)
        if ".git" in names:
            repository, rules = self._repository(path), IgnoreRules()
        if repository is not None and repository.top == path:
            rules = self._ruled(rules, os.path.join(repository.objects.shared, "info", "exclude"), "")
        top = repository.prefix if repository is not None else f"{self._root_of(path)}/"
        prefix = f"{path}/"[len(top) :]
        if ".gitignore" in names:
            rules = self._ruled(rules, os.path.join(path, ".gitignore"), prefix)
        files, inner = list[str](), list[tuple[str, bool]]()
        for name, is_folder in entries:
            full = f"{path}/{name}"
            is_ignored = only_tracked or rules.ignores(prefix + name, is_folder)
            if is_folder:
                is_wanted = not is_ignored or self._is_watched(f"{full}/any") or (repository is not None and full in repository.folders)
                if is_wanted and name not in _NEVER_ENTERED:
                    inner.append((full, is_ignored))
            elif name != ".git" and _is_utf8(full):
                is_tracked = repository is not None and full in repository.names
                files += [full] if not is_ignored or is_tracked or self._is_watched(full) else []
        return _Folder(() if is_new else times, tuple(files), tuple(inner), rules, repository)

    def close(self) -> None:
        self._events.close()

    def _may_watch(self, path: str) -> bool:
        root = self._root_of(path)
        if root not in self._is_local:
            self._is_local[root] = is_local(root)
        return self._is_local[root]

    def _root_of(self, path: str) -> str:
        return next((root for root in self._roots() if path == root or path.startswith(f"{root}/")), path)

    def _around(self, root: str) -> tuple[_Repository | None, IgnoreRules]:
        """The repository that one of the workspace's own folders lies in, and the rules of the folders above it."""
        at = root
        while not os.path.lexists(os.path.join(at, ".git")):
            if at == os.path.dirname(at):
                return None, IgnoreRules()
            at = os.path.dirname(at)
        if at == root:
            return None, IgnoreRules()
        repository, rules = self._repository(at), IgnoreRules()
        rules = self._ruled(rules, os.path.join(repository.objects.shared, "info", "exclude"), "")
        while at != root:
            rules = self._ruled(rules, os.path.join(at, ".gitignore"), f"{at}/"[len(repository.prefix) :])
            at = os.path.join(at, root[len(at) :].lstrip("/").partition("/")[0])
        return repository, rules

    def _repository(self, top: str) -> _Repository:
        if top not in self._repositories:
            self._repositories[top] = _Repository(top)
            self._repositories[top].refresh()
        return self._repositories[top]

    def _ruled(self, rules: IgnoreRules, file: str, prefix: str) -> IgnoreRules:
        try:
            return rules.within(prefix, IgnoreFile(read_found(file, MAX_FILE_BYTES + 1, cut=True, follow=False), self._budget))
        except OSError:
            return rules

    # --- what has changed

    def _stale(self) -> dict[str, _Identity | None]:
        """The files that are new, or not as they were when they were read, as they are now."""
        stale: dict[str, _Identity | None] = {}
        known = self._identity.get
        for name, folder in self._folders.items():
            if name in self._passed_by and folder.times:
                continue
            paths = folder.paths
            try:
                now: list[_Identity | None] = list(map(_IDENTITY, map(os.lstat, paths)))
            except OSError:
                now = [_identity_of(path) for path in paths]
            self._unsettled.discard(name)
            if now != list(map(known, paths)):
                stale |= {path: identity for path, identity in zip(paths, now, strict=True) if known(path) != identity}
        return stale

    def _held_otherwise(self) -> Iterator[str]:
        """Files that git holds and did not, or the other way round."""
        for folder in self._folders.values():
            if folder.repository is not None:
                for path in folder.paths:
                    seen = self.files.get(path)
                    held = folder.repository.names.get(path, "")
                    if seen is not None and (seen.git_id if seen.is_held else "") != held and (seen.is_held or held == seen.git_id):
                        yield path

    # --- reading

    def _read(self, stale: dict[str, _Identity | None], *, is_first: bool) -> Iterator[Change]:
        """Look into files that are new or have changed."""
        by_folder: dict[str, list[str]] = {}
        now_ns = time.time_ns()
        for path, identity in stale.items():
            self._identity.pop(path, None)
            if identity is None:
                if path in self.files:
                    yield Change(path, self._forget(path), None)
                continue
            folder = path.rpartition("/")[0]
            if now_ns - identity[0] > _TICK_NS:
                self._identity[path] = identity
            else:
                self._unsettled.add(folder)
            by_folder.setdefault(folder, []).append(path)
        self._room.begin(seen for path, seen in self.files.items() if path not in stale)
        for folder, paths in by_folder.items():
            repository = self._folders[folder].repository
            if is_first and repository is not None and repository.trusts_times:
                paths = [path for path in paths if not self._trust(path, repository)]
            states = read_file_states(folder, [path.rpartition("/")[2] for path in paths])
            for path, state in zip(paths, states, strict=True):
                held = repository.names.get(path, "") if repository is not None else ""
                before = self._forget(path, keep_identity=True)
                if state.content == NOTHING:
                    if before is not None:
                        yield Change(path, before, None)
                    continue
                git_id = git_id_of(state.data) if state.data is not None else ""
                is_held = bool(held) and held == git_id
                if not is_held and state.data is not None and (refused := self._refuse_copy(path, state.data)):
                    seen = FileSeen(_unread(path), "", state.mode, is_held, is_kept=False, refused=refused)
                else:
                    is_kept = is_held or self._room.take(state.content, state.data)
                    seen = FileSeen(state.content, git_id, state.mode, is_held, is_kept, len(state.data or b""))
                self.files[path] = seen
                if not seen.is_as(before):
                    yield Change(path, before, seen)
        self._room.keep()

    def _trust(self, path: str, repository: _Repository) -> bool:
        """Whether git's index says that a file is as it is committed: it was looked at after it was written, and has not changed since."""
        held, entry, identity = repository.names.get(path, ""), repository.entries.get(path), self._identity.get(path)
        if not held or entry is None or identity is None or entry.mtime_ns >= repository.written_ns:
            return False
        if (entry.ctime_ns, entry.inode, entry.size) != (identity[0], identity[1] & 0xFFFFFFFF, identity[2] & 0xFFFFFFFF):
            return False
        self.files[path] = FileSeen("", held, os.lstat(path).st_mode, True)
        return True

    def _forget(self, path: str, *, keep_identity: bool = False) -> FileSeen | None:
        if not keep_identity:
            self._identity.pop(path, None)
        return self.files.pop(path, None)


class _Room:
    """How much more is kept of what git does not hold."""

    def __init__(self, keep: Callable[[Sequence[bytes]], bool]) -> None:
        self._files, self._bytes, self._left = MAX_FILES, MAX_BYTES, MAX_COPIED_BYTES
        self._keep = keep
        self._waiting: list[bytes] = []

    def begin(self, others: Iterable[FileSeen]) -> None:
        """`others`: the files that stay as they are."""
        kept = [seen.size for seen in others if not seen.is_held and seen.is_kept]
        self._files, self._bytes = MAX_FILES - len(kept), MAX_BYTES - sum(kept)

    def take(self, content: str, data: bytes | None) -> bool:
        """Whether a file is kept."""
        if data is None or not is_hash(content) or self._files <= 0 or min(self._bytes, self._left) < len(data):
            return False
        self._files, self._bytes, self._left = self._files - 1, self._bytes - len(data), self._left - len(data)
        self._waiting.append(data)
        if sum(map(len, self._waiting[-50:])) > 8_000_000:
            self.keep()
        return True

    def keep(self) -> None:
        waiting, self._waiting = self._waiting, list[bytes]()
        if waiting:
            self._keep(waiting)


def _unread(path: str) -> str:
    """The content of a file of which not even a hash is recorded, as FileState has it."""
    identity = _identity_of(path)
    return "stat:" + ":".join(map(str, identity)) if identity is not None else "stat:"


def git_id_of(data: bytes) -> str:
    """The name that git gives a file with this content."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _git_folder(top: str) -> tuple[str, str]:
    """The git directory of a working tree, and of a linked one that of the main tree."""
    dot_git = os.path.join(top, ".git")
    if os.path.isdir(dot_git) and not os.path.islink(dot_git):
        return dot_git, ""
    own, shared = worktree_behind(dot_git)
    return (os.path.realpath(own), os.path.realpath(shared)) if own else (dot_git, "")


def _folders_of(paths: Iterable[str]) -> set[str]:
    found = set[str]()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in found:
            found.add(path)
    return found


def _found(path: str, limit: int) -> bytes:
    try:
        return read_found(path, limit)
    except FileNotFoundError:
        return b""


def _times(path: str, is_kind: Callable[[int], bool]) -> tuple[int, ...] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) if is_kind(status.st_mode) else None


def _identity_of(path: str) -> _Identity | None:
    try:
        return _IDENTITY(os.lstat(path))
    except OSError:
        return None


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
