"""Schemas of foreign tools: made harmless for requests, and used to check arguments.

What a server calls a schema may be anything. A request carries only what every service takes as one; what has to be left out is described
to the model in words, and the arguments are checked against the schema as the server wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dragoman.base import jsontext
from dragoman.base.visible import strip_hidden

MAX_SCHEMA_CHARS = 60_000
MAX_DEPTH = 24
MAX_PROBLEMS = 5
MAX_PARTS = 50_000
"""Arguments are not checked against a schema that stands for more parts: the server does that."""
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}\Z")
_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_TEXTS = ("description", "title", "format", "pattern", "$comment", "contentEncoding", "contentMediaType")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}


def tame(schema: Any) -> tuple[dict[str, Any], str]:
    """The schema as a request may carry it, and what the model has to be told of it in words: empty where nothing is lost."""
    try:
        text = jsontext.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        return _ANYTHING, ""
    if len(text) > MAX_SCHEMA_CHARS or jsontext.depth(text.encode()) > MAX_DEPTH * 2:
        return _ANYTHING, f"Its schema is too large to be shown whole; it begins: {text[:1_000]}"
    if not isinstance(schema, dict):
        return _ANYTHING, ""
    kept = _tame(schema, 0, _local_names(schema))
    properties = kept.get("properties") or {}
    if not all(_PROPERTY.match(name) for name in properties):
        return _ANYTHING, f"Its arguments have names that cannot be declared. Their schema: {text[:2_000]}"
    required = [name for name in kept.get("required", ()) if name in properties]
    rest = {key: value for key, value in kept.items() if key not in ("type", "properties", "required")}
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), **rest}, ""


def _local_names(schema: dict[str, Any]) -> frozenset[str]:
    names = [
        f"#/{key}/{name}" for key in ("$defs", "definitions") if isinstance(schema.get(key), dict) for name in schema[key]
    ]  # the only ones that services resolve
    return frozenset((*names, "#"))


def _tame(schema: Any, depth: int, known: frozenset[str]) -> Any:
    if isinstance(schema, bool):
        return schema if depth else dict[str, Any]()
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return dict[str, Any]()
    reference = schema.get("$ref")
    if reference is not None:
        is_known = isinstance(reference, str) and reference in known and reference != "#"
        return {"$ref": reference} if is_known else dict[str, Any]()
    return {key: tamed for key, value in schema.items() if (tamed := _word(key, value, depth, known)) is not None}


def _word(key: str, value: Any, depth: int, known: frozenset[str]) -> Any:
    """The value of a keyword, or None if it has no meaning."""
    if key == "type":
        kinds = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        kinds = list(dict.fromkeys(kind.lower() for kind in kinds if isinstance(kind, str) and kind.lower() in _TYPES))
        return (kinds[0] if len(kinds) == 1 else kinds) or None
    if key in _NAMED:
        return {str(name): _tame(each, depth + 1, known) for name, each in value.items()} if isinstance(value, dict) else None
    if key in _LISTED:
        parts = [each for each in value if each is not False] if isinstance(value, list) else []
        return [_tame(each, depth + 1, known) if each is not True else dict[str, Any]() for each in parts] or None
    if key in _SINGLE:
        return _tame(value, depth + 1, known) if isinstance(value, (dict, bool)) else None
    if key in _TEXTS:
        return strip_hidden(value) if isinstance(value, str) else None
    if key in _NUMBERS:
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if key in _COUNTS:
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
    if key == "required":
        return [name for name in value if isinstance(name, str)] or None if isinstance(value, list) else None
    if key == "enum":
        return value or None if isinstance(value, list) else None
    return value if key in ("const", "default", "examples", "uniqueItems", "nullable", "readOnly", "deprecated") else None


def problems_of(schema: Mapping[str, Any], args: Mapping[str, Any]) -> list[str]:
    """Why arguments do not fit a schema of JSON Schema 2020-12, at most a few. Empty too where the library for it is not installed or the
    schema is none: then the server has the last word, as it has in any case."""
    try:
        validator = _validator(jsontext.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return []
    if validator is None:
        return []
    found: list[str] = []
    try:
        for error in validator.iter_errors(dict(args)):
            where = ".".join(str(each) for each in error.instance_path)
            found.append(f"{where}: {error.message}" if where else str(error.message))
            if len(found) == MAX_PROBLEMS:
                break
    except Exception:  # the library is at odds with the schema: that is not the model's fault
        return []
    return found


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    if not is_cheap(jsontext.decode(schema)):
        return None
    try:
        import jsonschema_rs
    except ImportError:
        return None
    try:
        # Nothing is fetched, and no pattern takes more than linear time.
        return jsonschema_rs.Draft202012Validator(schema, offline=True, pattern_options=jsonschema_rs.RegexOptions())
    except Exception:
        return None


def is_cheap(schema: Any) -> bool:
    """Whether checking against a schema takes a bounded time. References that lead to one another can stand for more parts than there are
    atoms; those that are not plain paths in the schema are not counted, and so not followed either."""
    try:
        return _weight(schema, schema, {}, True) <= MAX_PARTS
    except (LookupError, RecursionError, ValueError):
        return False


def _weight(part: Any, whole: Any, known: dict[str, int], is_root: bool = False) -> int:
    """How many parts it has, with what its references lead to. Raises LookupError or ValueError where they lead elsewhere."""
    if isinstance(part, list):
        return 1 + sum(_weight(each, whole, known) for each in part)
    if not isinstance(part, dict):
        return 1
    if "$dynamicRef" in part or "$recursiveRef" in part or (isinstance(part.get("$id"), str) and not is_root):
        raise ValueError
    total = 1 + sum(_weight(each, whole, known) for each in part.values())
    reference = part.get("$ref")
    return min(total + (_weight_behind(reference, whole, known) if isinstance(reference, str) else 0), MAX_PARTS + 1)


def _weight_behind(reference: str, whole: Any, known: dict[str, int]) -> int:
    if reference in known:
        return known[reference]
    known[reference] = 1  # while it is counted: a reference back to itself ends with the arguments
    known[reference] = _weight(_at(reference, whole), whole, known)
    return known[reference]


def _at(reference: str, whole: Any) -> Any:
    if reference == "#":
        return whole
    if not reference.startswith("#/"):
        raise ValueError
    for name in reference[2:].split("/"):
        name = name.replace("~1", "/").replace("~0", "~")
        whole = whole[int(name)] if isinstance(whole, list) else whole[name]
    return whole
