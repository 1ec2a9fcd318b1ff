"""What one conversation holds: its record and the log it is kept in, the bytes it refers to, and the model it is held with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Protocol
from weakref import finalize

from dragoman import __version__
from dragoman.base.ids import new_session_id
from dragoman.base.places import temporary_folders
from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.loop.options import Connector, Sandboxing, SessionOptions
from dragoman.loop.surroundings import temporary_directory
from dragoman.sessions.store import FileStore
from dragoman.tools.output import remove_outputs
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.values.events import ModelSwitched, Retrying, SavingChanged, TurnEvent
from dragoman.values.messages import Blob, FileRef, Message, Part
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.charging import Purse
    from dragoman.loop.kept_work import KeptWork
    from dragoman.sessions.leftovers import WritingNote
    from dragoman.sessions.store import StoredSession
    from dragoman.sessions.stores import Store
    from dragoman.tools.background import BackgroundCommands

VERSIONS = (f"dragoman {__version__}",)


class Worker(Protocol):
    """A run, or a compression."""

    def tell(self, event: TurnEvent) -> None:
        """Something happened to the session meanwhile. May be called from any thread."""
        ...

    @property
    def is_unwanted(self) -> bool:
        """Cancelled, or left by everybody: it is about to end."""
        ...

    def cancel(self) -> None:
        """May be called from any thread."""
        ...

    async def finished(self) -> None:
        """Returns when it is over, however it went."""
        ...


class SaidBoundary:
    """What the user has said of the boundary around commands, by configuration and in the conversation."""

    is_turned_off = False
    """For now, in the conversation."""
    opens_ports = False
    """Whether the user can open ports of commands to a browser (`/sandbox port`), so that new ones are worth telling."""
    outer: SaidBoundary | None = None
    """Of the agent that this one runs inside of: what holds there holds here."""

    def __init__(self, sandbox: Sandboxing | bool) -> None:
        self._level = sandbox.level if isinstance(sandbox, Sandboxing) else ""

    @property
    def is_off(self) -> bool:
        return self.is_turned_off or (self.outer is not None and self.outer.is_off)

    @property
    def is_known(self) -> bool:
        """Whether nothing has to be found out."""
        return self.is_off or self._level in ("off", "external")

    @property
    def for_record(self) -> Literal["", "external", "off"]:
        """That the boundary is not ours, or that there is none for now."""
        return "off" if self.is_off else "external" if self._level == "external" else ""


class Session:
    """One conversation. `model` may be changed between two requests."""

    model: Model
    """Set once the session is open: a resumed one may name its own."""

    def __init__(
        self,
        history: History,
        session_id: str = "",
        blobs: BlobStore | None = None,
        outputs: str = "",
        log: SessionLog | None = None,
        *,
        within_reach: Sequence[str] = (),
    ) -> None:
        """`within_reach`: folders that commands may write to. Where no place for `outputs` is given, they do not lie there."""
        self.history = history
        self.id = session_id or history.view.session_id or new_session_id()
        self.blobs = MemoryBlobs() if blobs is None else blobs
        self.outputs = outputs or _temporary_outputs(within_reach)
        """The folder for tool output that was too long for the model."""
        if not outputs:  # at the latest when the program ends
            finalize(self, remove_outputs, self.outputs, os.getpid())
        self._has_own_outputs = not outputs
        self.log = log
        """Where it is kept; None: in memory only."""
        self.work = log.work if log is not None else Work()
        self.purse: Purse | None = None
        """The budgets that everything asked in it is charged to."""
        self.background: BackgroundCommands | None = None
        """Commands that go on in the background; None: none was started since the session was opened."""
        self.kept_work: KeptWork | None = None
        """Looks at files around commands; None before the first."""
        self.is_resumed = bool(history.entries)
        """Whether there is something from before; until it has been looked for background commands that are gone."""

    async def aclose(self) -> None:
        """End the background commands, then `close`."""
        try:
            if self.background is not None:
                await self.background.close()
        finally:
            self.close()

    def has_running_commands(self) -> bool:
        """Whether a command goes on in the background."""
        return self.background is not None and self.background.running > 0

    def close(self) -> None:
        """Write what is left, and remove the long results of a conversation that is not saved."""
        self.work.is_over = True
        if self.kept_work is not None:
            self.kept_work.close()
        if self.log is not None:
            self.log.close()
        if self._has_own_outputs:
            remove_outputs(self.outputs, os.getpid())

    def own_model(self, connector: Connector | None) -> str:
        """The model the conversation was held with; where its log does not say, the one that the connector names.

        Raises InputError where neither names one.
        """
        view = self.history.view
        if view.model:
            name = f"{view.deployment}/{view.model}" if view.deployment else view.model
            self._refuse_code(name, connector)
            return name
        if connector is None or connector.otherwise is None:
            raise InputError(say("loop.no_model"))
        return connector.otherwise()

    def _refuse_code(self, model: str, connector: Connector | None) -> None:
        """`module:name/…` imports and calls code. A log may come from anybody, so the user has to name such a model themselves."""
        service = model.partition("/")[0]
        if ":" not in service:
            return
        from dragoman.base.plugins import is_module_name

        named = connector.otherwise if connector is not None else None
        if is_module_name(service) and (named is None or named() != model):
            raise InputError(say("loop.model_is_code", model=model))

    def keep_bytes(self, parts: Iterable[Part]) -> None:
        """Keep images and files with the session: those that carry their bytes, and those of a given provider's store. Only here are they
        found again."""
        lent = self.model.provider.blobs
        for part in parts:
            if not isinstance(part, Blob) or self.blobs.get(part.sha256) is not None:
                continue
            data = part.data if part.data is not None or lent is None else lent.get(part.sha256)
            if data is not None:
                self.blobs.put(part.mime, data)

    def take_media(self, prompt: Message) -> Message:
        """Keep the images and files of a prompt with the session; the prompt that comes back names them without carrying their bytes.

        Raises InputError where the model cannot be sent one of them. Then nothing was kept.
        """
        media = [part for part in prompt.parts if isinstance(part, Blob | FileRef)]
        if not media:
            return prompt
        for part in media:
            if fault := self.model.provider.media_fault(part, self.model.name):
                raise InputError(fault)
        self.keep_bytes(media)
        return Message(prompt.role, tuple(_without_bytes(part) for part in prompt.parts))

    def charged(self, model: Model) -> Model:
        """A model as it is asked: what it takes is charged to the budgets in force, if there are any."""
        return model if self.purse is None else self.purse.charge(model)

    def change_model(self, model: Model) -> None:
        """Use another model from the next request on. It is recorded only if the conversation has begun."""
        self.model = model
        if self.history.view.model:
            window = model.profile_within(self.history.view.windows).prompt_window
            self.history.change_model(model.name, model.provider.name, window, model.provider.dialect)

    def follow_retry(self, event: Retrying) -> ModelSwitched:
        """A retry policy went on with another model of the same service: so does the session."""
        previous = self.model.full_name
        self.change_model(Model(self.model.provider, event.model))
        return ModelSwitched(self.model.full_name, previous, event.reason)


def _without_bytes(part: Part) -> Part:
    return Blob(part.mime, part.sha256, part.size) if isinstance(part, Blob) and part.data is not None else part


class Work:
    """What is under way in a session, one thing at a time: a run, or a compression. It hears what happens to the session meanwhile."""

    def __init__(self) -> None:
        self.current: Worker | None = None
        self.pid = 0
        """The process that writes the session; 0: none does yet."""
        self.is_over = False
        """Whether the session was closed: what came now would not be kept."""
        self._untold: list[SavingChanged] = []

    def begin(self, worker: Worker) -> None:
        """Raises InputError where something is under way, or the session is another process's."""
        self.require_none()
        self.current = worker
        for event in self._untold:
            worker.tell(event)
        self._untold.clear()

    async def begin_after(self, worker: Worker) -> None:
        """`begin`, once one that was cancelled or left by everybody is over."""
        while (ending := self.current) is not None and ending.is_unwanted:
            ending.cancel()
            await ending.finished()
        self.begin(worker)

    def end(self, worker: Worker) -> None:
        if self.current is worker:
            self.current = None

    def require_none(self) -> None:
        if self.pid not in (0, os.getpid()):
            raise InputError(say("loop.forked", pid=self.pid))
        if self.current is not None:
            raise InputError(say("loop.already_running"))
        if self.is_over:
            raise InputError(say("loop.closed"))

    def tell(self, event: SavingChanged) -> None:
        """Emit an event now, or when the next run begins."""
        if self.current is not None:
            self.current.tell(event)
        else:
            self._untold.append(event)


