"""Parses what servers offer, leniently: one invalid item does not hide the others."""

from __future__ import annotations

from typing import Any

from dragoman.mcp_client.contracts import CallResult, McpPrompt, McpResource, McpTool


def tool_from_wire(value: dict[str, Any]) -> McpTool | None:
    name = _text(value, "name")
    if not name:
        return None
    output, annotations = value.get("outputSchema"), _table(value, "annotations")
    return McpTool(
        name=name,
        title=_text(value, "title") or _text(annotations, "title"),
        description=_text(value, "description"),
        input_schema=_table(value, "inputSchema") or {"type": "object"},
        output_schema=output if isinstance(output, dict) else None,
        annotations=annotations,
    )


def prompt_from_wire(value: dict[str, Any]) -> McpPrompt | None:
    if not (name := _text(value, "name")):
        return None
    arguments = value.get("arguments")
    given = tuple(each for each in arguments if isinstance(each, dict)) if isinstance(arguments, list) else ()
    return McpPrompt(name=name, title=_text(value, "title"), description=_text(value, "description"), arguments=given)


def resource_from_wire(value: dict[str, Any]) -> McpResource | None:
    template = _text(value, "uriTemplate")
    if not (uri := template or _text(value, "uri")):
        return None
    return McpResource(
        uri=uri,
        name=_text(value, "name"),
        title=_text(value, "title"),
        description=_text(value, "description"),
        mime=_text(value, "mimeType"),
        is_template=bool(template),
    )


def call_result_from_wire(result: dict[str, Any]) -> CallResult:
    text = result.get("content")
    return CallResult(
        content=({"type": "text", "text": text},) if isinstance(text, str) else blocks_of(result, "content"),
        structured=result.get("structuredContent"),
        is_error=result.get("isError") is True,
    )


def blocks_of(result: dict[str, Any], name: str) -> tuple[dict[str, Any], ...]:
    """A list of objects; anything else in it is left out."""
    given = result.get(name)
    return tuple(each for each in given if isinstance(each, dict)) if isinstance(given, list) else ()


def _text(value: dict[str, Any], name: str) -> str:
    given = value.get(name)
    return given if isinstance(given, str) else ""


def _table(value: dict[str, Any], name: str) -> dict[str, Any]:
    given = value.get(name)
    return given if isinstance(given, dict) else {}
