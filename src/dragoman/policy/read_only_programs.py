"""The few programs that run unasked, and with which options: those that only read, and only what they are named.

Options are listed, never excluded: one that is not here asks, whatever it does. What takes the name of a file as an option's value is left
out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dragoman.base.text import set_of
from dragoman.policy.read_only_git import find_git_reads
from dragoman.policy.read_only_options import Program, scan_options
from dragoman.policy.read_only_scripts import Found, find_awk_reads, find_sed_reads

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
    "exit": Program(operands="text", is_builtin=True),
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
    "md5sum": _SUM, "sha1sum": _SUM, "sha224sum": _SUM, "sha256sum": _SUM, "sha384sum": _SUM, "sha512sum": _SUM, "b2sum": _SUM,
    "cksum": Program(),
    "base64": Program("diw:", "decode ignore-garbage wrap="),
    "join": Program("1:2:a:e:ij:o:t:v:z"),
    "od": Program("A:t:N:j:cxbdov"),
    "hexdump": Program("Cbcdon:s:vx"),
    "column": Program("ts:c:xo:"),
    "seq": Program("s:w", operands="text"),
    "sleep": Program(operands="text"),
    "whoami": Program(operands="none"),
    "id": Program("gnuGr", operands="none"),
    "uname": Program("amnprsvio", operands="none"),
    "nproc": Program("", "all", operands="none"),
    "arch": Program(operands="none"),
    "hostname": Program("s", operands="none"),
    "tty": Program("s", operands="none"),
    "df": Program("hHkTiP", "human-readable print-type inodes portability total"),
    "free": Program("bkmghtw", "human total wide mega giga", operands="none"),
    "uptime": Program("ps", "pretty since", operands="none"),
    "which": Program("a", operands="text"),
}  # fmt: skip

PROGRAMS |= dict.fromkeys(("egrep", "fgrep"), PROGRAMS["grep"])
_EXECUTED = frozenset(name for name, program in PROGRAMS.items() if program.operands in ("paths", "pattern") and name != "diff")
"""What find may start with the files it has found: each takes any number of files, and all for reading. Not diff, which looks for a file of
the same name in a folder, and follows it if it is a link."""
_TEST = set_of("-b -c -d -e -f -g -h -k -L -p -r -s -S -u -w -x -N -O -G")
_FIND_PLAIN = set_of("-print -print0 -quit -empty -prune -depth -ls -o -a -not -or -and -mount -xdev -daystart -true -false -readable "
                        "-writable -executable -noleaf ( ) !")  # fmt: skip
_FIND_VALUED = set_of("-name -iname -path -ipath -wholename -iwholename -type -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime "
                         "-cmin -regex -iregex -regextype -perm -user -group -links -uid -gid -printf")  # fmt: skip
_FIND_FILES = frozenset({"-newer", "-samefile"})


def find_reads(words: Sequence[str]) -> Found | None:
    """What a command reads, if it is one of ours and every option is on its list; None if it is not."""
    special = _SPECIAL.get(words[0])
    if special is not None:
        return special(words)
    program = PROGRAMS.get(words[0])
    return scan_options(program, words, 1) if program is not None else None


def is_known(name: str) -> bool:
    """Whether there is a list for this program: what it may do unasked is then known exactly."""
    return name in PROGRAMS or name in _SPECIAL


def is_builtin(name: str) -> bool:
    return name in ("cd", "echo", "test", "[", "printf", "command", "type") or (name in PROGRAMS and PROGRAMS[name].is_builtin)


# --- programs with a grammar of their own


def _find(words: Sequence[str]) -> Found | None:
    at, paths = 1, list[int]()
    runs: list[str] = []
    while at < len(words) and not words[at].startswith(("-", "(", "!")):
        paths.append(at)
        at += 1
    first = at
    while at < len(words):
        word = words[at]
        if word in _FIND_PLAIN:
            at += 1
        elif word in _FIND_VALUED and at + 1 < len(words):
            at += 2
        elif word in _FIND_FILES and at + 1 < len(words):
            paths.append(at + 1)
            at += 2
        elif word == "-exec" and _finds_only_files(words[first:at]):
            end = next((place for place in range(at, len(words)) if _ends_execution(words, place)), 0)
            found = _executed(words[at + 1 : end])
            if found is None:
                return None
            paths += [at + 1 + place for place in found.paths if words[at + 1 + place] != "{}"]
            runs.append(words[at + 1])
            at = end + 1
        else:
            return None
    return Found(tuple(paths), goes_deep=True, runs=tuple(runs))


def _ends_execution(words: Sequence[str], at: int) -> bool:
    return words[at] == ";" or (words[at] == "+" and words[at - 1] == "{}")


def _finds_only_files(conditions: Sequence[str]) -> bool:
    """Whether what comes next is done for regular files alone: a link that was found would be followed, out of the workspace."""
    if not {"-o", "-or", "(", ")"}.isdisjoint(conditions):
        return False
    places = [at for at, word in enumerate(conditions) if word == "-type" and "f" in conditions[at + 1 : at + 2]]
    return any(at == 0 or conditions[at - 1] not in ("!", "-not") for at in places)


def _executed(words: Sequence[str]) -> Found | None:
    """What find starts for the files that stand in the place of `{}`: a program that reads them."""
    if not words or words[0] not in _EXECUTED:
        return None
    found = scan_options(PROGRAMS[words[0]], words, 1)
    if found is None or found.goes_deep or "{}" not in words:
        return None
    return found if all(at in found.paths and word == "{}" for at, word in enumerate(words) if "{}" in word) else None


def _test(words: Sequence[str]) -> Found | None:
    """One question about one file. `-v` and comparisons evaluate what they are given."""
    if words[0] == "[":
        words = words[:-1] if words[-1] == "]" else ()
    return Found((2,)) if len(words) == 3 and words[1] in _TEST else None


def _date(words: Sequence[str]) -> Found | None:
    rest = [word for word in words[1:] if word not in ("-u", "--utc", "-R", "-I", "--iso-8601")]
    return Found() if not rest or (len(rest) == 1 and rest[0].startswith("+")) else None


def _echo(words: Sequence[str]) -> Found | None:
    """Any text. A file pattern among it shows which files there are."""
    return Found(tuple(range(1, len(words))))


def _printf(words: Sequence[str]) -> Found | None:
    """Text and numbers. `-v` and %n set a variable, and what names the variable is evaluated; other shells than bash evaluate numbers."""
    if len(words) < 2 or words[1].startswith("-") or re.search(r"%(?![sd%])", words[1].replace("%%", "")):
        return None
    if "%d" in words[1] and any("[" in word for word in words[2:]):
        return None
    return Found()


def _command(words: Sequence[str]) -> Found | None:
    """Where programs are found. Without -v, `command` runs what it names."""
    names = words[2:] if words[1:2] == ["-v"] else words[1:] if words[0] == "type" else ()
    return Found() if names and not any(name.startswith("-") for name in names) else None


_STRINGS = Program("an:t:e:")


def _strings(words: Sequence[str]) -> Found | None:
    """`@name` stands for the arguments that are written in that file."""
    return None if any(word.startswith("@") for word in words) else scan_options(_STRINGS, words, 1)


_SPECIAL: dict[str, Callable[[Sequence[str]], Found | None]] = {
    "find": _find,
    "sed": find_sed_reads,
    "awk": find_awk_reads,
    "command": _command,
    "type": _command,
    "test": _test,
    "[": _test,
    "date": _date,
    "echo": _echo,
    "printf": _printf,
    "strings": _strings,
    "git": find_git_reads,
}
