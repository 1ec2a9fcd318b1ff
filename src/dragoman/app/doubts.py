"""Files that configure agents and that a command may have made or changed: they are not believed before the user was asked anew.

Loaded only where a command ever ran. Each file that would be read is looked at: whether it, a folder of the project it lies in, or a link
to it was last changed while a command could write there, and whether it was believed as it is before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

import msgspec

from dragoman.app.config_tables import Config, FolderTrust
from dragoman.base.beneath import is_inside
from dragoman.base.found_files import TooLargeFile, read_found
from dragoman.base.places import Places
from dragoman.loop.memory import MEMORY_FILES, find_imports, folders_between
from dragoman.policy.command_times import CommandTimes, believe, read_times

MAX_ENTRIES = 20_000
"""Names that are looked at in all folders. Past that, what was not looked at is asked about."""
MAX_FILE_BYTES = 16_000_000
"""Of a larger file its size and its times count."""


class Doubts(msgspec.Struct, frozen=True):
    """What is to be asked about, and what is to be remembered if the answer is yes."""

    files: tuple[str, ...]
    """Relative to the workspace."""
    hashes: dict[str, str]
    """Of every file that would be read: what is not known yet."""


class Around(msgspec.Struct, frozen=True):
    """What decides which files are read: an app.extensions.Surrounded."""

    env: Mapping[str, str]
    places: Places
    workspace: str
    trust: FolderTrust
    config: Config = Config()


def with_doubts(trust: FolderTrust, env: Mapping[str, str], places: Places, workspace: str) -> FolderTrust:
    """The same trust, or `doubted` where a file was changed by a command. What is believed is remembered. What cannot be read is asked
    about."""
    doubts = find_doubts(trust, env, places, workspace)
    if doubts.files:
        return msgspec.structs.replace(trust, state="doubted", doubted=doubts.files)
    remember(doubts, places)
    return trust


def find_doubts(trust: FolderTrust, env: Mapping[str, str], places: Places, workspace: str, *, always: bool = False) -> Doubts:
    """Look at the files that are read of a folder if it is trusted, whether it is or not. `always`: also where no command could write."""
    try:
        times = read_times(places.commands_file)
    except OSError:
        return Doubts(trust.files, {})
    root = os.path.realpath(trust.root or workspace)
    if not trust.files or not (always or times.concerns(root)):
        return Doubts((), {})
    real = os.path.realpath(workspace)
    as_trusted = msgspec.structs.replace(trust, state="trusted")
    looking = _Looking(times, root)
    for path in _files_read(Around(env, places, workspace, as_trusted), root, real):
        looking.look_at(path)
    try:
        doubted = looking.judge(read_times(places.commands_file)) if looking.hashes or looking.unseen else []
    except OSError:
        return Doubts(trust.files, {})
    return Doubts(tuple(os.path.relpath(path, real) for path in doubted), looking.hashes)


def remember(doubts: Doubts, places: Places) -> str:
    """Believe everything as it is now. Returns why that could not be written down; empty: it was."""
    try:
        if doubts.hashes:
            believe(places.commands_file, doubts.hashes)
    except OSError as error:
        return error.strerror or str(error)
    return ""


class _Looking:
    """One look at the files of a folder. First what they hold is read, then when they were changed, and then when commands ran: whatever a
    command has put into what was read, it ran by then."""

    def __init__(self, times: CommandTimes, root: str) -> None:
        self.hashes: dict[str, str] = {}
        """Of files that were not believed as they are."""
        self.unseen: dict[str, None] = {}
        """Where there was too much to look at."""
        self._believed = times.believed
        self._root = root
        self._left = MAX_ENTRIES
        self._changed_ns: dict[str, int] = {}
        """By place: when it was last changed."""
        self._seen: set[str] = set()

    def look_at(self, path: str) -> None:
        """A file, or a folder with all that lies in it."""
        waiting = [path]
        while waiting:
            at = waiting.pop()
            if at in self._seen:
                continue
            self._seen.add(at)
            self._left -= 1
            if self._left < 0:
                self.unseen[path] = None
                return
            real = os.path.realpath(at)
            if not is_inside(real, self._root):
                continue  # such links are not followed by whoever reads it either
            if os.path.isdir(real):
                waiting += sorted(_entries(at), reverse=True)
            elif (made := _hash_of(at, real)) not in self._believed.get(at, ()):
                self.hashes[at] = made
                for place in self._places(at):
                    self._changed_ns.setdefault(place, _changed_ns(place))

    def judge(self, times: CommandTimes) -> list[str]:
        """Which of them were changed while a command could write there."""
        suspect = {place for place, changed_ns in self._changed_ns.items() if times.covers(place, changed_ns)}
        return [*self.unseen, *(path for path in self.hashes if suspect.intersection(self._places(path)))]

    def _places(self, path: str) -> Iterator[str]:
        """A file and where it leads, and the folders that it lies in, beneath the one that is trusted."""
        for at in dict.fromkeys((path, os.path.realpath(path))):
            while at != self._root and is_inside(at, self._root):
                yield at
                at = os.path.dirname(at)


def _changed_ns(place: str) -> int:
    """When it was last changed; now, if nobody can see that."""
    try:
        return os.lstat(place).st_ctime_ns
    except OSError:
        return time.time_ns()


def _files_read(around: Around, root: str, real: str) -> Iterator[str]:
    """Files and folders that are read of a trusted folder."""
    named = [os.path.normpath(os.path.join(real, name)) for name in around.trust.files]
    yield from named
    memory = [path for path in named if path.endswith(MEMORY_FILES)]
    if any(name.endswith(("opencode.json", "opencode.jsonc", ".gemini/settings.json")) for name in around.trust.files):
        from dragoman.app.extensions import folders_of
        from dragoman.foreign.memory import find_other_memory  # settings may name further files of memory

        others = find_other_memory(folders_of(around))
        yield from (path for path, _ in others.texts if is_inside(path, root))
        more = [os.path.join(folder, name) for folder in folders_between(root, real) for name in others.names]
        memory += filter(os.path.lexists, more)
        yield from filter(os.path.lexists, more)
    yield from find_imports(memory, root)


def _entries(folder: str) -> Iterable[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return ()


def _hash_of(path: str, real: str) -> str:
    """Of its content, and of where it leads if it is a link."""
    made = sha256()
    if real != path:
        made.update(b"-> " + os.fsencode(real) + b"\0")
    try:
        made.update(read_found(real, MAX_FILE_BYTES, follow=False))
    except TooLargeFile:
        status = os.lstat(real)
        made.update(f"large {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}".encode())
    except OSError as error:
        made.update(f"unreadable {error.errno}".encode())
    return made.hexdigest()
