"""Which command lines run without asking: every command in it only reads inside the workspace, or the user's rules allow it."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.base.text import set_of
from dragoman.policy.git_folder import find_danger, tracked_files
from dragoman.policy.read_only_git import shows_content
from dragoman.policy.read_only_programs import Found, find_reads, is_builtin
from dragoman.policy.real_paths import SYSTEM, real_path
from dragoman.policy.shell_grammar import Commands
from dragoman.policy.shell_words import ShellWord
from dragoman.policy.work import READ_FOLDER, READ_INDEX, SEARCH_TREE, WorkDone
from dragoman.words import say

MAX_MATCHES = 5_000
"""A file pattern that may stand for more names is not followed."""
_MAX_FOLDERS = 16
_MAX_PATH = 4_096
"""As Linux has it: a longer one names nothing."""
_TAKES_STATUS = frozenset({"echo", "printf", "exit"})
"""Where `$?` may stand: what they do is the same with any number."""
_SECRET = set_of(
    ".ssh .gnupg .aws .azure .kube .docker .password-store .netrc _netrc .pgpass .git-credentials .pypirc .npmrc .vault-token keyrings "
    "id_rsa id_dsa id_ecdsa id_ed25519 .mozilla .thunderbird credentials.json .bash_history .zsh_history"
)


class ReadableFolders(msgspec.Struct, frozen=True):
    """Where commands run: the folders they may read in, and which files are never read unasked."""

    roots: tuple[str, ...]
    """Absolute, links resolved."""
    secret: tuple[str, ...] = ()
    """Our own files and folders. Whoever searches around one searches it too."""
    denied: tuple[str, ...] = ()
    """Patterns of files that a rule keeps from being read."""
    work: WorkDone = msgspec.field(default_factory=WorkDone)
    """What judging has cost so far."""

    def holds(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.roots)


class CommandStep(msgspec.Struct, frozen=True):
    """One command of a line, and from which folders it may be started."""

    words: tuple[ShellWord, ...]
    folders: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


def steps_of(line: Commands, directory: str, around: ReadableFolders) -> list[CommandStep]:
    """The commands with their folders: `cd` moves those behind it, as far as it is certain to have worked."""
    steps: list[CommandStep] = []
    for words, folders in _walk(line, directory, around):
        steps.append(CommandStep(words, folders))
    return steps


def _walk(line: Commands, start: str, around: ReadableFolders) -> Sequence[tuple[tuple[ShellWord, ...], tuple[str, ...]]]:
    """`&&` goes on from where the command before worked, `||` from where it failed, `;` from both. A pipeline moves nobody."""
    walked: list[tuple[tuple[ShellWord, ...], tuple[str, ...]]] = []
    worked: frozenset[str] = frozenset((start,))
    failed: frozenset[str] = frozenset()
    operator = ";"
    at = 0
    while at < len(line.commands):
        first = at
        while at < len(line.operators) and line.operators[at] == "|":
            at += 1
        begin = worked | failed if operator == ";" else worked if operator == "&&" else failed
        walked += [(words, tuple(sorted(begin))) for words in line.commands[first : at + 1]]
        is_alone = first == at
        words = line.commands[first]
        moved = frozenset(_moved(words, folder) for folder in begin) if is_alone and words[0].text == "cd" else begin
        match operator:
            case "&&":
                worked, failed = moved, failed | begin
            case "||":
                worked, failed = worked | moved, begin
            case _:
                worked, failed = moved, begin
        if len(worked | failed) > _MAX_FOLDERS:
            worked = failed = frozenset((os.sep,))  # too many to follow: nothing behind it is inside the workspace
        operator = line.operators[at] if at < len(line.operators) else ";"
        at += 1
    return walked


def _moved(words: Sequence[ShellWord], folder: str) -> str:
    return os.path.normpath(os.path.join(folder, words[1].text)) if len(words) == 2 else os.sep


def find_doubt(step: CommandStep, around: ReadableFolders, *, given: int = 1) -> str:
    """Why a command is not run unasked; empty if it only reads, and only in the workspace. The first `given` words may name any file."""
    name = step.words[0].text
    if name == "cd":
        return _doubt_of_cd(step, around) or doubt_of_environment(step.folders, around)
    if step.texts[:2] == ("git", "-C") and len(step.words) > 3:
        return _doubt_of_git_in(step, around)
    if name not in _TAKES_STATUS and any(word.has_status for word in step.words):
        return say("policy.shell_variable")
    found = find_reads(list(step.texts))
    if found is None:
        return say("policy.command_unknown", name=name)
    if doubt := find_stray_glob(step, found, name):
        return doubt
    for folder in step.folders:
        around.work.spend(READ_FOLDER)
        if not around.holds(folder):
            return say("policy.command_outside", path=folder)
        if doubt := _doubt_of_reads(step, found, folder, around, given):
            return doubt
    if doubt := doubt_of_environment(step.folders, around):
        return doubt
    started = (*found.runs,) if is_builtin(name) else (name, *found.runs)
    return next(filter(None, (doubt_of_program(each, around) for each in started)), "")


def _doubt_of_git_in(step: CommandStep, around: ReadableFolders) -> str:
    """`git -C folder …` is git started in that folder."""
    if doubt := _doubt_of_folder(step.words[2], step.folders, around):
        return doubt
    folders = tuple(os.path.normpath(os.path.join(folder, step.words[2].text)) for folder in step.folders)
    return find_doubt(CommandStep((step.words[0], *step.words[3:]), folders), around)


def _doubt_of_cd(step: CommandStep, around: ReadableFolders) -> str:
    if len(step.words) != 2:
        return say("policy.command_cd")
    target = step.words[1].text
    if "CDPATH" in os.environ and not target.startswith(("/", "./", "../")):
        return say("policy.command_cd")
    return _doubt_of_folder(step.words[1], step.folders, around)


def _doubt_of_folder(word: ShellWord, folders: Sequence[str], around: ReadableFolders) -> str:
    """Folders of the workspace, not through links: behind one, `..` means two things."""
    around.work.spend(READ_FOLDER)
    target = word.text
    if not target or word.has_glob or word.has_tilde or word.has_status or target.startswith("-"):
        return say("policy.command_cd")
    for folder in folders:
        path = os.path.normpath(os.path.join(folder, target))
        if not around.holds(path) or _is_secret(path, around):
            return say("policy.command_outside", path=path)
        if os.path.realpath(os.path.join(folder, target)) != path:
            return say("policy.command_cd")
    return ""


def find_stray_glob(step: CommandStep, found: Found, name: str) -> str:
    """File patterns may stand where files are named, and behind `--name=`: elsewhere the names they stand for would become options."""
    for at, word in enumerate(step.words):
        if not word.has_glob:
            continue
        is_option = word.text.startswith("--") and "=" in word.text and not any(sign in word.text.partition("=")[0] for sign in "*?[")
        if name in ("test", "[", "uniq", "strings") or (at not in found.paths and not is_option):
            return say("policy.command_glob", text=word.text)
    return ""


def _doubt_of_reads(step: CommandStep, found: Found, folder: str, around: ReadableFolders, given: int) -> str:
    for at in (*found.paths, *found.behind):
        if at < given or (step.words[0].text == "echo" and not step.words[at].has_glob):
            continue
        for path in _paths_of(step.words[at], folder, around.work):
            if path is None:
                return say("policy.command_glob", text=step.words[at].text)
            if doubt := _doubt_of_path(path, step.words[0].text, found.goes_deep, around):
                return doubt
        if found.is_git and around.denied and (doubt := _doubt_of_revision(step.words[at].text, folder, around)):
            return doubt
    if found.goes_deep and not found.paths and (doubt := _doubt_of_path(folder, step.words[0].text, True, around)):
        return doubt
    if not found.is_git:
        return ""
    around.work.spend(READ_INDEX)
    danger = find_danger(folder, around.roots, reads_tree=found.goes_deep)
    return danger or (_doubt_of_tracked(step, found, folder, around) if around.denied and shows_content(step.texts) else "")


def _doubt_of_tracked(step: CommandStep, found: Found, folder: str, around: ReadableFolders) -> str:
    """A change or a commit may be shown in which a file is that must not be read: whether it is one that git knows now."""
    from dragoman.policy.denied_reads import is_denied

    tells = is_denied(around.denied, around.roots[0])
    assert tells is not None
    named = [path for at in found.paths if os.path.lexists(path := os.path.join(folder, step.words[at].text))]
    try:
        for path in tracked_files(folder, around.roots):
            around.work.spend(1)
            if (not named or any(is_inside(path, each) for each in named)) and tells(path):
                return say("policy.command_denied", path=path)
    except (OSError, ValueError):
        return say("policy.command_denied", path=folder)
    return ""


def _doubt_of_revision(text: str, folder: str, around: ReadableFolders) -> str:
    """`HEAD:secrets/a.txt` is that file as it was, named from the top of the repository, or from here with `./`."""
    _, colon, name = text.rpartition(":")
    if not colon:
        return ""
    at = folder
    while around.holds(at) and at != os.path.dirname(at):
        path = os.path.normpath(os.path.join(at, name))
        if _is_denied(path, True, around):
            return say("policy.command_denied", path=path)
        at = os.path.dirname(at)
    return ""


def _doubt_of_path(path: str, name: str, goes_deep: bool, around: ReadableFolders) -> str:
    if not around.holds(path):
        return say("policy.command_outside", path=path)
    if _is_secret(path, around):
        return say("policy.command_secret", path=path)
    if around.denied and _is_denied(path, goes_deep, around):
        return say("policy.command_denied", path=path)
    if name == "diff" and os.path.isdir(path):
        return say("policy.command_folder", path=path)  # it follows the links in it
    if goes_deep and any(is_inside(each, path) for each in (os.path.realpath(os.path.expanduser("~")), *around.secret)):
        return say("policy.command_secret", path=path)
    return ""


def _is_denied(path: str, goes_deep: bool, around: ReadableFolders) -> bool:
    """Itself, a folder it lies in, or, for a search, something beneath it."""
    from dragoman.policy.denied_reads import MAX_FOLDERS, has_denied_name, is_denied  # only where there is such a rule
    from dragoman.policy.sandbox.survey import Survey

    around.work.spend(SEARCH_TREE if goes_deep else READ_FOLDER)
    tells = is_denied(around.denied, around.roots[0])
    assert tells is not None
    at = path
    while around.holds(at) and at != os.path.dirname(at):
        if tells(at):
            return True
        at = os.path.dirname(at)
    if has_denied_name(path, around.denied, around.roots[0]):
        return True
    return goes_deep and bool(Survey([path], tells, most=MAX_FOLDERS).look().denied)


def _paths_of(word: ShellWord, folder: str, work: WorkDone) -> Sequence[str | None]:
    """The paths a word names, links resolved; None among them if one cannot be determined."""
    if word.text == "-" and not word.has_glob:
        return ()
    if len(word.text) > _MAX_PATH:
        return (None,)
    work.spend(READ_FOLDER)
    text = os.path.expanduser(word.text) if word.has_tilde else word.text
    if not word.has_glob:
        return (real_path(os.path.join(folder, text)),)
    return _expand(text, folder, work)


def _expand(pattern: str, folder: str, work: WorkDone) -> Sequence[str | None]:
    """Every name that bash may put in the place of a pattern, and a few more: whatever the exact rules are, none is missing."""
    parts = pattern.split("/")
    found = [os.sep if pattern.startswith("/") else folder]
    for number, part in enumerate(parts):
        if not part:
            continue
        if not any(sign in part for sign in "*?["):
            found = [os.path.join(each, part) for each in found]
            continue
        wanted = "*" if "[" in part or "**" in part else part
        grown: list[str] = []
        for each in found:
            try:
                listed = os.listdir(each)
            except OSError:
                listed = list[str]()
            work.spend(READ_FOLDER + len(listed))
            names = fnmatch.filter(listed, wanted)
            if number == 0 and any(name.startswith(("-", "(", "!")) for name in names):
                return (None,)  # a file whose name is an option
            grown += [os.path.join(each, name) for name in names]
            if len(grown) > MAX_MATCHES:
                return (None,)
        found = grown
    work.spend(READ_FOLDER * len(found))
    # What fits nothing stays as it is written.
    return [real_path(each) for each in (*found, os.path.join(folder, pattern))]


def _is_secret(path: str, around: ReadableFolders) -> bool:
    folded = path.lower()
    if any(is_inside(folded, system) for system in SYSTEM):
        return True
    return not _SECRET.isdisjoint(folded.split("/")) or any(is_inside(path, each) for each in around.secret)


_RUN_FROM = set_of("BASH_ENV LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH RIPGREP_CONFIG_PATH GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM MAGIC")
"""Variables that name files whose content bash or a program that only reads would run or obey."""


def doubt_of_environment(folders: Sequence[str], around: ReadableFolders) -> str:
    for name in _RUN_FROM.intersection(os.environ):
        for path in os.environ[name].replace(" ", os.pathsep).split(os.pathsep):
            if path and any(around.holds(real_path(os.path.join(folder, path))) for folder in folders):
                return say("policy.command_environment", name=name)
    return ""


def doubt_of_program(name: str, around: ReadableFolders) -> str:
    """The program must be one of the system: what PATH finds first may lie in the workspace."""
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(entry):
            return say("policy.command_path", name=name)
        candidate = os.path.join(entry, name)
        if not os.access(candidate, os.X_OK) or os.path.isdir(candidate):
            continue
        is_inside_workspace = around.holds(os.path.realpath(candidate)) or around.holds(os.path.realpath(entry))
        return say("policy.command_path", name=name) if is_inside_workspace else ""
    return ""
