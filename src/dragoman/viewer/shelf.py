"""The sessions of this user as pages ask for them: the list, and those that are open in pages, followed while they are written."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from dragoman.app.setup import Setup, catalog_of
from dragoman.conversation.pages.context_command import ContextCommand
from dragoman.conversation.session_page.reading import SessionReading, shorten
from dragoman.conversation.spent_words import sum_cost
from dragoman.conversation.types import ViewEvent
from dragoman.sessions.last_run import is_held
from dragoman.sessions.store import FileStore
from dragoman.values.errors import InputError, NoSession
from dragoman.values.record import Started
from dragoman.viewer.fleets import sessions_of_fleets
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.summary import Summary

LOOK_S = 0.25
"""How often a log is looked at that a page shows."""
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Image types that hold only pixels."""
OPEN_SESSIONS = 20
"""How many are kept in memory once nobody watches them."""


class OpenSession:
    """One session that pages look at, read once for all of them."""

    def __init__(self, command: ContextCommand) -> None:
        self.command = command
        self._reading = SessionReading(command.summary.path, command.prices)
        self._lock = asyncio.Lock()
        self._changed = asyncio.Condition()
        self._watchers = 0
        self._looking: asyncio.Task[None] | None = None

    @property
    def generation(self) -> int:
        return self._reading.generation

    @property
    def entries(self) -> Sequence[Any]:
        return self._reading.entries

    @property
    def is_watched(self) -> bool:
        return self._watchers > 0

    def is_running(self) -> bool:
        """Whether a run is under way: it has not ended, and a process has the session open."""
        return self._reading.run.state == "open" and is_held(self.command.summary.path)

    async def catch_up(self) -> None:
        async with self._lock:
            new = await asyncio.to_thread(self._reading.catch_up)
        if new:
            async with self._changed:
                self._changed.notify_all()

    def events_after(self, seq: int) -> list[ViewEvent]:
        return [shorten(event) for event in self._reading.events[seq:]]

    async def blocks(self) -> dict[str, Any]:
        await self.catch_up()
        async with self._lock:
            blocks = await asyncio.to_thread(self._reading.blocks)
            return {
                "generation": self.generation,
                "seq": len(self._reading.events),
                "blocks": [shorten(block) for block in blocks],
                "damaged": self._reading.damaged,
                "running": self.is_running(),
            }

    async def block(self, id: str) -> ViewEvent | None:
        async with self._lock:
            return await asyncio.to_thread(self._reading.block, id)

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None, None]:
        self._watchers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            self._watchers -= 1
            if not self._watchers and self._looking is not None:
                looking, self._looking = self._looking, None
                looking.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.catch_up()
            except OSError:
                pass  # deleted: what was shown stays

    async def wait(self, after: int, gone: asyncio.Future[None]) -> float:
        """Wait for events behind this one, for a second at most; returns how long. It ends at once when the client is gone."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        if len(self._reading.events) <= after:
            news = asyncio.ensure_future(self._wait_for_change())
            await asyncio.wait({news, gone}, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            await asyncio.gather(news, return_exceptions=True)
        return loop.time() - began

    async def _wait_for_change(self) -> None:
        async with self._changed:
            await self._changed.wait()


class Shelf:
    """All sessions of a user."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._store = FileStore(setup.places.sessions)
        self._catalog = catalog_of(setup)
        self._open: dict[str, OpenSession] = {}

    # --- the list

    def list_sessions(self, search: str = "") -> dict[str, Any]:
        """Every session of every folder, the latest first; or those in which the words are found."""
        from dragoman.conversation.pages.session_list import as_json

        if search.strip():
            hits = self._store.search(search)
            found = [hit.summary for hit in hits]
            excerpts = [{"seq": hit.seq, "role": hit.role, "excerpt": hit.excerpt, "matches": hit.matches} for hit in hits]
        else:
            found, excerpts = list(self._store.list()), list[dict[str, Any]]()
        short = self._store.short_ids(each.session_id for each in found)
        rows = as_json(found, short)
        fleets = sessions_of_fleets(self._setup.workspace)
        for row, summary in zip(rows, found, strict=True):
            cost_usd, is_whole = sum_cost(summary, self._catalog)
            row |= {
                "parent": summary.parent,
                "fleet": fleets.get(summary.session_id, ""),
                "usd": cost_usd,
                "usd_is_whole": is_whole,
                "imported": summary.imported_from,
            }
            row.pop("path", None)
        for row, excerpt in zip(rows, excerpts, strict=False):
            row["hit"] = excerpt
        return {"sessions": rows, "folder": os.path.realpath(self._setup.workspace)}

    def _command(self, summary: Summary) -> ContextCommand:
        return ContextCommand(self._setup, self._store, summary, self._catalog)

    # --- one session

    async def reading(self, session_id: str) -> OpenSession:
        """By its whole id. Raises NoSession."""
        opened = self._open.get(session_id)
        if opened is None:
            summary = await asyncio.to_thread(self._store.find, session_id, self._setup.workspace)
            opened = self._open.setdefault(summary.session_id, OpenSession(self._command(summary)))
            await self._catch_up(opened, session_id)
            for name in [name for name, each in self._open.items() if not each.is_watched][:-OPEN_SESSIONS]:
                del self._open[name]
        return opened

    async def _catch_up(self, opened: OpenSession, session_id: str) -> None:
        try:
            await opened.catch_up()
        except OSError as error:
            self._open.pop(session_id, None)
            raise NoSession(say("sessions.not_found", session=session_id)) from error

    async def show(self, session_id: str) -> dict[str, Any]:
        opened = await self.reading(session_id)
        shown = await opened.blocks()
        summary = opened.command.summary
        children = await asyncio.to_thread(self._children, summary.session_id)
        about = {"id": opened.command.short_id, "session_id": summary.session_id, "title": summary.title, "children": children}
        return about | shown | {"files": await asyncio.to_thread(self._changed_files, opened)}

    def _children(self, session_id: str) -> list[dict[str, str]]:
        """The sessions of subagents that were called in this one, with the call."""
        found: list[dict[str, str]] = []
        for summary in self._store.list():
            if summary.parent == session_id:
                head = self._store.read(summary.path).entries[:1]
                call = head[0].parent_call if head and isinstance(head[0], Started) else ""
                found.append({"session_id": summary.session_id, "call_id": call, "title": summary.title, "model": summary.model})
        return found

    def _changed_files(self, opened: OpenSession) -> list[dict[str, Any]]:
        from dragoman.conversation.session_page.files import changed_files

        return changed_files(opened.entries)

    async def look(self, session_id: str, what: str, query: dict[str, str]) -> Any:
        """A part of a session that is made when it is asked for."""
        opened = await self.reading(session_id)
        await self._catch_up(opened, session_id)
        if what == "block":
            found = await opened.block(query.get("id", ""))
            return found if found is not None else dict[str, Any]()
        looking = _LOOKS.get(what)
        if looking is None:
            raise InputError(say("viewer.no_page"))
        return await asyncio.to_thread(looking, opened.command, list(opened.entries), query)

    async def image(self, session_id: str, sha256: str) -> tuple[str, bytes] | None:
        """The bytes of an image that the session names, if it is of a kind that holds only pixels."""
        opened = await self.reading(session_id)
        for block in (await opened.blocks())["blocks"]:
            for each in block.data.get("attachments", ()):
                if each.get("sha256") == sha256 and each["mime"] in _IMAGES:
                    blobs = self._store.blobs_beside(opened.command.summary.path)
                    data = await asyncio.to_thread(blobs.get, sha256)
                    return (each["mime"], data) if data is not None else None
        return None


