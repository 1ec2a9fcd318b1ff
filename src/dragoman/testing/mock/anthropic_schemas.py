"""Validates schemas for Anthropic's constrained decoding (`output_config.format`, strict tools), which lacks many words."""

from __future__ import annotations

from typing import Any

from dragoman.testing.mock.violation import Violation

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRINGS = ("minLength", "maxLength")
_ARRAYS = ("maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems")
_OBJECTS = ("minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas")
_REFUSED = {*_NUMBERS, *_STRINGS, *_ARRAYS, *_OBJECTS, "oneOf", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"}
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_NAMED = ("properties", "$defs", "definitions")
_LISTED = ("anyOf", "allOf")


def schema_violation(schema: Any, path: str) -> Violation | None:
    """The first word of a schema that the service refuses."""
    if not isinstance(schema, dict):
        return None
    kind = schema.get("type")
    for word in schema:
        if word in _REFUSED:
            named = f"For '{kind}' type, property '{word}' is" if isinstance(kind, str) else f"Schema keyword '{word}' is"
            return Violation(0, f"{path}: {named} not supported", paraphrase=not isinstance(kind, str))
    if kind in ("object", ["object", "null"]) and schema.get("additionalProperties") is not False:
        return Violation(0, f"{path}: For 'object' type, 'additionalProperties' must be explicitly set to false")
    if schema.get("minItems", 0) not in (0, 1):
        return Violation(0, f"{path}: For 'array' type, 'minItems' values other than 0 or 1 are not supported")
    if "format" in schema and schema["format"] not in _FORMATS:
        return Violation(0, f"{path}: For 'string' type, 'format' value '{schema['format']}' is not supported", paraphrase=True)
    return next((found for each in _parts_of(schema) if (found := schema_violation(each, path))), None)


def _parts_of(schema: dict[str, Any]) -> list[Any]:
    named = [each for word in _NAMED if isinstance(schema.get(word), dict) for each in schema[word].values()]
    listed = [each for word in _LISTED if isinstance(schema.get(word), list) for each in schema[word]]
    return [*named, *listed, schema.get("items")]
