"""How the pages read, in figures: `python -m checks.prose [PAGE …]` prints a row for each page and what is against the rules.

Prose is what stands outside code, tables and headings: a table's row cannot be broken, and code has a width of its own.
Three Chinese characters count as two words, about as the program's own sentences compare in the two languages (1.54 to one).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 1500
MOST_CHARACTERS = 110
LONG_ON_PURPOSE = {
    "docs/reference": "looked things up in, never read from the top",
    "docs/inside/decisions": "as they were decided",
    "CHANGELOG.md": "every release",
}
"""Where a page may have more words, and why. Lines are short everywhere."""

CHINESE = r"\u4e00-\u9fff"
CHINESE_MARKS = r"\u3000-\u303f\uff00-\uffef\u201c\u201d"
"""Characters, and the marks between them, which are no words."""


@dataclass
class Counts:
    """The figures of one page."""

    lines: int
    words: int
    longest: int
    over: int
    """Lines of prose with more than MOST_CHARACTERS."""
    semicolons: int


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def prose(text: str) -> list[str]:
    """The lines of prose."""
    found: list[str] = []
    fence = ""
    is_comment = False
    for line in text.splitlines():
        bare = line.strip()
        if fence or (opened := re.match(r"`{3,}|~{3,}", bare)):
            fence = (opened.group() if not fence and opened else fence) if not (fence and bare == fence) else ""
            continue
        if is_comment or bare.startswith("<!--"):
            is_comment = "-->" not in bare
            continue
        if not bare or bare.startswith(("|", "#", "![", "<")) or line.startswith("    "):
            continue
        found.append(line)
    return found


def count(text: str) -> Counts:
    lines = prose(text)
    words = sum(len(re.findall(rf"[^\s{CHINESE}{CHINESE_MARKS}]+", line)) for line in lines)
    words += sum(len(re.findall(rf"[{CHINESE}]", line)) for line in lines) * 2 // 3
    semicolons = sum(line.count(";") + line.count("；") for line in lines)
    return Counts(
        len(text.splitlines()),
        words,
        max(map(len, lines), default=0),
        sum(len(line) > MOST_CHARACTERS for line in lines),
        semicolons,
    )


def faults(page: Path) -> list[str]:
    name = page.relative_to(ROOT).as_posix()
    counted = count(page.read_text(encoding="utf-8"))
    found = [f"{name}: {counted.over} lines of prose over {MOST_CHARACTERS} characters"] if counted.over else []
    if counted.words > MOST_WORDS and not name.startswith(tuple(LONG_ON_PURPOSE)):
        found.append(f"{name}: {counted.words} words of prose, at most {MOST_WORDS}")
    return found


def main() -> int:
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    print(f"{'lines':>6} {'words':>6} {'longest':>7} {'over':>5} {'; per 1,000':>11}")
    total = Counts(0, 0, 0, 0, 0)
    wrong: list[str] = []
    for page in chosen:
        each = count(page.read_text(encoding="utf-8"))
        _print_row(each, page.relative_to(ROOT).as_posix())
        total = Counts(
            total.lines + each.lines,
            total.words + each.words,
            max(total.longest, each.longest),
            total.over + each.over,
            total.semicolons + each.semicolons,
        )
        wrong += faults(page)
    _print_row(total, f"{len(chosen)} pages")
    print("\n".join(wrong))
    return 1 if wrong else 0


def _print_row(counted: Counts, name: str) -> None:
    rate = 1000 * counted.semicolons / counted.words if counted.words else 0
    print(f"{counted.lines:>6} {counted.words:>6} {counted.longest:>7} {counted.over:>5} {rate:>11.1f}  {name}")


if __name__ == "__main__":
    raise SystemExit(main())
