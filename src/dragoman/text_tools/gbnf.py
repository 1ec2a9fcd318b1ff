"""A GBNF grammar of a dialect and a set of tools, for servers with constrained decoding. The parser reads everything it allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dragoman.text_tools.dialect import DEFAULT, Dialect
from dragoman.text_tools.dialect_table import find_dialect
from dragoman.text_tools.openers import M3
from dragoman.text_tools.render import TAGS, dumps
from dragoman.text_tools.tag_reader import escape_name
from dragoman.text_tools.toolset import Tool, Toolset

MAX_CALLS = 8
MAX_TYPE_DEPTH = 4

# --- rules as values, so that they can be written and walked alike


class Lit(msgspec.Struct, frozen=True):
    text: str


class Chars(msgspec.Struct, frozen=True):
    """One character of a class, as grammars write it: `[^<]`."""

    set: str


class Ref(msgspec.Struct, frozen=True):
    rule: str


class Seq(msgspec.Struct, frozen=True):
    parts: tuple[Any, ...]


class Alt(msgspec.Struct, frozen=True):
    parts: tuple[Any, ...]


class Rep(msgspec.Struct, frozen=True):
    part: Any
    least: int = 0
    most: int | None = None


Node = Lit | Chars | Ref | Seq | Alt | Rep
Around = Callable[[str, str], tuple[str, str]]
"""The text before and after an argument, given its name and its type."""


class Grammar(msgspec.Struct, frozen=True):
    """`rules["root"]` is one or more calls."""

    rules: dict[str, Node]

    @property
    def gbnf(self) -> str:
        """The grammar in GBNF, as read by llama.cpp, vLLM and others."""
        return "\n".join(f"{name} ::= {_render(node)}" for name, node in self.rules.items()) + "\n"


def grammar(tools: Iterable[Tool] | Toolset, dialect: str = DEFAULT) -> Grammar:
    """Calls of these tools in this dialect. Raises ValueError if there are no tools."""
    offered = Toolset.of(tools)
    if offered is None or not offered.names:
        raise ValueError("a grammar of calls needs tools")
    return Grammar(_Rules(offered, find_dialect(dialect)).rules())


_ESCAPE = Seq((Lit("\\"), Chars(r'["\\bfnrt]')))


def _list(item: Node) -> Node:
    return Rep(Seq((item, Rep(Seq((Lit(", "), item))))), 0, 1)


_JSON: dict[str, Node] = {
    "string": Seq((Lit('"'), Rep(Alt((Chars(r'[^"\\\x00-\x1F\x7F]'), _ESCAPE))), Lit('"'))),
    "integer": Seq((Rep(Lit("-"), 0, 1), Alt((Lit("0"), Seq((Chars("[1-9]"), Rep(Chars("[0-9]"), 0, 15))))))),
    "number": Seq((Ref("integer"), Rep(Seq((Lit("."), Rep(Chars("[0-9]"), 1, 15))), 0, 1))),
    "boolean": Alt((Lit("true"), Lit("false"))),
    "null": Lit("null"),
    "array": Seq((Lit("["), _list(Ref("value")), Lit("]"))),
    "pair": Seq((Ref("string"), Lit(": "), Ref("value"))),
    "object": Seq((Lit("{"), _list(Ref("pair")), Lit("}"))),
    "value": Alt((Ref("string"), Ref("number"), Ref("boolean"), Ref("null"), Ref("array"), Ref("object"))),
    "text": Rep(Chars(r"[^<\x00-\x08]")),
}


class _Rules:
    def __init__(self, tools: Toolset, dialect: Dialect) -> None:
        self._tools = tools
        self._dialect = dialect

    def rules(self) -> dict[str, Node]:
        dialect = self._dialect
        calls = {f"call-{at}": self._call(name) for at, name in enumerate(self._tools.names)}
        one: Node = Alt(tuple(Ref(name) for name in calls))
        is_list = dialect.layout in ("list", "name_as_key", "code_list")
        between = ", " if is_list else dialect.between
        before, after = ("[", "]") if is_list else ("", "")
        many = Seq((Ref("call"), Rep(Seq((Lit(between), Ref("call"))), 0, MAX_CALLS - 1)))
        root = Seq((Lit(dialect.section[0] + before), many, Lit(after + dialect.section[1])))
        return {"root": root, "call": one, **calls, **_JSON}

    def _call(self, name: str) -> Node:
        dialect = self._dialect
        before, after = dialect.call
        match dialect.layout:
            case "object" | "list":
                body = _seq(f'{{"{dialect.name_key}": {dumps(name)}, "{dialect.args_key}": ', self._object(name), "}")
            case "wrapped":
                body = _seq(f'{{"tool_call": {{"name": {dumps(name)}, "arguments": ', self._object(name), "}}")
            case "name_as_key":
                body = _seq(f"{{{dumps(name)}: ", self._object(name), "}")
            case "named":
                head = f"{dialect.name_prefix}{name}{dialect.name_suffix.format(index=0)}{dialect.separator}"
                body = _seq(head, self._object(name))
            case "code_list" | "code_lines":
                body = _seq(f"{name}(", self._list_fields(name, lambda key: f"{key}=", _python_value), ")")
            case "braces":
                body = _seq(f"call:{name}{{", self._list_fields(name, lambda key: f"{key}:", self._brace_value, ","), "}")
            case _:
                body = self._tag_fields(name)
        return _seq(before, body, after)

    # --- arguments

    def _fields(self, name: str) -> list[tuple[str, Any, bool]]:
        """Parameters, required ones first."""
        schema = self._tools.schema(name) or {}
        properties, required = schema.get("properties"), schema.get("required")
        needed = required if isinstance(required, list) else []
        fields = [(str(key), each, key in needed) for key, each in properties.items()] if isinstance(properties, dict) else []
        return sorted(fields, key=lambda field: not field[2])

    def _object(self, name: str) -> Node:
        if not self._fields(name):
            schema = self._tools.schema(name)
            return Ref("object") if schema is None else Lit("{}")
        return _seq("{", self._list_fields(name, lambda key: f"{dumps(key)}: ", _json_value), "}")

    def _list_fields(self, name: str, head: Callable[[str], str], value: Callable[[Any], Node], comma: str = ", ") -> Node:
        """Parameters separated by commas; optional ones may be left out."""
        fields = self._fields(name)
        pairs = [(_seq(head(key), value(schema)), needed) for key, schema, needed in fields]
        return _with_commas(pairs, comma)

    def _brace_value(self, schema: Any) -> Node:
        quote = self._dialect.quote
        return _seq(quote, Ref("text"), quote) if _kind(schema) == "string" else _json_value(schema)

    def _tag_fields(self, name: str) -> Node:
        before, each, after = self._frame(name)
        parts: list[Node] = [Lit(before)]
        for key, schema, needed in self._fields(name):
            opening, closing = each(key, _kind(schema))
            value = Ref("text") if _kind(schema) in ("string", "") else _json_value(schema)
            argument = _seq(opening, value, closing)
            parts.append(argument if needed else Rep(argument, 0, 1))
        return Seq((*parts, Lit(after)))

    def _frame(self, name: str) -> tuple[str, Around, str]:
        """The text before the arguments, around each, and after them."""
        dialect = self._dialect
        match dialect.layout:
            case "pairs":
                return (
                    f"{name}{dialect.separator}\n",
                    lambda key, _: (f"<arg_key>{escape_name(key)}</arg_key>\n<arg_value>", "</arg_value>\n"),
                    "",
                )
            case "elements":
                return f"<{name}>\n", lambda key, _: (f"<{escape_name(key)}>", f"</{escape_name(key)}>\n"), f"</{name}>"
            case "nested":
                invoke = f'{M3}<invoke name="{escape_name(name)}">'
                return invoke, lambda key, _: (f"{M3}<{escape_name(key)}>", f"{M3}</{escape_name(key)}>"), f"{M3}</invoke>"
            case "xtml":
                return (
                    f'<|open|>call tool="{escape_name(name)}" index="1"<|sep|>',
                    lambda key, kind: (
                        f'<|open|>argument key="{escape_name(key)}" type="{"number" if kind == "integer" else kind or "string"}"<|sep|>',
                        "<|close|>argument<|sep|>",
                    ),
                    "<|close|>call<|sep|>",
                )
            case _:
                return self._tag_frame(name)

    def _tag_frame(self, name: str) -> tuple[str, Around, str]:
        from dragoman.text_tools.render import render_opening_tag

        tags = TAGS[self._dialect.tags]
        line = "\n" if tags.trim == "lines" else ""

        def around(key: str, kind: str) -> tuple[str, str]:
            attribute = f' string="{"true" if kind in ("string", "") else "false"}"' if tags.typed_by == "string" else ""
            return render_opening_tag(tags.arg[0], key, tags, attribute) + line, f"{line}{tags.arg_end}\n"

        return render_opening_tag(tags.call[0], name, tags) + "\n", around, tags.call_end


def _with_commas(pairs: list[tuple[Node, bool]], comma: str) -> Node:
    needed = [pair for pair, is_needed in pairs if is_needed]
    others = [pair for pair, is_needed in pairs if not is_needed]
    if needed:
        parts: list[Node] = []
        for pair in needed:
            parts += [Lit(comma), pair] if parts else [pair]
        return Seq((*parts, *(Rep(_seq(comma, pair), 0, 1) for pair in others)))
    starts = [Seq((pair, *(Rep(_seq(comma, each), 0, 1) for each in others[at + 1 :]))) for at, pair in enumerate(others[:32])]
    return Rep(Alt(tuple(starts)), 0, 1) if starts else Lit("")


def _kind(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) else ""


def _json_value(schema: Any, depth: int = 0) -> Node:
    if not isinstance(schema, dict) or depth > MAX_TYPE_DEPTH:
        return Ref("value")
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return Alt(tuple(Lit(dumps(choice)) for choice in choices))
    match _kind(schema):
        case "array" if isinstance(schema.get("items"), dict):
            item = _json_value(schema["items"], depth + 1)
            return _seq("[", Rep(Seq((item, Rep(_seq(", ", item)))), 0, 1), "]")
        case "string" | "integer" | "number" | "boolean" | "null" | "array" | "object" as kind:
            return Ref(kind)
        case _:
            return Ref("value")


def _python_value(schema: Any) -> Node:
    """Python reads JSON's lists, strings and numbers; the parser accepts `true`, `false` and `null` too."""
    return _json_value(schema)


def _seq(*parts: str | Node) -> Node:
    return Seq(tuple(Lit(part) if isinstance(part, str) else part for part in parts if part != ""))


def _render(node: Node, *, is_inner: bool = False) -> str:
    match node:
        case Lit(text):
            return json.dumps(text, ensure_ascii=False) if text else '""'
        case Chars(chars):
            return chars
        case Ref(rule):
            return rule
        case Seq(parts):
            inside = " ".join(_render(part, is_inner=True) for part in parts if part != Lit(""))
            inside = inside or '""'
            return f"({inside})" if is_inner else inside
        case Alt(parts):
            inside = " | ".join(_render(part, is_inner=True) for part in parts)
            return f"({inside})" if is_inner else inside
        case Rep(part, least, most):
            return f"{_render(part, is_inner=True)}{_times(least, most)}"


def _times(least: int, most: int | None) -> str:
    match least, most:
        case 0, 1:
            return "?"
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case _:
            return f"{{{least},{'' if most is None else most}}}"