class SessionLog:
    """The log of a session in a store. Nothing is written before there is something to say."""

    def __init__(self, store: Store, workspace: str) -> None:
        self._store = store
        self._workspace = workspace
        self._stored: StoredSession | None = None
        self._path = ""
        """Of a session that was resumed."""
        self._not_created = ""
        self._writing: WritingNote | None = None
        self.work = Work()
        self.parent = ("", "")
        """The session, and the call in it, that it is kept for."""

    @property
    def not_saved(self) -> str:
        """Why the session is not completely on disk; empty if it is, as far as is known."""
        if self._stored is None:
            return str(say("loop.was_not_saved", reason=self._not_created)) if self._not_created else ""
        journal, blobs = self._stored.journal, self._stored.blobs
        if not journal.is_saved:
            return str(say("loop.was_not_saved", reason=journal.fault or say("loop.entries_lost", count=journal.lost)))
        return str(say("loop.files_not_saved", reason=blobs.fault)) if blobs.fault else ""

    @property
    def store(self) -> Store:
        return self._store

    @property
    def own_paths(self) -> tuple[str, ...]:
        """The paths in which all sessions of its store are kept."""
        return tuple(self._store.own_paths)

    def path_of(self, session_id: str) -> str:
        """The file it is or will be kept in; empty where its store keeps no file for each."""
        path = self._path or self._store.path_of(session_id, self._workspace)
        return path if os.path.isabs(path) else ""

    def open(self, name: str) -> StoredSession:
        """Go on with a session. Raises InputError where it cannot be opened."""
        self._path = self._store.find(name, self._workspace).path
        self._stored = self._store.open(self._path, self.report_fault)
        self.work.pid = os.getpid()
        return self._stored

    def open_or_create(self, key: str) -> StoredSession:
        """Go on with the session that has this key, or create it. Raises InUse where another process has it open."""
        self._stored = self._store.open_or_create(key, self._workspace, versions=VERSIONS, on_fault=self.report_fault)
        self.work.pid = os.getpid()
        return self._stored

    def begin(self, session: Session, directories: Sequence[str]) -> None:
        """Make the file, unless it is there. A conversation that cannot be saved goes on all the same, and the user is told."""
        if self._stored is not None or session.history.entries:
            return
        try:
            self._stored = self._store.create(
                self._workspace, session.id, directories=directories, versions=VERSIONS, on_fault=self.report_fault, parent=self.parent
            )
        except InputError as error:
            self._not_created = str(error)
            self.work.tell(SavingChanged(False, str(say("loop.not_saved", reason=error))))
            return
        self.work.pid = os.getpid()
        session.history.attach_journal(self._stored.journal, self._stored.loaded.entries)

    def note_folders(self, folders: Iterable[str]) -> None:
        """Temporary files may be made in these folders from now on: if we are killed, whoever comes next removes them."""
        if self._writing is None:
            if self._stored is None:
                return
            from dragoman.sessions.leftovers import WritingNote

            self._writing = WritingNote(self._stored.note)
        self._writing.add(folders)

    def close(self) -> None:
        """Write what is left, and release the session for others."""
        if self._writing is not None:
            self._writing.remove()
        if self._stored is not None:
            self._stored.journal.close()

    def report_fault(self, message: str) -> None:
        journal = self._stored.journal if self._stored is not None else None
        self.work.tell(SavingChanged(journal is not None and not journal.fault, str(message)))


