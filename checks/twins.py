"""Chinese pages (`NAME.zh-CN.md`) beside their English twins: what has to be the same in both.

`python -m checks.twins` leads the links of all Chinese pages to Chinese ones where there are any, and prints what differs.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENDING = ".zh-CN.md"
IN_CHINESE = ("docs/start", "docs/use", "docs/configure")
"""Folders of which every page has a Chinese twin."""
CHINESE = r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef“”‘’]"
OUTPUT = ("", "text", "console")
"""Languages of fenced blocks in which the program speaks, after commands that begin with `$ `."""
_FENCED = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)^(?P=indent)(?P=fence)$", re.M | re.S)
_INDENTED = re.compile(r"(?<=\n)\n(?: {4}\S.*\n)+")
_LINK = re.compile(r"\]\((?!\w+:)(?P<path>[^()\s#]*)#?(?P<anchor>[^()\s]*)\)")


def chinese_of(page: Path) -> Path:
    return page.with_name(f"{page.stem}{ENDING}")


def english_of(page: Path) -> Path:
    return page.with_name(f"{page.name.removesuffix(ENDING)}.md")


def chinese_pages() -> list[Path]:
    return sorted((ROOT / "docs").rglob(f"*{ENDING}"))


def faults(english: str, chinese: str) -> list[str]:
    """In what a Chinese page differs from the English one, other than by its language."""
    compared = (_in_headings, _in_lists, _in_figures, _in_blocks, _in_code)
    return [fault for each in compared for fault in each(english, chinese)]


# --- headings


def headings(page: str) -> list[tuple[int, str]]:
    """The level and the words of each."""
    return [(len(match[1]), match[2]) for match in re.finditer(r"^(#+) (.+?)$", _without_blocks(page), re.M)]


def anchor(heading: str) -> str:
    """As GitHub and the site make it."""
    return re.sub(r"[^\w\s-]", "", heading).lower().strip().replace(" ", "-")


def _in_headings(english: str, chinese: str) -> Iterator[str]:
    there, here = headings(english), headings(chinese)
    for one, other in zip(there, here, strict=False):
        if one[0] != other[0]:
            yield f"heading {other[1]!r} is of level {other[0]}, {one[1]!r} of level {one[0]}"
            return
    if len(there) != len(here):
        further = [words for _, words in there[len(here) :] or here[len(there) :]]
        yield f"{len(here)} headings in place of {len(there)}: {further}"


# --- tables and lists


def rows(page: str) -> list[int]:
    """How many rows of tables and items of lists each section has, the part before the first heading included."""
    sections = re.split(r"^#+ .+$", _without_blocks(page), flags=re.M)
    return [len(re.findall(r"^(?:\||\s*(?:[-*]|\d+\.) )", each, re.M)) for each in sections]


def _in_lists(english: str, chinese: str) -> Iterator[str]:
    there, here = rows(english), rows(chinese)
    if len(there) != len(here):
        return  # the headings differ, which is said already
    for one, other, (_, title) in zip(there, here, [(0, "the beginning"), *headings(chinese)], strict=True):
        if one != other:
            yield f"{other} rows and items in place of {one}: {title}"


def figures(page: str) -> Counter[str]:
    """The numbers in sentences and tables, each as often as it is there. A billion is ten 亿."""
    text = re.sub(r"(`+).+?\1(?!`)|\]\([^)]*\)", " ", _without_blocks(page))
    text = re.sub(r"(\d+(?:\.\d+)?)(?= (?:or [\d.]+ )?billion)", lambda match: f"{float(match[1]) * 10:g}", text)
    return Counter(re.findall(r"(?<![\w.])\d[\d.,]*(?<![.,])", text))


def _in_figures(english: str, chinese: str) -> Iterator[str]:
    if missing := sorted((figures(english) - figures(chinese)).elements()):
        yield f"figures that are not in Chinese: {missing}"


# --- code blocks


@dataclass(frozen=True)
class Block:
    """A fenced or an indented block; the language of the latter is `indented`."""

    language: str
    code: str


def blocks(page: str) -> list[Block]:
    found = [(match.start(), Block(match["language"], match["code"])) for match in _FENCED.finditer(page)]
    rest = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), page)
    lines = [match[0] for match in _INDENTED.finditer(rest)]
    return [block for _, block in found] + [Block("indented", each.lstrip("\n")) for each in lines]


def _without_blocks(page: str) -> str:
    return _FENCED.sub("", page)


def _in_blocks(english: str, chinese: str) -> Iterator[str]:
    there, here = blocks(english), blocks(chinese)
    if [each.language for each in there] != [each.language for each in here]:
        yield f"code blocks {[each.language for each in here]} in place of {[each.language for each in there]}"
        return
    for one, other in zip(there, here, strict=True):
        first, second = one.code.splitlines(), other.code.splitlines()
        if len(first) != len(second):
            yield f"a block of {len(second)} lines in place of {len(first)}: {first[0]!r}"
        elif one.language not in OUTPUT:
            yield from (f"{b.strip()!r} in place of {a.strip()!r}" for a, b in zip(first, second, strict=True) if not is_translated(a, b))
        else:
            yield from _in_output(first, second)


def is_translated(english: str, chinese: str) -> bool:
    """Whether a line of code is the same outside of its Chinese: comments, quoted text, and words of a prompt.

    A line without Chinese must be the same in every character.
    """
    if not re.search(CHINESE, chinese):
        return english == chinese
    return bool(re.fullmatch(_as_pattern(chinese), english)) and code_words(english) == code_words(chinese)


def code_words(text: str) -> list[str]:
    """Flags, slash commands, files named with @, and numbers, in any order."""
    return sorted(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*|(?<![\w.])[/@][A-Za-z][\w./:-]*|\d[\d.,:%-]*(?<![.,:-])", text))


def _as_pattern(chinese: str) -> str:
    """What the English line must match: any words where there are Chinese ones, but no quote, pipe or beginning of a comment."""
    comment = re.search(r"(?:^|\s)(?:#|//|;|--) .*", chinese)
    code = chinese[: comment.start()] if comment and re.search(CHINESE, comment[0]) else chinese
    quoted = rf"(?<=\")[^\"]*{CHINESE}[^\"]*(?=\")"
    words = rf"\s*{CHINESE}(?:[^\"'`#@<>|]*{CHINESE})?\s*"
    pattern = r"[^\"`#<>|]+?".join(re.escape(each) for each in re.split(f"{quoted}|{words}", code))
    return pattern + (r"\s+(?:#|//|;|--) .*" if code != chinese else "")


def _in_output(english: list[str], chinese: list[str]) -> Iterator[str]:
    """What the program prints is in its own language, so that only commands and figures are compared."""
    commands = [[line for line in lines if line.startswith("$ ")] for lines in (english, chinese)]
    if len(commands[0]) != len(commands[1]) or not all(map(is_translated, *commands)):
        yield f"commands {commands[1]} in place of {commands[0]}"
    figures = [sorted(re.findall(r"\d[\d.,%]*(?<![.,])", "\n".join(lines))) for lines in (english, chinese)]
    if figures[0] != figures[1]:
        apart = sorted({*figures[0]} ^ {*figures[1]}) or "each another number of times"
        yield f"figures of a block differ: {apart}, from {english[0]!r} on"


# --- code in sentences and tables


def commands(page: str) -> set[str]:
    """Calls of the program, flags and slash commands within sentences."""
    spans = (match[2].strip() for match in re.finditer(r"(`+)(.+?)\1(?!`)", _without_blocks(page)))
    return {each for each in spans if re.match(r"dragoman(?: |$)|--?[a-z]|/[a-z]", each)}


def _in_code(english: str, chinese: str) -> Iterator[str]:
    there, here = commands(english), commands(chinese)
    translated = {(one, other) for other in here - there for one in there - here if is_translated(one, other)}
    if missing := sorted(there - here - {one for one, _ in translated}):
        yield f"not in Chinese: {missing}"
    if further := sorted(here - there - {other for _, other in translated}):
        yield f"not in English: {further}"


# --- links


def with_links(page: Path) -> str:
    """The text of a Chinese page, its links to pages that have a Chinese twin leading there, to the heading in the same place."""

    def changed(match: re.Match[str]) -> str:
        path, place = match["path"], match["anchor"]
        target = Path(os.path.normpath(page.parent / path)) if path else page
        if target.name.endswith(ENDING):
            twin = target
        elif target.suffix == ".md" and target != english_of(page) and chinese_of(target).is_file():
            twin = chinese_of(target)
            path = path.removesuffix(".md") + ENDING
        else:
            return match[0]
        return f"]({path}{'#' if place else ''}{anchor_in(twin, place)})"

    text = page.read_text(encoding="utf-8")
    fences = [(match.start(), match.end()) for match in _FENCED.finditer(text)]
    return _LINK.sub(lambda match: match[0] if any(a <= match.start() < b for a, b in fences) else changed(match), text)


def anchor_in(twin: Path, place: str) -> str:
    """An anchor of the English page becomes that of the heading in its place; another stays as it is."""
    english, chinese = ([anchor(words) for _, words in headings(each.read_text(encoding="utf-8"))] for each in (english_of(twin), twin))
    if place in chinese or place not in english or len(english) != len(chinese):
        return place
    return chinese[english.index(place)]


def main() -> int:
    found = []
    for page in chinese_pages():
        text = with_links(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"links: {page.relative_to(ROOT)}")
        found += [f"{page.relative_to(ROOT)}: {fault}" for fault in faults(english_of(page).read_text(encoding="utf-8"), text)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
