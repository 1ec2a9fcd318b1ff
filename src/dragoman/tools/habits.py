"""What models write out of habit, from other programs' tools of the same kind, where its meaning is certain.

A tool with habits has `tidy`, which is asked only when the arguments do not fit: names alone are the business of whoever aligns calls,
here are values and flags. Whatever is not known stays, and is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ALWAYS = {"-n": True, "-H": True, "-r": True, "-R": True, "-E": True, "-P": True, "line_numbers": True, "multiline": False, "offset": 0}
"""Flags of grep that say what is done anyway."""
_MODES = {"files_with_matches": "files", "files_only": "files", "files-with-matches": "files", "lines": "content", "matches": "content"}
_TYPES = {
    "py": "*.py", "python": "*.py", "js": "*.{js,jsx,mjs,cjs}", "ts": "*.{ts,tsx,mts,cts}", "rust": "*.rs", "rs": "*.rs", "go": "*.go",
    "java": "*.java", "c": "*.{c,h}", "cpp": "*.{cpp,cc,cxx,hpp,hh,h}", "md": "*.md", "json": "*.json", "yaml": "*.{yaml,yml}",
    "html": "*.{html,htm}", "css": "*.css", "ruby": "*.rb", "rb": "*.rb", "php": "*.php", "sh": "*.sh", "toml": "*.toml",
}  # fmt: skip
"""File types of ripgrep, as models name them."""
_OLD = ("old_string", "oldString", "old_str", "old_text", "oldText", "search")
_NEW = ("new_string", "newString", "new_str", "new_text", "newText", "replace")

Tidied = tuple[dict[str, Any], list[str]]
"""Arguments, and what was changed, one short line each."""


def tidy_grep(args: Mapping[str, Any]) -> Tidied:
    """Flags of grep and ripgrep, and the words of other programs' searches."""
    tidied, repairs = dict(args), list[str]()

    def move(name: str, parameter: str, value: Any) -> None:
        if parameter not in tidied:
            del tidied[name]
            tidied[parameter] = value
            repairs.append(f"{name} → {parameter}")

    for name, value in _ALWAYS.items():
        if name in tidied and tidied[name] == value and type(tidied[name]) is type(value):
            del tidied[name]
            repairs.append(f"{name} → nothing: it is always so")
    for name in ("-i", "ignore_case", "case_insensitive"):
        if isinstance(tidied.get(name), bool):
            move(name, "case_sensitive", not tidied[name])
    around = [name for name in ("-A", "-B", "-C") if _is_count(tidied.get(name))]
    if around and "context" not in tidied:
        tidied["context"] = max(tidied.pop(name) for name in around)
        repairs.append(f"{', '.join(around)} → context")
    for name, mode in (("-l", "files"), ("-c", "count")):
        if tidied.get(name) is True:
            move(name, "output_mode", mode)
    if (mode := tidied.get("output_mode")) in _MODES:
        tidied["output_mode"] = _MODES[mode]
        repairs.append(f"output_mode {mode} → {_MODES[mode]}")
    if isinstance(tidied.get("glob"), str):
        move("glob", "include", tidied["glob"])
    if (kind := tidied.get("type")) in _TYPES:
        move("type", "include", _TYPES[kind])
    return tidied, repairs


def tidy_read(args: Mapping[str, Any]) -> Tidied:
    """A range of lines by its ends."""
    tidied, repairs = dict(args), list[str]()
    name = next((each for each in ("view_range", "line_range") if each in tidied), "")
    if name and isinstance(ends := tidied[name], list) and len(ends) == 2 and all(isinstance(end, int) for end in ends):
        del tidied[name]
        tidied |= {"start_line": ends[0], "end_line": ends[1]}
    first = next((each for each in ("start_line", "line_start", "startLine") if each in tidied), "")
    last = next((each for each in ("end_line", "line_end", "endLine") if each in tidied), "")
    if not last or "limit" in tidied or (first and "offset" in tidied):
        return (tidied, repairs) if not name else (dict(args), repairs)
    start, end = tidied.get(first, tidied.get("offset", 1)), tidied[last]
    if not _is_count(start) or not (_is_count(end) or end == -1) or 0 <= end < max(start, 1):
        return dict(args), repairs
    tidied = {key: value for key, value in tidied.items() if key not in (first, last)} | {"offset": max(start, 1)}
    if end != -1:
        tidied["limit"] = end - max(start, 1) + 1
    return tidied, [f"{name or ', '.join(filter(None, (first, last)))} → offset, limit"]


def tidy_edit(args: Mapping[str, Any]) -> Tidied:
    """Edits with other names inside, or one edit that is not in a list."""
    listed = args.get("edits")
    if isinstance(listed, dict):
        listed = [listed]
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        return dict(args), []
    renamed = [{_edit_name(name): value for name, value in each.items()} for each in listed]
    if renamed == args["edits"]:
        return dict(args), []
    return {**args, "edits": renamed}, ["edits → [{old_string, new_string}]"]


def _edit_name(name: str) -> str:
    return "old_string" if name in _OLD else "new_string" if name in _NEW else "replace_all" if name == "replaceAll" else name


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
