"""JSON Schemas as services take them: what they reject is rewritten, the rest passes unchanged."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dragoman.base import jsontext


@lru_cache(maxsize=1024)
def tool_schema(parameters: str) -> bytes:
    """A tool's schema as every service takes it: an object at the root, without anyOf, oneOf or allOf there, and every array with its
    items. Such ones pass unchanged."""
    text = jsontext.clean(parameters)  # (24)
    schema = jsontext.decode(text)
    if (complete := _with_items(schema)) != schema:
        schema, text = complete, jsontext.dumps(complete)
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


def _with_items(schema: Any) -> Any:
    """The schema with `items` in every array: OpenAI refuses one that does not say what it holds."""
    match schema:
        case dict():
            complete = {key: _with_items(value) for key, value in schema.items()}
            lacks_items = schema.get("type") == "array" and "items" not in schema and "prefixItems" not in schema
            return {**complete, "items": dict[str, Any]()} if lacks_items else complete
        case list():
            return [_with_items(item) for item in schema]
        case _:
            return schema
