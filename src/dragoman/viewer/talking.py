"""Conversations that pages hold: one POST for each thing a person does, one stream of what happens, over the room that editors use too.

A conversation stays open when its last page is closed: what is under way goes on, and any page finds it again by its session.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Literal, get_args

import msgspec

from dragoman.app.setup import Setup, set_up
from dragoman.base import jsontext
from dragoman.conversation.choosable import models_with_key
from dragoman.conversation.conversation import Conversation
from dragoman.conversation.types import QuestionAnswer
from dragoman.policy.judge import Mode
from dragoman.sessions.store import FileStore
from dragoman.values.errors import InputError, NoSession
from dragoman.values.messages import Effort
from dragoman.words import say

LOOK_S = 0.3
"""How soon a page sees what no event tells, such as that a run is over."""
PING_S = 15.0

Body = dict[str, Any]


class HeldConversation:
    """One conversation, and the questions that come before its first prompt."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.first = asyncio.get_running_loop().create_task(conversation.ask_first())

    def state(self) -> Body:
        talk = self.conversation
        return {
            "kind": "state",
            "session_id": talk.session_id,
            "busy": talk.is_busy,
            "can_steer": talk.can_steer,
            "asks_first": not self.first.done(),
            "model": talk.model,
            "mode": talk.mode,
            "effort": talk.effort,
            "cost_usd": talk.cost_usd,
            "cost_is_whole": talk.cost_is_whole,
            "notices": [str(notice) for notice in talk.notices],
            "folder": talk.setup.workspace,
        }

    async def close(self) -> None:
        await self.conversation.close()
        self.first.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self.first


class Talking:
    """All conversations of one server, by their sessions."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._held: dict[str, HeldConversation] = {}
        self._opening = asyncio.Lock()

    async def aclose(self) -> None:
        await asyncio.gather(*(held.close() for held in self._held.values()))

    async def act(self, path: list[str], body: Body) -> Any:
        """What a page wants done. Raises DragomanError."""
        match path:
            case ["open"]:
                return await self._open(_text(body, "session"), _text(body, "model"))
            case ["choices"]:
                return self._choices()
            case [session_id, "send"]:
                return self._send(self._find(session_id), body)
            case [session_id, "take_back"]:
                return {"text": self._find(session_id).conversation.take_back(_text(body, "id")).text}
            case [session_id, "answer"]:
                answer = QuestionAnswer(_text(body, "question"), _text(body, "choice"), _text(body, "text"))
                self._find(session_id).conversation.answer(answer)
                return dict[str, Any]()
            case [session_id, "cancel"]:
                talk, call_id = self._find(session_id).conversation, _text(body, "call_id")
                return {"stopped": talk.cancel_call(call_id) if call_id else talk.cancel()}
            case [session_id, "set"]:
                return self._set(self._find(session_id), _text(body, "key"), _text(body, "value"))
            case [session_id, "close"]:
                await self._close(session_id)
                return dict[str, Any]()
            case _:
                raise InputError(say("viewer.no_page"))

    async def stream(self, session_id: str, after: int, gone: asyncio.Future[None]) -> AsyncGenerator[bytes, None]:
        """Events behind that number as lines of JSON, and the state whenever it is another. Where it begins with what stands, `whole`
        says when that is all there: a page that was cut off before has seen none of it."""
        held = self._find(session_id)
        events = held.conversation.watch(after)
        coming = asyncio.ensure_future(anext(events))
        told: Body = {}
        quiet_s = 0.0
        beginning = 0
        try:
            while not gone.done():
                if (state := held.state()) != told:
                    told = state
                    yield jsontext.encode(state) + b"\n"
                done, _ = await asyncio.wait({coming, gone}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                quiet_s = 0.0 if coming in done else quiet_s + LOOK_S
                if coming in done:
                    try:
                        event = coming.result()
                    except StopAsyncIteration:
                        return
                    coming = asyncio.ensure_future(anext(events))
                    beginning = event.seq if event.id == "begin_anew" else beginning
                    yield jsontext.encode(event) + b"\n"
                elif beginning:
                    yield jsontext.encode({"kind": "whole", "seq": beginning}) + b"\n"
                    beginning = 0
                elif quiet_s >= PING_S:
                    quiet_s = 0.0
                    yield b'{"kind":"ping"}\n'
        finally:
            coming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await coming
            await events.aclose()

    # --- what pages do

    async def _open(self, session: str, model: str) -> Body:
        """The conversation with this session, or a new one. Raises DragomanError."""
        async with self._opening:
            if session in self._held:
                return self._held[session].state()
            options, setup = self._setup.options, self._setup
            options = msgspec.structs.replace(options, command="run", words=(), model=model or options.model, resume=None)
            if session:
                summary = await asyncio.to_thread(FileStore(setup.places.sessions).find, session, setup.workspace)
                if summary.session_id in self._held:
                    return self._held[summary.session_id].state()
                is_there = summary.workspace and await asyncio.to_thread(os.path.isdir, summary.workspace)
                where = summary.workspace if is_there else setup.workspace
                options = msgspec.structs.replace(options, resume=summary.session_id, directory=where)
                setup = await asyncio.to_thread(set_up, options, setup.env)
            setup = msgspec.structs.replace(setup, options=options)
            held = HeldConversation(await Conversation.open(options, setup=setup, holds_session=True))
            self._held[held.conversation.session_id] = held
            return held.state()

    def _send(self, held: HeldConversation, body: Body) -> Body:
        if not held.first.done():
            raise InputError(say("viewer.answer_first"))
        when: Literal["next", "steer"] = "steer" if _text(body, "when") == "steer" else "next"
        return {"id": held.conversation.send(_text(body, "text"), when=when).id}

    def _set(self, held: HeldConversation, key: str, value: str) -> Body:
        talk = held.conversation
        match key:
            case "model":
                talk.change_model(value)
            case "mode":
                talk.set_mode(value)
            case "effort":
                talk.set_effort(value)
            case "title":
                talk.set_title(value)
            case _:
                raise InputError(say("viewer.no_page"))
        return held.state()

    async def _close(self, session_id: str) -> None:
        held = self._find(session_id)
        del self._held[session_id]
        await held.close()

    def _choices(self) -> Body:
        rows = [{"name": row.slash, "usage": row.usage, "about": str(say(f"commands.help_{row.name}"))} for row in Conversation.commands()]
        models = [each.name for each in models_with_key(self._setup)]
        open_ones = [{"session_id": each, "title": _title(held.conversation)} for each, held in self._held.items()]
        efforts, modes = [each for each in get_args(Effort) if each], list(get_args(Mode))
        return {"models": models, "modes": modes, "efforts": efforts, "commands": rows, "open": open_ones, "folder": self._setup.workspace}

    def _find(self, session_id: str) -> HeldConversation:
        held = self._held.get(session_id)
        if held is None:
            raise NoSession(say("viewer.not_open"))
        return held


def _title(talk: Conversation) -> str:
    first = next((block for block in talk.blocks if block.kind == "prompt"), None)
    return first.text[:100] if first is not None else ""


def _text(body: Body, name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        raise InputError(say("viewer.not_an_object"))
    return value
