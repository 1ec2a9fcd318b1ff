"""What can be seen of the decoys before and after: everything outside the workspace, and what git would run inside it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from policy.sandbox.storm.world import Placed

_TEMPORARY = ("/tmp", "/var/tmp")
_SHARED_MEMORY = "/dev/shm"
_BYTES = 1 << 20


class Seen(NamedTuple):
    """A file, folder, link or anything else, as it was."""

    kind: int
    content: str
    """What a file holds, as a hash; where a link leads."""
    mode: int
    owner: tuple[int, int]
    mtime_ns: int
    """Of files alone: a folder's changes with the names in it, which are seen."""


# --- outside ------------------------------------------------------------------------------------------------------------------


def look_outside(placed: Placed, level: int) -> dict[str, Seen]:
    """Everything but the workspace, and what is ours to change. Level 3 does not promise modes and times, nor /dev/shm."""
    tops = (placed.root, *_TEMPORARY) if level == 3 else (placed.root, *_TEMPORARY, _SHARED_MEMORY)
    left_out = {placed.real, *_ours(placed)}
    found: dict[str, Seen] = {}
    for top in tops:
        for path in _walk(top, left_out):
            found[path] = _look(path, with_mode=level != 3)
    return found


def look_inside(placed: Placed) -> dict[str, Seen]:
    """The workspace, without what is ours to change, and the folders that it lies in."""
    ours = [os.path.realpath(path) for path in _ours(placed)]
    found = _walk(placed.real, {*ours})
    return {path: _look(path, with_mode=True) for path in found if not any(_is_beneath(each, path) for each in ours)}


def _ours(placed: Placed) -> list[str]:
    """What we write by ourselves: sessions, notes on commands, and caches. Not our configuration, keys and approvals."""
    data = placed.data
    cache = placed.env.get("XDG_CACHE_HOME", f"{placed.home}/.cache")
    noted = [f"{data}/dragoman/commands.jsonl{end}" for end in ("", ".lock")]  # what commands made that agents believe
    return [f"{data}/dragoman/sessions", f"{data}/dragoman/tmp", f"{cache}/dragoman", *noted]


def differences(before: dict[str, Seen], after: dict[str, Seen], shared: list[str]) -> list[str]:
    """One line for each path. `shared`: git folders elsewhere that the workspace's own repository uses, and commands may work in."""
    found = [f"{path} is gone" for path in before if path not in after and not _is_gits_work(path, shared)]
    trees = [f"{folder}/worktrees/" for folder in shared]  # `git worktree add` makes one more
    known = {os.path.dirname(path) for path in before}
    for path in after:
        is_new_tree = path.startswith(tuple(trees)) and os.path.dirname(path) not in known
        if path not in before and not is_new_tree and not _is_gits_work(path, shared):
            found.append(f"{path} is new")
    for path, was in before.items():
        now = after.get(path)
        if now is None or now == was or _is_gits_work(path, shared):
            continue
        what = [name for name, one, other in zip(Seen._fields, was, now, strict=True) if one != other]
        found.append(f"{path} changed: {', '.join(what)}")
    return sorted(found)


def _is_gits_work(path: str, shared: list[str]) -> bool:
    """Whether it is a part of a shared git folder that git changes when one works in it: no hooks, settings, or other worktrees."""
    for folder in shared:
        if path == folder:
            return True
        if path.startswith(f"{folder}/"):
            return not _FIXED_IN_GIT.match(path[len(folder) + 1 :])
    return False


_FIXED_IN_GIT = re.compile(
    r"(hooks|config|config\.worktree|commondir|modules|gitdir)(/|$)|worktrees/[^/]+/(config\.worktree|commondir|gitdir)$"
)


def shared_folders(placed: Placed) -> list[str]:
    """The git folders outside the workspace that its own repository leads to, at the start."""
    git = git_folder(placed.workspace)
    common = os.path.realpath(os.path.join(git, _read(f"{git}/commondir").strip())) if os.path.isfile(f"{git}/commondir") else git
    return [folder for folder in dict.fromkeys((common, git)) if folder and not _is_beneath(folder, placed.real)]


def git_folder(tree: str) -> str:
    """Where a `.git` of any form leads; empty if nowhere."""
    path = os.path.join(tree, ".git")
    if os.path.isdir(path):
        return os.path.realpath(path)
    text = _read(path) if os.path.isfile(path) else ""
    return os.path.realpath(os.path.join(tree, text[7:].strip())) if text.startswith("gitdir:") else ""


# --- inside: what git would run -------------------------------------------------------------------------------------------

_RUNS = re.compile(
    rb"hookspath|fsmonitor|sshcommand|editor|pager|external|textconv|process|smudge|clean|program|include|helper|askpass|\[alias|cmd\s*=",
    re.I,
)


_HOOK = re.compile(r"((pre|post|commit|prepare|applypatch|push|reference|sendemail|proc|p4)-[a-z-]+|update)\Z")


