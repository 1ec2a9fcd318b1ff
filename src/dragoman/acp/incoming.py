"""What we read of the client's messages. What is not understood in an optional part is left out, as the protocol wants it."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.acp.updates import Shows


class EnvVariable(msgspec.Struct, frozen=True):
    name: str
    value: str


class McpServer(msgspec.Struct, frozen=True):
    """With a `type`, it is reached by HTTP; without, it is started."""

    name: str
    type: str = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] | None = None
    url: str = ""
    headers: tuple[EnvVariable, ...] | None = None


class NewSession(msgspec.Struct, frozen=True, rename="camel"):
    cwd: str
    mcp_servers: tuple[McpServer, ...] | None = None
    additional_directories: tuple[str, ...] | None = None


class OldSession(NewSession, frozen=True, kw_only=True):
    """To load or to resume."""

    session_id: str


class OfSession(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str


class ListSessions(msgspec.Struct, frozen=True):
    cwd: str | None = None
    cursor: str | None = None


class SetMode(OfSession, frozen=True):
    mode_id: str


class SetModel(OfSession, frozen=True):
    model_id: str


class SetOption(OfSession, frozen=True):
    config_id: str
    value: str


class GivenResource(msgspec.Struct, frozen=True, rename="camel"):
    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class PromptBlock(msgspec.Struct, frozen=True, rename="camel"):
    """Any kind of block: which fields it has depends on its type."""

    type: str
    text: str = ""
    data: str = ""
    mime_type: str | None = None
    uri: str | None = None
    name: str = ""
    resource: GivenResource | None = None


class GivenPrompt(OfSession, frozen=True):
    prompt: tuple[PromptBlock, ...]


class Steering(GivenPrompt, frozen=True):
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def wants_prompt_if_idle(self) -> bool:
        told = (self.meta or {}).get("steering")
        return isinstance(told, dict) and told.get("idleBehavior") == "promptRequired"


class Authenticate(msgspec.Struct, frozen=True, rename="camel"):
    method_id: str


class PermissionOutcome(msgspec.Struct, frozen=True, rename="camel"):
    outcome: str
    option_id: str = ""


class Permission(msgspec.Struct, frozen=True):
    outcome: PermissionOutcome


class FormAnswer(msgspec.Struct, frozen=True):
    action: str
    content: dict[str, Any] | None = None


def shows_of(hello: Any) -> Shows:
    """What the client can show, of the parameters of `initialize`."""
    told = _at(hello, "clientCapabilities")
    session = _at(told, "session")
    return Shows(
        notices=isinstance(_at(session, "notices"), dict),
        compaction=isinstance(_at(session, "compaction"), dict),
        elicitation=isinstance(_at(_at(told, "elicitation"), "form"), dict),
    )


def client_name(hello: Any) -> str:
    info = _at(hello, "clientInfo")
    found = next((each for key in ("title", "name") if isinstance(each := _at(info, key), str) and each.strip()), "")
    return found.strip()[:60]


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None
