"""Parts of pages that are made of the source: between two marks, written by a script and compared by tests/test_made_pages.py.

`make docs` (`python -m checks.marked`) writes all of them anew; `python -m checks.marked commands events` those with these marks.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import EnumType
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
SCRIPTS = ("api", "command_line", "commands", "entries", "errors", "events", "four_modes", "services")
"""The modules of this folder that make parts, each with its PARTS."""


@dataclass(frozen=True)
class Part:
    """A part of a page: what stands between `<!-- MARK -->` and `<!-- end of MARK -->`."""

    page: Path
    mark: str
    make: Callable[[], str]

    def filled(self, text: str) -> str:
        """The page's text with this part made anew."""
        begin, end = f"<!-- {self.mark} -->", f"<!-- end of {self.mark} -->"
        head, rest = text.split(begin)
        return f"{head}{begin}\n\n{self.make()}\n\n{end}{rest.split(end)[1]}"

    def write(self) -> None:
        self.page.write_text(self.filled(self.page.read_text(encoding="utf-8")), encoding="utf-8")


def parts() -> list[Part]:
    return [part for name in SCRIPTS for part in importlib.import_module(f"checks.{name}").PARTS]


# --- what several of the scripts need


@dataclass(frozen=True)
class Field:
    """A field of a Struct, as its source has it."""

    name: str
    type: str
    about: str
    default: str
    """As source text; empty where the field is required."""


def fields_of(kind: Any) -> list[Field]:
    """The fields that a Struct declares itself, in order, with what stands below each in the source."""
    [declared] = ast.parse(inspect.getsource(kind)).body
    assert isinstance(declared, ast.ClassDef)
    found: list[Field] = []
    for before, after in zip(declared.body, [*declared.body[1:], ast.Pass()], strict=True):
        if (
            not isinstance(before, ast.AnnAssign)
            or not isinstance(before.target, ast.Name)
            or before.target.id not in kind.__struct_fields__
        ):
            continue
        match after:
            case ast.Expr(value=ast.Constant(value=str(text))):
                about = one_line(text)
            case _:
                about = ""
        found.append(Field(before.target.id, ast.unparse(before.annotation), about, ast.unparse(before.value) if before.value else ""))
    return found


def fields_table(kind: type[msgspec.Struct], *, left_out: tuple[str, ...] = ()) -> str:
    """Empty where a Struct has no fields of its own."""
    rows = [
        (f"`{each.name}`", either(each.type), f"`{each.default}`" if each.default else "required", each.about)
        for each in fields_of(kind)
        if each.name not in left_out
    ]
    return table(("field", "type", "default", ""), rows) if rows else ""


def either(type: str) -> str:
    """A type as code: of a union each member by itself, because renderers do not agree on a bar inside a table."""
    return " or ".join(f"`{each}`" for each in type.split(" | "))


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    assert not [cell for row in rows for cell in row if "|" in cell], "a bar ends a cell"
    lines = ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def words_table(**kinds: Any) -> str:
    """What fields of these types may hold."""
    rows = [(f"`{name}`", " ".join(f"`{each or repr(each)}`" for each in _words_of(kind))) for name, kind in kinds.items()]
    return table(("type", "one of"), rows)


def _words_of(kind: Any) -> list[str]:
    """Of a Literal, or of an enumeration of texts."""
    return [each.value for each in kind] if isinstance(kind, EnumType) else list(typing.get_args(kind))


def docstring(kind: Any) -> str:
    """The whole of it, a sentence a line."""
    return "\n".join(sentences(one_line(inspect.getdoc(kind) or "")))


def sentences(text: str) -> list[str]:
    """A sentence a line; a long one is broken where the line would get too long."""
    found: list[str] = []
    rest = text.replace("e.g. ", "e.g.\0")
    for sentence in _split(rest):
        words, line = sentence.replace("\0", " ").split(" "), ""
        for word in words:
            if line and len(line) + 1 + len(word) > 108:
                found.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        found.append(line)
    return [each for each in found if each]


def _split(text: str) -> list[str]:
    found, start = [], 0
    for place, sign in enumerate(text[:-2]):
        if sign in ".?!" and text[place + 1] == " " and (text[place + 2].isupper() or text[place + 2] in "`*["):
            found.append(text[start : place + 1])
            start = place + 2
    return [*found, text[start:]]


def one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    for part in parts():
        if not sys.argv[1:] or part.mark in sys.argv[1:]:
            part.write()
            print(f"{part.page.relative_to(ROOT)}: {part.mark}")


if __name__ == "__main__":
    main()
