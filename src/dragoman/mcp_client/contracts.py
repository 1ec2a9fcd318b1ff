"""The types that the parts of the MCP client share: how a server is reached, what it offers and answers, and who signs in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

Era = Literal["", "modern", "legacy"]
"""`modern`: revision 2026-07-28 and later, where each request stands for itself. `legacy`: 2025-11-25 and before, which begin with
`initialize`. Empty: not known yet."""


class StdioServer(msgspec.Struct, frozen=True):
    """A program on this machine that is spoken to over its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """Beside the short list of variables that every server gets."""
    cwd: str = ""


AuthMethod = Literal["", "none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
"""How a client proves to the token endpoint who it is. Empty: the best that the issuer offers."""


class OAuthSettings(msgspec.Struct, frozen=True):
    """What is set by hand, where an issuer does not let clients register themselves."""

    client_id: str = ""
    """Of a client that was registered with the issuer beforehand."""
    client_secret: str = ""
    issuer: str = ""
    """Whose the client id is: it is sent to no other issuer. Empty: that of the first sign-in."""
    auth_method: AuthMethod = ""
    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    """`client_credentials`: a program signs in for itself, and no browser is needed."""
    private_key_pem: str = ""
    """For `private_key_jwt`."""
    signing_algorithm: str = "ES256"
    scopes: tuple[str, ...] = ()
    """Asked for beside those that the server names."""
    client_metadata_url: str = ""
    """An https URL with our client id metadata document (`client_document`). It is then our client id wherever an issuer takes that."""
    redirect_uri: str = ""
    """On this machine, as it was registered. Empty: a free port."""

    def __repr__(self) -> str:
        return f"OAuthSettings(client_id={self.client_id!r}, issuer={self.issuer!r}, grant={self.grant!r}, …)"

    def filled(self, fill: Callable[[str], str]) -> OAuthSettings:
        """With its variables filled in."""
        names = ("client_id", "client_secret", "issuer", "private_key_pem", "client_metadata_url", "redirect_uri")
        return msgspec.structs.replace(self, **{name: fill(getattr(self, name)) for name in names})


class HttpServer(msgspec.Struct, frozen=True):
    """A server that is reached by HTTP."""

    url: str
    headers: dict[str, str] = {}
    transport: Literal["http", "sse"] = "http"
    """`sse`: the transport of 2024-11-05, with one stream for all answers."""
    oauth: OAuthSettings | None = None
    """What is set by hand about signing in to it."""


class McpTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as its server describes it."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = {}


class McpPrompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt that a server offers."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[dict[str, Any], ...] = ()


class McpResource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A resource that a server offers, or a template for several."""

    uri: str
    """Or a template of one, with `{names}`."""
    name: str = ""
    title: str = ""
    description: str = ""
    mime: str = ""
    is_template: bool = False


class ServerInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server says of itself."""

    era: Era = ""
    version: str = ""
    """The revision of the protocol that is spoken."""
    name: str = ""
    server_version: str = ""
    instructions: str = ""
    capabilities: dict[str, Any] = {}


T = TypeVar("T")


class Offered(msgspec.Struct, Generic[T], frozen=True):
    """A list that a server gave, all pages of it."""

    items: tuple[T, ...]
    ttl_ms: int | None = None
    """For how long the server says it holds; None: it does not say. 0: it is outdated at once."""
    scope: Literal["", "public", "private"] = ""
    """`private`: it holds for this user's token alone. Empty: the server does not say."""
    left_out: tuple[str, ...] = ()
    """Names of what was offered and cannot be used, with the reason: tools whose headers are wrong."""


class CallResult(msgspec.Struct, frozen=True):
    """What a tool answered: blocks as the protocol has them (text, image, audio, resource, resource_link)."""

    content: tuple[dict[str, Any], ...] = ()
    structured: Any = None
    is_error: bool = False


class Elicitation(msgspec.Struct, frozen=True):
    """A question that a server has for the user, in the middle of a call."""

    message: str
    schema: dict[str, Any] | None = None
    """A form: an object of plain values."""
    url: str = ""
    """A page that the user shall open instead."""


class Elicited(msgspec.Struct, frozen=True):
    """The user's answer to an Elicitation."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


Elicit = Callable[[Elicitation], Awaitable[Elicited]]
Progress = Callable[[float, float | None, str], None]
"""Takes how far a call has come, of how much, and a message."""


class Authorizer(Protocol):
    """Signs requests to one HTTP server."""

    async def headers(self) -> Mapping[str, str]:
        """What a request has to carry; empty where no token is at hand."""
        ...

    async def refused(self, status: int, challenges: str, sent: Mapping[str, str]) -> bool:
        """A request that carried `sent` was refused (401, or 403 for want of a scope); `challenges` is the value of WWW-Authenticate.

        Returns True if there is another token now and the request is worth repeating.
        """
        ...

    def secrets(self) -> tuple[str, ...]:
        """The tokens that requests carried, to be taken out of what the server answers."""
        ...
