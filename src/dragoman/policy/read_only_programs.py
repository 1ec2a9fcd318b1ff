"""The few programs that run unasked, and with which options: those that only read, and only what they are named.

Options are listed, never excluded: one that is not here asks, whatever it does. Short options are written as getopt has it (`A:` takes a
value); of the long ones, `name=` takes a value and `name?` may. What takes the name of a file as an option's value is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from dragoman.base.text import set_of
from dragoman.policy.read_only_scripts import Found, find_awk_reads, find_sed_reads

Operands = Literal["paths", "pattern", "text", "none", "one"]
"""What the words that are no options are: files; a pattern and then files; any text; nothing; one file at most."""


class Program(msgspec.Struct, frozen=True):
    short: str = ""
    long: str = ""
    operands: Operands = "paths"
    takes_number: bool = False
    """`-3` is a count."""
    recursive: str = ""
    """Options with which it goes into folders; `*`: it always does."""
    is_builtin: bool = False
    """A part of the shell, not a file that somebody could put in its place."""
    pattern_options: str = ""
    """Options that give the pattern, so that no operand is one."""


_SUM = Program("bt", "binary text")
PROGRAMS: dict[str, Program] = {
    "ls": Program("1aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZI:w:T:", "all almost-all color? classify? directory group-directories-first "
                  "human-readable inode recursive reverse size sort= time= time-style= width= ignore= hide= full-time no-group",
                  recursive="R recursive"),
    "cat": Program("AbeEnstTuv", "number number-nonblank show-all show-ends show-tabs squeeze-blank show-nonprinting"),
    "head": Program("c:n:qvz", "bytes= lines= quiet silent verbose", takes_number=True),
    "tail": Program("c:n:qvz", "bytes= lines= quiet silent verbose", takes_number=True),
    "wc": Program("clLmw", "bytes chars lines words max-line-length"),
    "pwd": Program("LP", operands="none", is_builtin=True),
    "true": Program(operands="text", is_builtin=True),
    "false": Program(operands="text", is_builtin=True),
    ":": Program(operands="text", is_builtin=True),
    "grep": Program("A:B:C:cEe:FGHhiIlLm:noqsvwxyPbUaTr", "after-context= before-context= context= count extended-regexp fixed-strings "
                    "basic-regexp perl-regexp regexp= ignore-case no-ignore-case invert-match word-regexp line-regexp max-count= color? "
                    "colour? files-with-matches files-without-match only-matching quiet silent no-messages byte-offset with-filename "
                    "no-filename line-number initial-tab text recursive include= exclude= exclude-dir= binary-files=",
                    "pattern", takes_number=True, recursive="r recursive", pattern_options="e regexp"),
    "rg": Program("A:B:C:ce:FHiIlm:noqsSvwxg:t:T:uN.pUj:Pad:M:", "after-context= before-context= context= count count-matches regexp= "
                  "fixed-strings ignore-case smart-case case-sensitive files-with-matches files-without-match files max-count= line-number "
                  "no-line-number only-matching quiet invert-match word-regexp line-regexp glob= iglob= type= type-not= type-list hidden "
                  "no-ignore no-ignore-vcs unrestricted no-heading heading with-filename no-filename color= colors= pretty multiline "
                  "multiline-dotall pcre2 text max-depth= max-columns= max-filesize= sort= sortr= stats trim column vimgrep json "
                  "no-messages no-config glob-case-insensitive threads= passthru replace= null",
                  "pattern", recursive="*", pattern_options="e regexp files type-list"),
    "sort": Program("bdfghik:Mnrst:uVz", "numeric-sort reverse unique key= field-separator= human-numeric-sort version-sort ignore-case "
                    "general-numeric-sort month-sort ignore-leading-blanks dictionary-order stable zero-terminated"),
    "uniq": Program("cdDiuf:s:w:z", "count repeated unique ignore-case skip-fields= skip-chars= check-chars=", "one"),
    "cut": Program("b:c:d:f:nsz", "bytes= characters= delimiter= fields= complement only-delimited output-delimiter="),
    "tr": Program("cCdst", "complement delete squeeze-repeats truncate-set1", "text"),
    "nl": Program("b:d:f:h:i:l:n:ps:v:w:"),
    "tac": Program("brs:"),
    "rev": Program(),
    "fold": Program("bsw:"),
    "paste": Program("d:sz"),
    "comm": Program("123z"),
    "cmp": Program("bi:ln:s"),
    "diff": Program("abBcdeiNpqstTuU:wyZW:I:", "brief unified? context? side-by-side width= ignore-all-space ignore-space-change "
                    "ignore-blank-lines ignore-case report-identical-files new-file color? suppress-common-lines minimal text"),
    "stat": Program("c:Lt", "format= printf= terse dereference"),
    "file": Program("bihLNk0r", "brief mime mime-type mime-encoding dereference no-pad keep-going"),
    "du": Program("0abchkmsSxd:", "all apparent-size bytes total human-readable max-depth= summarize separate-dirs exclude= si",
                  recursive="*"),
    "tree": Program("adfipshDFCnL:P:I:", "dirsfirst noreport gitignore prune filelimit= sort=", recursive="*"),
    "basename": Program("as:z", "multiple suffix=", "text"),
    "dirname": Program("z", operands="text"),
    "realpath": Program("ems", "canonicalize-existing canonicalize-missing strip no-symlinks relative-to= relative-base="),
    "readlink": Program("efmn", "canonicalize"),
    "md5sum": _SUM, "sha1sum": _SUM, "sha256sum": _SUM, "sha512sum": _SUM, "cksum": Program(),
    "od": Program("A:t:N:j:cxbdov"),
    "hexdump": Program("Cbcdon:s:vx"),
    "strings": Program("an:t:e:"),
    "column": Program("ts:c:xo:"),
    "seq": Program("s:w", operands="text"),
    "sleep": Program(operands="text"),
    "whoami": Program(operands="none"),
    "id": Program("gnuGr", operands="none"),
    "uname": Program("amnprsvio", operands="none"),
    "nproc": Program("", "all", operands="none"),
    "arch": Program(operands="none"),
    "df": Program("hHkTiP", "human-readable print-type inodes portability total"),
    "free": Program("bkmghtw", "human total wide mega giga", operands="none"),
    "uptime": Program("ps", "pretty since", operands="none"),
    "which": Program("a", operands="text"),
}  # fmt: skip

_TEST = set_of("-b -c -d -e -f -g -h -k -L -p -r -s -S -u -w -x -N -O -G")
_FIND_PLAIN = set_of("-print -print0 -empty -prune -depth -ls -o -a -not -or -and -mount -xdev -daystart -true -false -readable -writable "
                        "-executable -noleaf ( ) !")  # fmt: skip
_FIND_VALUED = set_of("-name -iname -path -ipath -wholename -iwholename -type -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime "
                         "-cmin -regex -iregex -regextype -perm -user -group -links -uid -gid -printf")  # fmt: skip
_FIND_FILES = frozenset({"-newer", "-samefile"})

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
}  # fmt: skip


def find_reads(words: Sequence[str]) -> Found | None:
    """What a command reads, if it is one of ours and every option is on its list; None if it is not."""
    special = _SPECIAL.get(words[0])
    if special is not None:
        return special(words)
    program = PROGRAMS.get(words[0])
    return _scan(program, words, 1) if program is not None else None


def is_known(name: str) -> bool:
    """Whether there is a list for this program: what it may do unasked is then known exactly."""
    return name in PROGRAMS or name in _SPECIAL


def is_reading_subcommand(words: Sequence[str]) -> bool:
    """Whether it is a git command for which there is a list."""
    return len(words) > 1 and words[0] == "git" and words[1] in _GIT


def is_builtin(name: str) -> bool:
    return name in ("cd", "echo", "test", "printf", "command", "type") or (name in PROGRAMS and PROGRAMS[name].is_builtin)


def _scan(program: Program, words: Sequence[str], begin: int) -> Found | None:
    """Tell options from operands. Options may stand anywhere before `--`, as GNU's getopt has it."""
    if program.operands == "text" and not program.short and not program.long:
        return Found()
    operands: list[int] = []
    given: set[str] = set()
    at, has_ended = begin, False
    while at < len(words):
        word = words[at]
        if has_ended or word == "-" or not word.startswith("-"):
            operands.append(at)
        elif word == "--":
            has_ended = True
        elif program.takes_number and re.fullmatch(r"-\d+", word):
            pass
        else:
            names, takes_next = _long(program, word) if word.startswith("--") else _short(program, word)
            if not names:
                return None
            given.update(names)
            at += takes_next
        at += 1
    return _found(program, operands, given)


