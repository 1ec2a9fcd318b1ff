"""The client that the official conformance suite drives: `python conformance_client.py URL`, with the scenario in the environment.

It does what an agent does with a server that it has just been given: looks at everything, calls every tool, reads every resource.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from visitor import Visitor

from dragoman.mcp_client import handshake
from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import Authorizer, Elicitation, Elicited, HttpServer, OAuthSettings
from dragoman.mcp_client.errors import McpError, ProtocolError
from dragoman.mcp_client.oauth.authorizer import OAuth
from dragoman.mcp_client.oauth.loopback import Browser
from dragoman.mcp_client.oauth.tokens import TokenStore

SIGNS_IN = True
"""Whether `authorizer_for` gives somebody who signs in: then the scenarios about that must pass as well."""
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The one that the suite knows as a client id."""

PATIENCE_S = 50
"""The suite starts all scenarios at once: on a busy machine a first answer takes long, and that says nothing about the server's era."""


async def accept(question: Elicitation) -> Elicited:
    """A user who takes every form as it is: the client fills the defaults in."""
    return Elicited("accept", {})


def authorizer_for(scenario: str, url: str, context: dict[str, Any]) -> Authorizer | None:
    """Signs in as users do, with what the scenario says about the client beforehand."""
    settings = OAuthSettings(
        client_id=context.get("client_id", ""),
        client_secret=context.get("client_secret", ""),
        private_key_pem=context.get("private_key_pem", ""),
        signing_algorithm=context.get("signing_algorithm", "ES256"),
        grant="client_credentials" if "client-credentials" in scenario else "authorization_code",
        client_metadata_url=DOCUMENT,
    )
    return OAuth("conformance", HttpServer(url), TokenStore(), settings, Browser(lambda line: None, Visitor().visit, wait_s=10))


def arguments_for(schema: dict[str, Any]) -> dict[str, Any]:
    """Something for each argument that a tool must have."""
    made: dict[str, Any] = {"string": "text", "number": 1.5, "integer": 2, "boolean": True, "array": [], "object": {}, "null": None}
    properties = schema.get("properties", {})
    return {name: made.get(properties.get(name, {}).get("type", "string")) for name in schema.get("required", [])}


async def look_at_everything(client: McpClient, context: dict[str, Any]) -> None:
    await client.connect()
    tools = (await client.list_tools()).items
    planned = [(each["name"], each["arguments"]) for each in context.get("toolCalls", ())]
    if "json_schema_echo" in {tool.name for tool in tools}:
        focal = next(tool for tool in tools if tool.name != "json_schema_echo")
        planned = [("json_schema_echo", {"schema": focal.input_schema})]
    for name, arguments in planned or [(tool.name, arguments_for(tool.input_schema)) for tool in tools]:
        await client.call_tool(name, arguments)
    if "resources" in client.info.capabilities:
        for resource in (await client.list_resources()).items:
            await client.read_resource(resource.uri)
    if "prompts" in client.info.capabilities:
        for prompt in (await client.list_prompts()).items:
            await client.get_prompt(prompt.name, {})


async def main(url: str) -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    handshake.PROBE_S = PATIENCE_S
    client = McpClient(HttpServer(url), authorizer=authorizer_for(scenario, url, context), elicit=accept, timeout_s=PATIENCE_S)
    try:
        await look_at_everything(client, context)
    except ProtocolError as error:
        print(f"{scenario}: {error}", file=sys.stderr)
    except McpError as error:
        print(f"{scenario}: {type(error).__name__} {error}", file=sys.stderr)
        return 1
    finally:
        await client.aclose()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
