"""Commands that plainly throw work away: what of it they name, read loosely from the line.

A courtesy beside the copies that are kept before every command: so that a person is asked about the files, and not about a command. A
program can hide what it removes; the copies do not depend on this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.base.text import set_of
from dragoman.policy.hidden_commands import all_commands, forms_of
from dragoman.policy.judge import Law, MustAsk, judge_by_rules
from dragoman.policy.work import TooMuchWork, WorkDone
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolSpec

MAY_DISCARD = re.compile(r"(?<![\w.-])(?:git|rm|unlink|shred|srm|truncate|find)(?![\w.-])")
"""A line without any of these is not looked into."""
_DELETERS = set_of("rm unlink shred srm truncate")
_UNKNOWN = re.compile(r"[$`\0{]")
_GIT_TAKES_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_ABORTS = set_of("merge rebase cherry-pick am revert")


class Discard(NamedTuple):
    """What one command throws away: uncommitted changes of tracked files, untracked files, both, ignored files, or stashes."""

    what: Literal["changes", "untracked", "files", "ignored", "stashes"]
    folder: str
    """Where the command runs."""
    paths: tuple[str, ...] = ()
    """Absolute; those with `*?[` are patterns. Empty: all of the repository."""
    is_deep: bool = True
    """Whether folders in which git knows no file count too."""

    def names(self, path: str) -> bool:
        """Whether a file is one of those."""
        return not self.paths or any(_fits(path, each) for each in self.paths)


class Discarded(msgspec.Struct, frozen=True):
    """Work that a command throws away, in words."""

    why: str
    """For the question: which files, and whether they can be had again."""
    refusal: str
    """For the model, where nobody can be asked."""
    note: str
    """For the model, after it ran."""
    notice: str
    """For the user, after it ran."""
    is_kept: bool
    """Whether a copy of all of it is kept before the command runs."""


def is_to_be_told(spec: ToolSpec, intent: Intent, verdict: Allow | MustAsk | Deny, law: Law) -> bool:
    """Whether a person has to hear what a command throws away. Not where it only reads, or a rule of theirs allows just this: a copy is
    kept all the same."""
    if spec.kind != "execute" or intent.problem or isinstance(verdict, Deny) or not MAY_DISCARD.search(intent.command):
        return False
    if not isinstance(verdict, Allow) or intent.outside:
        return True
    ruled = judge_by_rules(spec, intent, frozenset(), law)
    return ruled is None or ruled.decision != "allow"


def ask_about_loss(intent: Intent, verdict: Allow | MustAsk | Deny, lost: Discarded, *, keeps_why: bool) -> MustAsk:
    """The question about a command that throws work away: by the names of the files, whatever was allowed before. `keeps_why`: why it is
    asked about anyway is said too."""
    view = verdict.view if isinstance(verdict, MustAsk) else intent
    why = "; ".join(filter(None, (view.why, lost.why)))
    if view.guarded in ("own", "trusted", "outside"):
        return MustAsk(msgspec.structs.replace(view, why=why))
    return MustAsk(msgspec.structs.replace(view, guarded="discards", why=why if keeps_why else lost.why, prefix=""))


def find_discards(command: str, directory: str) -> tuple[Discard, ...]:
    """What a command line plainly throws away; nothing where it is too long to be read."""
    found: dict[Discard, None] = {}
    work, folder = WorkDone(), directory
    try:
        for words in all_commands(command, work):
            if words[0] in ("cd", "pushd") and len(words) == 2 and not _UNKNOWN.search(words[1]):
                folder = os.path.normpath(os.path.join(folder, os.path.expanduser(words[1])))
            for form in forms_of(words, work):
                found |= dict.fromkeys(_discards_of(form, folder))
    except TooMuchWork:
        pass
    return tuple(found)


def _discards_of(words: Sequence[str], folder: str) -> Iterator[Discard]:
    name, rest = os.path.basename(words[0]), list(words[1:])
    if name == "git":
        while rest and rest[0].startswith("-"):
            option = rest.pop(0)
            value = rest.pop(0) if option in _GIT_TAKES_VALUE and rest else ""
            folder = os.path.normpath(os.path.join(folder, os.path.expanduser(value))) if option == "-C" else folder
        if rest:
            yield from _discards_of_git(rest[0], rest[1:], folder)
    elif name in _DELETERS:
        if paths := _paths([word for word in _split(rest)[1] if word not in ("-s",)], folder):
            yield Discard("files", folder, paths)
    elif name == "find" and "-delete" in rest:
        yield from _discards_of_find(rest, folder)


def _discards_of_git(subcommand: str, rest: Sequence[str], folder: str) -> Iterator[Discard]:
    options, named = _split(rest)
    letters = {letter for option in options if not option.startswith("--") for letter in option[1:]}
    is_forced = "f" in letters or "--force" in options
    match subcommand:
        case "checkout":
            is_paths = "--" in rest or "." in named
            behind = named[named.index(".") :] if "." in named else rest[list(rest).index("--") + 1 :] if is_paths else named
            paths = _paths(behind if is_paths else [each for each in behind if os.path.lexists(os.path.join(folder, each))], folder)
            if is_forced and not paths:
                yield Discard("changes", folder)
            elif paths and not letters & {"b", "B"}:
                yield Discard("changes", folder, paths)
        case "restore":
            only_index = ("S" in letters or "--staged" in options) and not ("W" in letters or "--worktree" in options)
            paths = _paths(_without_value(rest, named, ("-s", "--source")), folder)
            if paths and not only_index:
                yield Discard("changes", folder, paths)
        case "reset" if "--hard" in options or "--merge" in options:
            yield Discard("changes", folder)
        case "switch" if is_forced or "--discard-changes" in options:
            yield Discard("changes", folder)
        case "checkout-index" if is_forced:
            yield Discard("changes", folder, _paths(named, folder))
        case "read-tree" if "--reset" in options:
            yield Discard("changes", folder)
        case "rm" if is_forced and "--cached" not in options:
            if paths := _paths(named, folder):
                yield Discard("changes", folder, paths)
        case "clean" if is_forced and "n" not in letters and "--dry-run" not in options:
            paths = _paths(_without_value(rest, named, ("-e", "--exclude")), folder) or (folder,)
            if "X" not in letters:
                yield Discard("untracked", folder, paths, "d" in letters)
            if letters & {"x", "X"}:
                yield Discard("ignored", folder, paths)
        case "stash" if rest[:1] in (["drop"], ["clear"]):
            yield Discard("stashes", folder)
        case "worktree" if rest[:1] == ["remove"] and is_forced:
            if paths := _paths(named[1:], folder):
                yield Discard("files", folder, paths)
        case _ if subcommand in _ABORTS and "--abort" in options:
            yield Discard("changes", folder)
        case _:
            pass


def _discards_of_find(rest: Sequence[str], folder: str) -> Iterator[Discard]:
    """Of what narrows a search, names alone are understood."""
    end = next((at for at, word in enumerate(rest) if word.startswith(("-", "(", "!"))), len(rest))
    tests = [word for word in rest[end:] if word not in ("-delete", "-type", "f")]
    paths = _paths(rest[:end] or ["."], folder)
    if not tests:
        yield Discard("files", folder, paths)
    elif len(tests) == 2 and tests[0] == "-name" and "/" not in tests[1]:
        yield Discard("files", folder, tuple(f"{path}/**/{tests[1]}" for path in paths))


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options, and the rest. Behind `--` there are no options."""
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word.startswith("-") and word != "-"]
    return options, [word for word in words[:end] if word not in options] + list(words[end + 1 :])


def _without_value(words: Sequence[str], named: Sequence[str], options: Sequence[str]) -> list[str]:
    values = {words[at + 1] for at, word in enumerate(words[:-1]) if word in options}
    return [word for word in named if word not in values]


def _paths(words: Sequence[str], folder: str) -> tuple[str, ...]:
    return tuple(os.path.normpath(os.path.join(folder, os.path.expanduser(word))) for word in words if word and not _UNKNOWN.search(word))


def _fits(path: str, named: str) -> bool:
    if is_inside(path, named):
        return True
    if not any(sign in named for sign in "*?["):
        return False
    if "/**/" in named:
        base, _, name = named.rpartition("/**/")
        return is_inside(path, base) and fnmatchcase(os.path.basename(path), name)
    parts, wanted = path.split("/"), named.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted))
