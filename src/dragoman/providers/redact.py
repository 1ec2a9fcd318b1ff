"""Redacts secrets in logs, cassettes and messages.

Better too much than too little: a harmless word that looks like a key may be removed, a key must not stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

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


def redact(text: str, secrets: Secrets = (), further: Sequence[bytes] = ()) -> str:
    return redact_bytes(text.encode("utf-8", "surrogatepass"), secrets, further).decode("utf-8", "surrogatepass")


def redact_bytes(data: bytes, secrets: Secrets = (), further: Sequence[bytes] = ()) -> bytes:
    return b"".join(redact_chunks((data,), secrets, further))


def redact_chunks(chunks: Sequence[bytes], secrets: Secrets = (), further: Sequence[bytes] = ()) -> list[bytes]:
    """The same chunks with secrets redacted, including a secret that is split between two chunks.

    `further` are patterns of what else is redacted: group 1 of each.
    """
    data = b"".join(chunks)
    spans = _spans(data, secrets, further)
    if not spans:
        return list(chunks)
    cleaned: list[bytes] = []
    start = 0
    for chunk in chunks:
        cleaned.append(_replace_spans(data, spans, start, start + len(chunk)))
        start += len(chunk)
    return cleaned


def redact_headers(headers: Mapping[str, str], secrets: Secrets = (), further: Sequence[bytes] = ()) -> dict[str, str]:
    known = known_secrets(secrets)
    return {
        redact(name, known, further): REDACTED if name.lower() in SECRET_HEADERS else redact(value, known, further)
        for name, value in headers.items()
    }


def known_secrets(secrets: Secrets) -> tuple[str, ...]:
    values = secrets() if callable(secrets) else secrets
    return tuple(value for value in values if len(value) >= SHORTEST_SECRET)


def _spans(data: bytes, secrets: Secrets, further: Sequence[bytes]) -> list[tuple[int, int]]:
    """Start and end of each secret, in order and without overlap."""
    found = [match.span(1) for pattern in (*_LOOKS_SECRET, *further) for match in re.finditer(pattern, data)]
    for secret in known_secrets(secrets):
        # The look-ahead finds overlapping occurrences too.
        found += [match.span(1) for match in re.finditer(rb"(?=(" + _any_form(secret) + rb"))", data)]
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


def _any_form(secret: str) -> bytes:
    """A pattern for all the ways a value may be written: plain, in JSON (with whatever escaped, and JSON inside JSON), in a URL."""
    runs = re.findall(r"\\+|[^\\]", secret, re.DOTALL)
    return b"".join(_any_form_of_backslashes(len(run)) if run.startswith("\\") else _any_form_of(run) for run in runs)


def _any_form_of_backslashes(count: int) -> bytes:
    """A run as a whole: one by one, a pattern could be matched in very many ways."""
    return rb"(?:\\{%d,%d}|(?:\\{1,8}u005[cC]){%d}|(?:%%5[cC]){%d})" % (count, 8 * count, count, count)


def _any_form_of(char: str) -> bytes:
    raw = char.encode("utf-8", "surrogatepass")
    if char.isascii() and char.isalnum():  # never written in another way
        return re.escape(raw)
    in_url = b"".join(b"%" + _either_case(f"{byte:02x}") for byte in raw)
    units = char.encode("utf-16-be", "surrogatepass").hex()
    in_json = b"".join(rb"\\{1,8}u" + _either_case(units[at : at + 4]) for at in range(0, len(units), 4))
    forms = [rb"\\{0,8}" + re.escape(raw) if char in '"/' else re.escape(raw), in_json, in_url]
    if char in _ESCAPES:
        forms.append(rb"\\{1,8}" + _ESCAPES[char])
    if char == " ":
        forms.append(rb"\+")
    elif 128 <= ord(char) < 256:
        forms.append(re.escape(char.encode("latin-1")))  # as in a header
    return b"(?:" + b"|".join(forms) + b")"


_ESCAPES = {"\n": b"n", "\r": b"r", "\t": b"t", "\b": b"b", "\f": b"f"}


def _either_case(digits: str) -> bytes:
    return b"".join(f"[{digit}{digit.upper()}]".encode() if digit.isalpha() else digit.encode() for digit in digits)