def open_session(
    options: SessionOptions, workspace: str, given: BlobStore | None = None, *, further: Sequence[str] = ()
) -> tuple[Session, tuple[str, ...]]:
    """The session, new or resumed, and what the user should know of it: what was damaged, what was set aside.

    `further`: folders beside the workspace that commands may write to. `given` is the store of bytes of a provider that was given, used
    where there is no other. Raises NoSession where there is none, InUse where another process has it open, and InputError where it cannot
    be opened.
    """
    if options.key and (options.store is None or options.resume):
        raise InputError(say("loop.key_alone"))
    if options.resume and options.store is None:
        raise InputError(say("loop.resume_without_store"))
    if options.store is None:
        within_reach = (workspace, *further)
        return Session(options.history or History(), "", options.blobs or given, options.outputs, within_reach=within_reach), ()

    store = _store_in(options.store)
    log = SessionLog(store, workspace)
    if options.resume or options.key:
        from dragoman.sessions.last_run import broken_end

        stored = log.open(options.resume) if options.resume else log.open_or_create(options.key)
        history = History(stored.journal, entries=stored.loaded.entries)
        if (ended := broken_end(history.entries)) is not None:
            history.append(ended)
        outputs = options.outputs or stored.outputs
        return Session(history, stored.session_id, options.blobs or stored.blobs, outputs, log), stored.loaded.notices()
    session_id = options.id or store.new_id()
    path = store.path_of(session_id, workspace)
    blobs = options.blobs or store.blobs_beside(path, log.report_fault)
    return Session(History(), session_id, blobs, options.outputs or store.outputs_beside(path), log), ()


def _store_in(given: Store | str | os.PathLike[str]) -> Store:
    match given:
        case str() | os.PathLike():
            return FileStore(given)
        case _:
            return given


def _temporary_outputs(within_reach: Sequence[str]) -> str:
    return os.path.join(_safe_temporary_folder(temporary_folders(), tuple(within_reach)), f"dragoman-{os.urandom(8).hex()}")


@lru_cache(64)
def _safe_temporary_folder(folders: tuple[str, ...], within_reach: tuple[str, ...]) -> str:
    """The first temporary folder in which commands cannot write. Where they can write everywhere, the usual one."""
    from dragoman.base.private import find_safe_folder

    return find_safe_folder(folders, within_reach) or os.path.realpath(temporary_directory())
