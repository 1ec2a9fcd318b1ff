"""Parsing docstrings: what a function does, and what each parameter means, in the styles of Google, NumPy, Sphinx and Epytext."""

from __future__ import annotations

import re

_GOOGLE = re.compile(r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*\Z")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:(?:\s+(.*)|\s*)\Z")
_NUMPY_PARAMETERS = {"Parameters", "Other Parameters", "Keyword Arguments", "Keyword Args"}
_NUMPY_OTHERS = {
    "Returns", "Yields", "Receives", "Raises", "Warns", "Warnings", "See Also", "Notes", "References", "Examples", "Example",
    "Attributes", "Methods",
}  # fmt: skip
_UNDERLINE = re.compile(r"(?:-{3,}|={3,})\s*\Z")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?\Z")
_FIELD = re.compile(r"[:@](\w+)(?:\s+([^:]*?))?\s*:(?:\s+(.*)|\s*)\Z")
"""Sphinx: `:param int count: how many`. The name is the last word before the colon."""
_FIELD_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword", "kwarg"}
_FIELD_WORDS = {"return": "Returns", "returns": "Returns", "yield": "Yields", "yields": "Yields"}
_FIELD_RAISES = {"raise", "raises", "except", "exception"}
_FIELD_TYPES = {"type", "rtype", "vartype", "kwtype", "meta"}
"""The signature says it."""


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and what is said of each parameter. Expects cleaned indentation (`inspect.getdoc`)."""
    kept: list[str] = []
    described: dict[str, str] = {}
    lines = text.splitlines()
    position = 0
    while position < len(lines):
        line = lines[position]
        if _GOOGLE.match(line):
            end = _end_of_indented(lines, position + 1)
            described.update(_google_entries(lines[position + 1 : end]))
        elif heading := _numpy_heading(lines, position):
            if heading in _NUMPY_PARAMETERS:
                end = _end_of_numpy_entries(lines, position + 2)
                described.update(_numpy_entries(lines[position + 2 : end]))
            else:
                end = next((at for at in range(position + 2, len(lines)) if _numpy_heading(lines, at)), len(lines))
                kept += [f"{heading}:", *map(str.rstrip, lines[position + 2 : end])]
        elif field := _field(line):
            end = _end_of_field(lines, position + 1)
            _read_field(field, lines[position + 1 : end], kept, described)
        else:
            kept.append(line.rstrip())
            end = position + 1
        position = end
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), described


# --- Google: a heading with a colon, entries indented under it


def _end_of_indented(lines: list[str], start: int) -> int:
    """The first line that is not indented."""
    return next((at for at in range(start, len(lines)) if lines[at].strip() and not lines[at][0].isspace()), len(lines))


def _google_entries(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name, depth = "", -1
    for line in lines:
        indent = len(line) - len(line.lstrip())
        entry = _GOOGLE_ENTRY.match(line.strip())
        if entry and (depth < 0 or indent <= depth):
            name, depth = entry.group(1), indent
            found[name] = entry.group(2) or ""
        elif name and line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


# --- NumPy: a heading underlined, entries beside the margin and what is said of them indented


def _numpy_heading(lines: list[str], at: int) -> str:
    """The heading at this line, or nothing. Only known ones: other underlined lines are titles in the text."""
    heading = lines[at].strip()
    is_known = heading in _NUMPY_PARAMETERS or heading in _NUMPY_OTHERS
    return heading if is_known and at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1].strip()) else ""


def _end_of_numpy_entries(lines: list[str], start: int) -> int:
    """The next heading, or text beside the margin that is not an entry."""
    for at in range(start, len(lines)):
        is_beside = bool(lines[at].strip()) and not lines[at][0].isspace()
        if is_beside and (_numpy_heading(lines, at) or not _NUMPY_ENTRY.match(lines[at].strip())):
            return at
    return len(lines)


def _numpy_entries(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    names: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        if line[0].isspace():
            for name in names:
                found[name] = f"{found[name]} {line.strip()}".strip()
        elif entry := _NUMPY_ENTRY.match(line.strip()):
            names = [name.strip().lstrip("*") for name in entry.group(1).split(",")]
            found.update(dict.fromkeys(names, ""))
    return found


# --- Sphinx: a field in colons


def _field(line: str) -> tuple[str, str, str] | None:
    """The field's kind, what it is about, and what it says; None for other lines."""
    match = _FIELD.match(line)
    if match is None or match[1] not in _FIELD_PARAMETERS | _FIELD_WORDS.keys() | _FIELD_RAISES | _FIELD_TYPES:
        return None
    return match[1], (match[2] or "").strip(), match[3] or ""


def _end_of_field(lines: list[str], start: int) -> int:
    """A field goes on in indented lines, and in the lines beside it up to an empty line or the next field."""
    at = start
    while at < len(lines) and lines[at].strip() and not _field(lines[at]) and not _GOOGLE.match(lines[at]):
        at += 1
    while at < len(lines) and (not lines[at].strip() or lines[at][0].isspace()):  # further paragraphs of it are indented
        at += 1
    return at


def _read_field(field: tuple[str, str, str], more: list[str], kept: list[str], described: dict[str, str]) -> None:
    kind, about, said = field
    said = " ".join(" ".join([said, *more]).split())
    if kind in _FIELD_PARAMETERS and about:
        described[about.split()[-1].lstrip("*\\")] = said
    elif kind in _FIELD_RAISES:
        kept.append(f"Raises {about}: {said}" if about else f"Raises: {said}")
    elif kind in _FIELD_WORDS and said:
        kept.append(f"{_FIELD_WORDS[kind]}: {said}")
