"""Renders calls and results in a dialect. A rendered call is parsed back as the same call, whatever its arguments are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, assert_never

from dragoman.text_tools.admission import guess_value
from dragoman.text_tools.blocks import MAX_RAW_NAME_CHARS, RAW_CLOSE, RAW_OPEN
from dragoman.text_tools.dialect import DEFAULT, Dialect
from dragoman.text_tools.dialect_table import find_dialect
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
    escape_name,
)

RAW_CHARS = 60
"""Text longer than this, or of several lines, is written unescaped after the call, if the dialect allows it."""

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


class CallLike(Protocol):
    """Anything with a call's name and arguments."""

    @property
    def name(self) -> str: ...
    @property
    def args(self) -> Mapping[str, Any] | None: ...


def render_call(call: CallLike, dialect: str = DEFAULT, *, index: int = 0) -> str:
    """One call as the dialect writes it; `index` counts the calls of a conversation, for dialects that number them."""
    return render_calls((call,), dialect, index=index)


def render_calls(calls: Iterable[CallLike], dialect: str = DEFAULT, *, index: int = 0) -> str:
    """All calls of an answer."""
    spoken = find_dialect(dialect)
    called = [(call.name, dict(call.args or {})) for call in calls]
    if not called:
        return ""
    return spoken.section[0] + _render_all(called, spoken, index) + spoken.section[1]


def render_response(name: str, text: str, dialect: str = DEFAULT) -> str:
    """A tool's result as user text. Its markers must already be neutralised."""
    before, after = find_dialect(dialect).response
    return f"{before}{text}{after}"


def _render_all(calls: list[tuple[str, dict[str, Any]]], dialect: Dialect, index: int) -> str:
    match dialect.layout:
        case "list":
            return dumps([{dialect.name_key: name, dialect.args_key: args} for name, args in calls])
        case "name_as_key":
            return dumps([{name: args} for name, args in calls])
        case "code_list":
            return f"[{', '.join(_render_code(name, args) for name, args in calls)}]"
        case _:
            return dialect.between.join(_render_one(name, args, dialect, index + at) for at, (name, args) in enumerate(calls))


def _render_one(name: str, args: dict[str, Any], dialect: Dialect, index: int) -> str:
    before, after = dialect.call
    match dialect.layout:
        case "object":
            body = _render_object(name, args, dialect)
        case "wrapped":
            body = json.dumps({"tool_call": {"name": name, "arguments": args}}, ensure_ascii=False, indent=2)
        case "named":
            body = f"{dialect.name_prefix}{name}{dialect.name_suffix.format(index=index)}{dialect.separator}{dumps(args)}"
        case "function" | "function_name" | "invoke" | "xtml":
            body = _render_tagged(name, args, TAGS[dialect.tags], index)
        case "pairs":
            body = _render_pairs(name, args, dialect)
        case "elements":
            body = _render_elements(name, args)
        case "nested":
            body = _render_nested(name, args)
        case "code_lines":
            body = _render_code(name, args)
        case "braces":
            body = f"call:{name}{_render_braces(args, dialect.quote)}"
        case "list" | "name_as_key" | "code_list":
            raise AssertionError("written as one list")
        case _:
            assert_never(dialect.layout)
    return f"{before}{body}{after}"


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- JSON -----------------------------------------------------------------------------------------------------------------------------


def _render_object(name: str, args: dict[str, Any], dialect: Dialect) -> str:
    raw = {key: value for key, value in args.items() if "raw" in dialect.forms and _is_raw(key, value)}
    rest = {key: value for key, value in args.items() if key not in raw}
    bodies = "".join(f'\n{RAW_OPEN}{escape_name(key)}">\n{value}\n{RAW_CLOSE}' for key, value in raw.items())
    return dumps({dialect.name_key: name, dialect.args_key: rest}) + bodies


def _is_raw(key: str, value: Any) -> bool:
    if not isinstance(value, str) or ("\n" not in value and len(value) <= RAW_CHARS):
        return False
    has_tag = len(escape_name(key)) < MAX_RAW_NAME_CHARS
    return has_tag and not value.startswith(CDATA) and not any(mark in value for mark in (RAW_OPEN, RAW_CLOSE, "</tool_call>"))


# --- tags -----------------------------------------------------------------------------------------------------------------------------


def _render_tagged(name: str, args: dict[str, Any], tags: Tags, index: int) -> str:
    if tags is XTML:
        inside = "".join(_render_xtml_argument(key, value) for key, value in args.items())
        return f'<|open|>call tool="{escape_name(name)}" index="{index + 1}"<|sep|>{inside}{tags.call_end}'
    lines = [render_opening_tag(tags.call[0], name, tags)]
    for key, value in args.items():
        attribute = f' string="{"true" if isinstance(value, str) else "false"}"' if tags is DSML else ""
        text = render_tagged_text(value, _marks(tags), keeps_space=tags.trim != "space", is_declared=tags is DSML)
        text = f"\n{text}\n" if tags.trim == "lines" and not text.startswith(CDATA) else text
        lines.append(f"{render_opening_tag(tags.arg[0], key, tags, attribute)}{text}{tags.arg_end}")
    return "\n".join((*lines, tags.call_end))


def _render_xtml_argument(key: str, value: Any) -> str:
    text = render_tagged_text(value, _marks(XTML), keeps_space=True, is_declared=True)
    return f'<|open|>argument key="{escape_name(key)}" type="{_type_name(value)}"<|sep|>{text}{XTML.arg_end}'


