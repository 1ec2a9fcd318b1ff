"""What a command must leave as it was in the repositories of a workspace: remembered before it runs, and put back afterwards.

A new name in `.git` can be as bad as a changed one (`commondir` leads git to another configuration): what a command adds there beside git's
own names is removed. A repository that it made is moved aside if git would run something of it.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from dragoman.base.beneath import is_inside
from dragoman.policy.git_settings import Setting, read_settings
from dragoman.policy.sandbox.believed import parts_of
from dragoman.policy.sandbox.repositories import FIXED, Repository, find_repositories, folders_of, list_names, read_line, read_worktree

_GITS_OWN = re.compile(
    r"""HEAD | \w+_HEAD | index | index\..* | packed-refs | refs | logs | objects | info | description | branches | shallow
    | COMMIT_EDITMSG | MERGE_(MSG|MODE|RR|AUTOSTASH) | SQUASH_MSG | TAG_EDITMSG | NOTES_\w+ | BISECT_\w+ | AUTO_MERGE | SUBMODULE_\w+
    | rebase-(merge|apply) | rr-cache | sequencer | gc\.(log|pid) | lfs | .*\.lock | sharedindex\..* | ADD_EDIT\.patch""",
    re.VERBOSE,
)
_HARMLESS_SETTINGS = re.compile(
    r"""core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|quotepath)
    | user\.(name|email) | branch\..* | remote\..*\.(url|fetch) | init\.defaultbranch | extensions\.objectformat
    | (commit|tag)\.gpgsign | pull\.(rebase|ff) | push\.(default|autosetupremote) | merge\.(ff|conflictstyle) | rerere\.enabled
    | (advice|color)\..* | gc\.auto | receive\.denycurrentbranch""",
    re.VERBOSE | re.IGNORECASE,
)
HELD_BACK = ".held-back"
"""What the name ends in under which something is kept that a command made and that must not be believed."""
_IN_BARE = ("HEAD", "config", "config.worktree", "commondir", "hooks", "objects", "refs")
_LOOKED_AT_MOST = 10_000
_KEPT_BYTES = 4_000_000
_KEPT_FILES = 2_000
_SETTINGS_BYTES = 1_000_000


class Guard:
    """Remembers what must not change, and puts it back. `with_content`: also what nothing else protects while the command runs."""

    def __init__(
        self,
        roots: Sequence[str],
        believed: Sequence[str] = (),
        started: Sequence[str] = (),
        *,
        with_content: bool,
        repositories: Sequence[Repository] | None = None,
    ) -> None:
        """`believed`: what is read as configuration, whether it exists or not. `started`: what runs by itself, and is never covered."""
        self._roots = tuple(roots)
        known = find_repositories(roots) if repositories is None else repositories
        self._folders = {each.folder or each.shared: _list(each.folder or each.shared) for each in known}
        self._folders.pop("", None)
        self._signs = set(map(_sign_of, folders_of(self._roots, _LOOKED_AT_MOST)))
        kinds = {path: _kind_of(path) for path in believed}
        if with_content:
            watched = [os.path.join(folder, name) for folder in self._folders for name in FIXED]
            watched += [part for path, kind in kinds.items() if kind for part in parts_of(path)]
        else:
            watched = [path for path, kind in kinds.items() if kind == stat.S_IFLNK]  # which nothing can cover
        self._started = frozenset(started)
        led_to = [*started, *(path for each in known for path in _led_to(each, self._roots))]
        self._kept = {path: _keep(path) for path in (*watched, *(path for path in led_to if os.path.lexists(path)))}
        # A folder above one that is fixed can be moved away with it, and another put in its place.
        self._identities = {} if with_content else {each.folder: _identity(each.folder) for each in known if each.folder}
        self._standing = [path for path, kind in kinds.items() if with_content and kind == stat.S_IFDIR]
        self._absent = [path for path, kind in kinds.items() if not kind]
        self._absent += [path for path in led_to if not os.path.lexists(path)]

    def restore(self) -> list[str]:
        """Put back what changed. Returns the paths, for telling."""
        made = sorted(set(map(_sign_of, folders_of(self._roots, _LOOKED_AT_MOST))) - self._signs - {""})
        made += [folder for folder, identity in self._identities.items() if self._is_another(folder, identity)]
        changed = [sign for sign in made if _hold_back(sign, self._folders)]
        for folder, names in self._folders.items():
            changed += _remove_odd(folder, names)
        for path in self._standing:
            if not _is_folder(path):  # nothing is written through a link that stands there now
                _move_aside(path)
                os.mkdir(path)
        for path, kept in self._kept.items():
            if _keep(path) != kept:
                if path in self._started and os.path.isfile(path):
                    _move_aside(path)  # it may be the user who has changed it meanwhile
                _put_back(path, kept)
                changed.append(path)
        for path in self._absent:
            if os.path.lexists(path):
                _move_aside(path)
                changed.append(path)
        return list(dict.fromkeys(changed))

    def _is_another(self, folder: str, identity: tuple[int, int] | None) -> bool:
        """Whether something else lies there now, in the workspace and not where a link leads out of it."""
        return _identity(folder) not in (identity, None) and any(is_inside(os.path.realpath(folder), root) for root in self._roots)


class _Kept(NamedTuple):
    mode: int
    content: bytes


def _keep(path: str) -> dict[str, _Kept]:
    """A file, or all that lies in a folder, by path. Empty if nothing is there."""
    kept: dict[str, _Kept] = {}
    waiting = [path]
    size = 0
    while waiting and len(kept) < _KEPT_FILES and size < _KEPT_BYTES:
        at = waiting.pop()
        try:
            mode = os.lstat(at).st_mode
            if stat.S_ISLNK(mode):
                content = os.fsencode(os.readlink(at))
            elif stat.S_ISREG(mode):
                with open(at, "rb") as file:
                    content = file.read(_KEPT_BYTES)
            else:
                content = b""
                if stat.S_ISDIR(mode):
                    waiting += [os.path.join(at, name) for name in list_names(at) if not _is_store(at, name)]
        except OSError:
            continue
        kept[at] = _Kept(mode, content)
        size += len(content)
    return kept


def _is_store(folder: str, name: str) -> bool:
    """Submodules keep their objects beside their configuration: those change as they should."""
    return "modules" in folder.split(os.sep) and name in ("objects", "refs", "logs", "index", "HEAD", "packed-refs", "ORIG_HEAD")


def _put_back(path: str, kept: dict[str, _Kept]) -> None:
    # Of a folder that was too large to be kept whole, what is not known may have been there before.
    is_whole = len(kept) < _KEPT_FILES and sum(len(each.content) for each in kept.values()) < _KEPT_BYTES
    for at in sorted(set(_keep(path)) - set(kept), reverse=True) if is_whole else ():
        _remove(at)
    for at, (mode, content) in sorted(kept.items()):
        if _keep(at).get(at) == (mode, content):
            continue
        if not stat.S_ISDIR(mode) or not os.path.isdir(at) or os.path.islink(at):
            _remove(at)
        if stat.S_ISLNK(mode):
            os.symlink(os.fsdecode(content), at)
        elif stat.S_ISDIR(mode):
            os.makedirs(at, exist_ok=True)
            os.chmod(at, stat.S_IMODE(mode))
        elif stat.S_ISREG(mode):
            with open(os.open(at, os.O_CREAT | os.O_EXCL | os.O_WRONLY, stat.S_IMODE(mode)), "wb") as file:
                file.write(content)
            os.chmod(at, stat.S_IMODE(mode))


def _remove_odd(folder: str, before: dict[str, tuple[int, str]]) -> list[str]:
    """Names that are new, or are links now, and that git itself does not use."""
    removed = []
    for name, what in sorted(_list(folder).items()):
        was = before.get(name)
        is_link = stat.S_ISLNK(what[0]) and was != what
        if (was is None and not _GITS_OWN.fullmatch(name)) or is_link:
            path = os.path.join(folder, name)
            _remove(path)
            removed.append(path)
    return removed


def _sign_of(place: str) -> str:
    """What makes git take a folder for a repository: its `.git`, or the `HEAD` of a bare one; empty if nothing does."""
    path = os.path.join(place, ".git")
    if os.path.lexists(path):
        return path
    head = os.path.join(place, "HEAD")
    return head if os.access(head, os.F_OK) and os.path.lexists(os.path.join(place, "objects")) else ""


def _hold_back(sign: str, known: Collection[str]) -> bool:
    """What makes a folder a repository that a command made: if git would run something of it, it is moved aside."""
    is_bare = os.path.basename(sign) == "HEAD"
    place = os.path.dirname(sign)
    if _is_harmless(place if is_bare else sign, is_bare=is_bare) or (not is_bare and _leads_home(place, sign, known)):
        return False
    _move_aside(sign)
    aside = f"{sign}{HELD_BACK}"
    head = os.path.join(aside, "HEAD")
    if _is_folder(aside) and os.path.lexists(head):  # under its new name too git would take it for a repository, a bare one
        _move_aside(head)
    return True


def _move_aside(path: str) -> None:
    aside = f"{path}{HELD_BACK}"
    _remove(aside)
    try:
        os.rename(path, aside)
    except OSError:
        _remove(path)


def _leads_home(root: str, file: str, known: Collection[str]) -> bool:
    """Whether it is the file of a worktree of one of the known repositories, with no settings but theirs."""
    if not stat.S_ISREG(os.lstat(file).st_mode):
        return False
    tree = read_worktree(root, file)
    if tree.shared not in known or os.path.lexists(os.path.join(tree.own, "config.worktree")):
        return False
    return os.path.realpath(os.path.join(tree.own, read_line(os.path.join(tree.own, "commondir")))) == os.path.realpath(tree.shared)


def _is_harmless(path: str, *, is_bare: bool) -> bool:
    """`is_bare`: it may hold more than git puts there."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return False
    for name, (mode, _) in _list(path).items():
        if is_bare and name not in _IN_BARE:
            continue
        if stat.S_ISLNK(mode):
            return False
        if name == "hooks":
            if any(not hook.endswith(".sample") for hook in list_names(os.path.join(path, name))):
                return False
        elif name == "config":
            if not _has_harmless_settings(os.path.join(path, name)):
                return False
        elif not _GITS_OWN.fullmatch(name):
            return False
    return True


