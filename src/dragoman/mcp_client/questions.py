"""What a server may ask of us: questions to the user (elicitation). Sampling and roots are not offered."""

from __future__ import annotations

from typing import Any

from dragoman.mcp_client.contracts import Elicit, Elicitation
from dragoman.mcp_client.errors import INVALID_PARAMS, METHOD_NOT_FOUND


class Unanswerable(Exception):
    """What the server asks for is not offered, or makes no sense. The text is for the server."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def capabilities_for(elicit: Elicit | None) -> dict[str, Any]:
    """What we say we can do."""
    return {} if elicit is None else {"elicitation": {"form": {}, "url": {}}}


async def answer_question(method: str, params: dict[str, Any], elicit: Elicit | None) -> dict[str, Any]:
    """The result. Raises Unanswerable."""
    if method == "ping":
        return {}
    if method == "elicitation/create" and elicit is not None:
        return await _ask_user(params, elicit)
    raise Unanswerable(f"this client does not offer {method[:100]}", METHOD_NOT_FOUND)


async def answer_required(method: str, params: dict[str, Any], elicit: Elicit | None) -> dict[str, Any]:
    """The same for a question that came as a result (`input_required`). What we do not offer is declined: there is no way to refuse."""
    if method == "elicitation/create":
        return await _ask_user(params, elicit) if elicit is not None else {"action": "decline"}
    if method == "roots/list":
        return {"roots": []}
    raise Unanswerable(f"this client does not offer {method[:100]}", METHOD_NOT_FOUND)


async def _ask_user(params: dict[str, Any], elicit: Elicit) -> dict[str, Any]:
    message, schema, url = params.get("message"), params.get("requestedSchema"), params.get("url")
    by_url = params.get("mode") == "url"
    if by_url and not isinstance(url, str):
        raise Unanswerable("the address is missing", INVALID_PARAMS)
    elicited = await elicit(
        Elicitation(
            message=message if isinstance(message, str) else "",
            schema=schema if isinstance(schema, dict) and not by_url else None,
            url=url if isinstance(url, str) and by_url else "",
        )
    )
    if elicited.action != "accept" or by_url:
        return {"action": elicited.action}
    return {"action": "accept", "content": {**defaults_of(schema), **(elicited.content or {})}}


def defaults_of(schema: Any) -> dict[str, Any]:
    """What a form has where the user leaves a field as it is."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {name: each["default"] for name, each in properties.items() if isinstance(each, dict) and "default" in each}
