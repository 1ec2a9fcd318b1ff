"""Structured output for Anthropic: a JSON Schema in the words its constrained decoding takes.

What it does not take (`minimum`, `maxLength`, `pattern` …) goes into the description, where the model reads it. Where a schema cannot be
said at all in what is left (a map of any keys, a value of any type, recursion), there is no constraint: the prompt asks for it in words.
"""

from __future__ import annotations

from typing import Any

from dragoman.base import jsontext
from dragoman.values.messages import Settings
from dragoman.values.profile import Profile

_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_DEFINITIONS = ("$defs", "definitions")
_UNSAID = ("$schema", "$id", "$anchor", "$comment", "$vocabulary")
"""Words about the schema itself: the model has no use for them."""


class _Inexpressible(Exception):
    """The service has no words for this schema."""


def output_schema(settings: Settings, profile: Profile) -> dict[str, Any] | None:
    """The schema to constrain the answer by; None if there is none, or none that the service takes."""
    if not settings.response_schema or not profile.json_schema:
        return None
    schema = jsontext.decode(settings.response_schema)
    try:
        return to_output_schema(schema)
    except (_Inexpressible, AttributeError, TypeError, ValueError, RecursionError):  # the rest: what is no schema at all, or too deep
        return None


def format_instruction(settings: Settings, profile: Profile) -> str:
    """What the prompt says where the answer must be JSON and nothing constrains it; empty where something does."""
    if output_schema(settings, profile) is not None:
        return ""
    if settings.response_schema:
        return f"Answer with one JSON value that fits this JSON Schema, and nothing else, no code fence: {settings.response_schema}"
    return "Answer with one JSON object and nothing else, no code fence." if settings.response_mime == "application/json" else ""


def to_output_schema(schema: Any) -> dict[str, Any]:
    """Raises _Inexpressible. Whatever fits the schema, without more properties than it names, fits the result as well."""
    if not isinstance(schema, dict):
        raise _Inexpressible
    definitions = {key: schema[key] for key in _DEFINITIONS if isinstance(schema.get(key), dict)}
    _require_no_recursion(definitions)
    rewritten = _rewrite({key: value for key, value in schema.items() if key not in definitions}, _names_of(definitions))
    for key, schemas in definitions.items():
        rewritten[key] = {name: _rewrite(each, _names_of(definitions)) for name, each in schemas.items()}
    return rewritten


def _names_of(definitions: dict[str, dict[str, Any]]) -> frozenset[str]:
    return frozenset(f"#/{key}/{name}" for key, schemas in definitions.items() for name in schemas)


def _rewrite(schema: Any, known: frozenset[str]) -> dict[str, Any]:
    """One schema and all within it. `known`: what `$ref` may name."""
    if not isinstance(schema, dict):
        raise _Inexpressible  # true: any value; false: none
    rest = {key: value for key, value in schema.items() if key not in _UNSAID}
    made: dict[str, Any] = _core(rest, known)
    if title := rest.pop("title", None):
        made["title"] = title
    if described := _description(rest):
        if "$ref" in made:  # nothing may stand beside a reference
            return {"anyOf": [made], "description": described}
        made["description"] = described
    return made


def _core(rest: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """What constrains: taken out of `rest`, where what can only be described stays."""
    if "$ref" in rest:
        rest.pop("title", None)
        return _reference(rest.pop("$ref"), known)
    if literals := _literals(rest):
        rest.pop("type", None)
        return literals
    for word in ("anyOf", "oneOf", "allOf"):
        if word in rest:
            return _choice(rest, word, known)
    kind = rest.pop("type", None)
    if isinstance(kind, list):
        return _several_types(kind, rest, known)
    if kind not in _TYPES:
        raise _Inexpressible
    match kind:
        case "object":
            return _object(rest, known)
        case "array":
            return _array(rest, known)
        case "string" if rest.get("format") in _FORMATS:
            return {"type": "string", "format": rest.pop("format")}
        case _:
            return {"type": kind}


def _reference(name: object, known: frozenset[str]) -> dict[str, Any]:
    if name not in known:
        raise _Inexpressible  # an address, or a place in the schema that is not a definition
    return {"$ref": name}


def _literals(rest: dict[str, Any]) -> dict[str, Any]:
    """`enum` or `const`, which may hold plain values alone."""
    values = rest.get("enum")
    if isinstance(values, list) and values and all(map(_is_plain, values)):
        return {"enum": rest.pop("enum")}
    if "const" in rest and _is_plain(rest["const"]):
        return {"const": rest.pop("const")}
    return {}


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _choice(rest: dict[str, Any], word: str, known: frozenset[str]) -> dict[str, Any]:
    variants = rest.pop(word)
    if "properties" in rest or "items" in rest or not isinstance(variants, list) or not variants:
        raise _Inexpressible  # both would be closed, so nothing would fit both
    if word == "allOf" and len(variants) > 1:
        raise _Inexpressible
    rest.pop("type", None)
    rewritten = [_rewrite(variant, known) for variant in variants]
    return rewritten[0] if word == "allOf" and set(rewritten[0]) <= {"$ref", "type", "enum", "const"} else {"anyOf": rewritten}


def _several_types(kinds: list[Any], rest: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    shared = {key: rest.pop(key) for key in ("properties", "required", "additionalProperties", "items", "prefixItems") if key in rest}
    return {"anyOf": [_rewrite({"type": kind, **(shared if kind in ("object", "array") else {})}, known) for kind in kinds]}


def _object(rest: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Objects must be closed. Where more properties than the named ones are meant, closing it would leave them out, or all of it empty."""
    more = rest.pop("additionalProperties", None)
    properties = rest.pop("properties", None)
    required = rest.pop("required", [])
    if "patternProperties" in rest or isinstance(more, dict) or (properties is None and more is not False):
        raise _Inexpressible
    if not set(required) <= set(properties or ()):
        raise _Inexpressible  # a property that is required and not named could not be given
    made = {"type": "object", "properties": {name: _rewrite(each, known) for name, each in (properties or {}).items()}}
    return {**made, **({"required": required} if required else {}), "additionalProperties": False}


def _array(rest: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    items = rest.pop("items", None)
    if places := rest.get("prefixItems"):  # the places themselves are described: any of their kinds may stand at each
        items = {"anyOf": [*places, *([items] if isinstance(items, dict) else [])]}
    made = {"type": "array", "items": _rewrite(items, known)}
    return {**made, "minItems": rest.pop("minItems")} if rest.get("minItems") in (0, 1) else made


def _description(rest: dict[str, Any]) -> str:
    own = rest.pop("description", "") or ""
    limits = ", ".join(f"{key}: {value if isinstance(value, str) else jsontext.dumps(value)}" for key, value in rest.items())
    return "\n\n".join(filter(None, (own, limits and f"({limits})")))


def _require_no_recursion(definitions: dict[str, dict[str, Any]]) -> None:
    """A definition that leads back to itself is refused by the service."""
    leads_to = {f"#/{key}/{name}": _references(each) for key, schemas in definitions.items() for name, each in schemas.items()}
    for start in leads_to:
        reached: set[str] = set()
        waiting = list(leads_to[start])
        while waiting:
            name = waiting.pop()
            if name == start:
                raise _Inexpressible
            if name not in reached:
                reached.add(name)
                waiting += leads_to.get(name, ())


def _references(schema: Any) -> set[str]:
    match schema:
        case dict():
            own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set[str]()
            return own.union(*map(_references, schema.values()))
        case list():
            return set[str]().union(*map(_references, schema))
        case _:
            return set()