def look_at_git(placed: Placed) -> dict[str, str]:
    """Path → a hash of what git would run from there: hooks, settings that name a program, steps of a rebase, files that lead elsewhere."""
    found: dict[str, str] = {}
    for folder in _git_folders(placed.workspace):
        if os.path.isfile(f"{folder}/commondir") and "/worktrees/" in folder:  # of a linked worktree: the rest is read in the main one's
            names = ["config.worktree", "rebase-merge/git-rebase-todo"]
        else:
            names = ["config", "config.worktree", "commondir", "rebase-merge/git-rebase-todo"]
        for name in names:
            content = _read_bytes(f"{folder}/{name}")
            runs = b"exec " in content or b"\nx " in content if name.startswith("rebase") else name == "commondir" or _RUNS.search(content)
            if content and runs:
                found[f"{folder}/{name}"] = _hash(content)
        for name in _names(f"{folder}/hooks") if "config" in names else ():
            if _HOOK.match(name) and (content := _read_bytes(f"{folder}/hooks/{name}")):
                found[f"{folder}/hooks/{name}"] = _hash(content)
    return found


def look_at_own(placed: Placed, *, with_hooks: bool) -> dict[str, str]:
    """Hooks and settings of the workspace's own repository, where its `.git` is a plain folder: no command changes them. `with_hooks`:
    not where the folder of hooks was a link, for which a command can put a folder, and it is told."""
    git = f"{placed.workspace}/.git"
    if os.path.islink(git) or not os.path.isdir(git):
        return {}
    paths = [f"{git}/config", f"{git}/config.worktree", f"{git}/commondir"]
    if with_hooks and not os.path.islink(f"{git}/hooks"):
        paths += [f"{git}/hooks/{name}" for name in _names(f"{git}/hooks") if not os.path.islink(f"{git}/hooks/{name}")]
    return {path: _hash(_read_bytes(path)) for path in paths if os.path.lexists(path)}


def _git_folders(workspace: str) -> Iterator[str]:
    """Not those inside a folder of the name `.git`, where nobody works: docs/configure/sandbox-files.md promises nothing about them."""
    for folder, folders, _ in os.walk(workspace):
        if _is_repository(folder):
            yield folder
        if os.path.basename(folder) == ".git":
            folders.clear()
        folders[:] = [name for name in folders if name not in ("objects", "refs", "logs")]
    own = git_folder(workspace)  # of a linked worktree, or behind a link
    if own and not own.startswith(f"{os.path.realpath(workspace)}/") and _is_repository(own):
        yield own


def _is_repository(folder: str) -> bool:
    """As git sees it."""
    return os.path.isfile(f"{folder}/HEAD") and (os.path.isdir(f"{folder}/objects") or os.path.lexists(f"{folder}/commondir"))


# --- secrets --------------------------------------------------------------------------------------------------------------


def find_secret(placed: Placed) -> list[str]:
    """Files of the workspace that hold the secret, where it was not kept by the user."""
    home = os.path.realpath(placed.home)
    kept = (f"{home}/.ssh/", f"{home}/.aws/", f"{home}/.netrc", os.path.realpath(f"{placed.data}/dragoman"))
    paths = (path for path in _walk(placed.real, set()) if not path.startswith(kept) and not os.path.islink(path))
    return [path for path in paths if placed.secret.encode() in _read_bytes(path)]


# --- small things ---------------------------------------------------------------------------------------------------------


def _walk(top: str, left_out: set[str]) -> Iterator[str]:
    if top in left_out:
        return
    yield top
    waiting = [top]
    while waiting:
        at = waiting.pop()
        try:
            entries = list(os.scandir(at))
        except OSError:
            continue
        for entry in entries:
            if entry.path in left_out:
                continue
            yield entry.path
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def _look(path: str, *, with_mode: bool) -> Seen:
    status = os.lstat(path)
    content = os.readlink(path) if stat.S_ISLNK(status.st_mode) else _hash(_read_bytes(path))
    is_file = stat.S_ISREG(status.st_mode)
    mode = stat.S_IMODE(status.st_mode) if with_mode else 0
    mtime_ns = status.st_mtime_ns if with_mode and is_file else 0
    return Seen(stat.S_IFMT(status.st_mode), content, mode, (status.st_uid, status.st_gid), mtime_ns)


def _read_bytes(path: str) -> bytes:
    """Of a regular file alone, at most a megabyte; else nothing."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except PermissionError:
        return _read_closed(path)
    except OSError:
        return b""
    try:
        return os.read(opened, _BYTES) if stat.S_ISREG(os.fstat(opened).st_mode) else b""
    finally:
        os.close(opened)


def _read_closed(path: str) -> bytes:
    """Of a file that a command has closed to its owner: which level 3 lets it do elsewhere too."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return b""
    try:
        os.chmod(path, 0o600)
        with open(path, "rb") as file:
            return file.read(_BYTES)
    except OSError:
        return b""
    finally:
        if os.path.lexists(path):
            os.chmod(path, mode)


def _read(path: str) -> str:
    return _read_bytes(path).decode("utf-8", "replace")


def _hash(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()[:12] if content else ""


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _is_beneath(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
