"""The prompt that describes tools to the model and how to call them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.text_tools.calls import Call
from dragoman.text_tools.constrained import render_reply
from dragoman.text_tools.dialect import DEFAULT, FENCED_JSON, Dialect
from dragoman.text_tools.dialect_table import find_dialect
from dragoman.text_tools.render import render_call, render_calls
from dragoman.text_tools.toolset import Tool, Toolset

MAX_TYPE_DEPTH = 4

_EXAMPLE = Call("tool_name", {"param": "value"})


def render_prompt(tools: Iterable[Tool] | Toolset, dialect: str = DEFAULT) -> str:
    """The description of the tools, for the start of a conversation. Empty if there are no tools."""
    offered = Toolset.of(tools)
    if offered is None or not offered.names:
        return ""
    spoken = find_dialect(dialect)
    return _fenced_json_guidance(offered) if spoken.name == FENCED_JSON else _guidance(offered, spoken)


def render_bound_prompt(tools: Iterable[Tool] | Toolset) -> str:
    """The same for a model whose answers are constrained by a grammar: it describes that form. See `constrained`.

    The call comes last: a small model prefers the form it has read last, and should rather call a tool once too often.
    """
    offered = Toolset.of(tools)
    if offered is None or not offered.names:
        return ""
    signatures = "\n\n".join(_signature(name, offered) for name in offered.names)
    forms = f"Every reply is JSON in one of two forms:\n{render_reply('words')}\n{render_reply(_EXAMPLE)}"
    return f"# Tools\n\n{signatures}\n\n# Form\n\n{forms}"


# --- all dialects but fenced_json -----------------------------------------------------------------------------------------------------


def _guidance(tools: Toolset, dialect: Dialect) -> str:
    parts = [
        "# Tools",
        "You can call these tools. Each is shown as a signature; a question mark follows what may be left out.",
        "\n\n".join(_signature(name, tools) for name in tools.names),
        "## How to call",
        "Write a call in exactly this form, on lines of its own and outside of code fences:",
        render_call(_EXAMPLE, dialect.name),
    ]
    if "raw" in dialect.forms:
        parts += [
            "Long or multi-line text may stand behind the JSON as it is, without escapes, one block for each parameter:",
            render_call(Call("tool_name", {"param": "value", "text": "first line\nsecond line"}), dialect.name),
        ]
    parts.append("Several calls in one answer follow one another:")
    parts.append(render_calls((_EXAMPLE, _EXAMPLE), dialect.name))
    parts.append(
        "Call a tool only when it is needed, with every parameter it requires. Text before a call is welcome; after the last call, "
        "stop and wait. Results come back to you in the next message. Never write a result yourself."
    )
    return "\n\n".join(parts)


def _signature(name: str, tools: Toolset) -> str:
    """`name(path: string, limit?: integer)`, its description, and those of its parameters."""
    schema = tools.schema(name) or {}
    properties = _properties(schema)
    required = _required(schema)
    fields = ", ".join(f"{key}{'' if key in required else '?'}: {type_text(each, schema)}" for key, each in properties.items())
    lines = [f"{name}({fields})"]
    lines += [f"  {line}" for line in tools.description(name).strip().splitlines()]
    lines += [f"  - {key}: {text}" for key, each in properties.items() if (text := _description(each))]
    return "\n".join(lines)


def type_text(schema: Any, root: dict[str, Any], depth: int = 0) -> str:
    """A schema as a short type expression."""
    if not isinstance(schema, dict) or depth > MAX_TYPE_DEPTH:
        return "any"
    if isinstance(choices := schema.get("enum"), list) and choices:
        from dragoman.text_tools.render import dumps

        return " | ".join(dumps(choice) for choice in choices[:20])
    if isinstance(reference := schema.get("$ref"), str):
        return type_text(_resolve(reference, root), root, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(forms := schema.get(keyword), list) and forms:
            return " | ".join(dict.fromkeys(type_text(form, root, depth + 1) for form in forms[:10]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(type_text({**schema, "type": each}, root, depth + 1) for each in kind[:10])
    match kind:
        case "array":
            inner = type_text(schema.get("items", True), root, depth + 1)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case "object" if properties := _properties(schema):
            required = _required(schema)
            fields = (f"{key}{'' if key in required else '?'}: {type_text(each, root, depth + 1)}" for key, each in properties.items())
            return f"{{{', '.join(fields)}}}"
        case str():
            return kind
        case _:
            return "any"


def _resolve(reference: str, root: dict[str, Any]) -> Any:
    target: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        target = target.get(step) if isinstance(target, dict) else None
    return target


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: dict[str, Any]) -> list[Any]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _description(schema: Any) -> str:
    text = schema.get("description") if isinstance(schema, dict) else None
    return " ".join(text.split()) if isinstance(text, str) else ""


# --- fenced_json: fixed wording, which must not change --------------------------------------------------------------------------------

_FENCED_JSON_HEAD = """\
You are an AI assistant with access to the following tools. When you need to use a tool, respond with JSON in this exact format:

```json
{
  "tool_call": {
    "name": "tool_name",
    "arguments": {"param": "value"}
  }
}
```

Available tools:
"""
_FENCED_JSON_FOOT = """

IMPORTANT:
- Only use tools when necessary to complete the user's request
- Always use the exact JSON format shown above
- Include all required parameters
- You can provide explanatory text along with tool calls when helpful"""


def _fenced_json_guidance(tools: Toolset) -> str:
    return _FENCED_JSON_HEAD + "\n".join(_fenced_json_tool(name, tools) for name in tools.names) + _FENCED_JSON_FOOT


def _fenced_json_tool(name: str, tools: Toolset) -> str:
    schema = tools.schema(name) or {}
    required = _required(schema)
    lines = [f"**{name}**: {tools.description(name)}", "  Parameters:"]
    for key, each in _properties(schema).items():
        kind = each.get("type") if isinstance(each, dict) else None
        text = _description(each)
        need = "required" if key in required else "optional"
        lines.append(f'    "{key}": {kind if isinstance(kind, str) else "any"} ({need}){f" - {text}" if text else ""}')
    return "\n".join(lines)
