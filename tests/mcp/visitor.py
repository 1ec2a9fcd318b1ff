"""A browser, and the user before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urljoin

from dragoman.http.clients import open_transport


@dataclass
class Visitor:
    """Plays the browser and its user: follows redirects, and keeps the last page."""

    pages: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    visited: list[str] = field(default_factory=list)

    async def visit(self, url: str) -> bool:
        transport = open_transport()
        try:
            for _ in range(5):
                self.visited.append(url)
                async with transport.send("GET", url, {}, b"") as response:
                    body = b"".join([chunk async for chunk in response.chunks()]).decode()
                    self.pages.append((response.status, dict(response.headers), body))
                    if response.status != 302:
                        return True
                    url = urljoin(url, response.headers["location"])
        finally:
            await transport.aclose()
        return True
