"""Every command that a line may run, read loosely, for rules that forbid: in substitutions and loops, behind programs that run what their
arguments name, and in strings that a shell is given. Rather one too many than one too few."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from dragoman.policy.running_programs import GIVEN_STRINGS, INTERPRETERS, SHELLS, TOLD_TO, WRAPPERS, is_among, program_name
from dragoman.policy.shell_grammar import find_commands, read_commands
from dragoman.policy.shell_words import Unclear
from dragoman.policy.work import TooMuchWork, WorkDone
from dragoman.words import say

_IS_CODE = re.compile(r"[\s('\"!`]")
"""More than the name of a file, or of a test."""
_FURTHER_BACK = frozenset({"direnv", "aws-vault", "sops"})
"""Those that name a folder, a profile or a file first."""
_IN_OPTION = re.compile(r"-[^\s=]*=(?:exec=)?|alias\.[^=]*=!?|[A-Z_]+=|!")
"""What stands before a command line that is a part of a word: `--to-command=touch x`."""
_WORD = re.compile(r"[\w./:=@%+,-]*")
MAX_DEPTH = 4
"""How many command lines may be hidden in each other (`bash -c "sh -c '…'"`)."""
_MOST_FORMS = 64
_MOST_WORDS = 256
"""So many words of what a program runs are looked at."""
_PER_LINE, _CHARS_PER_UNIT = 40, 8
"""What reading a line costs."""


def all_commands(command: str, work: WorkDone, depth: int = MAX_DEPTH) -> Iterator[tuple[str, ...]]:
    """Every command in a line as well as it can be read. Raises TooMuchWork, also where lines are hidden in each other too deeply."""
    work.spend(_PER_LINE + len(command) // _CHARS_PER_UNIT)
    try:
        seen = [tuple(word.text for word in words) for words in read_commands(command).commands]
    except Unclear:
        seen = [words for words in find_commands(command, work) if words]
    for words in seen:
        yield words
        for line in _lines_in(words):
            if depth:
                yield from all_commands(line, work, depth - 1)
            elif not _WORD.fullmatch(line):
                raise TooMuchWork(say("policy.shell_deep"))


def _lines_in(words: Sequence[str]) -> Iterator[str]:
    """What a program is given that may be a whole command line. Of messages and other texts (`git commit -m`) nothing is."""
    name = program_name(words[0])
    if not is_among(words[0], GIVEN_STRINGS):
        return
    is_message = name in ("git", "find") and TOLD_TO[name].isdisjoint(words)
    for word in words[1:]:
        begin = _IN_OPTION.match(word)
        if begin:
            yield word[begin.end() :]
        elif " " in word and word.startswith("-"):
            yield word[2:]  # `env -S'touch x'`
        if not is_message and not word.startswith("-"):
            yield word


def forms_of(words: Sequence[str], work: WorkDone) -> Iterator[Sequence[str]]:
    """The ways to see a command: with the program by its name alone, what it runs itself, each also without the options behind the name.
    Raises TooMuchWork."""
    if not words:
        return
    for form in _forms(words):
        work.spend(1 + len(form))
        yield form


def _forms(words: Sequence[str]) -> Iterator[Sequence[str]]:
    yield words
    for inner in _inner(words):
        name = os.path.basename(inner[0])
        yield (name, *inner[1:])
        if name != name.lower():
            yield (name.lower(), *inner[1:])  # some file systems do not tell them apart
        yield from _without_options(name, inner[1:])


def _inner(words: Sequence[str]) -> Iterator[Sequence[str]]:
    yield words
    name = program_name(words[0])
    if is_among(words[0], WRAPPERS):
        yield from (words[at : at + _MOST_WORDS] for at in range(1, len(words)))
    elif name in TOLD_TO:
        yield from (words[place : place + _MOST_WORDS] for place in _told_to_run(name, words))


def _told_to_run(name: str, words: Sequence[str]) -> Iterator[int]:
    """Where what it runs may begin: behind the word that says so, and behind options and their values."""
    reached: set[int] = set()
    for at in (at for at in range(1, len(words) - 1) if words[at] in TOLD_TO[name]):
        waiting = [at + 1] if name not in _FURTHER_BACK else list(range(at + 1, len(words)))
        while waiting:
            place = waiting.pop()
            if place in reached or place >= len(words):
                continue
            reached.add(place)
            yield place
            if words[place].startswith("-"):
                waiting += (place + 1, place + 2)


def _without_options(name: str, rest: Sequence[str]) -> Iterator[Sequence[str]]:
    """`git -C x push` is `git push`. Which options take a value is not known: both ways are tried."""
    waiting, seen = [0], {0}
    while waiting and len(seen) < _MOST_FORMS:
        at = waiting.pop()
        if at >= len(rest) or not rest[at].startswith("-"):
            continue
        for after in (at + 1, at + 2):
            if after < len(rest) and after not in seen:
                seen.add(after)
                yield (name, *rest[after:])
                waiting.append(after)


def takes_commands(words: Sequence[str]) -> bool:
    """Whether it is a shell that reads what to run from its input."""
    return is_among(words[0], SHELLS - {"eval"}) and all(word.startswith("-") and "c" not in word for word in words[1:])


def mentions(words: Sequence[str], pattern: Sequence[str], work: WorkDone) -> bool:
    """Whether code that a program is given has all words of a rule in it: then it may well do what the rule is about.
    Raises TooMuchWork."""
    if not is_among(words[0], INTERPRETERS):
        return False
    work.spend(1 + sum(map(len, words)) // _CHARS_PER_UNIT)
    named = [re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])") for word in pattern if word != "*"]
    return bool(named) and any(all(each.search(word) for each in named) for word in words[1:] if _IS_CODE.search(word))
