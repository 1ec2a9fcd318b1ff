"""What a command must leave as it was: remembered before it runs, and looked at when nothing of it is alive any more.

The guard only looks. What has to be undone (new names in a git directory that lead git elsewhere; where nothing protects them while the
command runs, hooks and settings too) is work for a process inside the command's own boundary: launcher/mending.py. Everything else that
other programs would run or believe is told, and stays as the command left it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.base.found_files import read_found
from dragoman.policy.sandbox.git_runs import (
    GITS_OWN,
    STEPS,
    has_harmless_settings,
    has_hooks,
    is_folder,
    is_plain_worktree,
    leads,
    led_to,
    runs_something,
    steps_that_run,
)
from dragoman.policy.sandbox.launcher.mending import Repairs
from dragoman.policy.sandbox.repositories import FIXED, Repository, list_folders, list_names
from dragoman.policy.sandbox.survey import is_notable

KEPT_BYTES = 4_000_000
KEPT_FILES = 2_000
_LOOKED_AT_MOST = 10_000
_NEW_FOLDERS = 100
_LEADING = ("hooks", "config.worktree", "commondir")
"""Names in a bare repository, where others may lie, that lead git elsewhere."""
_EARLIER_NS = 20_000_000
"""The clock that files are stamped by is a little behind."""


class Findings(NamedTuple):
    """What was found after a command."""

    repairs: Repairs = Repairs()
    undone: tuple[str, ...] = ()
    """What the work removes or puts back."""
    running: tuple[str, ...] = ()
    """Hooks, settings and repositories of which git would run something."""
    believed: tuple[str, ...] = ()
    """Files that make other programs run something, or that agents believe."""


class Guard:
    """What is remembered of the state before a command. It writes nothing."""

    def __init__(
        self,
        roots: Sequence[str],
        repositories: Sequence[Repository],
        *,
        started: Sequence[str] = (),
        near: Mapping[str, Sequence[str]] = {},
        inodes: Mapping[str, int] = {},
        with_content: bool = False,
    ) -> None:
        """`started`: what runs by itself in a home directory among the roots. `near`: folders that are looked at after it, each with the
        files in it that are told when they change; `inodes`: theirs.
        `with_content`: nothing protects hooks and settings while the command runs, so they are kept."""
        self._since_ns = time.time_ns() - _EARLIER_NS
        self._roots = tuple(roots)
        self._repositories = tuple(repositories)
        self._names = {path: set(list_names(path)) for each in repositories for path in each.git_folders}
        self._bare = {each.folder for each in repositories if each.is_bare}
        self._identities = {each.root: _identity(os.path.join(each.root, ".git")) for each in repositories if not each.is_bare}
        self._signs = set(self._find_signs())
        self._steps = {path for folder in self._names for path in steps_that_run(folder)}
        named = [(each, leads(each)) for each in repositories]
        self._places = {path: _place(path) for _, paths in named for path in paths}
        self._led_to = dict.fromkeys(path for each, paths in named for path in led_to(each, paths, roots))
        self._started = tuple(started)
        self._near, self._inodes = near, inodes
        self._kept: dict[str, tuple[int, bytes]] = {}
        self._is_kept_whole = True
        for path in self._names:
            self._keep(path) if with_content else self._keep_links(path)

    def is_unchanged(self) -> bool:
        """Whether nothing has changed of all that is looked at. Opens no file; of files whose content was kept it knows nothing."""
        if self._kept or any(True for _ in self._odd_names()) or set(self._find_signs()) != self._signs:
            return False
        if any(_identity(os.path.join(root, ".git")) != before for root, before in self._identities.items()):
            return False
        if any(_place(path) != before for path, before in self._places.items()):
            return False
        in_git = (os.path.join(folder, name) for folder in self._names for name in ("config", "hooks", *STEPS))
        near = (f"{folder}/{name}" for folder, notable in self._near.items() for name in notable)
        return not any(_changed_at(path, self._since_ns) for path in (*self._near, *near, *in_git, *self._led_to, *self._started))

    def look(self) -> Findings:
        """What is different now. It may take a few milliseconds."""
        removed = [*self._odd_names(), *self._new_in_kept()]
        written = [(path, *state) for path, state in sorted(self._kept.items()) if not _is_as(path, state)]
        undone = dict.fromkeys((*removed, *(path for path, _, _ in written)))
        near = dict(self._changed_near())
        running = [*self._replaced(), *self._made(), *self._changed_beside(), *self._new_steps()]
        running += [path for path in self._led_elsewhere() if path not in undone]
        running += [path for path, runs in near.items() if runs]
        believed = [path for path, runs in near.items() if not runs and path not in running]
        return Findings(Repairs(remove=tuple(removed), write=tuple(written)), tuple(undone), _unique(running), tuple(believed))

    # --- undone

    def _odd_names(self) -> Iterator[str]:
        """New names in a git directory that git itself does not use."""
        for folder, before in self._names.items():
            for name in list_names(folder) if is_folder(folder) else ():
                if name in before:
                    continue
                if name in _LEADING or (folder not in self._bare and not GITS_OWN.fullmatch(name)):
                    yield os.path.join(folder, name)

    def _keep(self, folder: str) -> None:
        """Hooks and settings of a git directory, bounded."""
        size = 0
        waiting = [os.path.join(folder, name) for name in FIXED if name not in ("modules", "worktrees")]
        while waiting:
            path = waiting.pop()
            state = _read_state(path)
            if state is None:
                continue
            size += len(state[1])
            if len(self._kept) >= KEPT_FILES or size > KEPT_BYTES:
                self._is_kept_whole = False
                return
            self._kept[path] = state
            if stat.S_ISDIR(state[0]):
                waiting += [os.path.join(path, name) for name in list_names(path)]

    def _keep_links(self, folder: str) -> None:
        """Of what is read-only otherwise: a link cannot be covered."""
        paths = (os.path.join(folder, name) for name in FIXED)
        self._kept |= {path: state for path in paths if os.path.islink(path) and (state := _read_state(path)) is not None}

    def _new_in_kept(self) -> Iterator[str]:
        """What was added to a folder of hooks. Of one that was too large to be kept, what is not known may have been there before."""
        folders = [path for path, (mode, _) in self._kept.items() if stat.S_ISDIR(mode)] if self._is_kept_whole else []
        for folder in folders:
            for name in list_names(folder) if is_folder(folder) else ():
                if os.path.join(folder, name) not in self._kept:
                    yield os.path.join(folder, name)

    # --- told

    def _find_signs(self) -> Iterator[str]:
        """What makes git take the workspace's folders, or folders directly in them, for repositories."""
        for root in self._roots:
            for place in (root, *list_folders(root, _LOOKED_AT_MOST)):
                if sign := _sign_of(place):
                    yield sign

    def _made(self) -> Iterator[str]:
        """New repositories of which git would run something."""
        for sign in sorted(set(self._find_signs()) - self._signs):
            if os.path.basename(sign) == "HEAD":
                if runs_something(os.path.dirname(sign), is_bare=True):
                    yield os.path.dirname(sign)
            elif self._leads_elsewhere(sign):
                yield sign

    def _replaced(self) -> Iterator[str]:
        """Other repositories in the place of those that were there."""
        for root, before in self._identities.items():
            path = os.path.join(root, ".git")
            now = _identity(path)
            if now is not None and now != before and self._leads_elsewhere(path):
                yield path

    def _leads_elsewhere(self, path: str) -> bool:
        """Whether git would run something by this `.git`."""
        return runs_something(path) if is_folder(path) else not is_plain_worktree(path, self._names)

    def _changed_beside(self) -> Iterator[str]:
        """Hooks and settings that lie beside the files because git's settings or links lead there, and those of other repositories."""
        for path in self._led_to:
            yield from _changed_in(path, self._since_ns)
        for repository in self._repositories:
            for folder in repository.git_folders:
                if _changed_at(path := os.path.join(folder, "config"), self._since_ns) and not has_harmless_settings(path):
                    yield path
                if _changed_at(path := os.path.join(folder, "hooks"), self._since_ns) and has_hooks(path):
                    yield path

    def _led_elsewhere(self) -> Iterator[str]:
        """Names that lead git to other hooks or settings than before, though neither they nor these were changed: because another folder,
        or a link, stands in the place of a folder on the way."""
        for path, before in self._places.items():
            if _place(path) != before and (has_hooks(path) if os.path.isdir(path) else os.path.exists(path)):
                yield path

    def _new_steps(self) -> Iterator[str]:
        for folder in self._names:
            yield from (path for path in steps_that_run(folder) if path not in self._steps)

    def _changed_near(self) -> Iterator[tuple[str, bool]]:
        """What was made or changed meanwhile in the near folders and in new ones: files by which other programs run something, or that
        agents believe, and repositories of which git would run something (True)."""
        yield from ((path, False) for path in self._started if _changed_at(path, self._since_ns))
        made: list[tuple[str, bool]] = []
        for folder, notable in self._near.items():
            if _changed_at(folder, self._since_ns):
                yield from self._look_in(folder, made, is_other=self._is_other(folder))
            else:
                yield from ((path, False) for name in notable if _changed_at(path := f"{folder}/{name}", self._since_ns))
        for folder, is_other in made:  # which grows meanwhile
            yield from self._look_in(folder, made, is_other=is_other)

    def _is_other(self, folder: str) -> bool:
        """Whether a near folder is not the one that was there: what lies in it need not have changed to be new at this place."""
        identity = _identity(folder)
        return folder in self._inodes and identity is not None and identity[1] != self._inodes[folder]

    def _look_in(self, folder: str, made: list[tuple[str, bool]], *, is_other: bool) -> Iterator[tuple[str, bool]]:
        """`made`: new folders, which are looked into too, and whether what is in them came with them, as `is_other` says of this one."""
        try:
            with os.scandir(folder) as entries:
                found = [(entry.path, entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            return
        for path, name, is_inner in found:
            if name == ".git":
                if path not in self._signs and _changed_at(path, self._since_ns) and self._leads_elsewhere(path):
                    yield path, True
            elif is_inner:
                if (is_other or path not in self._near) and len(made) < _NEW_FOLDERS:
                    made.append((path, is_other or _changed_at(path, self._since_ns)))
            elif self._is_told(path) and (is_other or _changed_at(path, self._since_ns)):
                yield path, False

    def _is_told(self, path: str) -> bool:
        return is_notable(path, self._roots)


def _sign_of(place: str) -> str:
    """What makes git take a folder for a repository: its `.git`, or the `HEAD` of a bare one; empty if nothing does."""
    path = os.path.join(place, ".git")
    if os.path.lexists(path):
        return path
    head = os.path.join(place, "HEAD")
    return head if os.access(head, os.F_OK) and os.path.lexists(os.path.join(place, "objects")) else ""


def _changed_in(path: str, since_ns: int) -> Iterator[str]:
    """A file, or what is in a folder, if it changed since then."""
    if not is_folder(path):
        if _changed_at(path, since_ns):
            yield path
        return
    inner = [os.path.join(path, name) for name in list_names(path)[:KEPT_FILES]]
    changed = [each for each in inner if _changed_at(each, since_ns)]
    yield from changed or ([path] if _changed_at(path, since_ns) else [])


def _changed_at(path: str, since_ns: int) -> bool:
    """By the time of its last change, which no program can set."""
    try:
        return os.lstat(path).st_ctime_ns >= since_ns
    except OSError:
        return False


def _read_state(path: str) -> tuple[int, bytes] | None:
    """Mode and content of a file, mode and target of a link, mode of a folder; None for anything else, and if nothing is there."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return mode, os.fsencode(os.readlink(path))
        if stat.S_ISREG(mode):
            return mode, read_found(path, KEPT_BYTES, follow=False)
        return (mode, b"") if stat.S_ISDIR(mode) else None
    except OSError:
        return None


def _is_as(path: str, kept: tuple[int, bytes]) -> bool:
    """Whether it still is what was kept. A folder is, whatever its mode."""
    now = _read_state(path)
    return now == kept or (now is not None and stat.S_ISDIR(now[0]) and stat.S_ISDIR(kept[0]))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _place(path: str) -> tuple[str, tuple[int, int] | None]:
    """Where a path leads, behind all links, and what stands there."""
    real = os.path.realpath(path)
    return real, _identity(real)


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))
