"""`/resume`: sessions to go on with, of this folder, of all, and those of other programs; each can be read, named, copied or deleted."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Literal

from dragoman.app.setup import catalog_of
from dragoman.base.clock import now_ms
from dragoman.base.lock import files_held_by_others
from dragoman.base.places import shorten_home
from dragoman.base.text import one_line
from dragoman.conversation.pages.session_list import age, trouble_of
from dragoman.conversation.pages.sessions_slash import open_named
from dragoman.conversation.spent_words import cost_of
from dragoman.sessions.last_run import is_held
from dragoman.sessions.lock import hold_lock
from dragoman.sessions.projects import scan_directory, session_id_of
from dragoman.tui.calls import Folded
from dragoman.tui.overlay import Viewer
from dragoman.tui.picker import ItemsOnDemand, Picker, PickerItem
from dragoman.values.errors import DragomanError, InUse
from dragoman.values.record import Titled
from dragoman.words import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman.foreign.sessions.whereabouts import ForeignSession
    from dragoman.sessions.summary import Summary
    from dragoman.tui.talk import LiveTalk
    from dragoman.values.record import Entry

Scope = Literal["folder", "all", "others"]
_SCOPES: tuple[Scope, ...] = ("folder", "all", "others")


def pick_session(conversation: LiveTalk) -> None:
    SessionPicker(conversation).open()


class SessionPicker:
    """The list of sessions, and what its keys do."""

    def __init__(self, conversation: LiveTalk) -> None:
        self._conversation = conversation
        self._store = conversation.store
        self._workspace = conversation.setup.workspace
        self._scope: Scope = "folder"
        self._to_delete = ""
        self._picker = Picker(
            "",
            (),
            self._take,
            keys=say("conversation.sessions_keys"),
            actions={
                "tab": self._next_scope,
                "ctrl-f": self._fork,
                "ctrl-o": self._show,
                "ctrl-t": self._ask_title,
                "ctrl-x": self._delete,
                "ctrl-s": self._search,
                "ctrl-e": self._ask_file,
                "ctrl-y": self._undo,
            },
            empty=say("conversation.sessions_none"),
            spare=(2, 3, 5),
            always=("tab", "ctrl-s"),
        )

    def open(self) -> None:
        self._refresh()
        self._conversation.canvas.open(self._picker)

    def _refresh(self) -> None:
        self._picker.set_title(say(f"conversation.sessions_title_{self._scope}"))
        self._picker.set_choices(self._items())

    def _items(self) -> Sequence[PickerItem]:
        now = now_ms()
        if self._scope == "others":
            from dragoman.foreign.sessions.whereabouts import find_foreign_sessions

            return [_foreign_item(each, now) for each in find_foreign_sessions(os.environ)]
        found = self._store.list(None if self._scope == "all" else self._workspace)
        here = self._conversation.agent.session_id
        counted: dict[int, str] = {}  # thousands of sessions have few different counts
        rows = [each for each in found if each.session_id != here and not each.parent]
        used = _in_use(rows)
        is_everywhere = self._scope == "all"
        titles = Counter(each.title or each.first_prompt for each in rows)
        catalog = catalog_of(self._conversation.setup)

        def item_of(each: Summary) -> PickerItem:
            is_one = titles[each.title or each.first_prompt] == 1
            words = _use_words(each, used) if used else None
            return _own_item(each, now, counted, cost_of(each, catalog), is_everywhere=is_everywhere, is_one=is_one, use=words)

        return ItemsOnDemand(rows, item_of)

    # --- what keys do

    def _next_scope(self, _: str) -> bool:
        self._scope = _SCOPES[(_SCOPES.index(self._scope) + 1) % len(_SCOPES)]
        self._refresh()
        return True

    def _take(self, key: str) -> bool:
        if self._scope != "others":
            return self._try(lambda: self._go_on_with(key))
        return self._try(lambda: import_and_open(self._conversation, key))

    def _go_on_with(self, key: str) -> bool:
        """Unless another program has it open: then the list stays, and says what can be done."""
        try:
            with hold_lock(self._path_of(key)):
                pass
        except InUse as error:
            self._picker.hint = (
                say("conversation.session_in_use", pid=error.pid) if error.pid else say("conversation.session_in_use_unknown")
            )
            return True
        open_named(self._conversation, key)
        return False

    def _fork(self, key: str) -> bool:
        return self._try(lambda: open_named(self._conversation, session_id_of(self._store.fork(self._path_of(key)))))

    def _show(self, key: str) -> bool:
        def show() -> bool:
            from dragoman.conversation.pages.session_show import as_text

            entries = _imported_entries(key) if self._scope == "others" else self._store.read(self._path_of(key)).entries
            self._conversation.canvas.open(Viewer([Folded(key, as_text(entries))], at_end=True), over=True)
            return True

        return self._try(show)

    def _ask_title(self, key: str) -> bool:
        if self._is_foreign():
            return True
        found = self._store.find(key, self._workspace)
        self._picker.ask(say("conversation.new_title"), found.title, lambda title: self._rename(key, title))
        return True

    def _rename(self, key: str, title: str) -> None:
        def rename() -> bool:
            from dragoman.conversation.pages.sessions_command import open_to_append

            with open_to_append(self._store, self._path_of(key)) as session:
                session.journal.append(Titled(session.loaded.entries[-1].seq + 1, now_ms(), one_line(title, 200)))
            self._refresh()
            return True

        if title.strip():
            self._try(rename)

    def _ask_file(self, key: str) -> bool:
        """Where it is written; the ending has the format."""
        if not self._is_foreign():
            self._picker.ask(say("conversation.export_to"), f"{key}.md", lambda name: self._export(key, name))
        return True

    def _export(self, key: str, name: str) -> None:
        def export() -> bool:
            from dragoman.conversation.pages.session_files import ExportSources, export_to

            path = os.path.join(self._workspace, os.path.expanduser(name.strip()))
            found = self._path_of(key)
            export_to(
                path,
                self._store.read(found).entries,
                "",
                self._store.blobs_beside(found),
                ExportSources(self._conversation.setup, self._store, is_held(found)),
                over=False,
            )
            self._picker.hint = say("conversation.exported", path=path)
            return True

        if name.strip():
            self._try(export)

    def _undo(self, key: str) -> bool:
        """Files as they were before the last run of that session."""
        if self._is_foreign():
            return True

        def undo() -> bool:
            from dragoman.conversation.pages.session_undo import undo_last_run
            from dragoman.conversation.pages.sessions_command import open_to_append

            with open_to_append(self._store, self._path_of(key)) as session:
                said = undo_last_run(session, key, self._conversation.setup.places.memory_file, force=False)
            self._picker.hint = one_line(said, 300)
            return True

        return self._try(undo)

    def _delete(self, key: str) -> bool:
        """Delete the session, on the second key press only."""
        if self._is_foreign():
            return True
        if self._to_delete != key:
            self._to_delete, self._picker.hint = key, say("conversation.delete_again")
            return True

        def delete() -> bool:
            self._store.delete(self._path_of(key))
            self._refresh()
            self._picker.hint = say("conversation.deleted")
            return True

        return self._try(delete)

    def _search(self, _: str) -> bool:
        """What is typed, in everything that was said: also where it does not stand in a title."""
        if self._is_foreign() or not self._picker.filter:
            return True

        def search() -> bool:
            hits = self._store.search(self._picker.filter, None if self._scope == "all" else self._workspace)
            now = now_ms()
            catalog, is_everywhere = catalog_of(self._conversation.setup), self._scope == "all"
            rows = [
                _own_item(hit.summary, now, {}, cost_of(hit.summary, catalog), is_everywhere=is_everywhere, note=one_line(hit.excerpt, 200))
                for hit in hits
            ]
            self._picker.set_title(say("conversation.sessions_found", text=self._picker.filter))
            self._picker.set_choices(rows, keep_filter=False)
            return True

        return self._try(search)

    # --- helpers

    def _path_of(self, key: str) -> str:
        return self._store.find(key, self._workspace).path

    def _is_foreign(self) -> bool:
        if self._scope == "others":
            self._picker.hint = say("conversation.not_ours")
        return self._scope == "others"

    def _try(self, act: Callable[[], bool | None]) -> bool:
        try:
            return bool(act())
        except DragomanError as error:
            self._picker.hint = str(error)
            return True


def import_and_open(conversation: LiveTalk, path: str) -> None:
    """A session of another program, or an exported one, becomes one of ours, and the conversation goes on with it."""
    from dragoman.conversation.pages.session_files import import_into

    kept, imported = import_into(conversation.store, conversation.setup.workspace, path)
    for each in (*imported.notices, *(say("import_not_carried", what=each) for each in imported.not_carried)):
        conversation.screen.message(each, "yellow")
    open_named(conversation, session_id_of(kept))


def _imported_entries(path: str) -> tuple[Entry, ...]:
    from dragoman.foreign.sessions import import_session

    return import_session(path).entries


def _in_use(found: Sequence[Summary]) -> frozenset[str]:
    """The ids of those that another program has open, where the system tells."""
    held = files_held_by_others()
    if not held:
        return frozenset()
    folders = {each.path.rpartition("/")[0] for each in found}
    paths = {entry.path for folder in folders for entry in scan_directory(folder) if entry.inode() in held}
    return frozenset(each.session_id for each in found if each.path in paths)


def _use_words(found: Summary, used: frozenset[str]) -> str:
    return say("conversation.in_use") if found.session_id in used else ""


def _own_item(
    found: Summary,
    now: int,
    counted: dict[int, str],
    cost: str,
    *,
    is_everywhere: bool,
    is_one: bool = True,
    note: str = "",
    use: str | None = None,
) -> PickerItem:
    """`is_one`: no other of the list has its title. `use`: the words for its last column, which is there where one of the list is in use.

    Titles and prompts of a summary are single lines; the list escapes hidden characters in those rows that it shows.
    """
    if found.messages not in counted:
        counted[found.messages] = say("conversation.messages", count=found.messages)
    where = (shorten_home(found.workspace),) if is_everywhere else ()
    title = found.title or found.first_prompt
    return PickerItem(
        found.session_id,
        (
            title if is_one else f"{title} · {found.last_prompt or found.last_answer or found.session_id}",
            age(now - found.updated_ms),
            counted[found.messages],
            found.model.rpartition("/")[2],
            cost,
            *where,
            *(() if use is None else (use,)),
        ),
        f"{found.session_id} {found.first_prompt} {found.last_prompt} {found.imported_from}",
        note or _preview(found, cost),
    )


def _preview(found: Summary, cost: str) -> str:
    """How it began, how it ended, and what it is."""
    said = [f"› {each}" for each in dict.fromkeys((found.first_prompt, found.last_prompt)) if each]
    service = f"{found.deployment}/{found.model}" if found.deployment and "/" not in found.model else found.model
    about = " · ".join(filter(None, (found.session_id, service, cost, shorten_home(found.workspace))))
    answer = [f"  {found.last_answer}"] if found.last_answer else []
    return "\n".join([*said, *answer, *filter(None, [trouble_of(found)]), about])


def _foreign_item(found: ForeignSession, now: int) -> PickerItem:
    where = shorten_home(found.folder) if "/" in found.folder else ""
    return PickerItem(found.path, (found.title, age(now - found.updated_ms), found.program, where), found.path, shorten_home(found.path))
