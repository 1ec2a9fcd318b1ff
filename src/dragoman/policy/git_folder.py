"""Whether reading with git is only reading here. A repository's own configuration can name programs that git runs for a mere `git status`:
a file system monitor, filters, an external diff. Such a repository arrives in an archive, or as a folder within another.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found
from dragoman.policy.git_index import MAX_INDEX_BYTES, read_index
from dragoman.policy.git_settings import read_settings
from dragoman.words import say

MAX_CONFIG_BYTES = 200_000
_MAX_LINE_BYTES = 4096
_GITLINK = b"\0\0\xe0\0"
"""The mode of a submodule, as the index has it. git looks into a submodule by that one's own configuration."""
_HEAD = re.compile(rb"ref:\s*refs/[^\n]+\n?|[0-9a-f]{40}(?:[0-9a-f]{24})?\s*")
_READ_IN_TREE = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")
_SHOWN = ("objects", "objects/pack", "info", "logs", "rebase-merge", "rebase-apply", "sequencer", "refs", "refs/heads")
"""Folders of a repository whose files git shows, or takes history from: of a rebase under way, `git status` shows the list of steps."""
_HARMLESS = {
    "core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "autocrlf",
             "eol", "safecrlf", "quotepath", "abbrev", "compression", "untrackedcache", "longpaths", "protecthfs", "protectntfs"},
    "remote": {"url", "fetch", "pushurl", "tagopt", "prune", "gh-resolved"},
    "branch": {"remote", "merge", "rebase", "description", "vscode-merge-base", "gk-last-accessed", "gk-last-modified"},
    "user": {"name", "email"},
    "author": {"name", "email"},
    "pull": {"rebase", "ff"},
    "push": {"default", "autosetupremote", "followtags"},
    "fetch": {"prune", "prunetags"},
    "init": {"defaultbranch"},
    "rerere": {"enabled"},
    "merge": {"conflictstyle", "ff"},
    "rebase": {"autosquash", "autostash"},
    "advice": set(),
    "color": set(),
}  # fmt: skip
"""What a repository's configuration may set; of sections with an empty set, anything. Whatever else there is asks."""


