"""GROUND. A self-contained HTTP client: HTTP/1.1 over asyncio, server-sent events, proxies, TLS, pinned addresses; or httpx2."""
