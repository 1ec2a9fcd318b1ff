"""Validates a value against a JSON Schema, with error messages a model can act on.

The schema comes from the author of the tool, the value from a model, and neither can be trusted to be small or sane: depth, work and
the number of problems are bounded, unknown or nonsensical keywords are ignored, and nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import unquote

from dragoman.base import jsontext
from dragoman.base.text import clip, closest

if TYPE_CHECKING:
    from dragoman.values.patterns import PatternWork

MAX_PROBLEMS = 10
MAX_DEPTH = 64
"""Deepest nesting of schemas, references included. Deeper values are not checked."""
MAX_STEPS = 200_000
"""Most pairs of schema and value checked. Alternatives that refer to each other would double the work at each level."""
MAX_SHOWN_CHARS = 60
MAX_FORM_CHARS = 300
MAX_SHOWN_PATTERN_CHARS = 200

_ARTICLES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


def problems(schema: Any, value: Any) -> list[str]:
    """Why a decoded JSON value does not fit the schema, one sentence each, at most MAX_PROBLEMS; empty if it fits.

    Formats are not checked, and neither are patterns that could take long.
    """
    check = _Check(schema)
    try:
        found = check.run(schema, value, "", 0)
    except RecursionError:
        return ["the value is nested too deeply"]
    if len(found) > MAX_PROBLEMS:
        return [*found[: MAX_PROBLEMS - 1], f"and {len(found) - MAX_PROBLEMS + 1} more problems"]
    return found


def unchecked_patterns(schema: Any, value: Any) -> list[str]:
    """Which patterns of the schema cannot be matched against the value within a bound, one sentence each; empty if all can.

    For types whose own validation would match them without one."""
    check = _Check(schema)
    check.run(schema, value, "", 0)
    if check.is_cut_short:
        return ["the value is too large or too deep for its patterns to be checked"]
    return list(dict.fromkeys(check.unchecked))[:MAX_PROBLEMS]


class _Check:
    """The validation of one value against one schema."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._patterns: PatternWork | None = None
        self.unchecked: list[str] = []
        """What was not matched, because it could take long."""
        self._steps = 0
        self.is_cut_short = False
        """Whether the limits stopped the check early: then finding no problem means nothing."""

    def run(self, schema: Any, value: Any, path: str, depth: int) -> list[str]:
        self._steps += 1
        if schema is False:
            return [f"{_subject(path)} is not allowed"]
        if not isinstance(schema, dict):
            return []
        if depth > MAX_DEPTH or self._steps > MAX_STEPS:
            self.is_cut_short = True
            return []
        if value is None and schema.get("nullable") is True:
            return []
        if mismatch := _type_problem(schema, value, path):
            return [mismatch]
        found = _value_problems(schema, value, path)
        match value:
            case str():
                found += self._string_problems(schema, value, path)
            case bool():
                pass
            case int() | float():
                found += _number_problems(schema, value, path)
            case dict():
                found += self._object_problems(schema, value, path, depth)
            case list() | tuple():
                found += self._array_problems(schema, value, path, depth)
            case _:
                pass
        return found + self._combined_problems(schema, value, path, depth)

    def _string_problems(self, schema: dict[str, Any], value: str, path: str) -> list[str]:
        found = _count_problems(schema, "Length", len(value), path, "character")
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and self._is_match(pattern, value, path) is False:
            found.append(f"{_subject(path)} must match {clip(pattern, MAX_SHOWN_PATTERN_CHARS)}")
        return found

    def _is_match(self, pattern: Any, text: str, path: str) -> bool | None:
        from dragoman.values.patterns import PatternWork, is_match  # few schemas have any

        self._patterns = self._patterns or PatternWork()
        found = is_match(pattern, text, self._patterns)
        if found is None:
            shown = clip(str(pattern), MAX_SHOWN_PATTERN_CHARS)
            self.unchecked.append(
                f"whether {_subject(path)} matches {shown} was not checked, because that could take for ever: give a shorter one"
            )
        return found

    # --- objects and arrays

    def _object_problems(self, schema: dict[str, Any], value: dict[Any, Any], path: str, depth: int) -> list[str]:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        patterns = schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, dict) else {}
        extra = schema.get("additionalProperties", True)
        found = [
            f"{_subject(_join(path, name))} is required"
            for name in _strings(schema.get("required"))
            if name not in value  # first: a missing field often explains an unknown one
        ]
        for name, item in value.items():
            name = str(name)
            matches = {pattern: self._is_match(pattern, name, _join(path, name)) for pattern in patterns}
            wanted = [patterns[pattern] for pattern, matched in matches.items() if matched]
            if name in properties:
                wanted.append(properties[name])
            elif all(matched is False for matched in matches.values()):
                if extra is False:
                    found.append(_unknown_field(path, name, properties, value))
                wanted.append(extra is False or extra)
            for each in wanted:
                found += self.run(each, item, _join(path, name), depth + 1)
            if len(found) > 4 * MAX_PROBLEMS:
                break
        return found + _count_problems(schema, "Properties", len(value), path, "field")

    def _array_problems(self, schema: dict[str, Any], value: list[Any] | tuple[Any, ...], path: str, depth: int) -> list[str]:
        items, first = schema.get("items", True), schema.get("prefixItems")
        if isinstance(items, list):  # drafts before 2020
            items, first = schema.get("additionalItems", True), items
        first = first if isinstance(first, list) else []
        found = _count_problems(schema, "Items", len(value), path, "item")
        for position, item in enumerate(value):
            if position >= len(first) and items is True:
                break
            if position >= len(first) and items is False:
                found.append(f"{_subject(path)} must have at most {_format_count(len(first), 'item')}, not {len(value)}")
                break
            found += self.run(first[position] if position < len(first) else items, item, f"{path}[{position}]", depth + 1)
            if len(found) > 4 * MAX_PROBLEMS:
                break
        if schema.get("uniqueItems") is True and (twin := _first_duplicate(value)) is not None:
            found.append(f"{_subject(path)} must not hold the same item twice: {_format_value(twin)}")
        return found

    # --- references and alternatives

    def _combined_problems(self, schema: dict[str, Any], value: Any, path: str, depth: int) -> list[str]:
        found: list[str] = []
        if isinstance(reference := schema.get("$ref"), str):
            found += self.run(self._resolve(reference), value, path, depth + 1)
        for part in _schemas(schema.get("allOf")):
            found += self.run(part, value, path, depth + 1)
        if alternatives := _schemas(schema.get("anyOf")):
            found += self._alternative_problems(alternatives, value, path, depth, exactly_one=False)
        if alternatives := _schemas(schema.get("oneOf")):
            found += self._alternative_problems(alternatives, value, path, depth, exactly_one=True)
        refused = schema.get("not")
        if _is_schema(refused) and not self.run(refused, value, path, depth + 1) and not self.is_cut_short:
            found.append(f"{_subject(path)} has a form that is not allowed")
        return found

    def _alternative_problems(self, alternatives: list[Any], value: Any, path: str, depth: int, *, exactly_one: bool) -> list[str]:
        fitting, near = 0, list[list[str]]()
        for alternative in alternatives:
            found = self.run(alternative, value, path, depth + 1)
            if not found and not exactly_one:
                return []
            fitting += not found
            if found and type_of(value) in self._types(alternative, depth):
                near.append(found)
        if fitting:
            return [f"{_subject(path)} fits more than one of the forms allowed"] if fitting > 1 and not self.is_cut_short else []
        if len(near) == 1:
            return near[0]
        if not near:
            wanted = [kind for kind in _ARTICLES if any(kind in self._types(alternative, depth) for alternative in alternatives)]
            return [_wrong_type(wanted, value, path)]
        forms = "; or ".join(clip(", ".join(found[:3]), MAX_FORM_CHARS) for found in near[:3])
        return [f"{_subject(path)} fits none of the forms allowed: {forms}"]

    def _types(self, schema: Any, depth: int) -> frozenset[str]:
        """The types a fitting value may have, as far as can be seen without checking it."""
        for _ in range(MAX_DEPTH - min(depth, MAX_DEPTH)):
            self._steps += 1
            if not isinstance(schema, dict) or not isinstance(reference := schema.get("$ref"), str) or "type" in schema:
                break
            schema = self._resolve(reference)
        if schema is False:
            return frozenset()
        if not isinstance(schema, dict):
            return frozenset(_ARTICLES)
        if kinds := _wanted_types(schema):
            return frozenset(kinds) | ({"integer"} if "number" in kinds else set())
        if "const" in schema:
            return frozenset({type_of(schema["const"])})
        if isinstance(choices := schema.get("enum"), list) and choices:
            return frozenset(map(type_of, choices))
        return frozenset(_ARTICLES)

    def _resolve(self, reference: str) -> Any:
        """The target of a reference within the schema; True, which everything fits, if there is none."""
        if reference != "#" and not reference.startswith("#/"):
            return True
        target = self._root
        for step in reference.split("/")[1:]:
            step = _unescape(step)
            if isinstance(target, dict) and step in target:
                target = target[step]
            elif isinstance(target, list) and step.isascii() and step.isdigit() and len(step) < 9 and int(step) < len(target):
                target = target[int(step)]
            else:
                return True
        return target