def _found(program: Program, operands: list[int], given: set[str]) -> Found | None:
    goes_deep = program.recursive == "*" or not given.isdisjoint(program.recursive.split())
    match program.operands:
        case "none":
            return None if operands else Found()
        case "text":
            return Found()
        case "one" if len(operands) > 1:
            return None
        case "pattern" if given.isdisjoint(program.pattern_options.split()):
            operands = operands[1:]
        case _:
            pass
    return Found(tuple(operands), goes_deep)


def _short(program: Program, word: str) -> tuple[list[str], int]:
    """The letters of `-abc5`, and whether the next word is the value of the last; no letters if one is not known."""
    names: list[str] = []
    letters = word[1:]
    for position, letter in enumerate(letters):
        place = program.short.find(letter)
        if place < 0 or letter in ": ":
            return [], 0
        names.append(letter)
        if program.short[place + 1 : place + 3] == "::":
            return names, 0  # its value, if any, is the rest of the word
        if program.short[place + 1 : place + 2] == ":":
            return names, 0 if position < len(letters) - 1 else 1
    return names, 0


def _long(program: Program, word: str) -> tuple[list[str], int]:
    name, equals, _ = word[2:].partition("=")
    known = program.long.split()
    if f"{name}=" in known:
        return [name], 0 if equals else 1
    if f"{name}?" in known or (name in known and not equals):
        return [name], 0
    return [], 0