# --- parts of a session


def _request(command: ContextCommand, entries: Sequence[Any], query: dict[str, str]) -> Any:
    from dragoman.conversation.session_page.requests import request_before

    return request_before(command, entries, _seq(query), query.get("to", ""))


def _items(command: ContextCommand, entries: Sequence[Any], query: dict[str, str]) -> Any:
    from dragoman.conversation.session_page.requests import items_before

    return items_before(command, entries, _seq(query))


def _simulate(command: ContextCommand, entries: Sequence[Any], query: dict[str, str]) -> Any:
    from dragoman.conversation.pages.context_simulate import run_simulation

    return run_simulation(command, entries).to_json()


def _file(command: ContextCommand, entries: Sequence[Any], query: dict[str, str]) -> Any:
    from dragoman.conversation.session_page.files import file_texts

    blobs = command.store.blobs_beside(command.summary.path)
    return file_texts(entries, blobs, _seq(query), query.get("path", ""))


def _files(command: ContextCommand, entries: Sequence[Any], query: dict[str, str]) -> Any:
    from dragoman.conversation.session_page.files import changed_files

    return changed_files(entries)


_LOOKS: dict[str, Callable[[ContextCommand, Sequence[Any], dict[str, str]], Any]] = {
    "request": _request,
    "items": _items,
    "simulate": _simulate,
    "file": _file,
    "files": _files,
}


def _seq(query: dict[str, str]) -> int:
    """The entry that is asked about; a large one without: all there are."""
    text = query.get("seq", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 1 << 40