# --- one value -----------------------------------------------------------------------------------------------------------------


def _type_problem(schema: dict[str, Any], value: Any, path: str) -> str:
    wanted = _wanted_types(schema)
    if not wanted or _has_type(value, wanted):
        return ""
    return _wrong_type([*wanted, *(["null"] if schema.get("nullable") is True else [])], value, path)


def _wanted_types(schema: dict[str, Any]) -> list[str]:
    """The types named, in order. An unknown name allows everything."""
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    return list(dict.fromkeys(kinds)) if kinds and all(isinstance(each, str) and each in _ARTICLES for each in kinds) else []


def _has_type(value: Any, wanted: list[str]) -> bool:
    kind = type_of(value)
    return kind in wanted or (kind == "integer" and "number" in wanted) or (kind == "number" and "integer" in wanted and _is_whole(value))


def _value_problems(schema: dict[str, Any], value: Any, path: str) -> list[str]:
    choices = schema.get("enum")
    if "const" in schema and not _is_equal(value, schema["const"]):
        return [f"{_subject(path)} must be {_format_value(schema['const'])}, not {_format_value(value)}"]
    if not isinstance(choices, list) or any(_is_equal(value, choice) for choice in choices):
        return []
    shown = ", ".join(map(_format_value, choices[:20])) + (f" … ({len(choices)} in all)" if len(choices) > 20 else "")
    near = closest(value, [choice for choice in choices if isinstance(choice, str)]) if isinstance(value, str) else []
    hint = f": did you mean {_format_value(near[0])}?" if near and len(choices) > 3 else ""
    return [f"{_subject(path)} must be one of {shown or 'none'}, not {_format_value(value)}{hint}"]


