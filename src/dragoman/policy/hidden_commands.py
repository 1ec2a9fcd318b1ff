"""Every command that a line may run, read loosely, for rules that forbid: in substitutions and loops, behind programs that run what their
arguments name, and in strings that a shell is given. Rather one too many than one too few."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from dragoman.base.text import set_of
from dragoman.policy.shell_grammar import find_commands, read_commands
from dragoman.policy.shell_words import Unclear

_SHELLS = set_of("bash sh dash ash zsh ksh mksh rbash fish eval csh tcsh yash posh osh hush rc nu elvish xonsh pwsh powershell")
_WRAPPERS = _SHELLS | set_of(
    "env sudo doas xargs command builtin exec nohup time timeout nice ionice setsid stdbuf busybox parallel watch strace ltrace chroot "
    "unshare nsenter flock trap su runuser sg ssh coproc then do else ! { taskset chrt setpriv prlimit numactl unbuffer systemd-run script "
    "fakeroot pkexec entr firejail bwrap proot gosu su-exec tini setarch linux32 linux64 valgrind rlwrap uvx npx pnpx bunx toybox "
    "coreutils tmux screen gdb perf hyperfine expect caffeinate torsocks torify proxychains proxychains4 faketime catchsegv xvfb-run "
    "dbus-run-session dbus-launch eatmydata sem chronic ifne cpulimit nodemon watchexec concurrently cross-env dotenv "
    "start-stop-daemon daemonize flatpak-spawn compgen complete hash ld.so"
)
"""Programs that run what their arguments name: a rule that forbids a command forbids it behind these too."""
_TOLD_TO = {
    "find": set_of("-exec -execdir -ok -okdir"),
    "git": frozenset({"run", "foreach", "-x", "--exec"}),
    **dict.fromkeys(("uv", "poetry", "pipenv", "hatch", "conda", "direnv", "mise", "asdf", "bundle", "op", "aws-vault", "doppler"),
                    set_of("run exec tool")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), set_of("exec x dlx")),  # `run` names a script of the project
    **dict.fromkeys(("nix", "nix-shell", "just"), frozenset({"-c", "--command", "--run"})),
    "sops": set_of("exec-env exec-file"),
}  # fmt: skip
"""Programs that run what stands behind one of these words, and behind options."""
_GIVEN_STRINGS = _WRAPPERS | set_of("alias tar rsync zip man make git find nix nix-shell just sops")
_INTERPRETERS = set_of(
    "python pypy perl ruby node nodejs deno bun php lua luajit tclsh wish expect osascript awk gawk mawk nawk sed gsed vim vi nvim view ex "
    "emacs gdb less more R Rscript julia guile racket sbcl ghc irb bc dc sqlite3 psql mysql"
)
"""Programs that are given code, in which they can be told to run others."""
_IS_CODE = re.compile(r"[\s('\"!`]")
"""More than the name of a file, or of a test."""
_VERSION = re.compile(r"-?\d[\d.]*$")
_FURTHER_BACK = frozenset({"direnv", "aws-vault", "sops"})
"""Those that name a folder, a profile or a file first."""
_IN_OPTION = re.compile(r"-[^\s=]*=(?:exec=)?|alias\.[^=]*=!?|[A-Z_]+=|!")
"""What stands before a command line that is a part of a word: `--to-command=touch x`."""
_MOST_FORMS = 64


def all_commands(command: str, depth: int = 3) -> Iterator[tuple[str, ...]]:
    """Every command in a line as well as it can be read."""
    seen: list[tuple[str, ...]] = []
    try:
        seen += [tuple(word.text for word in words) for words in read_commands(command).commands]
    except Unclear:
        pass
    seen += [words for words in find_commands(command) if words]
    for words in seen:
        yield words
        if depth:
            for line in _lines_in(words):
                yield from all_commands(line, depth - 1)


def _lines_in(words: Sequence[str]) -> Iterator[str]:
    """What a program is given that may be a whole command line. Of messages and other texts (`git commit -m`) nothing is."""
    name = _program(words)
    if name not in _GIVEN_STRINGS:
        return
    is_message = name in ("git", "find") and _TOLD_TO[name].isdisjoint(words)
    for word in words[1:]:
        begin = _IN_OPTION.match(word)
        if begin:
            yield word[begin.end() :]
        elif " " in word and word.startswith("-"):
            yield word[2:]  # `env -S'touch x'`
        if not is_message and not word.startswith("-"):
            yield word


def forms_of(words: Sequence[str]) -> Iterable[Sequence[str]]:
    """The ways to see a command: with the program by its name alone, what it runs itself, each also without the options behind the name."""
    if not words:
        return
    yield words
    for inner in _inner(words):
        name = os.path.basename(inner[0])
        yield (name, *inner[1:])
        if name != name.lower():
            yield (name.lower(), *inner[1:])  # some file systems do not tell them apart
        yield from _without_options(name, inner[1:])


def _inner(words: Sequence[str]) -> Iterator[Sequence[str]]:
    yield words
    name = _program(words)
    if name in _WRAPPERS:
        yield from (words[at:] for at in range(1, len(words)))
    elif name in _TOLD_TO:
        for at in (at for at in range(1, len(words) - 1) if words[at] in _TOLD_TO[name]):
            reached = [at + 1] if name not in _FURTHER_BACK else list(range(at + 1, len(words)))
            for place in reached:
                if words[place].startswith("-"):
                    reached += [next_at for next_at in (place + 1, place + 2) if next_at < len(words) and next_at not in reached]
            yield from (words[place:] for place in reached)


def _program(words: Sequence[str]) -> str:
    """Its name without folder and version: `bash-5.2` is bash, and the loader is a program that runs another."""
    name = os.path.basename(words[0])
    return "ld.so" if name.startswith(("ld-linux", "ld-musl")) else _VERSION.sub("", name) or name


def _without_options(name: str, rest: Sequence[str]) -> Iterator[Sequence[str]]:
    """`git -C x push` is `git push`. Which options take a value is not known: both ways are tried."""
    waiting, count = [rest], 0
    while waiting and count < _MOST_FORMS:
        words = waiting.pop()
        if not words or not words[0].startswith("-"):
            continue
        for shorter in (words[1:], words[2:]):
            if shorter:
                count += 1
                yield (name, *shorter)
                waiting.append(shorter)


def takes_commands(words: Sequence[str]) -> bool:
    """Whether it is a shell that reads what to run from its input."""
    return _program(words) in _SHELLS - {"eval"} and all(word.startswith("-") and "c" not in word for word in words[1:])


def mentions(words: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether code that a program is given has all words of a rule in it: then it may well do what the rule is about."""
    if _program(words) not in _INTERPRETERS:
        return False
    named = [re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])") for word in pattern if word != "*"]
    return bool(named) and any(all(each.search(word) for each in named) for word in words[1:] if _IS_CODE.search(word))
