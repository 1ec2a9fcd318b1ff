"""Finds a server's authorization server: its protected resource metadata (RFC 9728), then the issuer's own (RFC 8414, OpenID).

The orders are those of the MCP specification of 2025-11-25 and 2026-07-28. Metadata is used only if it says of itself that it belongs to
what it was fetched for: the resource must cover the server's URL, the issuer must be, letter by letter, the one that was asked for.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.mcp_client.oauth.requests import Requests
from dragoman.mcp_client.oauth.urls import canonical, check_url, covers, show
from dragoman.values.errors import ProviderError, Unauthorized
from dragoman.words import say

RESOURCE = "/.well-known/oauth-protected-resource"
OAUTH = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


class Resource(msgspec.Struct, frozen=True):
    """What a server says of itself."""

    resource: str
    """What tokens are asked for."""
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] = ()
    is_guessed: bool = False
    """The server has no such metadata (a revision before 2025-06-18): its own origin is taken for the issuer."""


class Issuer(msgspec.Struct, frozen=True):
    """What an authorization server says of itself. Its endpoints are checked URLs."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ()
    has_pkce: bool = False
    sends_issuer: bool = False
    """It puts `iss` into every redirect (RFC 9207)."""
    takes_documents: bool = False
    """It takes the URL of a client id metadata document as a client id."""


async def find_resource(requests: Requests, url: str, metadata_url: str = "") -> Resource:
    """The metadata of the server at `url`; `metadata_url` is where its challenge says that it is. Raises Unauthorized."""
    for place in _resource_places(url, metadata_url):
        answer = await requests.get(place, what=say("mcp_auth.resource_metadata"))
        if answer.status != 200 or (read := answer.json()) is None:
            continue
        resource, issuers = _text(read, "resource"), _texts(read, "authorization_servers")
        if not resource or not _is_covered(resource, url):
            raise Unauthorized(say("mcp_auth.other_resource", url=show(url), resource=show(resource)))
        if not issuers:
            raise Unauthorized(say("mcp_auth.no_issuer", url=show(url)))
        return Resource(resource, issuers, _texts(read, "scopes_supported"))
    parts = urlsplit(url)
    return Resource(canonical(url), (f"{parts.scheme}://{parts.netloc}",), is_guessed=True)


async def find_issuer(requests: Requests, issuer: str, *, is_guessed: bool = False) -> Issuer:
    """The metadata of an authorization server. Raises Unauthorized if it has none, or it is not its own."""
    what = say("mcp_auth.issuer_metadata")
    check_url(issuer, what=say("mcp_auth.issuer"))
    for place in _issuer_places(issuer):
        answer = await requests.get(place, what=what)
        if answer.status != 200 or (read := answer.json()) is None:
            continue
        claimed = _text(read, "issuer")
        # An issuer that we made up ourselves may write the root of its own host with a slash.
        if claimed != issuer and not (is_guessed and claimed == f"{issuer}/"):
            raise Unauthorized(say("mcp_auth.other_issuer", asked=show(issuer), claimed=show(claimed)))
        return _read_issuer(claimed, read)
    raise Unauthorized(say("mcp_auth.no_issuer_metadata", issuer=show(issuer)))


def _read_issuer(issuer: str, read: dict[str, Any]) -> Issuer:
    what = say("mcp_auth.endpoint")
    endpoints = {
        name: check_url(url, what=what) if (url := _text(read, name)) else ""
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint")
    }
    if not endpoints["token_endpoint"]:
        raise Unauthorized(say("mcp_auth.no_endpoint", issuer=show(issuer)))
    return Issuer(
        issuer,
        **endpoints,
        scopes=_texts(read, "scopes_supported"),
        auth_methods=_texts(read, "token_endpoint_auth_methods_supported"),
        has_pkce="S256" in _texts(read, "code_challenge_methods_supported"),
        sends_issuer=read.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=read.get("client_id_metadata_document_supported") is True,
    )


def _resource_places(url: str, metadata_url: str) -> list[str]:
    """The challenge's own, else the well-known ones: with the server's path, then at the root."""
    if metadata_url:
        return [metadata_url]
    parts = urlsplit(url)
    root, path = f"{parts.scheme}://{parts.netloc}{RESOURCE}", parts.path.rstrip("/")
    return list(dict.fromkeys([f"{root}{path}", root]))


def _issuer_places(issuer: str) -> list[str]:
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    if not path:
        return [f"{root}{OAUTH}", f"{root}{OPENID}"]
    return [f"{root}{OAUTH}{path}", f"{root}{OPENID}{path}", f"{root}{path}{OPENID}"]


def _is_covered(resource: str, url: str) -> bool:
    try:
        return covers(check_url(resource, what=say("mcp_auth.resource_metadata")), url)
    except ProviderError:
        return False


def _text(read: dict[str, Any], name: str) -> str:
    value = read.get(name)
    return value if isinstance(value, str) else ""


def _texts(read: dict[str, Any], name: str) -> tuple[str, ...]:
    value = read.get(name)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
