"""Options with which a program that is otherwise known for one thing runs another program, or writes where it is told to.

A rule such as `git fetch *` or `tar *` is about fetching and packing: what is listed here it does not cover, unless it is written in the
rule itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class _Running(msgspec.Struct, frozen=True):
    long: str = ""
    letters: str = ""
    words: str = ""
    """Options with one dash and more letters, and subcommands."""


_GIT_ANYWHERE = _Running("upload-pack receive-pack exec exec-path output ext-diff open-files-in-pager extcmd smtp-server sendmail-cmd")
_GIT = {
    "clone": _Running("config template", "uc"),
    "init": _Running("template"),
    "rebase": _Running(letters="x"),
    "grep": _Running(letters="O"),
    "difftool": _Running(letters="x"),
    "archive": _Running("remote", "o"),
    "bisect": _Running(words="run"),
    "submodule": _Running(words="foreach"),
}
_OTHERS = {
    "tar": _Running("checkpoint-action to-command use-compress-program rmt-command rsh-command info-script new-volume-script", "IF"),
    "rsync": _Running("rsh rsync-path", "e"),
    "ssh": _Running(letters="oFS"),
    "scp": _Running(letters="oFS"),
    "zip": _Running("unzip-command", words="-TT"),
    "man": _Running("pager html", "PH"),
    "sftp": _Running(letters="oFSD"),
    "cpio": _Running("rsh-command", "F"),
    "wget": _Running("use-askpass execute", "e"),
    "sqlite3": _Running("cmd init", words="-cmd -init"),
    "fzf": _Running("bind preview"),
    **dict.fromkeys(("fd", "fdfind"), _Running("exec exec-batch", "xX")),
    **dict.fromkeys(("bat", "batcat", "ag", "ack", "delta"), _Running("pager")),
}
_SHORTEST = 2
"""Long options may be cut short; what has fewer letters may mean anything."""


def find_running_option(words: Sequence[str], begin: int) -> str:
    """The first such option from a place on; empty if there is none."""
    is_git = words[0] == "git"
    listed = [_GIT_ANYWHERE, _GIT.get(words[1] if len(words) > 1 else "")] if is_git else [_OTHERS.get(words[0])]
    known = [each for each in listed if each is not None]
    for word in words[begin:] if known else ():
        if word == "--":
            break
        if (is_git and word.startswith("ext::")) or any(_is_one(word, each) for each in known):
            return word
    return ""


def _is_one(word: str, running: _Running) -> bool:
    if word in running.words.split():
        return True
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return len(name) >= _SHORTEST and any(each.startswith(name) for each in running.long.split())
    return word.startswith("-") and not set(running.letters).isdisjoint(word[1:])
