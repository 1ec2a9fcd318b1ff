"""One GET from the public web: every hop checked, every connection to an address that was checked, all of it bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from dragoman.base.visible import visible
from dragoman.tools.addresses import Resolve, Target, addresses_to_fetch, read_url, system_resolve
from dragoman.tools.names import size_shown
from dragoman.tools.web_settings import LIMITS, NO_RULES, FetchLimits, HostRules
from dragoman.tools.workspace import Refused
from dragoman.values.errors import ConfigError, ConnectionFailed

if TYPE_CHECKING:
    from dragoman.values.contracts import Answer, Pin

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


class Fetched(msgspec.Struct, frozen=True):
    url: str
    """Where it came from in the end."""
    content_type: str
    data: bytes
    redirects: int = 0


async def fetch(
    url: str, pin: Pin, *, rules: HostRules = NO_RULES, limits: FetchLimits = LIMITS, resolve: Resolve = system_resolve
) -> Fetched:
    """Raises Refused, in words for the model, where it may not or cannot be had."""
    target = read_url(url)
    try:
        async with asyncio.timeout(limits.total_s):
            for redirects in range(limits.max_redirects + 1):
                addresses = await addresses_to_fetch(target, rules, resolve)
                got = await _get(target, addresses or ("",), pin, limits)
                if isinstance(got, Fetched):
                    return msgspec.structs.replace(got, redirects=redirects)
                target = _moved(target, got)
    except TimeoutError:
        raise Refused(f"{target.host} did not send it all within {limits.total_s:.0f} s", "timeout") from None
    raise Refused(f"{read_url(url).host} redirects more than {limits.max_redirects} times", "too_many_redirects")


async def _get(target: Target, addresses: Sequence[str], pin: Pin, limits: FetchLimits) -> Fetched | str:
    """The page, or where it has moved to. One address after another is tried until one answers."""
    fault: ConnectionFailed | ConfigError | None = None
    for address in addresses[:_TRIED_ADDRESSES]:
        transport = pin(address)
        try:
            async with transport.send("GET", target.url, _HEADERS, b"") as answer:
                return await _read(target, answer, limits)
        except (ConnectionFailed, ConfigError) as error:
            fault = error
        finally:
            await transport.aclose()
    raise Refused(f"{target.host} could not be read: {fault}", "connection") from fault


async def _read(target: Target, answer: Answer, limits: FetchLimits) -> Fetched | str:
    if answer.status in _REDIRECTS and (location := answer.headers.get("location")):
        return location
    if not 200 <= answer.status < 300:
        reason = _REASONS.get(answer.status, "it has a fault of its own" if answer.status >= 500 else "it did not answer with a page")
        raise Refused(f"{target.host} answered with HTTP status {answer.status}: {reason}", f"http_{answer.status}")
    too_long = Refused(f"{target.host} sends more than {size_shown(limits.max_bytes)}: find a smaller page", "too_large")
    if _length(answer.headers) > limits.max_bytes:
        raise too_long
    data = bytearray()
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            data += chunk
            if len(data) > limits.max_bytes:
                raise too_long
    return Fetched(target.url, answer.headers.get("content-type", ""), bytes(data))


def _length(headers: Mapping[str, str]) -> int:
    told = headers.get("content-length", "")
    return int(told) if told.isdecimal() and told.isascii() and len(told) < 19 else 0


def _moved(target: Target, location: str) -> Target:
    from urllib.parse import quote, urljoin

    try:
        # Headers are read as Latin-1; what is beyond ASCII is UTF-8 in practice.
        location = quote(location.strip().encode("latin-1"), safe="/?:@!$&'()*+,;=%[]|~#\\\"<>^`{}")
        return read_url(urljoin(target.url, location))
    except ValueError as error:
        raise Refused(f"{target.host} redirects to {visible(location, one_line=True)[:200]!r}, which is no URL", "invalid") from error
    except Refused as refused:
        raise Refused(f"{target.host} redirects: {refused.message}", refused.error_type) from refused
