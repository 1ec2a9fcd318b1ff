"""Layers over the caches of a workspace, for commands that only read: they see what is cached, and what they write there stays apart.

What lies in a cache is run later: a wrapper that cargo's settings name, a script that gradle starts with, a package that npm unpacks. So
what a command with the workspace read-only leaves there must never be seen by one that may write.

Where the system can lay one folder over another, such a command writes into the upper one. It is kept for further commands that only read,
until one that may write has run: then the lower one may have changed. Where the system cannot, they have a folder of their own instead.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import NamedTuple

from dragoman.base.beneath import is_inside
from dragoman.policy.sandbox.cache_removal import remove_tree

_KEPT, _LAYERS, _EMPTY = "kept", "layers", "xdg"


class CacheLayer(NamedTuple):
    """What one command writes to in the place of the caches."""

    place: str
    """Where the caches are, and are seen by the command too."""
    upper: str
    """Empty: there is nothing at the place, so that nothing needs to be seen through."""
    work: str
    """Beside `upper`, for the system's own use."""
    instead: str
    """What is seen at the place where nothing can be laid over it, or need be."""


class CacheLayers:
    """Those of one session. Any thread may take one; no two commands that live have the same."""

    def __init__(self, caches: str, folder: str, owner: tuple[int, int] | None = None) -> None:
        """`folder`: where no command can write. `owner`: who commands run as, where that is not us. Raises OSError."""
        self.caches = caches
        self.folder = folder
        self._owner = owner
        self._lock = threading.Lock()
        self._own = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._last = 0
        self._free: list[CacheLayer] = []
        self._stale = 0
        """Layers up to this number lie over what may have changed since."""
        for name in ("", _LAYERS, _KEPT, os.path.join(_KEPT, _EMPTY)):
            self._make(os.path.join(folder, name))

    @property
    def kept(self) -> str:
        """A folder for what tools keep for the next run that only reads, and that no other run uses."""
        return os.path.join(self.folder, _KEPT)

    def take(self) -> CacheLayer:
        """Return a layer for one command, which gives it back. Raises OSError."""
        if not self._has_content():  # to lay something over an empty folder takes a tenth of what a command takes
            return CacheLayer(self.caches, "", "", self.kept)
        with self._lock:
            if self._free:
                return self._free.pop()
            self._last += 1
            made = os.path.join(self._folder, str(self._last))
            upper, work = os.path.join(made, "upper"), os.path.join(made, "work")
            for path in (self._folder, made, upper, work):
                self._make(path)
            return CacheLayer(self.caches, upper, work, self.kept)

    def give_back(self, layer: CacheLayer) -> None:
        """Nothing of its command lives any more."""
        if not layer.upper or not is_inside(layer.upper, self._folder):  # then it is over caches that were used before a folder was added
            return
        with self._lock:
            if self._number_of(layer) > self._stale:
                self._free.append(layer)
                return
        self._remove([layer])

    def renew(self) -> None:
        """A command that may write begins: what was laid over the caches until now is not used again."""
        with self._lock:
            self._stale, gone = self._last, self._free.copy()
            self._free.clear()
        if gone:
            threading.Thread(target=self._remove, args=(gone,), name="dragoman-layers", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._stale = self._last
            self._free.clear()
        remove_tree(os.path.join(self.folder, _LAYERS), self._own)

    def _has_content(self) -> bool:
        with os.scandir(self.caches) as entries:
            return any(entry.name != _EMPTY or not entry.is_dir(follow_symlinks=False) or os.listdir(entry.path) for entry in entries)

    @property
    def _folder(self) -> str:
        return os.path.join(self.folder, _LAYERS, self._own)

    def _remove(self, layers: list[CacheLayer]) -> None:
        for each in layers:
            remove_tree(self._folder, str(self._number_of(each)))

    def _number_of(self, layer: CacheLayer) -> int:
        return int(os.path.basename(os.path.dirname(layer.upper)))

    def _make(self, path: str) -> None:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
            if self._owner is not None:
                os.chown(path, *self._owner, follow_symlinks=False)
