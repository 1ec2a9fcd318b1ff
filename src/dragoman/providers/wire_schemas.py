"""JSON Schemas as services take them: what they reject is rewritten, the rest passes unchanged."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dragoman.base import jsontext


@lru_cache(maxsize=1024)
def tool_schema(parameters: str) -> bytes:
    """A tool's schema as every service takes it: an object at the root, without anyOf, oneOf or allOf there. Such ones pass unchanged."""
    text = jsontext.clean(parameters)  # (24)
    schema = jsontext.decode(text)
    combined = {key: [part for part in schema.get(key) or () if isinstance(part, dict)] for key in ("anyOf", "oneOf", "allOf")}
    if schema.get("type") == "object" and not any(combined.values()):
        return text.encode()
    sure = [schema, *combined["allOf"]]
    properties = {
        key: value for part in (*combined["anyOf"], *combined["oneOf"], *sure) for key, value in (part.get("properties") or {}).items()
    }
    required = {key: None for part in sure for key in part.get("required") or ()}
    rest = {key: value for key, value in schema.items() if key not in combined}
    return jsontext.encode({**rest, "type": "object", "properties": properties, **({"required": list(required)} if required else {})})


def is_strict_schema(schema: Any) -> bool:
    """Whether OpenAI's strict mode accepts the schema: no additional properties, every property required."""
    match schema:
        case dict():
            if "properties" in schema:
                closed = schema.get("additionalProperties") is False
                if not closed or set(schema.get("required", ())) != set(schema["properties"]):
                    return False
            return all(map(is_strict_schema, schema.values()))
        case list():
            return all(map(is_strict_schema, schema))
        case _:
            return True
