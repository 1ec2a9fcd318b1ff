"""Redacts secrets in logs, cassettes and messages.

Better too much than too little: a harmless word that looks like a key may be removed, a key must not stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import quote, quote_plus

REDACTED = "REDACTED"
"""One plain word: valid in a URL, a header and a JSON string alike."""

SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "set-cookie", "proxy-authorization", "x-amz-security-token"}
)
"""Headers whose value is always redacted."""

SHORTEST_SECRET = 8
"""Shorter values (a local server's `none` or `ollama`) are not secret, and replacing them would garble everything."""

Secrets = Iterable[str] | Callable[[], Iterable[str]]
"""Values to redact; a callable if they are only known later, as with tokens that are fetched."""

# Group 1 of each pattern is redacted. The look-behind avoids matches in the middle of words and of base64. Compiled when something is first
# redacted, not while a first request waits.
_LOOKS_SECRET = (
    rb"(?<![A-Za-z0-9])((?:sk|rk|pk)-[A-Za-z0-9_-]{8,})",  # OpenAI, Anthropic, DeepSeek, Kimi, OpenRouter
    rb"(?<![A-Za-z0-9])(AIza[A-Za-z0-9_-]{20,})",  # Google API keys
    rb"(?<![A-Za-z0-9])(ya29\.[A-Za-z0-9_.-]{8,})",  # Google access tokens
    rb"(?<![A-Za-z0-9])((?:gsk_|xai-|hf_|ghp_|gho_|github_pat_|glpat-|AKIA|ASIA)[A-Za-z0-9_-]{16,})",
    rb"(?<![A-Za-z0-9])(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",  # JSON web tokens
    rb"(?i:\bbearer)(?:\s|\\t|%20|\+)+([A-Za-z0-9._~+/=-]{8,})",
    rb"(?i:[?&][A-Za-z0-9_.-]*(?:key|token|secret|password|signature|sig)=)([^&#\s\"'<>\\]+)",
    rb"(?i:https?|socks5h?)://[^\s/?#@:\"'\\]*:([^\s/?#@\"'\\]+)@",  # a password in a URL
    rb"(-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[A-Za-z0-9+/=\s]|\\[rn])*(?:-----END [A-Z ]*PRIVATE KEY-----)?)",
)


def redact(text: str, secrets: Secrets = ()) -> str:
    return redact_bytes(text.encode("utf-8", "surrogatepass"), secrets).decode("utf-8", "surrogatepass")


def redact_bytes(data: bytes, secrets: Secrets = ()) -> bytes:
    return b"".join(redact_chunks((data,), secrets))


def redact_chunks(chunks: Sequence[bytes], secrets: Secrets = ()) -> list[bytes]:
    """The same chunks with secrets redacted, including a secret that is split between two chunks."""
    data = b"".join(chunks)
    spans = _spans(data, secrets)
    if not spans:
        return list(chunks)
    cleaned: list[bytes] = []
    start = 0
    for chunk in chunks:
        cleaned.append(_replace_spans(data, spans, start, start + len(chunk)))
        start += len(chunk)
    return cleaned


def redact_headers(headers: Mapping[str, str], secrets: Secrets = ()) -> dict[str, str]:
    known = known_secrets(secrets)
    return {redact(name, known): REDACTED if name.lower() in SECRET_HEADERS else redact(value, known) for name, value in headers.items()}


def known_secrets(secrets: Secrets) -> tuple[str, ...]:
    values = secrets() if callable(secrets) else secrets
    return tuple(value for value in values if len(value) >= SHORTEST_SECRET)


def _spans(data: bytes, secrets: Secrets) -> list[tuple[int, int]]:
    """Start and end of each secret, in order and without overlap."""
    found = [match.span(1) for pattern in _LOOKS_SECRET for match in re.finditer(pattern, data)]
    for secret in known_secrets(secrets):
        for form in _forms(secret):
            start = data.find(form)
            while start >= 0:
                found.append((start, start + len(form)))
                start = data.find(form, start + 1)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _replace_spans(data: bytes, spans: Sequence[tuple[int, int]], start: int, end: int) -> bytes:
    """data[start:end] with every span replaced. A span that crosses chunks is replaced in the chunk where it begins."""
    pieces: list[bytes] = []
    at = start
    for first, last in spans:
        if last <= start or first >= end:
            continue
        if first >= start:
            pieces += [data[at:first], REDACTED.encode()]
        at = min(last, end)
    return b"".join([*pieces, data[at:end]])


def _forms(secret: str) -> set[bytes]:
    """The ways a value may be written: plain, in JSON with and without ASCII escapes, in a URL."""
    if secret.isascii() and secret.isalnum():
        return {secret.encode()}
    import json

    raw = secret.encode("utf-8", "surrogatepass")
    plain = json.dumps(secret, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    return {raw, plain, json.dumps(secret)[1:-1].encode(), quote(raw, safe="").encode(), quote_plus(raw).encode(), quote(raw).encode()}