def _number_problems(schema: dict[str, Any], value: float, path: str) -> list[str]:
    name, found = _subject(path), list[str]()
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if above is True:  # draft 4
        low, above = None, low
    if below is True:
        high, below = None, high
    if _is_number(low) and value < low:
        found.append(f"{name} must be at least {_format_value(low)}, not {_format_value(value)}")
    if _is_number(high) and value > high:
        found.append(f"{name} must be at most {_format_value(high)}, not {_format_value(value)}")
    if _is_number(above) and value <= above:
        found.append(f"{name} must be more than {_format_value(above)}, not {_format_value(value)}")
    if _is_number(below) and value >= below:
        found.append(f"{name} must be less than {_format_value(below)}, not {_format_value(value)}")
    return found


def _count_problems(schema: dict[str, Any], what: str, count: int, path: str, unit: str) -> list[str]:
    low, high = schema.get(f"min{what}"), schema.get(f"max{what}")
    if _is_number(low) and count < low:
        return [f"{_subject(path)} must have at least {_format_count(low, unit)}, not {count}"]
    if _is_number(high) and count > high:
        return [f"{_subject(path)} must have at most {_format_count(high, unit)}, not {count}"]
    return []


def _unknown_field(path: str, name: str, properties: dict[str, Any], value: dict[Any, Any]) -> str:
    """Suggests the field that may have been meant, out of those not given yet."""
    near = closest(name, [known for known in properties if known not in value])
    return f"unknown field `{_join(path, name)}`" + (f": did you mean `{near[0]}`?" if near else _list_fields(properties))


