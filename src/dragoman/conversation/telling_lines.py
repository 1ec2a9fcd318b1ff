"""Chooses the few lines of a failed command's output that tell what went wrong: its verdict, what failed by name, and error messages.

Every line that is chosen stands in the output, in the same order. Nothing is worded anew.
"""

from __future__ import annotations

import re

MOST_LINES = 5
_READ_LINES = 2_000
"""Of a longer output, its end is looked at."""
_READ_CHARS = 400
"""So much of a line decides what it is."""
_VERDICTS = 2

_NOISE = re.compile(
    r"\W*$"  # rules, carets and the like
    r"|\s*(?:at|from) \S.*(?::\d+|\))$|\s*\d+: [\w<].*::"  # frames of JavaScript, Ruby and Rust
    r"|\s*(?:\d+\s*)?\|(?:\s|$)|\s*\d+ \|"  # source with line numbers
    r"|npm (?:warn|verb|notice)|npm (?:ERR!|error)(?: (?:\d+|[a-z]+))?$|npm (?:ERR!|error) A complete log"
    r"|npm (?:ERR!|error) (?:syscall|errno) \S+$|npm (?:ERR!|error) \w+ This is related to npm"
    r"|> \S+@\S+ \w|Node\.js v\d|Traceback \(most|The above exception|During handling of|stack backtrace:"
    r"|For more information about this error|\s*(?:= )?(?:note|help): |WARNING: |\[\*\] \d+ fixable|exit status \d+$"
    r"|=+ (?:[a-z ]*test session starts|ERRORS|FAILURES|short test summary info|warnings summary) =+$|_+ .* _+$",
)
_VERDICT = re.compile(
    r"=* ?\d+ (?:failed|errors?)\b.* in [\d.:s() ]+=*$|=+ .*\b(?:failed|errors?)\b.* in [\d.]+s.*=+$"
    r"|test result: FAILED|error: (?:could not compile|test failed|aborting due)|make(?:\[\d+\])?: \*\*\*|ninja: build stopped"
    r"|Found \d+ errors?|\W*\d+ (?:errors?|problems?|failing|failed)\b|Tests?:? +.*\d+ failed|# fail [1-9]|FAIL\t|BUILD FAILED"
    r"|FAILED \((?:failures|errors)|npm (?:ERR!|error) code |Summary .*\bfailed",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?:FAILED|ERROR) \S+|--- FAIL: |test \S+ \.\.\. FAILED|not ok \d+|[✕✗✘×] |FAIL:? +\S|\s*\d+\) \S+.*(?:test|Test)")
_ERROR = re.compile(
    r"(?:.{0,200}?[:\s(\]-])?(?:fatal )?error(?:\[\w+\]| TS\d+)?: |(?:.{0,100} )?fatal: |E {1,7}\S"
    r"|(?:Uncaught )?[\w.]{0,100}(?:Error|Exception|Failure)(?:: |\b.{0,20}$)|npm (?:ERR!|error) |panic: |.*panicked at |assertion .*failed"
    r"|.*(?:undefined reference|command not found|No such file or directory|[Pp]ermission denied|CONFLICT \(|[Cc]annot find |not found: )"
    r"|Caused by:|[A-Z]{1,4}\d{3,4} \S|.{0,200}: (?:cannot|can't|could not|unable to) ",
    re.IGNORECASE,
)
_FRAME = re.compile(r'\s*File "')
_VENDORED = re.compile(r"/(?:site-packages|lib/python[\d.]+|node_modules)/")


def last_telling(output: str) -> str:
    """Of a command that has not failed: its last line that is not a warning in passing or a rule; else its last. Without the blanks."""
    lines = [line.strip() for line in output.split("\n")[-_READ_LINES:] if line.strip()]
    telling = (line for line in reversed(lines) if not _NOISE.match(line[:_READ_CHARS]))
    return next(telling, lines[-1] if lines else "")


def choose_telling(output: str, most: int = MOST_LINES) -> list[str]:
    """At most so many lines, without the blanks around them."""
    lines = [line for line in output.split("\n")[-_READ_LINES:] if line.strip()]
    if len(lines) > most:
        kinds = [_kind_of(line[:_READ_CHARS].rstrip()) for line in lines]
        lines = [lines[number] for number in sorted(_choose(lines, kinds, most))]
    return [line.strip() for line in lines]


def _choose(lines: list[str], kinds: list[str], most: int) -> set[int]:
    chosen: dict[int, None] = {}

    def take(numbers: list[int], count: int | None = None) -> None:
        room = most - len(chosen)
        free = [number for number in numbers if number not in chosen]
        chosen.update(dict.fromkeys(free[: room if count is None else min(room, count)]))

    by_kind = {kind: [number for number, each in enumerate(kinds) if each == kind] for kind in ("verdict", "named", "error", "plain")}
    take(by_kind["verdict"][::-1], _VERDICTS)
    take(by_kind["error"][-1:] if not by_kind["named"] else [])
    take(by_kind["plain"][-1:] if by_kind["plain"][-1:] > by_kind["error"][-1:] and not by_kind["verdict"] else [])
    take(by_kind["named"])
    take(by_kind["error"])
    if chosen:
        take(_beside(lines, kinds, sorted(chosen)))
    else:
        take(by_kind["plain"][::-1])
    if not chosen:  # nothing but frames and rules: then its end
        take(list(range(len(lines)))[::-1])
    return set(chosen)


def _beside(lines: list[str], kinds: list[str], chosen: list[int]) -> list[int]:
    """What belongs to an error: the line in the user's own code before it, and what follows it."""
    found: list[int] = []
    for number in chosen:
        if kinds[number] not in ("error", "named"):
            continue
        before = [each for each in range(max(0, number - 12), number) if _FRAME.match(lines[each])]
        own = [each for each in before if not _VENDORED.search(lines[each])]
        found += (own or before)[-1:]
        found += [each for each in (number + 1, number + 2, number + 3) if each < len(lines) and kinds[each] == "plain"]
    return found


def _kind_of(line: str) -> str:
    if _VERDICT.match(line):
        return "verdict"
    if _NOISE.match(line):
        return "noise"
    if _NAMED.match(line):
        return "named"
    return "error" if _ERROR.match(line) else "frame" if _FRAME.match(line) else "plain"
