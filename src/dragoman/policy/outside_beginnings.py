"""The beginnings of commands that may be allowed for a session outside the sandbox: programs that run nothing out of the workspace.

A beginning covers a command only if that is one line of plain words, each an option that is known to be harmless or a plain name. Whatever
else there is in it (another option, an operator, a variable) is asked about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.base.text import set_of
from dragoman.policy.commands import ReadableFolders, doubt_of_environment, doubt_of_program
from dragoman.policy.sandbox.toolchains import goes_through
from dragoman.words import say

_WORD = re.compile(r"(?:[A-Za-z0-9_./:=@,+%-]|'[^'\n\0]*')+")
_LINE = re.compile(rf" *{_WORD.pattern}(?: +{_WORD.pattern})* *")
_NAME = re.compile(r"(?!.*://)(?!.*::)[A-Za-z0-9][A-Za-z0-9._/@:-]*")
_ANYTHING = re.compile(r"[^\0-\x1f\x7f]*")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")
_COLUMNS = re.compile(r"json|yaml|wide|name|(?:jsonpath|custom-columns|go-template)=[^\0-\x1f\x7f]*")
"""The others of kubectl read a file."""
_SETTINGS = set_of("HOME XDG_CONFIG_HOME KUBECONFIG KUBERC DOCKER_CONFIG DOCKER_CERT_PATH GH_CONFIG_DIR BASH_ENV ENV")
"""Variables that name where these programs find settings that run something."""
_SETTINGS_BEGIN = ("GIT_", "SSH_", "LD_", "SYSTEMD_")
_SETTINGS_AT = (
    "~/.ssh", "~/.ssh/config", "~/.docker", "~/.docker/config.json", "~/.docker/cli-plugins", "~/.kube", "~/.kube/config", "~/.kube/kuberc",
    "{config}/gh", "{config}/gh/config.yml", "{config}/gh/hosts.yml", "~/.gitconfig", "{config}/git", "{config}/git/config",
)  # fmt: skip
"""Where those are without a variable. Who keeps them in a repository links them there."""
_CODE = set_of("PYTHONPATH PYTHONHOME NODE_PATH NODE_OPTIONS PERL5LIB PERL5OPT RUBYLIB RUBYOPT CLASSPATH JAVA_TOOL_OPTIONS")
"""Variables by which programs that these start, such as a helper for a login, load code of the folder that is worked in."""
LEADS_TO = " → "
"""Between a beginning and the addresses that it was allowed for."""


class Beginning(msgspec.Struct, frozen=True):
    """How commands begin, and what may stand behind it."""

    words: tuple[str, ...]
    options: frozenset[str]
    """Those without a value."""
    values: dict[str, re.Pattern[str]]
    """Those with one, and what it may be."""
    git: Literal["", "reads", "push", "fetch"] = ""
    """What it does with the repository: asks git about it, or reaches its remotes."""
    never: str = ""
    """What no word may have in it."""


def _beginning(words: str, options: str, git: Literal["", "reads", "push", "fetch"] = "", never: str = "", **values: str) -> Beginning:
    patterns = {"any": _ANYTHING, "name": _NAME, "repository": _REPOSITORY, "columns": _COLUMNS}
    valued = {option: patterns[kind] for kind, named in values.items() for option in _dashed(named)}
    return Beginning(tuple(words.split()), _dashed(options), valued, git, never)


def _dashed(names: str) -> frozenset[str]:
    return frozenset(f"-{name}" if len(name) == 1 else f"--{name}" for name in names.split())


def _several(words: str, subcommands: str, options: str, git: Literal["", "reads"] = "", never: str = "", **values: str) -> list[Beginning]:
    return [_beginning(f"{words} {each}", options, git, never, **values) for each in subcommands.split()]


_TALK = "v verbose q quiet progress no-progress"
_BEGINNINGS = {
    each.words: each
    for each in (
        _beginning(
            "git push", f"{_TALK} u set-upstream tags follow-tags n dry-run porcelain atomic all branches", "push",
        ),
        _beginning("git fetch", f"{_TALK} all t tags no-tags p prune dry-run unshallow", "fetch", name="depth deepen"),
        _beginning("git ls-remote", "heads branches t tags refs q quiet symref exit-code", "fetch"),
        _beginning("docker ps", "a all q quiet l latest s size no-trunc", any="format f filter", name="n last"),
        _beginning("docker images", "a all q quiet digests no-trunc tree", any="format f filter"),
        _beginning("docker logs", "f follow t timestamps details", any="since until", name="n tail"),
        _beginning("docker inspect", "s size", any="f format", name="type"),
        *_several("docker", "version info", "", any="f format"),
        *_several(
            "kubectl", "get describe", "A all-namespaces w watch show-labels no-headers ignore-not-found show-events",
            never="secret", name="n namespace", any="l selector field-selector sort-by", columns="o output",
        ),
        _beginning(
            "kubectl logs", "f follow p previous timestamps all-containers prefix",
            name="n namespace c container tail limit-bytes", any="l selector since since-time",
        ),
        *_several(
            "gh pr", "list view status checks", "c comments d draft required", "reads",
            any="q jq t template S search json",
            name="L limit s state B base H head a assignee A author l label",
            repository="R repo",
        ),
        *_several(
            "gh issue", "list view", "c comments", "reads",
            any="q jq t template S search json",
            name="L limit s state a assignee A author l label", repository="R repo",
        ),
        *_several(
            "gh run", "list view", "log log-failed v verbose exit-status", "reads",
            any="q jq t template json", name="L limit b branch s status u user w workflow j job a attempt",
            repository="R repo",
        ),
        _beginning("systemctl status", "no-pager l full a all user system", name="n lines o output"),
        _beginning(
            "journalctl", "no-pager f follow e x r reverse k dmesg b boot user system q quiet utc",
            name="u unit user-unit n lines p priority o output t identifier", any="S since U until g grep",
        ),
    )
}  # fmt: skip


def plain_words(command: str) -> tuple[str, ...]:
    """The words of a line in which the shell changes nothing; empty: it is not such a line."""
    if not _LINE.fullmatch(command):
        return ()
    return tuple(word[0].replace("'", "") for word in _WORD.finditer(command))


def find_beginning(words: Sequence[str]) -> Beginning | None:
    """The one that a command has."""
    return next((found for count in (3, 2, 1) if (found := _BEGINNINGS.get(tuple(words[:count]))) is not None), None)


def doubt_of_beginning(beginning: Beginning, words: Sequence[str], directory: str, folders: Sequence[str], untrusted: Sequence[str]) -> str:
    """Why a beginning does not cover a command in a folder; empty: it does. `folders`: those that are worked in. `untrusted`: where
    commands may have put programs."""
    names: list[str] = []
    stray = _find_stray(beginning, words[len(beginning.words) :], names)
    if stray is not None:
        return say("policy.outside_word", word=stray or "''", prefix=" ".join(beginning.words))
    around = ReadableFolders(tuple(untrusted))
    if doubt := doubt_of_program(words[0], around) or doubt_of_environment((directory,), around):
        return doubt
    if variable := _find_setting(directory, untrusted):
        return say("policy.command_environment", name=variable)
    if path := _find_placed(untrusted):
        return say("policy.outside_placed", path=path)
    if not beginning.git:
        return ""
    from dragoman.policy.git_remotes import doubt_of_git

    return doubt_of_git(directory, folders, untrusted, _remote_of(beginning, names), beginning.git)


def addresses_of(beginning: Beginning, words: Sequence[str], directory: str) -> tuple[str, ...]:
    """Which remotes a command without doubts may reach: who allows it for one has not allowed it for another, which the model may have
    made. Empty: it reaches no remote of a repository."""
    if beginning.git in ("", "reads"):
        return ()
    from dragoman.policy.git_remotes import find_addresses

    names: list[str] = []
    _find_stray(beginning, words[len(beginning.words) :], names)
    try:
        return find_addresses(directory, _remote_of(beginning, names))
    except (OSError, ValueError):  # it was changed since it was looked at: no address has been allowed by that name
        return ("?",)


def plain_environment() -> dict[str, str]:
    """Variables with which what runs unasked loads no code that the model may have written."""
    return dict.fromkeys(sorted(_CODE.intersection(os.environ)), "")


def _remote_of(beginning: Beginning, names: Sequence[str]) -> str:
    return names[0] if names and beginning.git != "reads" else ""


def _find_stray(beginning: Beginning, rest: Sequence[str], names: list[str]) -> str | None:
    """The first word that is neither known nor plain; None: there is none. The plain names are added to `names`."""
    at = 0
    while at < len(rest):
        word = rest[at]
        at += 1
        option, equals, value = word.partition("=")
        if beginning.never and beginning.never in word.lower():
            return word
        if (pattern := beginning.values.get(option)) is not None:
            if not equals:
                value, at = rest[at] if at < len(rest) else "-", at + 1
            if value.startswith("-") or not pattern.fullmatch(value):
                return word
        elif word.startswith("-"):
            letters = {f"-{letter}" for letter in word[1:]} if not word.startswith("--") else {word}
            if word not in beginning.options and (len(word) < 2 or not letters <= beginning.options):
                return word
        elif not _NAME.fullmatch(word):
            return word
        else:
            names.append(word)
    return None


def _find_setting(directory: str, untrusted: Sequence[str]) -> str:
    """A variable that names a place in a folder that commands may write."""
    for name, value in os.environ.items():
        if name not in _SETTINGS and not name.startswith(_SETTINGS_BEGIN):
            continue
        for path in re.split(r"[\s:=]+", value):
            is_path = "/" in path or (path and name in _SETTINGS)
            if is_path and goes_through(os.path.join(directory, os.path.expanduser(path)), _real(untrusted)):
                return name
    return ""


def _find_placed(untrusted: Sequence[str]) -> str:
    """A place of settings that is a link into a folder that commands may write."""
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    places = (os.path.expanduser(place.replace("{config}", config)) for place in _SETTINGS_AT)
    return next((place for place in places if goes_through(place, _real(untrusted))), "")


def _real(folders: Sequence[str]) -> list[str]:
    return list(map(os.path.realpath, folders))
