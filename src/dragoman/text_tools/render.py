"""Calls and results as a dialect writes them. What is rendered is read back as the same call, whatever its arguments hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, assert_never

from dragoman.text_tools.admission import guessed
from dragoman.text_tools.blocks import MAX_RAW_NAME_CHARS, RAW_CLOSE, RAW_OPEN
from dragoman.text_tools.dialect import DEFAULT, Dialect, find
from dragoman.text_tools.openers import ENDINGS, M3
from dragoman.text_tools.pair_reader import MAX_ELEMENTS
from dragoman.text_tools.tag_reader import (
    ATEM,
    CDATA,
    CDATA_END,
    DSML,
    FUNCTION,
    FUNCTION_NAME,
    INVOKE,
    MAX_TAG_CHARS,
    STEPTML,
    XTML,
    Tags,
    element_tags,
    escaped_name,
)

RAW_CHARS = 60
"""Text longer than this, or of several lines, stands as it is behind the call, in the dialect that allows it."""

TAGS = {
    "function": FUNCTION,
    "function_name": FUNCTION_NAME,
    "invoke": INVOKE,
    "dsml": DSML,
    "atem": ATEM,
    "steptml": STEPTML,
    "xtml": XTML,
}
_WORD = re.compile(r"[^\W\d]\w*")


class Called(Protocol):
    """A call, whoever made it."""

    @property
    def name(self) -> str: ...
    @property
    def args(self) -> Mapping[str, Any] | None: ...


def render_call(call: Called, dialect: str = DEFAULT, *, index: int = 0) -> str:
    """One call as the dialect writes it; `index` counts the calls of a conversation, for dialects that number them."""
    return render_calls((call,), dialect, index=index)


def render_calls(calls: Iterable[Called], dialect: str = DEFAULT, *, index: int = 0) -> str:
    """All calls of an answer."""
    spoken = find(dialect)
    called = [(call.name, dict(call.args or {})) for call in calls]
    if not called:
        return ""
    return spoken.section[0] + _inside(called, spoken, index) + spoken.section[1]


def render_response(name: str, text: str, dialect: str = DEFAULT) -> str:
    """A tool's result, to be sent as the user's text. Markers in it must have been neutralised."""
    before, after = find(dialect).response
    return f"{before}{text}{after}"


def _inside(calls: list[tuple[str, dict[str, Any]]], dialect: Dialect, index: int) -> str:
    match dialect.layout:
        case "list":
            return dumps([{dialect.name_key: name, dialect.args_key: args} for name, args in calls])
        case "name_as_key":
            return dumps([{name: args} for name, args in calls])
        case "code_list":
            return f"[{', '.join(_code(name, args) for name, args in calls)}]"
        case _:
            return dialect.between.join(_one(name, args, dialect, index + at) for at, (name, args) in enumerate(calls))


def _one(name: str, args: dict[str, Any], dialect: Dialect, index: int) -> str:
    before, after = dialect.call
    match dialect.layout:
        case "object":
            body = _object(name, args, dialect)
        case "wrapped":
            body = json.dumps({"tool_call": {"name": name, "arguments": args}}, ensure_ascii=False, indent=2)
        case "named":
            body = f"{dialect.name_prefix}{name}{dialect.name_suffix.format(index=index)}{dialect.separator}{dumps(args)}"
        case "function" | "function_name" | "invoke" | "xtml":
            body = _tagged(name, args, TAGS[dialect.tags], index)
        case "pairs":
            body = _pairs(name, args, dialect)
        case "elements":
            body = _elements(name, args)
        case "nested":
            body = _nested(name, args)
        case "code_lines":
            body = _code(name, args)
        case "braces":
            body = f"call:{name}{_braces(args, dialect.quote)}"
        case "list" | "name_as_key" | "code_list":
            raise AssertionError("written as one list")
        case _:
            assert_never(dialect.layout)
    return f"{before}{body}{after}"


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- JSON -------------------------------------------------------------------------------------------------------------------------------


def _object(name: str, args: dict[str, Any], dialect: Dialect) -> str:
    raw = {key: value for key, value in args.items() if "raw" in dialect.forms and _is_raw(key, value)}
    rest = {key: value for key, value in args.items() if key not in raw}
    bodies = "".join(f'\n{RAW_OPEN}{escaped_name(key)}">\n{value}\n{RAW_CLOSE}' for key, value in raw.items())
    return dumps({dialect.name_key: name, dialect.args_key: rest}) + bodies


def _is_raw(key: str, value: Any) -> bool:
    if not isinstance(value, str) or ("\n" not in value and len(value) <= RAW_CHARS):
        return False
    has_tag = len(escaped_name(key)) < MAX_RAW_NAME_CHARS
    return has_tag and not value.startswith(CDATA) and not any(mark in value for mark in (RAW_OPEN, RAW_CLOSE, "</tool_call>"))


# --- tags -------------------------------------------------------------------------------------------------------------------------------


def _tagged(name: str, args: dict[str, Any], tags: Tags, index: int) -> str:
    if tags is XTML:
        inside = "".join(_xtml_argument(key, value) for key, value in args.items())
        return f'<|open|>call tool="{escaped_name(name)}" index="{index + 1}"<|sep|>{inside}{tags.call_end}'
    lines = [opening_tag(tags.call[0], name, tags)]
    for key, value in args.items():
        said = f' string="{"true" if isinstance(value, str) else "false"}"' if tags is DSML else ""
        text = tagged_text(value, _marks(tags), keeps_space=tags.trim != "space", is_said=tags is DSML)
        text = f"\n{text}\n" if tags.trim == "lines" and not text.startswith(CDATA) else text
        lines.append(f"{opening_tag(tags.arg[0], key, tags, said)}{text}{tags.arg_end}")
    return "\n".join((*lines, tags.call_end))


def _xtml_argument(key: str, value: Any) -> str:
    text = tagged_text(value, _marks(XTML), keeps_space=True, is_said=True)
    return f'<|open|>argument key="{escaped_name(key)}" type="{_type(value)}"<|sep|>{text}{XTML.arg_end}'


def opening_tag(marker: str, name: str, tags: Tags, said: str = "") -> str:
    if not tags.is_attribute:
        return f"{marker}{escaped_name(name)}>"
    stem = marker.rstrip() if marker.endswith("name=") else f"{marker.rstrip()} name="
    return f'{stem}"{escaped_name(name)}"{said}>'


def _marks(tags: Tags) -> tuple[str, ...]:
    return (*tags.arg, *tags.call, tags.arg_end, tags.call_end, *ENDINGS)


def tagged_text(value: Any, marks: tuple[str, ...], *, keeps_space: bool, is_said: bool = False) -> str:
    """A value between tags. Text that would be taken for a tag or for another type stands in CDATA."""
    if not isinstance(value, str):
        text = dumps(value)
        return text.replace("<", "\\u003c") if any(mark in text for mark in marks) else text
    is_safe = not value.startswith(CDATA) and not any(mark in value for mark in marks)
    is_plain = (is_said or guessed(value) is value) and (keeps_space or value == value.strip())
    return value if is_safe and is_plain else cdata(value)


def cdata(text: str) -> str:
    return CDATA + text.replace(CDATA_END, f"]]{CDATA_END}{CDATA}>") + CDATA_END


def _pairs(name: str, args: dict[str, Any], dialect: Dialect) -> str:
    marks = ("<arg_key>", "</arg_value>", *ENDINGS)
    lines = [f"{name}{dialect.separator}"]
    for key, value in args.items():
        lines.append(f"<arg_key>{escaped_name(key)}</arg_key>")
        lines.append(f"<arg_value>{tagged_text(value, marks, keeps_space=True)}</arg_value>")
    return "\n".join((*lines, ""))


def _elements(name: str, args: dict[str, Any]) -> str:
    marks = (f"</{name}>", *(mark for tag in element_tags(args) for mark in (tag, f"</{tag[1:]}")))
    lines = [f"<{name}>"]
    for key, value in args.items():
        tag = escaped_name(key)
        text = value if isinstance(value, str) else dumps(value)
        is_safe = not text.startswith(CDATA) and not any(mark in text for mark in marks) and text == text.strip("\n")
        lines.append(f"<{tag}>{text if is_safe else cdata(text)}</{tag}>")
    return "\n".join((*lines, f"</{name}>"))


def _nested(name: str, args: dict[str, Any]) -> str:
    trees = {key: value for key, value in args.items() if not isinstance(value, str) and _is_plain_tree(value)}
    has_room = len(args) + sum(map(_elements_in, trees.values())) < MAX_ELEMENTS // 2  # each is two tags
    inside = "".join(
        _element(key, _tree(value) if key in trees and has_room else tagged_text(value, (M3,), keeps_space=True))
        for key, value in args.items()
    )
    return f'{M3}<invoke name="{escaped_name(name)}">{inside}{M3}</invoke>'


def _element(key: str, text: str) -> str:
    tag = escaped_name(key)
    return f"{M3}<{tag}>{text}{M3}</{tag}>"


def _tree(value: Any) -> str:
    if isinstance(value, str):
        return value if M3 not in value and not value.startswith(CDATA) else cdata(value)
    children = value.items() if isinstance(value, dict) else (("item", each) for each in value)
    return "".join(_element(key, _tree(each)) for key, each in children)


def _elements_in(value: Any) -> int:
    if isinstance(value, str):
        return 0
    return len(value) + sum(map(_elements_in, value.values() if isinstance(value, dict) else value))


def _is_plain_tree(value: Any, depth: int = 0) -> bool:
    """Whether elements within elements can say all of it: text alone has no type."""
    if isinstance(value, str):
        return True
    if not isinstance(value, (dict, list)) or not value or depth > 20:
        return False
    if isinstance(value, dict) and (set(value) == {"item"} or not all(map(_is_plain_name, value))):
        return False
    return all(_is_plain_tree(each, depth + 1) for each in (value.values() if isinstance(value, dict) else value))


def _is_plain_name(name: str) -> bool:
    return 0 < len(name) < MAX_TAG_CHARS and escaped_name(name) == name


def _type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case None:
            return "null"
        case list():
            return "array"
        case _:
            return "object"


# --- code -------------------------------------------------------------------------------------------------------------------------------


def _code(name: str, args: dict[str, Any]) -> str:
    words = [f"{key}={value!r}" for key, value in args.items() if _WORD.fullmatch(key)]
    others = {key: value for key, value in args.items() if not _WORD.fullmatch(key)}
    return f"{name}({', '.join((*words, *((f'**{others!r}',) if others else ())))})"


def _braces(value: Any, quote: str) -> str:
    match value:
        case str():
            return _quoted(value, quote)
        case dict():
            members = (f"{key if _WORD.fullmatch(key) else _quoted(key, quote)}:{_braces(each, quote)}" for key, each in value.items())
            return f"{{{','.join(members)}}}"
        case list() | tuple():
            return f"[{','.join(_braces(each, quote) for each in value)}]"
        case _:
            return dumps(value)


def _quoted(text: str, quote: str) -> str:
    if quote not in text:
        return f"{quote}{text}{quote}"
    return dumps(text).replace("<", "\\u003c")
