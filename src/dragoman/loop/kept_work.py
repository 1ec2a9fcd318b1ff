"""Keeps the work that git does not hold before commands change it, and tells what they changed, so that it can be undone.

Looked at before a command that may write, and after it. What changed between two looks is a command's where one was running, and
somebody else's where none was. While only a command in the background goes on, nobody can tell: such changes are unsure.
All agents that work in the same folders share one of these; any thread may call it.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from dragoman.base.found_files import read_found
from dragoman.base.visible import escape_hidden
from dragoman.loop.work_tree import Change, FileSeen, RefuseCopy, WorkTree
from dragoman.policy.discarding import Discard
from dragoman.sessions.checkpoints import Begun
from dragoman.values.contracts import BlobStore
from dragoman.values.record import FileChange
from dragoman.words import say

MAX_CHANGED = 5_000
"""So many files that one command changed are recorded."""
_MIME = "application/octet-stream"
_REASONS = {"": "loop.lost_too_large", "hidden": "loop.lost_hidden", "key": "loop.lost_key"}
_STASHES_BYTES = 100_000


class Lost(NamedTuple):
    """Work that a command would throw away."""

    names: tuple[str, ...]
    """Of the files from the workspace, and of stashes."""
    not_kept: str
    """Why no copy of all of it is kept; empty: one is."""


class KeptWork:
    """`refuse_copy`: why no copy of a file may be made. `goes_on`: whether a command is running in the background. `tell`: is told once
    what lies past the bounds, and what could not be kept."""

    def __init__(
        self,
        folders: Callable[[], Sequence[str]],
        is_watched: Callable[[str], bool],
        blobs: BlobStore,
        *,
        refuse_copy: RefuseCopy = lambda path, data: "",
        goes_on: Callable[[], bool] = lambda: False,
        tell: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._tree = WorkTree(folders, is_watched, self._keep, refuse_copy=refuse_copy)
        self._blobs = blobs
        self._goes_on = goes_on
        self._tell = tell
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._went_on = False
        self._pending: list[Change] = []
        """What changed while commands were running, until one of them ends."""
        self._beside: list[Change] = []
        """What changed while only commands in the background went on."""
        self._edited: dict[str, str] = {}
        """Files that a tool for edits wrote meanwhile, and their content: its own change."""
        self._fault = ""
        self._has_told = False

    def begin(self, call_id: str) -> Begun:
        """Look, and keep what is new, before a command runs."""
        with self._lock:
            self._look()
            self._running.add(call_id)
            self._tell_bounds()
            return Begun(self._kept(), self._take_beside())

    def end(self, call_id: str) -> tuple[FileChange, ...]:
        """What changed while the command ran. Several at once: whoever ends first has it all."""
        with self._lock:
            self._running.discard(call_id)
            changes = [*self._pending, *self._tree.look()]
            self._pending = []
            edited = dict[str, str]() if self._running else self._edited
            if not self._running:
                self._edited = {}
            self._went_on = self._goes_on()
            return self._as_recorded([each for each in changes if each.after is None or edited.get(each.path) != each.after.content])

    def note_edits(self, files: Iterable[FileChange]) -> None:
        """A tool for edits has changed these: they stand on the record as its own."""
        if self._running:
            self._edited |= {file.path: file.after for file in files}

    def note_restored(self, files: Iterable[FileChange]) -> None:
        """An undo or a redo has put these back: that is no command's doing."""
        contents = {file.path: file.after for file in files}
        with self._lock:
            self._look(contents)

    def beside(self) -> tuple[FileChange, ...]:
        """What changed while a command went on in the background, as of now; each change once."""
        with self._lock:
            self._look()
            return self._take_beside()

    def lost_by(self, discards: Sequence[Discard], root: str) -> Lost | None:
        """The work that is there and would be thrown away; None: nothing of it."""
        with self._lock:
            self._look()
            found = {
                path: seen
                for path, seen in self._tree.files.items()
                if not seen.is_held and any(self._takes(discard, path) for discard in discards)
            }
            names = [path.removeprefix(f"{root}/") for path in sorted(found)]
            reasons = [
                say(_REASONS[found[path].refused], path=name)
                for name, path in zip(names, sorted(found), strict=True)
                if not found[path].is_kept
            ]
            reasons += [] if self._tree.is_whole else [say("loop.work_past_too_many")]
            reasons += [self._fault] if self._fault else []
            for discard in discards:
                if discard.what == "ignored":
                    names.append(str(say("loop.lost_ignored")))
                    reasons.append(say("loop.lost_not_ignored"))
                elif discard.what == "stashes" and (stashes := self._stashes(discard.folder)):
                    names += stashes
                    reasons.append(say("loop.lost_stashes"))
            return Lost(tuple(names), str(reasons[0]) if reasons else "") if names else None

    def _takes(self, discard: Discard, path: str) -> bool:
        if discard.what in ("ignored", "stashes") or not discard.names(path):
            return False
        if not discard.paths and self._tree.git_folder(path.rpartition("/")[0]) != self._tree.git_folder(discard.folder):
            return False
        is_tracked = self._tree.is_tracked(path)
        if discard.what == "untracked":
            return not is_tracked and (discard.is_deep or self._tree.has_tracked(path.rpartition("/")[0]) or path in discard.paths)
        return is_tracked or discard.what == "files"

    def _stashes(self, folder: str) -> list[str]:
        try:
            log = read_found(os.path.join(self._tree.git_folder(folder), "logs", "refs", "stash"), _STASHES_BYTES, cut=True, follow=False)
        except OSError:
            return []
        lines = [line.decode("utf-8", "replace").partition("\t")[2] for line in reversed(log.splitlines())]
        return [f"stash@{{{number}}}: {escape_hidden(line, one_line=True)[:80]}" for number, line in enumerate(lines)]

    def close(self) -> None:
        with self._lock:
            self._tree.close()

    def _look(self, restored: Mapping[str, str] | None = None) -> None:
        """Look before a command: at what the system has noted since the look after the last one, which was at every file.

        `restored`: content by path of files that are as we have just put them back.
        """
        changes = self._tree.look(wholly=self._went_on or bool(self._running))
        if restored is not None:
            changes = [each for each in changes if restored.get(each.path) != (each.after.content if each.after is not None else "")]
        if self._running:
            self._pending += changes
        elif self._went_on or self._goes_on():
            self._beside += changes
        self._went_on = self._goes_on()

    def _take_beside(self) -> tuple[FileChange, ...]:
        beside, self._beside = self._beside, list[Change]()
        return self._as_recorded(beside)

    def _kept(self) -> dict[str, tuple[str, int]]:
        return {path: (seen.content, seen.mode) for path, seen in self._tree.files.items() if not seen.is_held and seen.is_kept}

    def _keep(self, contents: Sequence[bytes]) -> bool:
        try:
            for data in contents:
                self._blobs.put(_MIME, data)
        except Exception as error:  # whatever went wrong, the command may still be allowed to run
            self._fault = str(error)
            self._tell(say("loop.work_not_kept", reason=error))
            return False
        self._fault = getattr(self._blobs, "fault", "")
        return not self._fault

    def _tell_bounds(self) -> None:
        if self._has_told:
            return
        past = ((path, seen) for path, seen in self._tree.files.items() if not seen.is_held and not seen.is_kept and not seen.refused)
        too_large = [path for path, seen in past if stat.S_ISREG(seen.mode)]
        if too_large or not self._tree.is_whole:
            self._has_told = True
            what = [say("loop.work_past_too_large", count=len(too_large), path=min(too_large))] if too_large else []
            what += [] if self._tree.is_whole else [say("loop.work_past_too_many")]
            self._tell(say("loop.work_past_bounds", what="; ".join(what)))

    def _as_recorded(self, changes: Iterable[Change]) -> tuple[FileChange, ...]:
        first: dict[str, FileSeen | None] = {}
        last: dict[str, FileSeen | None] = {}
        for path, before, after in changes:
            first.setdefault(path, before)
            last[path] = after
        files: list[FileChange] = []
        for path, before in first.items():
            after = last[path]
            if before is None and after is None:
                continue
            if before is not None and before.is_as(after):
                continue
            files.append(self._change_of(path, before, after))
        if len(files) > MAX_CHANGED:
            self._tell(say("loop.too_many_changed", count=len(files), most=MAX_CHANGED))
        return tuple(files[:MAX_CHANGED])

    def _change_of(self, path: str, before: FileSeen | None, after: FileSeen | None) -> FileChange:
        after_content = after.content if after is not None else ""
        if before is None:
            return FileChange(path, "", after_content)
        content = before.content
        if before.is_held and (data := self._tree.object_bytes(path, before.git_id)) is not None:
            content = self._blobs.put(_MIME, data).sha256
        elif before.is_held:
            content = f"git:{before.git_id}"
        elif not before.is_kept and ":" not in content:
            content = f"stat:{content}"
        stayed = after is not None and stat.S_IMODE(before.mode) & 0o777 == stat.S_IMODE(after.mode) & 0o777
        return FileChange(path, content, after_content, stat.S_IMODE(before.mode) if stayed else before.mode)