# --- programs with a grammar of their own


def _find(words: Sequence[str]) -> Found | None:
    at, paths = 1, list[int]()
    while at < len(words) and not words[at].startswith(("-", "(", "!")):
        paths.append(at)
        at += 1
    while at < len(words):
        word = words[at]
        if word in _FIND_PLAIN:
            at += 1
        elif word in _FIND_VALUED and at + 1 < len(words):
            at += 2
        elif word in _FIND_FILES and at + 1 < len(words):
            paths.append(at + 1)
            at += 2
        else:
            return None
    return Found(tuple(paths), goes_deep=True)


def _test(words: Sequence[str]) -> Found | None:
    """One question about one file. `-v` and comparisons evaluate what they are given."""
    return Found((2,)) if len(words) == 3 and words[1] in _TEST else None


def _date(words: Sequence[str]) -> Found | None:
    rest = [word for word in words[1:] if word not in ("-u", "--utc", "-R", "-I", "--iso-8601")]
    return Found() if not rest or (len(rest) == 1 and rest[0].startswith("+")) else None


def _echo(words: Sequence[str]) -> Found | None:
    """Any text. A file pattern among it shows which files there are."""
    return Found(tuple(range(1, len(words))))


def _printf(words: Sequence[str]) -> Found | None:
    """Text and numbers. `-v` and %n set a variable, and what names the variable is evaluated."""
    if len(words) < 2 or words[1].startswith("-") or re.search(r"%(?![sd%])", words[1].replace("%%", "")):
        return None
    return Found()


def _command(words: Sequence[str]) -> Found | None:
    """Where programs are found. Without -v, `command` runs what it names."""
    names = words[2:] if words[1:2] == ["-v"] else words[1:] if words[0] == "type" else ()
    return Found() if names and not any(name.startswith("-") for name in names) else None


def _git(words: Sequence[str]) -> Found | None:
    at = 2 if words[1:2] == ["--no-pager"] else 1
    if len(words) <= at or words[at] not in _GIT:
        return None
    found = _scan(_GIT[words[at]], words, at + 1)
    return None if found is None else msgspec.structs.replace(found, is_git=True)


_SPECIAL: dict[str, Callable[[Sequence[str]], Found | None]] = {
    "find": _find,
    "sed": find_sed_reads,
    "awk": find_awk_reads,
    "command": _command,
    "type": _command,
    "test": _test,
    "date": _date,
    "echo": _echo,
    "printf": _printf,
    "git": _git,
}
