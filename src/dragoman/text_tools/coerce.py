"""Coerces values as a model wrote them to the types a schema declares. What is declared as text stays unchanged.

Nothing is invented: a value that cannot be read as one of the declared types is returned unchanged, and validation reports what is wrong.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.values.schema import type_of

MAX_DEPTH = 64
MAX_STEPS = 200_000
"""Values inspected per call. The rest stays unchanged."""
MAX_FORMS = 64
"""Alternatives inspected per schema, with references followed."""
MAX_FORMS_IN_ALL = 10_000
MAX_LITERAL_CHARS = 100_000
MAX_REPAIRS = 20
_MAX_VALUE_CHARS = 40

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_ALL = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))


class Shape(msgspec.Struct, frozen=True):
    """The parts of a schema that matter for reading a value."""

    types: frozenset[str] | None
    """The declared types; None if any type is allowed."""
    fields: dict[str, Any]
    others: Any
    """The schema of undeclared fields; False if they are forbidden, None if nothing is declared."""
    items: Any


class Coercion:
    """Coerces one call's arguments to the schema of one tool. `repairs` lists what was changed."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._shapes: dict[int, tuple[Any, Shape]] = {}
        self._steps = 0
        self._forms_seen = 0
        self.repairs: list[str] = []

    def shape(self, schema: Any) -> Shape:
        known = self._shapes.get(id(schema))
        if known is None:
            known = self._shapes[id(schema)] = (schema, self._flatten(schema))
        return known[1]

    def coerce(self, value: Any, schema: Any, path: str, *, raw: bool = False, depth: int = 0) -> Any:
        """The value in a declared type; the same object if nothing needs to change. `raw`: the value is untyped text."""
        self._steps += 1
        if depth > MAX_DEPTH or self._steps > MAX_STEPS:
            return value
        shape = self.shape(schema)
        read = _coerce_scalar(value, shape.types, raw=raw)
        if read is not value and not raw:
            self._note(path, value, read)
        match read:
            case dict():
                return self._object(read, shape, path, depth)
            case list():
                return self._array(read, shape, path, depth)
            case _:
                return read

    def _object(self, value: dict[str, Any], shape: Shape, path: str, depth: int) -> dict[str, Any]:
        if not shape.fields and not shape.others:
            return value
        changed: dict[str, Any] = {}
        for name, item in value.items():
            schema = shape.fields.get(name, shape.others)
            if isinstance(schema, dict):
                read = self.coerce(item, schema, f"{path}.{name}" if path else name, depth=depth + 1)
                if read is not item:
                    changed[name] = read
        return {**value, **changed} if changed else value

    def _array(self, value: list[Any], shape: Shape, path: str, depth: int) -> list[Any]:
        if not isinstance(shape.items, dict):
            return value
        read = [self.coerce(item, shape.items, f"{path}[{position}]", depth=depth + 1) for position, item in enumerate(value)]
        return read if any(one is not other for one, other in zip(read, value, strict=True)) else value

    def _note(self, path: str, before: Any, after: Any) -> None:
        if len(self.repairs) < MAX_REPAIRS:
            self.repairs.append(f"{path}: {_clip_json(before)} → {_clip_json(after)}")

    # --- flattening a schema

    def _flatten(self, schema: Any) -> Shape:
        fields: dict[str, list[Any]] = {}
        others: list[Any] = []
        items: list[Any] = []
        for form in self._forms(schema):
            properties = form.get("properties")
            for name, each in properties.items() if isinstance(properties, dict) else ():
                fields.setdefault(str(name), []).append(each)
            if "additionalProperties" in form:
                others.append(form["additionalProperties"])
            if isinstance(form.get("items"), dict):
                items.append(form["items"])
        either = {name: _either(schemas) for name, schemas in fields.items()}
        return Shape(self._types(schema, 0), either, _either(others) if others else None, _either(items) if items else None)

    def _forms(self, schema: Any) -> Iterator[dict[str, Any]]:
        """The schema and every schema it refers to for the same value."""
        queue, seen = [schema], set[int]()
        while queue and len(seen) < MAX_FORMS:
            form = queue.pop(0)
            if not isinstance(form, dict) or id(form) in seen:
                continue
            seen.add(id(form))
            yield form
            if isinstance(reference := form.get("$ref"), str):
                queue.append(self._resolve(reference))
            for keyword in ("allOf", "anyOf", "oneOf"):
                if isinstance(parts := form.get(keyword), list):
                    queue += parts[:MAX_FORMS]

    def _types(self, schema: Any, depth: int) -> frozenset[str] | None:
        self._forms_seen += 1
        if not isinstance(schema, dict) or depth > 8 or self._forms_seen > MAX_FORMS_IN_ALL:
            return None
        kind, found = schema.get("type"), list[frozenset[str]]()
        kinds = {kind} if isinstance(kind, str) else set(kind) & _ALL if isinstance(kind, list) else set[str]()
        if kinds and kinds <= _ALL:
            found.append(frozenset(kinds))
        for keyword in ("anyOf", "oneOf"):
            parts = schema.get(keyword)
            if isinstance(parts, list) and parts:
                each = [self._types(part, depth + 1) for part in parts[:MAX_FORMS]]
                found += [] if None in each else [frozenset().union(*(types for types in each if types is not None))]
        if isinstance(reference := schema.get("$ref"), str):
            found += _as_list(self._types(self._resolve(reference), depth + 1))
        for part in parts[:MAX_FORMS] if isinstance(parts := schema.get("allOf"), list) else ():
            found += _as_list(self._types(part, depth + 1))
        if not found:
            choices = [schema["const"]] if "const" in schema else schema.get("enum")
            if not isinstance(choices, list) or not choices:
                return None
            found.append(frozenset(map(type_of, choices)))
        types = found[0].intersection(*found[1:])
        return types | {"null"} if schema.get("nullable") is True else types

    def _resolve(self, reference: str) -> Any:
        """The target of a reference within the schema; None if it points elsewhere."""
        target = self._root
        if reference != "#" and not reference.startswith("#/"):
            return None
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        return target


