"""Commands that would empty the workspace, a home directory, or the root of the file system: asked about in every mode.

A courtesy on top of the sandbox, which keeps what lies outside the workspace and lets a command delete what is in it. A program can hide
what it deletes: this is about mistakes (`rm -rf $DIR/*` with nothing in DIR), not about malice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from dragoman.base.beneath import is_inside
from dragoman.base.text import set_of
from dragoman.policy.hidden_commands import all_commands, forms_of
from dragoman.policy.work import READ_FOLDER, WorkDone

_TOP = set_of("bin boot dev etc home lib lib64 media mnt opt proc root run sbin srv sys usr var Applications Library System Users Volumes")
_EVERYTHING = re.compile(r"\.?(?:\*+|\?\*|\*\?)|\.\[[!^]\.\]\*|\.\.\?\*|\{(?:[.*,]|\[[!^]\.\])*\}\*?")
"""A pattern for all files of a folder, or for all hidden ones."""
_FILE_DELETERS = set_of("rm shred unlink truncate srm")
_DEVICE_WRITERS = set_of("shred wipefs blkdiscard fdisk sfdisk cfdisk gdisk sgdisk parted mke2fs mkswap")
_DEVICES = re.compile(r"(?:of=)?/dev/(?!null\b|zero\b|full\b|std|fd\b|fd/|tty|shm\b|shm/|random\b|urandom\b|ptmx\b|pts\b)\w")
_INTO_DEVICE = re.compile(r">\s*(/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|loop|dm-|mapper/|md)[\w/-]*)")
_NARROWS = re.compile(
    r"-(?:i?l?name|i?path|i?wholename|i?regex|[acm](?:time|min)|a?newer\w*|size|empty|perm|user|group|[ug]id|links|inum|samefile)"
)
_FIND_RUNS = set_of("-exec -execdir -ok -okdir")
_HERE = re.compile(r"\$\(pwd\)|`pwd`")
_ASSIGNED = re.compile(r"(?:^|[\s;&|(])([A-Za-z_]\w*)=([^\s;&|()<>]*)|\b(?:for|read|select)\s+(?:-\w+\s+)*([A-Za-z_]\w*)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)([^}]*)\}|(\w+))")
_UNCLEAR = re.compile(r"[\0$`]")
_SET_ELSEWHERE = frozenset({"TMPDIR", "TMP", "TEMP", "IFS", "RANDOM"})
_UNKNOWN = "\0"
"""Stands for what a variable or a substitution is that cannot be known."""
_PASSES_ON = set_of("sort uniq cat tee xargs parallel sudo env")
"""Commands behind which a list of files is still whole."""


def find_emptied(command: str, directory: str, roots: Sequence[str], work: WorkDone) -> str:
    """What a command line would empty: the path of a folder or device that matters; empty if none. Raises TooMuchWork."""
    if device := _INTO_DEVICE.search(command):
        return device[1]
    assigned = {name or loop: value.strip("\"'") if name else _UNKNOWN for name, value, loop in _ASSIGNED.findall(command)}
    search = _Search(directory, roots, assigned, work)
    listed: list[str] = []
    for words in all_commands(command, work):
        if os.path.basename(words[0]) not in _PASSES_ON:
            listed = _listed_by(words)
        for form in forms_of(words, work):
            if found := search.emptied_by(form, listed):
                return found
        search.follow(words)
    return ""


class _Search:
    """Goes through the commands of a line in order, and follows `cd`."""

    def __init__(self, directory: str, roots: Sequence[str], assigned: dict[str, str], work: WorkDone) -> None:
        home = os.path.realpath(os.path.expanduser("~"))
        self._vital = (*(os.path.realpath(root) for root in roots), home)
        self._roots = tuple(roots)
        self._folders: tuple[str, ...] = (directory,)
        self._made: set[str] = set()
        self._assigned = assigned
        self._work = work

    def follow(self, words: Sequence[str]) -> None:
        """Where `cd` cannot work, the commands behind it may be run where it was."""
        name, targets = words[0], [word for word in words[1:] if not word.startswith("-")]
        if name == "mkdir":
            self._made |= {path for target in targets for path in self._paths(target)}
        if name not in ("cd", "pushd"):
            return
        target = targets[0] if targets else "~"
        reached = self._paths(target)
        is_there = bool(reached) and all(path in self._made or os.path.isdir(path) for path in reached)
        self._folders = tuple(dict.fromkeys(reached if is_there else (*reached, *self._folders)))[:16]

    def emptied_by(self, words: Sequence[str], listed: Sequence[str]) -> str:
        name = os.path.basename(words[0])
        writes_devices = name.startswith("mkfs") or name in _DEVICE_WRITERS or name == "dd"
        devices = [word for word in words[1:] if writes_devices and _DEVICES.match(word) and (name != "dd" or word.startswith("of="))]
        if devices:
            return devices[0].removeprefix("of=")
        return next(filter(None, (self._vital_of(*target) for target in _targets(name, words, listed))), "")

    def _vital_of(self, target: str, needs_pattern: bool) -> str:
        """The folder that matters and would be empty then."""
        text, count = _strip_everything(target)
        if needs_pattern and not count:
            return ""
        for path in self._paths(text):
            if self._matters(path):
                return path
        return ""

    def _matters(self, path: str) -> bool:
        real = os.path.realpath(path)
        if any(is_inside(each, real) for each in self._vital) or any(path == os.path.join(root, ".git") for root in self._roots):
            return True
        return os.path.dirname(real) == os.sep and os.path.basename(real) in _TOP

    def _paths(self, text: str) -> tuple[str, ...]:
        """What a word may stand for, in each folder the command may be run in; nothing if that cannot be known."""
        self._work.spend(READ_FOLDER)
        found: list[str] = []
        for folder in self._folders:
            written = _VARIABLE.sub(lambda variable, folder=folder: self._value_of(variable, folder), _HERE.sub("$PWD", text))
            if written and not _UNCLEAR.search(written):
                found.append(os.path.normpath(os.path.join(folder, os.path.expanduser(written))))
        return tuple(found)

    def _value_of(self, variable: re.Match[str], folder: str) -> str:
        """Of a variable that nobody has set, nothing: `$DIR/*` is then all there is."""
        name = variable[1] or variable[3]
        if name in ("PWD", "OLDPWD"):
            return folder
        if name == "HOME":
            return os.path.expanduser("~")
        if variable[2] and ":?" in variable[2]:
            return _UNKNOWN  # the shell stops there if it is not set
        value = self._assigned.get(name, _UNKNOWN if name in _SET_ELSEWHERE or name in os.environ else "")
        return _UNKNOWN if "$" in value or "`" in value else value


def _listed_by(words: Sequence[str]) -> list[str]:
    """What a command writes that `xargs` may take for the files to delete."""
    name, rest = os.path.basename(words[0]), [word for word in words[1:] if not word.startswith("-")]
    if name in ("echo", "printf"):
        return rest
    if name == "ls":
        return [f"{path}/*" for path in rest or ["."]]
    return [f"{path}/*" for path in _find_paths(words)] if name == "find" and not _is_narrow(words) else []


def _targets(name: str, words: Sequence[str], listed: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """What a command deletes, and whether only a pattern stands for all that is in it: without -r, rm passes folders by."""
    if name in _FILE_DELETERS:
        options = [word for word in words[1:] if word.startswith("-") and word != "-"]
        is_deep = name in ("rm", "srm") and any(_is_recursive(option) for option in options)
        named = [word for word in words[1:] if word not in options]
        yield from ((word, not is_deep) for word in (*named, *listed) if word != "{}")
    elif name == "find" and _deletes(words) and not _is_narrow(words):
        yield from ((path, False) for path in _find_paths(words))
    elif name == "rsync" and any(word.startswith("--del") for word in words) and ":" not in words[-1]:
        yield words[-1], False


def _is_recursive(option: str) -> bool:
    return "--recursive".startswith(option) and len(option) > 2 if option.startswith("--") else not {"r", "R"}.isdisjoint(option)


def _strip_everything(text: str) -> tuple[str, int]:
    """A path without the patterns at its end that stand for all there is, and how many there were: `a/*` empties a."""
    parts = text.split("/")
    count = 0
    while parts and (parts[-1] in ("", ".") or _EVERYTHING.fullmatch(parts[-1])):
        count += parts.pop() not in ("", ".")
    if not parts or parts == [""]:
        return "/" if text.startswith("/") else ".", count
    return "/".join(parts) + "/" * (len(parts) <= text.count("/")), count  # `$DIR/` is the root where DIR is not set


def _deletes(words: Sequence[str]) -> bool:
    runs = [os.path.basename(words[at + 1]) for at in range(len(words) - 1) if words[at] in _FIND_RUNS]
    return "-delete" in words or any(name in _FILE_DELETERS for name in runs)


def _is_narrow(words: Sequence[str]) -> bool:
    """Whether find chooses among what is there. One that leaves out a few (`! -name x`) does not."""
    for at, word in enumerate(words):
        is_choice = _NARROWS.fullmatch(word) and words[at - 1] not in ("!", "-not")
        if is_choice and not _EVERYTHING.fullmatch(words[at + 1] if at + 1 < len(words) else ""):
            return True
    return False


def _find_paths(words: Sequence[str]) -> list[str]:
    end = next((at for at in range(1, len(words)) if words[at].startswith(("-", "(", "!"))), len(words))
    return list(words[1:end]) or ["."]
