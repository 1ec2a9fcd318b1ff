"""MCP servers as files configure them: ours, and those of Claude Code, gemini-cli, Codex and opencode, each with file and line.

The user approves a server by its `hash`: that of what would be started or reached, as it is written. So another value of a variable does
not make it another server, and no secret is in the hash.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.base.visible import escape_hidden
from dragoman.mcp_client.contracts import HttpServer, OAuthSettings, StdioServer
from dragoman.mcp_client.filling import FillFrom, Filling, Style
from dragoman.values.origin import Origin
from dragoman.words import say

STARTUP_S = 30.0
"""How long a server may take until it has said what it offers: some are downloaded first."""
CALL_S = 600.0
MAX_NAME_CHARS = 100


class ConfiguredServer(msgspec.Struct, frozen=True):
    """A server as a file configures it."""

    name: str
    origin: Origin
    server: StdioServer | HttpServer
    """With its variables filled in."""
    hash: str
    is_enabled: bool = True
    problem: str = ""
    """Why it cannot be used: a variable that is not set."""
    startup_timeout_s: float = STARTUP_S
    call_timeout_s: float = CALL_S
    include: tuple[str, ...] = ()
    """The tools that are offered; empty: all."""
    exclude: tuple[str, ...] = ()
    shown: str = ""
    """The command or the URL as it is written."""
    given: tuple[str, ...] = ()
    """Its environment or its headers as they are written: `NAME=value`."""
    takes: tuple[str, ...] = ()
    """The variables of the user's whose values it gets."""

    @property
    def needs_yes(self) -> bool:
        """Whether the user is asked about it: whoever wrote the project's file may be somebody else."""
        return self.origin.tier == "project"

    @property
    def host(self) -> str:
        """Of an HTTP server: `example.org`, or `example.org:8080`."""
        if isinstance(self.server, StdioServer):
            return ""
        try:
            parts = urlsplit(self.server.url)
            port = parts.port
        except ValueError:
            return self.server.url
        usual = {"http": 80, "https": 443}.get(parts.scheme)
        return (parts.hostname or "") + (f":{port}" if port not in (None, usual) else "")

    def offers(self, tool: str) -> bool:
        return (not self.include or tool in self.include) and tool not in self.exclude


class WrongEntry(ValueError):
    """What is wrong with an entry, and at which key of it."""

    def __init__(self, problem: str, key: str = "") -> None:
        super().__init__(problem)
        self.key = key


