"""GROUND. An HTTP client on its own: HTTP/1.1 over asyncio, server-sent events, proxies, TLS, pinned addresses; or httpx2."""
