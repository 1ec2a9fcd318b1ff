"""Whether reading with git is only reading here. A repository's own configuration can name programs that git runs for a mere `git status`:
a file system monitor, filters, an external diff. Such a repository arrives in an archive, or as a folder within another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from dragoman.base.beneath import is_inside
from dragoman.base.words import say

MAX_CONFIG_BYTES = 200_000
MAX_INDEX_BYTES = 64_000_000
_GITLINK = b"\0\0\xe0\0"
"""The mode of a submodule, as the index has it. git looks into a submodule by that one's own configuration."""
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$)")
_HEAD = re.compile(rb"ref:\s*refs/[^\n]+\n?|[0-9a-f]{40}(?:[0-9a-f]{24})?\s*")
_HISTORY = ("HEAD", "objects", "refs", "packed-refs", "index", "info", "logs", "shallow")
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


def find_danger(directory: str, roots: Sequence[str]) -> str:
    """Why git is not run here unasked; empty if it may be."""
    if any(name in os.environ for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE")):
        return say("policy.git_elsewhere")
    at = directory
    while any(is_inside(at, root) for root in roots):
        if _looks_bare(at):
            return say("policy.git_bare", path=at)
        folder = os.path.join(at, ".git")
        if os.path.lexists(folder):
            return _danger_in(folder)
        above = os.path.dirname(at)
        if above == at:
            break
        at = above
    return say("policy.git_elsewhere")


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
            return say("policy.git_borrowed", path=path)
        if not _is_whole(folder):
            return say("policy.git_broken", path=folder)
        if key := _odd_key(_read(os.path.join(folder, "config"), MAX_CONFIG_BYTES).decode("utf-8", "replace")):
            return say("policy.git_config", key=key)
        # git runs it when it has refreshed its index, which `git status` and `git diff` do.
        if os.path.lexists(os.path.join(folder, "hooks", "post-index-change")):
            return say("policy.git_hook")
        if "index" in names and _GITLINK in _read(os.path.join(folder, "index"), MAX_INDEX_BYTES):
            return say("policy.git_submodule")
    except OSError as error:
        return say("policy.git_unreadable", reason=error.strerror or error)
    return ""


def _find_borrowed(folder: str) -> str:
    """What of the history is a link, or names another repository: git would show what lies outside the workspace."""
    alternates = os.path.join(folder, "objects", "info", "alternates")
    if os.path.lexists(alternates):
        return alternates
    for name in _HISTORY:
        if os.path.islink(path := os.path.join(folder, name)):
            return path
    for inner in ("objects", os.path.join("objects", "pack")):
        try:
            with os.scandir(os.path.join(folder, inner)) as entries:
                if found := next((entry.path for entry in entries if entry.is_symlink()), ""):
                    return found
        except FileNotFoundError:
            continue
    return ""


def _is_whole(folder: str) -> bool:
    """As git sees it. One that is not whole git passes by, and takes the next above it, with other settings."""
    folders = (os.path.join(folder, name) for name in ("objects", "refs"))
    if not all(os.path.isdir(each) and os.access(each, os.X_OK) for each in folders):
        return False
    return _HEAD.fullmatch(_read(os.path.join(folder, "HEAD"), MAX_CONFIG_BYTES)) is not None


def _read(path: str, most: int) -> bytes:
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(27, os.strerror(27), path)
    return data


def _odd_key(config: str) -> str:
    """The first thing in a configuration that is not known to be harmless."""
    section = ""
    for line in config.splitlines():
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        if text.endswith("\\"):
            return text[:60]
        if text[0] == "[":
            found = _SECTION.fullmatch(text)
            section = found.group(1).lower() if found else ""
            if section not in _HARMLESS:
                return text[:60]
            continue
        key = _KEY.match(text)
        allowed = _HARMLESS.get(section)
        if key is None or allowed is None or (allowed and key.group(1).lower() not in allowed):
            return f"{section}.{key.group(1) if key else text}"[:60]
    return ""