def _list_fields(properties: dict[str, Any]) -> str:
    if not properties:
        return ": no fields are taken"
    return f": the fields are {', '.join(map(str, properties))}" if len(properties) <= 12 else ""


# --- words -----------------------------------------------------------------------------------------------------------------------


def _wrong_type(wanted: list[str], value: Any, path: str) -> str:
    words = list(dict.fromkeys(_ARTICLES[kind] for kind in wanted if not (kind == "integer" and "number" in wanted)))
    either = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "something else"
    given = type_of(value)
    shown = f"{_ARTICLES[given]} with a fraction" if given == "number" and "integer" in wanted else _ARTICLES.get(given, given)
    return f"{_subject(path)} must be {either}, not {shown}"


def _subject(path: str) -> str:
    return path or "the value"


def _join(path: str, name: Any) -> str:
    name = clip(str(name), MAX_SHOWN_CHARS)
    if not name.replace("-", "_").isidentifier():
        return f"{path}[{jsontext.dumps(name)}]"
    return f"{path}.{name}" if path else name


def _format_value(value: Any) -> str:
    """A value for a message: as JSON, truncated."""
    match value:
        case str():
            return clip(jsontext.dumps(value[: MAX_SHOWN_CHARS + 2]), MAX_SHOWN_CHARS)
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case int() | float():
            return clip(format(value, "g") if isinstance(value, float) or value.bit_length() > 128 else str(value), MAX_SHOWN_CHARS)
        case dict() | list() | tuple():
            try:
                return clip(jsontext.dumps(value), MAX_SHOWN_CHARS)
            except (TypeError, ValueError):
                return _ARTICLES[type_of(value)]
        case _:
            return type(value).__name__


def _format_count(count: Any, unit: str) -> str:
    return f"{_format_value(count)} {unit}" + ("" if count == 1 else "s")


# --- values as JSON Schema sees them ------------------------------------------------------------------------------------------------


def type_of(value: Any) -> str:
    """The JSON Schema name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case dict() | Mapping():
            return "object"
        case list() | tuple():
            return "array"
        case _:
            return type(value).__name__


def _is_whole(value: float) -> bool:
    return value == value and abs(value) != float("inf") and value == int(value)


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _key(value: Any) -> Any:
    """Equal for values that are equal in JSON: 1 and 1.0 are, 1 and true are not."""
    match value:
        case bool():
            return ("boolean", value)
        case list() | tuple():
            return ("array", *map(_key, value))
        case dict():
            return ("object", frozenset((str(name), _key(item)) for name, item in value.items()))
        case str() | int() | float() | None:
            return value
        case _:
            return (type(value).__name__, id(value))


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one == other
    return _key(one) == _key(other)


def _first_duplicate(values: Iterable[Any]) -> Any:
    """The first item that occurred before; None if there is none. A duplicate null is returned as the string "null"."""
    seen: set[Any] = set()
    for value in values:
        key = _key(value)
        if key in seen:
            return "null" if value is None else value
        seen.add(key)
    return None


def _schemas(value: Any) -> list[Any]:
    return [part for part in value if _is_schema(part)] if isinstance(value, list) else []


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _unescape(step: str) -> str:
    """Undo the escapes of one step of a JSON Pointer in a URI fragment."""
    if "%" in step:
        step = unquote(step)
    return step.replace("~1", "/").replace("~0", "~")