def _has_harmless_settings(path: str) -> bool:
    try:
        found = list(_settings_in(path))
    except (OSError, ValueError):
        return False
    return all(_HARMLESS_SETTINGS.fullmatch(".".join(filter(None, (each.section, each.inner, each.key)))) for each in found)


def _settings_in(path: str) -> Iterator[Setting]:
    """Raises OSError or ValueError."""
    with open(path, "rb") as file:
        data = file.read(_SETTINGS_BYTES + 1)
    if len(data) > _SETTINGS_BYTES:
        raise ValueError(path)  # what stands further back counts for git too
    return read_settings(data.decode("utf-8", "replace"))


def _led_to(repository: Repository, roots: Sequence[str]) -> list[str]:
    """What a repository's own settings, or the user's, name as its hooks or as further settings, if a command could change that."""
    if not repository.folder:
        return []
    home = os.path.expanduser("~")
    files = [os.path.join(repository.folder, "config"), os.path.join(home, ".gitconfig"), os.path.join(home, ".config", "git", "config")]
    found: list[str] = []
    for file in files:
        try:
            for section, _, key, value in _settings_in(file):
                if (section, key) == ("core", "hookspath"):
                    found.append(os.path.join(repository.root, os.path.expanduser(value.strip('"'))))
                elif section in ("include", "includeif") and key == "path":
                    found.append(os.path.join(os.path.dirname(file), os.path.expanduser(value.strip('"'))))
        except (OSError, ValueError):
            continue
    named = [path for each in found for path in (os.path.normpath(each), os.path.realpath(each))]
    return [path for path in dict.fromkeys(named) if path not in roots and _is_open(path, roots, repository.folder)]


def _is_open(path: str, roots: Sequence[str], folder: str) -> bool:
    return any(is_inside(path, root) for root in roots) and not is_inside(path, folder) and not is_inside(folder, path)


# --- small things ---------------------------------------------------------------------------------------------------------


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _list(folder: str) -> dict[str, tuple[int, str]]:
    """Name → kind, and where it leads if it is a link."""
    found = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found[entry.name] = (_kind(entry), os.readlink(entry.path) if entry.is_symlink() else "")
                except OSError:
                    continue
    except OSError:
        pass
    return found


def _kind_of(path: str) -> int:
    """As stat has it, of a link itself; 0 if nothing is there."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0


def _kind(entry: os.DirEntry[str]) -> int:
    """Mostly known from the folder, without a look at the file itself."""
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    if entry.is_file(follow_symlinks=False):
        return stat.S_IFREG
    return stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    except OSError:
        pass
