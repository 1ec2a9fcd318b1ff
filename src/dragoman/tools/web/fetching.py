"""One GET from the public web: every redirect is checked, connections go to checked addresses only, and everything is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin

import msgspec

from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.tools.names import format_size
from dragoman.tools.web import LIMITS, NO_RULES, FetchLimits, HostRules
from dragoman.tools.web.addresses import Resolve, Target, addresses_to_fetch, read_url, system_resolve
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.errors import ConfigError, ConnectionFailed

if TYPE_CHECKING:
    from dragoman.values.contracts import HttpResponse, Pin

_HEADERS = {"accept": "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRIED_ADDRESSES = 3
_REASONS = {
    401: "it wants a login",
    403: "it forbids this",
    404: "there is no such page",
    410: "the page is gone",
    429: "too many requests",
}


class FetchedPage(msgspec.Struct, frozen=True):
    url: str
    """The final URL, after redirects."""
    content_type: str
    data: bytes
    redirects: int = 0


MayFollow = Callable[[str], str]
"""Why a redirect to this host is not followed; empty: it is."""


async def fetch(
    url: str,
    pin: Pin,
    *,
    rules: HostRules = NO_RULES,
    limits: FetchLimits = LIMITS,
    resolve: Resolve = system_resolve,
    may_follow: MayFollow | None = None,
) -> FetchedPage:
    """Raises ToolRefusal, with a message for the model, if it may not or cannot be fetched."""
    target = read_url(url)
    try:
        async with asyncio.timeout(limits.total_s):
            for redirects in range(limits.max_redirects + 1):
                addresses = await addresses_to_fetch(target, rules, resolve)
                got = await _get(target, addresses or ("",), pin, limits)
                if isinstance(got, FetchedPage):
                    return msgspec.structs.replace(got, redirects=redirects)
                target = _resolve_redirect(target, got, may_follow)
    except TimeoutError:
        raise ToolRefusal(f"{target.host} did not send it all within {limits.total_s:.0f} s", "timeout") from None
    raise ToolRefusal(f"{read_url(url).host} redirects more than {limits.max_redirects} times", "too_many_redirects")


async def _get(target: Target, addresses: Sequence[str], pin: Pin, limits: FetchLimits) -> FetchedPage | str:
    """The page, or its redirect location. Addresses are tried in turn until one answers."""
    fault: ConnectionFailed | ConfigError | None = None
    for address in addresses[:_TRIED_ADDRESSES]:
        transport = pin(address)
        try:
            async with transport.send("GET", target.url, _HEADERS, b"") as answer:
                return await _read_response(target, answer, limits)
        except (ConnectionFailed, ConfigError) as error:
            fault = error
        finally:
            await transport.aclose()
    raise ToolRefusal(f"{target.host} could not be read: {fault}", "connection") from fault


async def _read_response(target: Target, answer: HttpResponse, limits: FetchLimits) -> FetchedPage | str:
    if answer.status in _REDIRECTS and (location := answer.headers.get("location")):
        return location
    if not 200 <= answer.status < 300:
        reason = _REASONS.get(answer.status, "it has a fault of its own" if answer.status >= 500 else "it did not answer with a page")
        raise ToolRefusal(f"{target.host} answered with HTTP status {answer.status}: {reason}", f"http_{answer.status}")
    too_long = ToolRefusal(f"{target.host} sends more than {format_size(limits.max_bytes)}: find a smaller page", "too_large")
    if _content_length(answer.headers) > limits.max_bytes:
        raise too_long
    data = bytearray()
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            data += chunk
            if len(data) > limits.max_bytes:
                raise too_long
    return FetchedPage(target.url, answer.headers.get("content-type", ""), bytes(data))


def _content_length(headers: Mapping[str, str]) -> int:
    value = headers.get("content-length", "")
    return int(value) if value.isdecimal() and value.isascii() and len(value) < 19 else 0


def _resolve_redirect(target: Target, location: str, may_follow: MayFollow | None) -> Target:
    try:
        # Headers are decoded as Latin-1; in practice non-ASCII bytes are UTF-8.
        location = quote(location.strip().encode("latin-1"), safe="/?:@!$&'()*+,;=%[]|~#\\\"<>^`{}")
        found = read_url(urljoin(target.url, location))
    except ValueError as error:
        raise ToolRefusal(
            f"{target.host} redirects to {escape_hidden(location, one_line=True)[:200]!r}, which is no URL", "invalid"
        ) from error
    except ToolRefusal as refused:
        raise ToolRefusal(f"{target.host} redirects: {refused.message}", refused.error_type) from refused
    # Whoever allowed one host did not allow those it names.
    if may_follow is not None and found.name != target.name and (reason := may_follow(found.name)):
        raise ToolRefusal(
            f"{target.host} redirects to {clip(found.url, 500)}, which was not fetched: {reason}. Fetch it by itself if you need it",
            "forbidden_host",
        )
    return found