def render_opening_tag(marker: str, name: str, tags: Tags, attribute: str = "") -> str:
    if not tags.is_attribute:
        return f"{marker}{escape_name(name)}>"
    stem = marker.rstrip() if marker.endswith("name=") else f"{marker.rstrip()} name="
    return f'{stem}"{escape_name(name)}"{attribute}>'


def _marks(tags: Tags) -> tuple[str, ...]:
    return (*tags.arg, *tags.call, tags.arg_end, tags.call_end, *ENDINGS)


def render_tagged_text(value: Any, marks: tuple[str, ...], *, keeps_space: bool, is_declared: bool = False) -> str:
    """A value between tags. Text that could be mistaken for a tag or for another type is wrapped in CDATA."""
    if not isinstance(value, str):
        text = dumps(value)
        return text.replace("<", "\\u003c") if any(mark in text for mark in marks) else text
    is_safe = not value.startswith(CDATA) and not any(mark in value for mark in marks)
    is_plain = (is_declared or guess_value(value) is value) and (keeps_space or value == value.strip())
    return value if is_safe and is_plain else wrap_cdata(value)


def wrap_cdata(text: str) -> str:
    return CDATA + text.replace(CDATA_END, f"]]{CDATA_END}{CDATA}>") + CDATA_END


def _render_pairs(name: str, args: dict[str, Any], dialect: Dialect) -> str:
    marks = ("<arg_key>", "</arg_value>", *ENDINGS)
    lines = [f"{name}{dialect.separator}"]
    for key, value in args.items():
        lines.append(f"<arg_key>{escape_name(key)}</arg_key>")
        lines.append(f"<arg_value>{render_tagged_text(value, marks, keeps_space=True)}</arg_value>")
    return "\n".join((*lines, ""))


def _render_elements(name: str, args: dict[str, Any]) -> str:
    marks = (f"</{name}>", *(mark for tag in element_tags(args) for mark in (tag, f"</{tag[1:]}")))
    lines = [f"<{name}>"]
    for key, value in args.items():
        tag = escape_name(key)
        text = value if isinstance(value, str) else dumps(value)
        is_safe = not text.startswith(CDATA) and not any(mark in text for mark in marks) and text == text.strip("\n")
        lines.append(f"<{tag}>{text if is_safe else wrap_cdata(text)}</{tag}>")
    return "\n".join((*lines, f"</{name}>"))


def _render_nested(name: str, args: dict[str, Any]) -> str:
    trees = {key: value for key, value in args.items() if not isinstance(value, str) and _is_plain_tree(value)}
    has_room = len(args) + sum(map(_count_elements, trees.values())) < MAX_ELEMENTS // 2  # two tags each
    inside = "".join(
        _render_element(key, _render_tree(value) if key in trees and has_room else render_tagged_text(value, (M3,), keeps_space=True))
        for key, value in args.items()
    )
    return f'{M3}<invoke name="{escape_name(name)}">{inside}{M3}</invoke>'


def _render_element(key: str, text: str) -> str:
    tag = escape_name(key)
    return f"{M3}<{tag}>{text}{M3}</{tag}>"


def _render_tree(value: Any) -> str:
    if isinstance(value, str):
        return value if M3 not in value and not value.startswith(CDATA) else wrap_cdata(value)
    children = value.items() if isinstance(value, dict) else (("item", each) for each in value)
    return "".join(_render_element(key, _render_tree(each)) for key, each in children)


def _count_elements(value: Any) -> int:
    if isinstance(value, str):
        return 0
    return len(value) + sum(map(_count_elements, value.values() if isinstance(value, dict) else value))


def _is_plain_tree(value: Any, depth: int = 0) -> bool:
    """Whether nested elements can represent the value: their text has no type."""
    if isinstance(value, str):
        return True
    if not isinstance(value, (dict, list)) or not value or depth > 20:
        return False
    if isinstance(value, dict) and (set(value) == {"item"} or not all(map(_is_plain_name, value))):
        return False
    return all(_is_plain_tree(each, depth + 1) for each in (value.values() if isinstance(value, dict) else value))


def _is_plain_name(name: str) -> bool:
    return 0 < len(name) < MAX_TAG_CHARS and escape_name(name) == name


def _type_name(value: Any) -> str:
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


# --- code -----------------------------------------------------------------------------------------------------------------------------


def _render_code(name: str, args: dict[str, Any]) -> str:
    words = [f"{key}={value!r}" for key, value in args.items() if _WORD.fullmatch(key)]
    others = {key: value for key, value in args.items() if not _WORD.fullmatch(key)}
    return f"{name}({', '.join((*words, *((f'**{others!r}',) if others else ())))})"


def _render_braces(value: Any, quote: str) -> str:
    match value:
        case str():
            return _quote(value, quote)
        case dict():
            members = (
                f"{key if _WORD.fullmatch(key) else _quote(key, quote)}:{_render_braces(each, quote)}" for key, each in value.items()
            )
            return f"{{{','.join(members)}}}"
        case list() | tuple():
            return f"[{','.join(_render_braces(each, quote) for each in value)}]"
        case _:
            return dumps(value)


def _quote(text: str, quote: str) -> str:
    if quote not in text:
        return f"{quote}{text}{quote}"
    return dumps(text).replace("<", "\\u003c")