# --- one value ------------------------------------------------------------------------------------------------------------------------


def _coerce_scalar(value: Any, types: frozenset[str] | None, *, raw: bool) -> Any:
    if types is None:
        return value
    if isinstance(value, str):
        if "string" not in types:
            return _from_text(value, types, exact=False)
        return _from_text(value, types, exact=True) if raw and len(types) > 1 else value
    is_plain_int = isinstance(value, int) and not isinstance(value, bool)
    if is_plain_int and "string" in types and not types & {"integer", "number"}:
        return str(value) if abs(value) < 10**18 else value
    return value


def _from_text(text: str, types: frozenset[str], *, exact: bool) -> Any:
    """The value of the text if it is of a declared type, else the text. `exact`: text is allowed too, so read only exact spellings."""
    plain = text if exact else text.strip()
    word = plain if exact else plain.casefold()
    if "null" in types and word in (("null",) if exact else ("null", "none", "nil")):
        return None
    if "boolean" in types and word in ("true", "false"):
        return word == "true"
    if types & {"integer", "number"} and (number := _number(plain, types)) is not None:
        return number
    if types & {"object", "array"} and plain[:1] in ("{", "[", "("):
        structure = parse_structure(plain, literals=not exact)
        if type_of(structure) in types:
            return structure
    return text


def _number(text: str, types: frozenset[str]) -> int | float | None:
    match = _NUMBER.fullmatch(text) if len(text) <= 400 else None
    if match is None:
        return None
    if match.group(1) is None and match.group(2) is None:
        return int(text)
    value = float(text)
    if math.isinf(value):
        return None
    if "number" in types:
        return value
    return int(value) if value.is_integer() else None


def parse_structure(text: str, *, literals: bool = True) -> Any:
    """The object or array that a text contains, as JSON or as a Python literal; None if neither."""
    data = text.encode("utf-8", "surrogatepass")
    if jsontext.is_too_deep(data):
        return None
    import json  # exact for integers of any length, and needed only here

    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        pass
    if not literals or len(text) > MAX_LITERAL_CHARS or data.count(b"(") > jsontext.MAX_DEPTH:
        return None

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes that Python does not know
            return _as_json(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _as_json(value: Any) -> Any:
    match value:
        case str() | bool() | int() | None:
            return value
        case float() if math.isfinite(value):
            return value
        case list() | tuple():
            return [_as_json(item) for item in value]
        case dict() if all(isinstance(name, str) for name in value):
            return {name: _as_json(item) for name, item in value.items()}
        case _:
            raise ValueError("not a value JSON has")


def _either(schemas: list[Any]) -> Any:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _as_list(types: frozenset[str] | None) -> list[frozenset[str]]:
    return [] if types is None else [types]


def _clip_json(value: Any) -> str:
    try:
        text = jsontext.dumps(value[: _MAX_VALUE_CHARS + 1] if isinstance(value, str) else value)
    except (ValueError, OverflowError, TypeError, RecursionError):  # an integer that does not fit 64 bits
        text = type_of(value)
    return clip(text, _MAX_VALUE_CHARS)
