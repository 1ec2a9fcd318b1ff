"""What git may do unasked: the subcommands that only read, with their options.

Whether a repository's own configuration makes one of them run something is another question (git_folder.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from dragoman.base.text import set_of
from dragoman.policy.read_only_options import Program, scan_options
from dragoman.policy.read_only_scripts import Found

_HISTORY = ("L:n:pqsuzabwiU:S:G:M::C::", "oneline graph decorate? all stat? shortstat numstat name-only name-status summary patch no-patch "
            "format= pretty? abbrev-commit abbrev? author= grep= since= after= until= before= max-count= skip= follow merges no-merges "
            "first-parent reverse date= date-order topo-order no-color color? unified= word-diff? minimal cached staged no-renames "
            "find-renames? diff-filter= ignore-all-space ignore-space-change ignore-blank-lines raw patch-with-stat dirstat? check "
            "no-ext-diff no-textconv no-pager exit-code quiet merge-base tags branches remotes no-decorate no-prefix function-context "
            "full-index binary relative? left-right cherry-pick boundary simplify-by-decoration regexp-ignore-case "
            "perl-regexp fixed-strings extended-regexp invert-grep pickaxe-regex source")  # fmt: skip
_GIT: dict[str, Program] = {
    "status": Program("sbu::zv", "short branch porcelain? long show-stash untracked-files? ignored? ahead-behind no-ahead-behind renames "
                      "no-renames column? no-column verbose null"),
    "diff": Program(*_HISTORY),
    "log": Program(*_HISTORY, takes_number=True),
    "show": Program(*_HISTORY),
    "rev-parse": Program("q", "short? abbrev-ref? verify show-toplevel show-prefix show-cdup git-dir is-inside-work-tree symbolic quiet "
                         "all branches tags remotes symbolic-full-name"),
    "ls-files": Program("cdmosutzvk", "cached deleted modified others stage unmerged ignored exclude-standard full-name error-unmatch "
                        "directory exclude="),
    "blame": Program("L:lstnewCM", "date= show-email show-name root porcelain line-porcelain"),
    "branch": Program("arvl", "all remotes list show-current verbose no-color color? sort= format= contains= merged= no-merged=", "none"),
    "remote": Program("v", "verbose", "none"),
    "describe": Program("", "tags all always dirty? long abbrev= exact-match"),
    "shortlog": Program("sne", "summary numbered email"),
    "grep": Program("A:B:C:ce:EFGhHiIlLm:nopPqvwWz", "after-context= before-context= context= count extended-regexp fixed-strings "
                    "basic-regexp perl-regexp ignore-case invert-match word-regexp files-with-matches files-without-match name-only "
                    "max-count= line-number column only-matching quiet show-function function-context heading break all-match null "
                    "color? no-color cached untracked exclude-standard max-depth= full-name text threads=",
                    "pattern", takes_number=True, recursive="*", pattern_options="e"),
    "ls-tree": Program("drtlz", "name-only name-status object-only long full-name full-tree abbrev? format=", recursive="r"),
    "cat-file": Program("pets"),
    "rev-list": Program(_HISTORY[0], f"{_HISTORY[1]} count", takes_number=True),
    "merge-base": Program("a", "all octopus independent is-ancestor fork-point"),
    "name-rev": Program("", "tags all name-only refs= always"),
    "count-objects": Program("vH", "verbose human-readable", "none"),
    "show-ref": Program("dsq", "heads branches tags head dereference hash? abbrev? verify quiet"),
    "for-each-ref": Program("", "count= sort= format= points-at= merged= no-merged= contains= no-contains= ignore-case exclude="),
    "check-ignore": Program("vnq", "verbose non-matching quiet no-index"),
}  # fmt: skip
_LISTING: dict[tuple[str, str], Program] = {
    ("stash", "list"): Program(*_HISTORY, takes_number=True),
    ("stash", "show"): Program(*_HISTORY),
    ("worktree", "list"): Program("v", "porcelain verbose", "none"),
    ("remote", "get-url"): Program("", "all push", "text"),
    ("reflog", "show"): Program(*_HISTORY, takes_number=True),
}
"""Of subcommands that also change something, those of the second level that do not. A rule such as `git stash *` covers all of them."""
_TAGS = Program("ln::i", "list sort= format= contains= no-contains= merged= no-merged= points-at= column? no-column ignore-case", "text")
_REFLOG = Program(*_HISTORY, operands="none", takes_number=True)
_SETTING = re.compile(r"user\.(?:name|email)|init\.defaultbranch|remote\.[\w-]+\.url|branch\.[\w./-]+\.(?:remote|merge)", re.IGNORECASE)
"""Settings that hold no secret."""
_SHOWING = frozenset({"diff", "show", "stash", "cat-file", "blame"})
_NAMES_ONLY = {f"--{name}" for name in set_of("stat shortstat numstat name-only name-status summary no-patch quiet dirstat")} | {"-s", "-q"}
_PATCH = re.compile(r"-[a-zA-Z]*[pu]|-[ULSG]|--patch|--unified|--word-diff|--function-context")
_SIGNATURE = re.compile(r"%[-+ ]?G|%\(\*?signature|--sort[=\0][^\0]*signature")


def find_git_reads(words: Sequence[str]) -> Found | None:
    """What a git command reads, if every option is on its list; None if it is not."""
    if _SIGNATURE.search("\0".join(words)):
        return None  # a signature is shown by the program that checks it, and that writes
    at = 2 if words[1:2] == ["--no-pager"] else 1
    found = _find(words, at) if len(words) > at else None
    return None if found is None else msgspec.structs.replace(found, is_git=True, behind=())  # git reads options wherever they stand


def shows_content(words: Sequence[str]) -> bool:
    """Whether a git command may show what is in files, and not only their names."""
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    has_patch = any(_PATCH.match(option) for option in options)
    if {"log", "reflog", "rev-list"}.isdisjoint(words):
        return has_patch or (not _SHOWING.isdisjoint(words) and _NAMES_ONLY.isdisjoint(options))
    return has_patch


_BRINGS_CONTENT = set_of(
    "archive cat-file grep format-patch fast-export bundle checkout-index clone difftool annotate blame whatchanged range-diff diff-tree "
    "diff-index diff-files unpack-file send-email show diff merge-file read-tree pack-objects upload-pack upload-archive daemon instaweb "
    "gui citool svn p4 filter-branch fast-import request-pull"
)
"""Subcommands that show what is in files, or write it where it can be read."""


def may_bring_content(words: Sequence[str]) -> bool:
    """Whether a git command, read loosely, may show what is in files that git keeps, or write it to another place."""
    rest = [word for word in words[1:] if not word.startswith("-")][:4]
    options = {word.partition("=")[0] for word in words[1:] if word.startswith("-")}
    if not {"--work-tree", "--git-dir"}.isdisjoint(options) or ("worktree" in rest and "add" in rest):
        return True
    if not _BRINGS_CONTENT.isdisjoint(rest) or ("stash" in rest and "show" in rest):
        return {"diff", "show"}.isdisjoint(rest) or _NAMES_ONLY.isdisjoint(options) or any(_PATCH.match(option) for option in options)
    return not {"log", "reflog", "rev-list", "stash"}.isdisjoint(rest) and any(_PATCH.match(option) for option in options)


def is_reading_subcommand(words: Sequence[str]) -> bool:
    """Whether it is a git command for which there is a list."""
    return len(words) > 1 and words[0] == "git" and words[1] in _GIT


def _find(words: Sequence[str], at: int) -> Found | None:
    name, rest = words[at], words[at + 1 :]
    if rest and (name, rest[0]) in _LISTING:
        return scan_options(_LISTING[name, rest[0]], words, at + 2)
    if name in _GIT:
        return scan_options(_GIT[name], words, at + 1)
    match name:
        case "tag":
            # Further back `-l` may be the value of another option, and the name behind it that of a new tag.
            is_list = rest[:1] in (["-l"], ["--list"])
            return scan_options(_TAGS if is_list else msgspec.structs.replace(_TAGS, operands="none"), words, at + 1)
        case "reflog":
            return scan_options(_REFLOG, words, at + 1)
        case "config" if _SETTING.fullmatch(rest[-1] if rest else "") and rest[:-1] in ([], ["--get"]):
            return Found()
        case "version" | "--version" if not rest:
            return Found()
        case _:
            return None
