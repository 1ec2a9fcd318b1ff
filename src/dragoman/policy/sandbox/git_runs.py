"""Would git, the user's own, run something of this? Repositories with hooks or settings that run programs, and lists of steps that do."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found
from dragoman.policy.git_settings import Setting, read_settings
from dragoman.policy.sandbox.repositories import FIXED, Repository, list_names, read_line, worktree_behind

GITS_OWN = re.compile(
    r"""HEAD | \w+_HEAD | index | index\..* | packed-refs | refs | logs | objects | info | description | branches | remotes | shallow
    | COMMIT_EDITMSG | MERGE_(MSG|MODE|RR|AUTOSTASH) | SQUASH_MSG | TAG_EDITMSG | NOTES_\w+ | BISECT_\w+ | AUTO_MERGE | SUBMODULE_\w+
    | rebase-(merge|apply) | rr-cache | sequencer | gc\.(log|pid) | lfs | .*\.lock | sharedindex\..* | ADD_EDIT\.patch | modules | worktrees
    | config | fsmonitor--daemon(\.ipc)? | annex | svn | filter-repo | gitk\.cache | tig_history | branchless | machete | spice | git-crypt
    | dragoman-in-use""",
    re.VERBOSE,
)
"""Names in a git directory that git itself uses, or a usual tool beside it, and that lead git nowhere else."""
_HARMLESS_SETTINGS = re.compile(
    r"""core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|quotepath)
    | user\.(name|email) | branch\..* | remote\..*\.(url|fetch) | init\.defaultbranch | extensions\.objectformat
    | (commit|tag)\.gpgsign | pull\.(rebase|ff) | push\.(default|autosetupremote) | merge\.(ff|conflictstyle) | rerere\.enabled
    | (advice|color)\..* | gc\.auto | receive\.denycurrentbranch | submodule\..*\.(url|active)""",
    re.VERBOSE | re.IGNORECASE,
)
_IN_WORKTREE = ("commondir", "gitdir", "locked")
"""In the git directory of a linked worktree, besides."""
_IN_BARE = ("HEAD", "config", "config.worktree", "commondir", "hooks", "objects", "refs")
STEPS = ("rebase-merge/git-rebase-todo", "sequencer/todo")
_RUNS = re.compile(rb"^\s*(?:exec|x)\s", re.MULTILINE)
_SETTINGS_BYTES = 1_000_000
_HOOKS_MOST = 2_000


def runs_something(folder: str, *, is_bare: bool = False) -> bool:
    """Whether git would run something of this git directory. `is_bare`: it may hold more than git puts there."""
    try:
        with os.scandir(folder) as entries:
            found = {entry.name: entry.is_symlink() for entry in entries if not is_bare or entry.name in _IN_BARE}
    except OSError:
        return False
    if any(found.values()):
        return True
    for name in found:
        path = os.path.join(folder, name)
        if name == "hooks":
            if has_hooks(path):
                return True
        elif name == "config":
            if not has_harmless_settings(path):
                return True
        elif not GITS_OWN.fullmatch(name):
            return True
    return False


def is_plain_worktree(file: str, known: Collection[str]) -> bool:
    """Whether a `.git` file is what `git worktree add` makes: it leads into one of the known git directories, whose hooks and settings hold
    there too, and brings none of its own."""
    if not os.path.isfile(file) or os.path.islink(file):
        return False
    own, shared = worktree_behind(file)
    if shared not in known or read_line(os.path.join(own, "commondir")) != "../..":
        return False
    try:
        with os.scandir(own) as entries:
            found = {entry.name: entry.is_symlink() for entry in entries}
    except OSError:
        return False
    is_usual = all(name in _IN_WORKTREE or (GITS_OWN.fullmatch(name) and name not in FIXED) for name in found)
    return is_usual and not any(found.values()) and not steps_that_run(own)


def has_hooks(folder: str) -> bool:
    return any(not name.endswith(".sample") for name in list_names(folder))


def has_harmless_settings(path: str) -> bool:
    try:
        found = _settings_in(path)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return all(_HARMLESS_SETTINGS.fullmatch(".".join(filter(None, (each.section, each.inner, each.key)))) for each in found)


def steps_that_run(folder: str) -> list[str]:
    """Lists of steps of a rebase under way, in a git directory, that run commands when it goes on."""
    found: list[str] = []
    for name in STEPS:
        try:
            if _RUNS.search(read_found(os.path.join(folder, name), _SETTINGS_BYTES, cut=True, follow=False)):
                found.append(os.path.join(folder, name))
        except OSError:
            continue
    return found


def leads(repository: Repository) -> list[str]:
    """Names by which git comes to hooks or further settings that may lie elsewhere: named by the repository's settings or the user's own, a
    link for the folder of hooks, and links among the hooks."""
    folder = repository.folder or repository.shared
    if not folder:
        return []
    home = os.path.expanduser("~")
    files = [os.path.join(folder, "config"), os.path.join(home, ".gitconfig"), os.path.join(home, ".config", "git", "config")]
    own = os.path.join(folder, "hooks")
    hooks, found = [own], [own] if os.path.islink(own) else []
    for file in files:
        try:
            for section, _, key, value in _settings_in(file):
                if (section, key) == ("core", "hookspath"):
                    hooks.append(os.path.join(repository.root, os.path.expanduser(value.strip('"'))))
                elif section in ("include", "includeif") and key == "path":
                    found.append(os.path.join(os.path.dirname(file), os.path.expanduser(value.strip('"'))))
        except (OSError, ValueError):
            continue
    found += hooks[1:]
    return list(dict.fromkeys([*found, *(path for each in hooks for path in _links_in(each))]))


def led_to(repository: Repository, named: Sequence[str], roots: Sequence[str]) -> list[str]:
    """Files and folders beside the git directory to which these names lead, where commands can change them."""
    folder = repository.folder or repository.shared
    paths = [path for each in named for path in (os.path.normpath(each), os.path.realpath(each))]
    return [path for path in dict.fromkeys(paths) if path not in roots and _is_open(path, roots, folder)]


def _links_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in islice(entries, _HOOKS_MOST) if entry.is_symlink()]
    except OSError:
        return []


def _is_open(path: str, roots: Sequence[str], folder: str) -> bool:
    return any(is_inside(path, root) for root in roots) and not is_inside(path, folder) and not is_inside(folder, path)


def _settings_in(path: str) -> Sequence[Setting]:
    """Raises OSError or ValueError: what stands further back counts for git too."""
    status = os.stat(path)
    return _read_settings(path, (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size))


@lru_cache(maxsize=64)
def _read_settings(path: str, version: tuple[int, ...]) -> Sequence[Setting]:
    """`version`: which file that is, and when it was last changed."""
    return tuple(read_settings(read_found(path, _SETTINGS_BYTES).decode("utf-8", "replace")))


def is_folder(path: str) -> bool:
    """Not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
