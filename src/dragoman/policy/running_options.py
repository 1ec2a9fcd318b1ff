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
    """Options with one dash and more letters, and subcommands; also with `=` and a value behind them."""
    is_bundled: bool = False
    """The letters may also stand in the first word, without a dash."""
    sets: bool = False
    """`NAME=value` sets what runs."""


_GIT_ANYWHERE = _Running("upload-pack receive-pack exec exec-path output ext-diff open-files-in-pager extcmd smtp-server sendmail-cmd")
_GIT = {
    "clone": _Running("config template", "uc"),
    "init": _Running("template"),
    "rebase": _Running("strategy", "xs"),
    **dict.fromkeys(("merge", "pull", "cherry-pick", "revert"), _Running("strategy", "s")),
    "grep": _Running(letters="O"),
    "difftool": _Running(letters="x"),
    "archive": _Running("remote", "o"),
    "bisect": _Running(words="run"),
    "submodule": _Running(words="foreach"),
    "filter-branch": _Running("tree-filter index-filter msg-filter env-filter commit-filter parent-filter tag-name-filter setup"),
}
_OTHERS = {
    "tar": _Running(
        "checkpoint-action to-command use-compress-program rmt-command rsh-command info-script new-volume-script", "IF", is_bundled=True
    ),
    "rsync": _Running("rsh rsync-path", "e"),
    "ssh": _Running(letters="oFS"),
    "scp": _Running(letters="oFS"),
    "zip": _Running("unzip-command", words="-TT"),
    "man": _Running("pager html", "PH"),
    "sftp": _Running(letters="oFSD"),
    "cpio": _Running("rsh-command", "F"),
    "wget": _Running("use-askpass execute", "e"),
    "sqlite3": _Running("cmd init", words="-cmd -init .shell .system .load .read .import .excel .edit .open .output .once"),
    "kubectl": _Running("kubeconfig kuberc"),
    "helm": _Running("kubeconfig post-renderer"),
    "split": _Running("filter"),
    "pandoc": _Running("filter lua-filter pdf-engine template defaults", "FLd"),
    "yt-dlp": _Running("exec exec-before-download plugin-dirs config-location downloader"),
    "svn": _Running("config-option config-dir diff-cmd diff3-cmd editor-cmd"),
    "hg": _Running("config config-file"),
    "jj": _Running("config config-file"),
    "openssl": _Running(words="engine -engine -provider -provider-path -config -fips-mode"),
    "ip": _Running(words="exec -batch -b"),
    **dict.fromkeys(
        ("latex", "pdflatex", "xelatex", "lualatex", "tex", "pdftex"),
        _Running("shell-escape enable-write18", words="-shell-escape -enable-write18"),
    ),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _Running(words="-wrapper -fplugin -fpass-plugin -specs -B -load")),
    "fzf": _Running("bind preview"),
    **dict.fromkeys(("fd", "fdfind"), _Running("exec exec-batch", "xX")),
    **dict.fromkeys(("bat", "batcat", "ag", "ack", "delta"), _Running("pager")),
}
_OF_GRANTS = {
    **dict.fromkeys(("make", "gmake"), _Running("eval file makefile directory include-dir", "fCIE", sets=True)),
    "ninja": _Running(letters="fC"),
    "just": _Running("justfile command shell shell-arg working-directory chooser set", "fcd", sets=True),
    "task": _Running("taskfile dir", "td", sets=True),
    "rake": _Running("rakefile libdir require execute execute-print execute-continue rakelibdir", "fIrepER"),
    "gradle": _Running("init-script build-file settings-file project-dir include-build gradle-user-home", "IbcpgD"),
    "mvn": _Running("file settings global-settings toolchains", "fstgD"),
    "cargo": _Running("config manifest-path", "CZ"),
    "go": _Running("exec toolexec overlay modfile vettool C", words="-exec -toolexec -overlay -modfile -vettool -C"),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun"),
        _Running("script-shell shell prefix dir cwd node-options userconfig globalconfig preload require", "C"),
    ),
    **dict.fromkeys(("uv", "poetry", "pip"), _Running("python directory project config-file with with-editable with-requirements", "pC")),
    **dict.fromkeys(("tox", "nox"), _Running("conf noxfile workdir force-dep override", "cfx")),
    "dotnet": _Running("project", words="-p"),
}
"""What "commands that begin so" does not cover, beside: other project files than those of the folder, and what sets the programs that are
run. A rule that the user wrote (`make *`) does."""
_SHORTEST = 2
"""Long options may be cut short; what has fewer letters may mean anything."""


def find_running_option(words: Sequence[str], begin: int, *, is_grant: bool = False) -> str:
    """The first such option from a place on; empty if there is none."""
    is_git = words[0] == "git"
    listed = [_GIT_ANYWHERE, _GIT.get(words[1] if len(words) > 1 else "")] if is_git else [_OTHERS.get(words[0])]
    if is_grant:
        listed.append(_OF_GRANTS.get(words[0]))
    known = [each for each in listed if each is not None]
    for at in range(begin, len(words)) if known else ():
        word = words[at]
        if word == "--":
            break
        if (is_git and word.startswith("ext::")) or any(_is_one(word, each, is_first=at == 1) for each in known):
            return word
    return ""


def _is_one(word: str, running: _Running, *, is_first: bool) -> bool:
    if running.words and not {word.partition("=")[0], *(line.split(" ", 1)[0] for line in word.split("\n"))}.isdisjoint(
        running.words.split()
    ):
        return True  # also in a line of a script, as `.shell` of sqlite3 is
    if running.sets and "=" in word and not word.startswith("-"):
        return True
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return len(name) >= _SHORTEST and any(each.startswith(name) for each in running.long.split())
    has_letters = word.startswith("-") or (is_first and running.is_bundled)
    return has_letters and not set(running.letters).isdisjoint(word)
