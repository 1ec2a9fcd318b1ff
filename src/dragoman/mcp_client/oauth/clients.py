"""Who we are to an authorization server, in the specification's order: known to it, by the URL of a document, or registered now."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote_plus

import msgspec

from dragoman.base.clock import now_ms
from dragoman.mcp_client.contracts import AuthMethod, OAuthSettings
from dragoman.mcp_client.oauth.discovery import Issuer
from dragoman.mcp_client.oauth.requests import IssuerAnswer, Requests
from dragoman.mcp_client.oauth.urls import check_url, show
from dragoman.values.errors import Unauthorized
from dragoman.words import say

NAME = "Dragoman"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_S = 120
_SECRET_FIELDS = ("code", "code_verifier", "refresh_token", "client_secret", "client_assertion", "token")


class Client(msgspec.Struct, frozen=True, omit_defaults=True):
    """A client id at one issuer, and how it is proven."""

    client_id: str
    client_secret: str = ""
    auth_method: AuthMethod = "none"
    redirect_uri: str = ""
    """Which redirect it was registered with."""
    expires_s: int = 0
    """When its secret ends, in seconds since 1970; 0: never."""

    def __repr__(self) -> str:
        return f"Client({self.client_id!r}, {self.auth_method!r}, …)"

    @property
    def is_expired(self) -> bool:
        return 0 < self.expires_s * 1000 <= now_ms()


def known_client(issuer: Issuer, settings: OAuthSettings) -> Client | None:
    """A client that needs no registration, or None. Raises Unauthorized if it belongs to another issuer."""
    if settings.client_id:
        if settings.issuer and settings.issuer != issuer.issuer:
            raise Unauthorized(say("mcp_auth.client_of_other", issuer=show(issuer.issuer), expected=show(settings.issuer)))
        method = settings.auth_method or _best_method(issuer, settings.client_secret, settings.private_key_pem)
        return Client(settings.client_id, settings.client_secret, method, settings.redirect_uri)
    if settings.client_metadata_url and issuer.takes_documents:
        return Client(check_url(settings.client_metadata_url, what=say("mcp_auth.client_document")), redirect_uri=settings.redirect_uri)
    return None


async def register(requests: Requests, issuer: Issuer, redirect_uri: str, scopes: tuple[str, ...]) -> Client:
    """Dynamic registration (RFC 7591). Raises Unauthorized."""
    if not issuer.registration_endpoint:
        raise Unauthorized(say("mcp_auth.no_registration", issuer=show(issuer.issuer)))
    wanted = _registered_method(issuer)
    body: dict[str, Any] = client_document(redirect_uri) | {"token_endpoint_auth_method": wanted}
    if scopes:
        body["scope"] = " ".join(scopes)
    answer = await requests.post_json(issuer.registration_endpoint, body, what=say("mcp_auth.registration"))
    read = answer.json() or {}
    client_id, secret = read.get("client_id"), read.get("client_secret")
    if answer.status not in (200, 201) or not isinstance(client_id, str) or not client_id:
        raise Unauthorized(say("mcp_auth.not_registered", issuer=show(issuer.issuer), reason=reason_of(answer)))
    secret = secret if isinstance(secret, str) else ""
    given, expires = read.get("token_endpoint_auth_method"), read.get("client_secret_expires_at")
    method: AuthMethod = given if given in ("none", "client_secret_basic", "client_secret_post") else _best_method(issuer, secret)
    return Client(client_id, secret, method, redirect_uri, expires if isinstance(expires, int) else 0)


def client_document(redirect_uri: str = "", url: str = "") -> dict[str, Any]:
    """What we say of ourselves: in a registration, or (with its `url`) as a client id metadata document that somebody publishes there."""
    document: dict[str, Any] = {
        "client_name": NAME,
        "redirect_uris": [redirect_uri] if redirect_uri else ["http://127.0.0.1/callback", "http://localhost/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        # Else OpenID issuers take us for a web site, and refuse a redirect to this machine.
        "application_type": "native",
    }
    return {"client_id": url, **document} if url else document


def proof(
    client: Client, issuer: Issuer, settings: OAuthSettings, sign: Callable[[str, str, bytes], bytes] | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """What a request to the token endpoint says of who sends it: headers, and fields of the form."""
    match client.auth_method:
        case "client_secret_basic":
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
            return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}, {}
        case "client_secret_post":
            return {}, {"client_id": client.client_id, "client_secret": client.client_secret}
        case "private_key_jwt":
            from dragoman.mcp_client.oauth.signing import sign_with_key

            assertion = _assertion(client.client_id, issuer.issuer, settings, sign or sign_with_key)
            return {}, {"client_id": client.client_id, "client_assertion_type": ASSERTION, "client_assertion": assertion}
        case _:
            return {}, {"client_id": client.client_id}


def reason_of(answer: IssuerAnswer, sent: Mapping[str, str] | None = None) -> str:
    """Why an issuer refused, in its own words, shortened, and without what was `sent`: some repeat it."""
    read: Mapping[str, Any] = answer.json() or {}
    words = ": ".join(each for name in ("error", "error_description") if isinstance(each := read.get(name), str) and each)
    for name in _SECRET_FIELDS:
        if sent and sent.get(name):
            words = words.replace(sent[name], "REDACTED")
    return show(words, 300) if words else say("mcp_auth.status", status=answer.status)


def _assertion(client_id: str, audience: str, settings: OAuthSettings, sign: Callable[[str, str, bytes], bytes]) -> str:
    now_s = now_ms() // 1000
    head = {"alg": settings.signing_algorithm, "typ": "JWT"}
    claims = {"iss": client_id, "sub": client_id, "aud": audience, "jti": token_urlsafe(16), "iat": now_s, "exp": now_s + ASSERTION_S}
    signed = b".".join(_base64(msgspec.json.encode(part)) for part in (head, claims))
    return (signed + b"." + _base64(sign(settings.private_key_pem, settings.signing_algorithm, signed))).decode()


def _base64(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _best_method(issuer: Issuer, secret: str, key: str = "") -> AuthMethod:
    """RFC 8414: an issuer that does not say which it takes, takes Basic."""
    if key:
        return "private_key_jwt"
    if not secret:
        return "none"
    methods = issuer.auth_methods or ("client_secret_basic",)
    if "client_secret_basic" in methods:
        return "client_secret_basic"
    if "client_secret_post" in methods:
        return "client_secret_post"
    return "none" if "none" in methods else "client_secret_basic"


def _registered_method(issuer: Issuer) -> AuthMethod:
    """A program on the user's machine keeps no secret that is worth one: `none` where the issuer takes it."""
    methods: tuple[AuthMethod, ...] = ("none", "client_secret_post", "client_secret_basic")
    return next((each for each in methods if each in issuer.auth_methods), "none")
