"""Who may use the page. A one-use token in the printed address is exchanged for a key, which the page keeps and sends as a header.

No cookie: cookies ignore ports, so any other server on 127.0.0.1 would be sent it. What an address, another page or another user of this
machine could send is refused before anything is read:

- `Host` must be ours. A name that somebody points at 127.0.0.1 (DNS rebinding) is not.
- `Origin`, and what the browser says of the page that asks (`Sec-Fetch-Site`), must be ours. There is no CORS.
- Only GET and POST, and what is posted is JSON: no form of another page can send that.
- On Linux the kernel says which user a connection on loopback is from.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from dragoman.http.serving import ReceivedRequest
from dragoman.values.errors import InputError
from dragoman.words import say

KEY_HEADER = "x-dragoman-key"
TOKENS = 50
"""How many addresses that nobody has opened yet may be valid at once."""
PASSWORD_CHARS = 12
WRONG_PASSWORD_S = 1.0
"""How long a wrong password takes, one after the other: nobody tries many."""


_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?/?")

RefusalReason = Literal["method", "host", "origin", "site", "type"]


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is not answered."""

    status: int
    reason: RefusalReason


class Access:
    """The tokens and keys of one server."""

    def __init__(self, origins: Iterable[str], password: str = "") -> None:
        self.origins = frozenset(origins)
        self._hosts = frozenset(urlsplit(origin).netloc for origin in self.origins)
        self._password = password
        self._tokens: dict[str, None] = {}
        self._keys: set[str] = set()
        self._wrong = asyncio.Lock()

    @property
    def wants_password(self) -> bool:
        return bool(self._password)

    def new_token(self) -> str:
        """For one more page. It is worth nothing once it was used."""
        token = secrets.token_urlsafe(32)
        self._tokens[token] = None
        for oldest in list(self._tokens)[:-TOKENS]:
            del self._tokens[oldest]
        return token

    async def exchange(self, offered: Mapping[str, object]) -> str | None:
        """A key for a token, or for the password where there is one; None if it is wrong."""
        token, password = offered.get("token"), offered.get("password")
        if self._password:
            good = isinstance(password, str) and _same(password, self._password)
        else:
            good = isinstance(token, str) and token in self._tokens
            self._tokens.pop(str(token), None)
        if not good:
            async with self._wrong:
                await asyncio.sleep(WRONG_PASSWORD_S if self._password else 0)
            return None
        key = secrets.token_urlsafe(32)
        self._keys.add(key)
        return key

    def refuse(self, request: ReceivedRequest) -> Refusal | None:
        """What is wrong with where a request comes from. None: it may be ours; whether it has a key is another question."""
        headers = request.headers
        if request.method not in ("GET", "POST"):
            return Refusal(405, "method")
        if headers.get("host", "").lower() not in self._hosts:
            return Refusal(421, "host")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            return Refusal(403, "origin")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not _is_navigation(request):
            return Refusal(403, "site")
        if request.method == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return Refusal(415, "type")
        return None

    def has_key(self, request: ReceivedRequest) -> bool:
        offered = request.headers.get(KEY_HEADER, "")
        return any(_same(offered, key) for key in self._keys)


def _is_navigation(request: ReceivedRequest) -> bool:
    """A link to the page, which says nothing by itself: the address may be in a mail or a chat."""
    return request.method == "GET" and request.path == "/" and request.headers.get("sec-fetch-mode") == "navigate"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def check_origin(address: str) -> str:
    """The origin of an address that the user named, such as that of a tunnel. Raises InputError."""
    found = _ORIGIN.fullmatch(address.strip().lower())
    if found is None or int(found["port"] or 0) > 65535:
        raise InputError(say("viewer.bad_origin", origin=address[:200]))
    usual = {"http": "80", "https": "443"}[found["scheme"]]
    port = f":{found['port']}" if found["port"] and found["port"] != usual else ""  # browsers leave the usual one out
    return f"{found['scheme']}://{found['host']}{port}"
