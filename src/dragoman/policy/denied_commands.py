"""Commands that show a file that a rule keeps from being read without opening it by its name.

git shows what it has stored, and another name of the file (a hard link) leads to the same content. The sandbox hides the file itself; these
commands are asked about, in every mode.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from dragoman.policy.commands import ReadableFolders
from dragoman.policy.denied_reads import DeniedReads, is_denied
from dragoman.policy.git_folder import tracked_files
from dragoman.policy.hidden_commands import all_commands, forms_of
from dragoman.policy.read_only_git import may_bring_content
from dragoman.policy.work import READ_FOLDER, SEARCH_TREE, WorkDone

_MAX_FOLDERS = 16


def find_shown(command: str, directory: str, around: ReadableFolders) -> str:
    """The file that a command line may show and must not; empty if there is none. Raises TooMuchWork."""
    folders, has_git = [directory], False
    around.work.spend(SEARCH_TREE)
    denied = DeniedReads(around.denied, around.roots[0])
    for words in all_commands(command, around.work):
        folders += [path for target in _folders_in(words) if os.path.isdir(path := os.path.join(folders[-1], target))]
        del folders[_MAX_FOLDERS:]
        for word in words[1:]:
            if path := _other_name(word, folders, denied, around.work):
                return path
        has_git = has_git or any(os.path.basename(form[0]) == "git" and may_bring_content(form) for form in forms_of(words, around.work))
    return next(filter(None, (_tracked_in(folder, around) for folder in folders)), "") if has_git else ""


def _folders_in(words: Sequence[str]) -> list[str]:
    """Where the commands behind this one, or git, may be run."""
    if words[0] in ("cd", "pushd"):
        return [os.path.expanduser(word) for word in words[1:2]]
    return [words[at + 1] for at in range(len(words) - 1) if words[at] == "-C"]


def _other_name(word: str, folders: Sequence[str], denied: DeniedReads, work: WorkDone) -> str:
    for folder in folders:
        work.spend(READ_FOLDER)
        path = os.path.join(folder, os.path.expanduser(word.rpartition("=")[2]))
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode) and denied.is_other_name(status):
            return path
    return ""


def _tracked_in(folder: str, around: ReadableFolders) -> str:
    """A denied file that git knows there; the folder itself if that cannot be told."""
    tells = is_denied(around.denied, around.roots[0])
    assert tells is not None
    try:
        for path in tracked_files(os.path.realpath(folder), around.roots):
            around.work.spend(1)
            if tells(path):
                return path
    except (OSError, ValueError):
        return folder
    return ""