class Entry:
    """One entry of a file, read key by key. Unknown keys are left alone: every program has its own."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise WrongEntry(say("mcp_servers.not_a_table"))
        self._values: dict[str, Any] = values

    def has(self, key: str) -> bool:
        return self._values.get(key) is not None

    def text(self, *keys: str) -> str:
        return next((self._of(key, str, "text") for key in keys if self.has(key)), "")

    def flag(self, key: str, otherwise: bool) -> bool:
        return self._of(key, bool, "flag") if self.has(key) else otherwise

    def texts(self, *keys: str) -> tuple[str, ...]:
        for key in keys:
            if self.has(key):
                items = self._of(key, list, "texts")
                if not all(isinstance(item, str) for item in items):
                    raise WrongEntry(say("mcp_servers.wrong_kind", key=key, kind=say("mcp_servers.kind_texts")), key)
                return tuple(items)
        return ()

    def names(self, key: str) -> tuple[str, ...]:
        """A list of names, each a text or a table with its `name`."""
        items = self._values.get(key)
        if not isinstance(items, list):
            return self.texts(key)
        return Entry({key: [item.get("name") if isinstance(item, dict) else item for item in items]}).texts(key)

    def words(self, *keys: str) -> tuple[str, ...]:
        """A list of texts, or one text with spaces between them."""
        for key in keys:
            if isinstance(self._values.get(key), str):
                return tuple(self.text(key).split())
        return self.texts(*keys)

    def number(self, *keys: str) -> int:
        key = next((key for key in keys if self.has(key)), "")
        value = self._values.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int):
            raise WrongEntry(say("mcp_servers.wrong_kind", key=key, kind=say("mcp_auth.kind_number")), key)
        return value

    def table(self, *keys: str) -> dict[str, str]:
        """Names and texts. Numbers and flags are taken as the texts that they are in an environment."""
        for key in keys:
            if self.has(key):
                items = self._of(key, dict, "table")
                if any(isinstance(value, (dict, list)) for value in items.values()):
                    raise WrongEntry(say("mcp_servers.wrong_kind", key=key, kind=say("mcp_servers.kind_table")), key)
                return {str(name): _as_text(value) for name, value in items.items() if value is not None}
        return {}

    def seconds(self, key: str, per_second: float, otherwise: float) -> float:
        if not self.has(key):
            return otherwise
        value = self._values[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise WrongEntry(say("mcp_servers.wrong_kind", key=key, kind=say("mcp_servers.kind_time")), key)
        return min(value / per_second, 86_400.0)

    def inner(self, key: str) -> Entry:
        value = self._values.get(key)
        return Entry(value if isinstance(value, dict) else {})

    def command(self, *keys: str) -> tuple[str, ...]:
        """A program, or a list that begins with it."""
        for key in keys:
            if isinstance(self._values.get(key), list):
                return self.texts(key)
            if self.has(key):
                return (self.text(key),)
        return ()

    def _of(self, key: str, kind: type, word: str) -> Any:
        """`word` names the sentence that says what it has to be."""
        value = self._values[key]
        if not isinstance(value, kind):
            raise WrongEntry(say("mcp_servers.wrong_kind", key=key, kind=say(f"mcp_servers.kind_{word}")), key)
        return value


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


Draft = tuple[StdioServer | HttpServer, dict[str, Any]]
"""A server as it is written, and the further fields of ConfiguredServer."""


def read_claude(entry: Entry, filling: Filling) -> Draft:
    kind = entry.text("type", "transport")
    url = entry.text("url")
    if url and kind != "stdio":
        server: StdioServer | HttpServer = HttpServer(url, entry.table("headers"), "sse" if kind == "sse" else "http")
    else:
        server = _stdio(entry.command("command"), entry, "env")
    return server, {
        "is_enabled": not entry.flag("disabled", False) and entry.flag("enabled", True),
        "call_timeout_s": entry.seconds("timeout", 1000, CALL_S),
    }


def read_gemini(entry: Entry, filling: Filling) -> Draft:
    url, http = entry.text("url"), entry.text("httpUrl")
    if http or url:
        is_http = bool(http) or entry.text("type") in ("http", "streamable-http")
        server: StdioServer | HttpServer = HttpServer(http or url, entry.table("headers"), "http" if is_http else "sse")
    else:
        server = _stdio(entry.command("command"), entry, "env")
    return server, {
        "call_timeout_s": entry.seconds("timeout", 1000, CALL_S),
        "include": tuple(name.partition("(")[0] for name in entry.texts("includeTools")),
        "exclude": tuple(name.partition("(")[0] for name in entry.texts("excludeTools")),
    }


def read_codex(entry: Entry, filling: Filling) -> Draft:
    if url := entry.text("url"):
        headers = entry.table("http_headers")
        headers |= {name: filling.value(variable) for name, variable in entry.table("env_http_headers").items()}
        if variable := entry.text("bearer_token_env_var"):
            headers["Authorization"] = f"Bearer {filling.value(variable)}"
        server: StdioServer | HttpServer = HttpServer(url, headers)
    else:
        server = _stdio(entry.command("command"), entry, "env")
        passed = {name: filling.value(name) for name in entry.names("env_vars")}
        server = msgspec.structs.replace(server, env={**passed, **server.env})
    startup_s = entry.seconds("startup_timeout_ms", 1000, entry.seconds("startup_timeout_sec", 1, STARTUP_S))
    return server, {
        "is_enabled": entry.flag("enabled", True),
        "startup_timeout_s": startup_s,
        "call_timeout_s": entry.seconds("tool_timeout_sec", 1, CALL_S),
        "include": entry.texts("enabled_tools"),
        "exclude": entry.texts("disabled_tools"),
    }


def read_opencode(entry: Entry, filling: Filling) -> Draft:
    if entry.text("type") == "remote" or (entry.has("url") and not entry.has("command")):
        server: StdioServer | HttpServer = HttpServer(entry.text("url"), entry.table("headers"))
    else:
        server = _stdio(entry.command("command"), entry, "environment")
    times = entry.inner("timeout") if entry.has("timeout") and not _is_number(entry, "timeout") else None
    return server, {
        "is_enabled": entry.flag("enabled", True) and not entry.flag("disabled", False),
        "startup_timeout_s": times.seconds("startup", 1000, STARTUP_S) if times else entry.seconds("timeout", 1000, STARTUP_S),
        "call_timeout_s": times.seconds("request", 1000, CALL_S) if times else CALL_S,
    }


def read_own(entry: Entry, filling: Filling) -> Draft:
    if url := entry.text("url"):
        kind = entry.text("transport") or "http"
        if kind not in ("http", "sse"):
            raise WrongEntry(say("mcp_servers.wrong_transport", name=kind), "transport")
        server: StdioServer | HttpServer = HttpServer(url, entry.table("headers"), kind)
    else:
        server = _stdio(entry.command("command"), entry, "env")
        passed = {name: filling.value(name) for name in entry.texts("pass_env")}
        server = msgspec.structs.replace(server, env={**passed, **server.env})
    return server, {
        "is_enabled": entry.flag("enabled", True),
        "startup_timeout_s": entry.seconds("startup_timeout_s", 1, STARTUP_S),
        "call_timeout_s": entry.seconds("timeout_s", 1, CALL_S),
        "include": entry.texts("tools"),
        "exclude": entry.texts("exclude_tools"),
    }


_TOLD = (
    *("env", "environment", "env_vars", "pass_env", "oauth", "scopes"),
    *("headers", "http_headers", "env_http_headers", "bearer_token_env_var"),
)
Reader = Callable[[Entry, Filling], Draft]
STYLES: dict[Reader, Style] = {
    read_claude: "dollar",
    read_gemini: "any_dollar",
    read_codex: "none",
    read_opencode: "braces",
    read_own: "both",
}


def read_entry(name: str, values: Any, origin: Origin, read: Reader, around: FillFrom) -> ConfiguredServer:
    """One server. Raises WrongEntry."""
    if not name.strip() or len(name) > MAX_NAME_CHARS or escape_hidden(name, one_line=True) != name:
        raise WrongEntry(say("mcp_servers.wrong_name"))
    filling = Filling(around, STYLES[read], is_project=origin.tier == "project")
    written, fields = read(Entry(values), filling)
    _check(written)
    if isinstance(written, HttpServer):
        written = msgspec.structs.replace(written, oauth=_oauth(Entry(values)))
        if helper := next((key for key in ("headersHelper", "http_headers_helper") if values.get(key)), ""):
            filling.note(say("mcp_servers.headers_by_command", key=helper))
    filled = _filled(written, filling)
    return ConfiguredServer(
        name,
        origin,
        filled,
        hash_of(_unfilled(written, values)),
        problem=filling.problem,
        shown=written.url if isinstance(written, HttpServer) else " ".join((written.command, *written.args)),
        given=tuple(f"{key}={value}" for key, value in _as_written(values).items()),
        takes=tuple(filling.taken),
        **fields,
    )


def _as_written(values: Any) -> dict[str, str]:
    tables = (values.get(key) for key in ("env", "environment", "headers", "http_headers"))
    return {str(name): _as_text(value) for table in tables if isinstance(table, dict) for name, value in table.items()}


def hash_of(value: object) -> str:
    return sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:32]


def _unfilled(written: StdioServer | HttpServer, values: Any) -> object:
    """What the hash is of. Every key that any reader takes variables or headers from is in it as it is written, whoever reads it: a value
    that one way of reading overlooks must not be one that can change after the yes."""
    told = {key: values[key] for key in _TOLD if values.get(key)}
    if isinstance(written, StdioServer):
        return ["stdio", written.command, written.args, written.cwd, told]
    return ["http", written.url, written.transport, told]


def _oauth(entry: Entry) -> OAuthSettings | None:
    """What is set by hand about signing in: in our words, and in those of the other programs."""
    if not entry.has("oauth") and not entry.has("scopes"):
        return None
    given = entry.inner("oauth")
    port = given.number("callback_port", "callbackPort")
    grant = given.text("grant") or "authorization_code"
    if grant not in ("authorization_code", "client_credentials"):
        raise WrongEntry(say("mcp_servers.wrong_kind", key="oauth.grant", kind=say("mcp_auth.kind_grant")), "oauth")
    return OAuthSettings(
        client_id=given.text("client_id", "clientId"),
        client_secret=given.text("client_secret", "clientSecret"),
        issuer=given.text("issuer"),
        grant=grant,
        private_key_pem=given.text("private_key"),
        signing_algorithm=given.text("signing_algorithm") or "ES256",
        scopes=given.words("scopes", "scope") or entry.words("scopes"),  # Codex has them beside it
        client_metadata_url=given.text("client_metadata_url"),
        redirect_uri=given.text("redirect_uri", "redirectUri", "callback_url") or (f"http://localhost:{port}/callback" if port else ""),
    )


def _stdio(command: tuple[str, ...], entry: Entry, env_key: str) -> StdioServer:
    if not command or not command[0].strip():
        raise WrongEntry(say("mcp_servers.no_command"))
    return StdioServer(command[0], (*command[1:], *entry.texts("args")), entry.table(env_key), entry.text("cwd"))


def _check(server: StdioServer | HttpServer) -> None:
    if isinstance(server, HttpServer) and not server.url.startswith(("http://", "https://", "${", "$", "{")):
        raise WrongEntry(say("mcp_servers.wrong_url", url=server.url[:100]), "url")


def _filled(server: StdioServer | HttpServer, filling: Filling) -> StdioServer | HttpServer:
    fill = filling.fill
    if isinstance(server, HttpServer):
        headers = {name: fill(value) for name, value in server.headers.items()}
        return HttpServer(fill(server.url), headers, server.transport, server.oauth and server.oauth.filled(fill))
    env = {name: fill(value) for name, value in server.env.items()}
    return StdioServer(fill(server.command), tuple(map(fill, server.args)), env, fill(server.cwd))


def _is_number(entry: Entry, key: str) -> bool:
    return isinstance(entry._values.get(key), int | float)
