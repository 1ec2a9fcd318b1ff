"""The methods of the protocol, and the sessions that are open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.acp import greeting
from dragoman.acp.client_servers import read_servers
from dragoman.acp.incoming import (
    Authenticate,
    GivenPrompt,
    ListSessions,
    NewSession,
    OfSession,
    OldSession,
    SetMode,
    SetModel,
    SetOption,
    Steering,
    client_name,
    shows_of,
)
from dragoman.acp.outgoing import ConfigOptions, PromptEnd, SelectOption, SessionInfo, Sessions, SessionSettings
from dragoman.acp.prompts import in_words, read_prompt
from dragoman.acp.rpc import INVALID_PARAMS, NO_METHOD, NOT_FOUND, AcpError, ClientPeer, ReplyThen, read
from dragoman.acp.session import EditorSession
from dragoman.acp.settings import choosable_models, modes_of, set_option
from dragoman.acp.stdio import Writer
from dragoman.acp.updates import iso_time
from dragoman.app.connecting import choose_first_model, connect_model
from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up
from dragoman.conversation.conversation import Conversation
from dragoman.sessions.store import FileStore
from dragoman.values.errors import NoSession
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.mcp_client.configured import ConfiguredServer
    from dragoman.sessions.summary import Summary

_NOTHING: dict[str, Any] = {}
PAGE = 50
"""Sessions in one answer of `session/list`."""


class Methods:
    """`hello`: the parameters of `initialize`; empty where it has not come yet."""

    peer: ClientPeer

    def __init__(self, options: Options, writer: Writer, hello: Any) -> None:
        self._options = options
        self._writer = writer
        self._take_hello(hello)
        self._sessions: dict[str, EditorSession] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._is_closing = False
        self._table: dict[str, Callable[[msgspec.Raw], Awaitable[Any]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "logout": self._log_out,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_model": self._set_model,
            "session/set_config_option": self._set_option,
            "_session/steering": self._steer,
        }

    async def request(self, method: str, params: msgspec.Raw) -> Any:
        found = self._table.get(method)
        if found is None:
            raise AcpError(NO_METHOD, say("acp.no_method", name=method[:80]))
        return await found(params)

    def notification(self, method: str, params: msgspec.Raw) -> None:
        if method == "session/cancel" and (session := self._sessions.get(read(params, OfSession).session_id)) is not None:
            session.cancel()

    async def close(self) -> None:
        self._is_closing = True
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)

    # --- the client and the person

    def _take_hello(self, hello: Any) -> None:
        self._shows, self._client = shows_of(hello), client_name(hello)

    async def _initialize(self, params: msgspec.Raw) -> Any:
        told = read(params, dict[str, Any])
        if type(told.get("protocolVersion")) is not int:
            raise AcpError(INVALID_PARAMS, say("acp.bad_params", reason="protocolVersion"))
        self._take_hello(told)
        return greeting.hello(told)

    async def _authenticate(self, params: msgspec.Raw) -> Any:
        """Keys are never sent over the protocol: it is looked whether there is one by now."""
        method = read(params, Authenticate).method_id
        if method not in (greeting.KEY_METHOD, greeting.TERMINAL_METHOD):
            raise AcpError(INVALID_PARAMS, say("acp.no_auth_method", name=method[:60]))
        connection = connect_model(choose_first_model(set_up(self._options), None))  # raises Unauthorized, saying what to do
        await connection.aclose()
        return _NOTHING

    async def _log_out(self, params: msgspec.Raw) -> Any:
        from dragoman.app.keys import stored_keys

        keys = stored_keys(set_up(self._options))
        for service in list(keys.services):
            keys.remove(service)
        return _NOTHING

    # --- sessions begin and end

    async def _new(self, params: msgspec.Raw) -> Any:
        asked = read(params, NewSession)
        session = await self._open(asked, None)
        opened = SessionSettings(modes_of(session.conversation), session.options(), session.id)
        return ReplyThen(opened, session.start)

    async def _load(self, params: msgspec.Raw) -> Any:
        session = await self._open_old(params)
        session.replay()
        return self._reopened(session)

    async def _resume(self, params: msgspec.Raw) -> Any:
        """As it is loaded, but the client has what was said."""
        return self._reopened(await self._open_old(params))

    def _reopened(self, session: EditorSession) -> ReplyThen:
        return ReplyThen(SessionSettings(modes_of(session.conversation), session.options()), session.start)

    async def _open_old(self, params: msgspec.Raw) -> EditorSession:
        asked = read(params, OldSession)
        async with self._opening.setdefault(asked.session_id, asyncio.Lock()):
            # What cannot be opened does not end the session that is open.
            self._find(asked.session_id)
            self._servers_of(asked)
            if (before := self._sessions.pop(asked.session_id, None)) is not None:
                before.cancel()
                await before.close()
            return await self._open(asked, asked.session_id)

    async def _open(self, asked: NewSession, session_id: str | None) -> EditorSession:
        servers = self._servers_of(asked)
        include = (*self._options.include, *(asked.additional_directories or ()))
        options = msgspec.structs.replace(self._options, command="run", directory=asked.cwd, include=include, resume=session_id)
        setup = msgspec.structs.replace(set_up(options), servers=servers)
        conversation = await Conversation.open(options, setup=setup, holds_session=True, waits=False)
        session = EditorSession(conversation, self.peer, self._writer, self._shows, lambda: self._models_of(conversation.setup))
        if self._is_closing:
            await session.close()
        self._sessions[session.id] = session
        return session

    def _servers_of(self, asked: NewSession) -> tuple[ConfiguredServer, ...]:
        """Raises AcpError for a server or a folder that cannot be."""
        _require_directories((asked.cwd, *(asked.additional_directories or ())))
        return read_servers(asked.mcp_servers or (), self._client)

    def _models_of(self, setup: Setup) -> tuple[SelectOption, ...]:
        return choosable_models(setup)

    def _session(self, id: str) -> EditorSession:
        if (session := self._sessions.get(id)) is None:
            raise AcpError(NOT_FOUND, say("acp.not_open", id=id[:80]))
        return session

    async def _close(self, params: msgspec.Raw) -> Any:
        session = self._session(read(params, OfSession).session_id)
        del self._sessions[session.id]
        session.cancel()
        await session.close()
        return _NOTHING

    async def _delete(self, params: msgspec.Raw) -> Any:
        id = read(params, OfSession).session_id
        if (session := self._sessions.pop(id, None)) is not None:
            session.cancel()
            await session.close()
        try:
            summary = self._find(id)
        except NoSession:
            return _NOTHING  # it is gone, or never had a prompt
        self._store().delete(summary.path)
        return _NOTHING

    async def _list(self, params: msgspec.Raw) -> Any:
        asked = read(params, ListSessions)
        found = [each for each in self._store().list(asked.cwd) if not each.parent and each.workspace]
        start = int(asked.cursor) if asked.cursor and asked.cursor.isascii() and asked.cursor.isdecimal() and len(asked.cursor) < 9 else 0
        page = found[start : start + PAGE]
        following = str(start + PAGE) if start + PAGE < len(found) else None
        return Sessions(tuple(map(_info, page)), following)

    def _store(self) -> FileStore:
        return FileStore(set_up(self._options).places.sessions)

    def _find(self, id: str) -> Summary:
        """The session with exactly this id. Raises NoSession."""
        store = self._store()
        if id not in store.ids():
            raise NoSession(say("sessions.not_found", session=id[:80]))
        return store.find(id, os.getcwd())

    # --- what a session is asked

    async def _prompt(self, params: msgspec.Raw) -> Any:
        asked = read(params, GivenPrompt)
        session = self._session(asked.session_id)
        said, along = read_prompt(asked.prompt, session.conversation.setup.workspace)
        return PromptEnd(await session.prompt(*(in_words(said, along) if said.startswith("/") else (said, along))))

    async def _steer(self, params: msgspec.Raw) -> Any:
        asked = read(params, Steering)
        session = self._session(asked.session_id)
        text, media = in_words(*read_prompt(asked.prompt, session.conversation.setup.workspace))
        if not media and session.steer(text):
            return {"outcome": "injected"}
        if asked.wants_prompt_if_idle:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        session.begin_prompt(text, media)
        return {"outcome": "startedNewTurn"}

    async def _set_mode(self, params: msgspec.Raw) -> Any:
        asked = read(params, SetMode)
        return self._set(asked.session_id, "mode", asked.mode_id, _NOTHING)

    async def _set_model(self, params: msgspec.Raw) -> Any:
        asked = read(params, SetModel)
        return self._set(asked.session_id, "model", asked.model_id, _NOTHING)

    async def _set_option(self, params: msgspec.Raw) -> Any:
        asked = read(params, SetOption)
        return self._set(asked.session_id, asked.config_id, asked.value, None)

    def _set(self, id: str, key: str, value: str, result: Any) -> ReplyThen:
        """Without a result: all options as they are then."""
        session = self._session(id)
        set_option(session.conversation, key, value)
        if result is None:
            return ReplyThen(ConfigOptions(session.options()), lambda: session.tell_settings(has_options=True))
        return ReplyThen(result, session.tell_settings)


def _require_directories(paths: tuple[str, ...]) -> None:
    for path in paths:
        if not os.path.isabs(path) or not os.path.isdir(path):
            raise AcpError(INVALID_PARAMS, say("acp.no_directory", path=path))


def _info(summary: Summary) -> SessionInfo:
    return SessionInfo(summary.session_id, summary.workspace, summary.title or None, iso_time(summary.updated_ms))