def find_danger(directory: str, roots: Sequence[str], *, reads_tree: bool = False) -> str:
    """Why git is not run here unasked; empty if it may be. `reads_tree`: the command reads all tracked files, as `git grep` does."""
    if any(name in os.environ for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE")):
        return say("policy.git_elsewhere")
    at = directory
    while any(is_inside(at, root) for root in roots):
        if _looks_bare(at):
            return say("policy.git_bare", path=at)
        if path := next((path for name in _READ_IN_TREE if _would_wait(path := os.path.join(at, name))), ""):
            return say("policy.git_special", path=path)
        folder = os.path.join(at, ".git")
        if os.path.lexists(folder):
            return _danger_in(folder) or (_danger_of_tree(folder) if reads_tree else "")
        above = os.path.dirname(at)
        if above == at:
            break
        at = above
    return say("policy.git_elsewhere")


def find_pipe(tree: str) -> str:
    """A named pipe or a device in the place of a file that git reads first, for which it would wait for ever; empty: none was found.
    `tree`: the folder that holds `.git`."""
    folder = os.path.join(tree, ".git")
    named = [folder, *(os.path.join(tree, name) for name in _READ_IN_TREE)]
    if not os.path.isdir(folder):  # a linked worktree, or a submodule
        folder = os.path.join(tree, _first_line(folder).removeprefix("gitdir:").strip())
    shared = os.path.join(folder, _first_line(os.path.join(folder, "commondir")))
    branch = _first_line(os.path.join(folder, "HEAD")).removeprefix("ref:").strip()
    for each in dict.fromkeys((folder, os.path.normpath(shared))):
        named.append(os.path.join(each, branch))
        for inner in ("", *_SHOWN):
            try:
                with os.scandir(os.path.join(each, inner)) as entries:
                    named += [entry.path for entry in entries if not entry.is_dir(follow_symlinks=False)]
            except OSError:
                continue
    return next((path for path in named if _would_wait(path, follow=True)), "")


def _first_line(path: str) -> str:
    """Of a small file; empty where it cannot be read."""
    try:
        return read_found(path, _MAX_LINE_BYTES, cut=True).decode("utf-8", "replace").partition("\n")[0].replace("\0", "")
    except OSError:
        return ""


def tracked_files(directory: str, roots: Sequence[str]) -> Iterator[str]:
    """The paths of the files that git knows in the repository around a folder. Raises OSError or ValueError if that cannot be told."""
    at = directory
    while any(is_inside(at, root) for root in roots):
        index = os.path.join(at, ".git", "index")
        if os.path.lexists(index):
            yield from (os.path.join(at, os.fsdecode(entry.name)) for entry in read_index(read_found(index, MAX_INDEX_BYTES)))
            return
        at = os.path.dirname(at)


def _looks_bare(folder: str) -> bool:
    """The objects may lie where `commondir` says."""
    has_objects = any(os.path.lexists(os.path.join(folder, name)) for name in ("objects", "commondir"))
    return has_objects and os.path.lexists(os.path.join(folder, "HEAD"))


def is_in_repository(path: str) -> bool:
    """Whether a file is one of a repository's own, as its settings and hooks are: in a bare one, or where a `.git` file leads."""
    while (above := os.path.dirname(path)) != path:
        if _looks_bare(above):
            return True
        path = above
    return False


def _danger_in(folder: str) -> str:
    if os.path.islink(folder) or not os.path.isdir(folder):
        return say("policy.git_elsewhere")
    try:
        names = set(os.listdir(folder))
        if "commondir" in names or "config.worktree" in names or any(name.startswith("sharedindex.") for name in names):
            return say("policy.git_elsewhere")
        if path := _find_borrowed(folder):
            return say("policy.git_special" if _would_wait(path) else "policy.git_borrowed", path=path)
        if not _is_whole(folder):
            return say("policy.git_broken", path=folder)
        if key := _odd_key(read_found(os.path.join(folder, "config"), MAX_CONFIG_BYTES).decode("utf-8", "replace")):
            return say("policy.git_config", key=key)
        # git runs it when it has refreshed its index, which `git status` and `git diff` do.
        if os.path.lexists(os.path.join(folder, "hooks", "post-index-change")):
            return say("policy.git_hook")
        if key := _users_key_within(os.path.dirname(folder)):
            return say("policy.git_config", key=key)
        if "index" in names and _GITLINK in read_found(os.path.join(folder, "index"), MAX_INDEX_BYTES):
            return say("policy.git_submodule")
    except OSError as error:
        return say("policy.git_unreadable", reason=error.strerror or error)
    return ""


def _users_key_within(tree: str) -> str:
    """A setting of the user's own that names a file by its place in whatever repository they are in, and there is one here."""
    home = os.path.expanduser("~")
    for file in (os.path.join(home, ".gitconfig"), os.path.join(os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config", "git", "config")):
        try:
            for section, _, key, value in read_settings(read_found(file, MAX_CONFIG_BYTES).decode("utf-8", "replace")):
                first = value.strip("\"'!").partition(" ")[0]
                is_hooks = (section, key) == ("core", "hookspath")
                if section in ("include", "includeif") or first.startswith(("/", "~")) or not (is_hooks or "/" in first):
                    continue
                named = os.path.join(tree, first)
                if os.path.lexists(os.path.join(named, "post-index-change")) if is_hooks else os.path.isfile(named):
                    return f"{section}.{key}"
        except (OSError, ValueError):
            continue
    return ""


def _find_borrowed(folder: str) -> str:
    """What of the history is a link, or names another repository: git would show what lies outside the workspace. Or what is a pipe."""
    alternates = os.path.join(folder, "objects", "info", "alternates")
    if os.path.lexists(alternates):
        return alternates
    for inner in ("", *_SHOWN):
        try:
            with os.scandir(os.path.join(folder, inner)) as entries:
                if found := next((entry.path for entry in entries if entry.name != "hooks" and _is_odd(entry)), ""):
                    return found
        except (FileNotFoundError, NotADirectoryError):
            continue
    return ""


def _is_odd(entry: os.DirEntry[str]) -> bool:
    if entry.is_symlink():
        return True
    return not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False) and _would_wait(entry.path)


def _would_wait(path: str, *, follow: bool = False) -> bool:
    """Whether git would wait for this file for ever: a named pipe or a device. A socket it cannot open, and goes on."""
    try:
        status = os.stat(path, follow_symlinks=follow)
    except OSError:
        return False
    mode = status.st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not (follow and _is_null(status)))


def _is_null(status: os.stat_result) -> bool:
    """Whether it is /dev/null, which is read to its end at once."""
    return os.path.exists(os.devnull) and status.st_rdev == os.stat(os.devnull).st_rdev


def _danger_of_tree(folder: str) -> str:
    """A folder of tracked files that is a link by now: git grep reads behind it, wherever that is."""
    tree, index = os.path.dirname(folder), os.path.join(folder, "index")
    if not os.path.lexists(index):
        return ""
    try:
        folders = {os.path.dirname(entry.name) for entry in read_index(read_found(index, MAX_INDEX_BYTES))}
    except (OSError, ValueError):
        return say("policy.git_broken", path=folder)
    above = {os.fsdecode(each.rsplit(b"/", cut)[0]) for each in folders for cut in range(each.count(b"/") + 1)}
    linked = next((path for each in sorted(above - {""}) if os.path.islink(path := os.path.join(tree, each))), "")
    return say("policy.git_borrowed", path=linked) if linked else ""


def _is_whole(folder: str) -> bool:
    """As git sees it. One that is not whole git passes by, and takes the next above it, with other settings."""
    folders = (os.path.join(folder, name) for name in ("objects", "refs"))
    if not all(os.path.isdir(each) and os.access(each, os.X_OK) for each in folders):
        return False
    return _HEAD.fullmatch(read_found(os.path.join(folder, "HEAD"), MAX_CONFIG_BYTES)) is not None


def is_harmless(name: str) -> bool:
    """Whether a setting, named in full (`remote.origin.url`), is known to make git run nothing."""
    section, key = name.lower().partition(".")[0], name.lower().rpartition(".")[2]
    allowed = _HARMLESS.get(section)
    return allowed is not None and (not allowed or key in allowed)


def _odd_key(config: str) -> str:
    """The first thing in a configuration that is not known to be harmless."""
    try:
        for section, _, key, _ in read_settings(config):
            allowed = _HARMLESS.get(section)
            if allowed is None or (allowed and key not in allowed):
                return f"{section}.{key}"[:60]
    except ValueError as error:
        return str(error)[:60]
    return ""
