"""Recording of the live checks for a bug report: what is kept of an exchange, and what is taken out of it besides the key."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman import __version__
from dragoman.app.setup import Setup, catalog_of
from dragoman.providers.catalog import builtin_catalog, filled
from dragoman.values.contracts import Transport
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.testing.cassette import Cassette

_KEPT_HEADERS = frozenset(
    {
        "accept",
        "anthropic-beta",
        "anthropic-version",
        "content-encoding",
        "content-length",
        "content-type",
        "openai-beta",
        "openai-processing-ms",
        "openai-version",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "transfer-encoding",
        "user-agent",
        "x-request-id",
        "x-should-retry",
    }
)
_KEPT_BEGINNINGS = ("anthropic-ratelimit-", "x-ratelimit-")
_ACCOUNTS = (
    rb"(?<![A-Za-z0-9])((?:org|proj|user|acct)[-_][A-Za-z0-9]{16,})",  # OpenAI, OpenRouter
    rb"(?i:projects?/|project_number\W{1,4}|projectNumber\W{1,4}|consumer\W{1,4}projects/)([0-9]{5,})",  # Google
    rb"(?i:organi[sz]ation(?:_id|Id)?\W{1,6})([0-9a-fA-F]{8}-[0-9a-fA-F-]{27})",  # Anthropic
)
"""Ids of accounts, as services name them in errors."""
_ORGANISATION_VARIABLES = re.compile(r"ORG|PROJECT|ACCOUNT|WORKSPACE|RESOURCE|ENDPOINT")
_SHORTEST_NAME = 3
_MASK = rb"(?:\*{3,}|\.{3,}|\xe2\x80\xa6+|(?:\xe2\x80\xa2){3,}|(?:\\u2026)+|(?:\\u2022){3,})"
"""Stars, dots, an ellipsis or bullets, in place of the middle of a key."""
_MASKED_ENDS = 12
"""How many characters a service shows on either side of the mask, at most."""


def keep_header(name: str) -> bool:
    """Whether a header is of use in a recording. All others are left out: cookies, and ids of organisations, among them."""
    return name in _KEPT_HEADERS or name.startswith(_KEPT_BEGINNINGS)


def record_with(setup: Setup, path: str, model: str) -> Callable[[Transport, Callable[[], Iterable[str]]], Cassette]:
    """Makes the transport that records another one to `path`. Takes that and the secrets that must not be in the file."""

    def record(transport: Transport, secrets: Callable[[], Iterable[str]]) -> Cassette:
        from dragoman.testing.cassette import Cassette

        private = [name for name in private_names(setup, model) if name.lower() not in model.lower()]

        def hide() -> list[bytes]:
            return [*_ACCOUNTS, *map(_whole_word, private), *map(_masked, secrets())]

        about = {
            "program": f"dragoman {__version__}",
            "command": "doctor --live",
            "model": model,
            "python": platform.python_version(),
            "system": platform.system(),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
        }
        return Cassette(Path(path), transport, mode="record", secrets=secrets, hide=hide, keep_header=keep_header, about=about)

    return record


def require_writable(path: str) -> None:
    """Raises InputError if a file cannot be written there: better now than after the requests were paid for."""
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        raise InputError(say("live_record_is_folder", path=path))
    if not os.path.isdir(folder):
        raise InputError(say("live_record_no_folder", path=path, folder=folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(say("live_record_not_writable", path=path, folder=folder))


# --- what is private ----------------------------------------------------------------------------------------------------------------


def private_names(setup: Setup, model: str) -> Iterator[str]:
    """Names of this machine and of the user's accounts: paths, the user, a gateway's host, organisations and projects."""
    yield from _machine_names(setup.env, (setup.workspace, setup.places.config, setup.places.data))
    deployment = catalog_of(setup).find(model)[0]
    url = next((setup.env[name] for name in deployment.base_url_env if setup.env.get(name, "").strip()), deployment.base_url)
    public = builtin_catalog().deployments.get(deployment.name)
    for name in re.findall(r"\{([A-Z_][A-Z0-9_]*)", url):
        yield from filter(None, [setup.env.get(name, "").strip()])
    host = urlsplit(filled(url.strip(), setup.env, deployment.name)).netloc
    if public is None or host != urlsplit(public.base_url).netloc:
        yield host
    yield from (value for value in deployment.headers.values() if public is None or value not in public.headers.values())


def _machine_names(env: Mapping[str, str], folders: Iterable[str]) -> Iterator[str]:
    home = env.get("HOME") or env.get("USERPROFILE") or ""
    yield from (name for name in (home, *folders, os.path.expanduser("~")) if len(name) > 1)
    yield from filter(None, (env.get(name, "") for name in ("USER", "LOGNAME", "USERNAME")))
    yield platform.node()
    for name, value in env.items():
        if name.endswith(("_ID", "_PROJECT", "_ORG", "_ORGANIZATION", "_ENDPOINT")) and _ORGANISATION_VARIABLES.search(name):
            yield value.strip()


def _whole_word(name: str) -> bytes:
    if len(name) < _SHORTEST_NAME or name.lower() in _OUR_WORDS.split():
        return rb"((?!))"  # matches nothing
    return rb"(?<![A-Za-z0-9])(" + re.escape(name.encode("utf-8", "surrogatepass")) + rb")(?![A-Za-z0-9])"


_OUR_WORDS = """
    api app assistant auto chat city content data developer dragoman function get http https input json local localhost low max medium
    message messages mode model models name none object off output paris properties python required role root search service shelf
    stream string system text time tool tools type user value weather
"""
"""Words of our own requests and of every answer. A user with such a name is not found by it, and the recording would be garbled."""


def _masked(secret: str) -> bytes:
    """A pattern for a key as services show it in errors: both ends, with a mask between."""
    if len(secret) < _MASKED_ENDS:
        return rb"((?!))"
    start = [re.escape(char.encode()) for char in secret[:_MASKED_ENDS]]
    head = b"".join(start[:3]) + b"".join(rb"(?:" + char for char in start[3:]) + rb")?" * len(start[3:])
    tails = (re.escape(secret[-count:].encode()) for count in range(_MASKED_ENDS, 0, -1))
    return rb"(" + head + _MASK + rb"(?:" + b"|".join(tails) + rb")?)"
