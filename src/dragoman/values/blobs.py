"""BlobStores: bytes by their SHA-256, in memory, and found in several stores. Sessions keep theirs in files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING
from weakref import ref

from dragoman.values.messages import Blob

if TYPE_CHECKING:
    from dragoman.values.contracts import BlobStore


class MemoryBlobs:
    """A BlobStore for scripts and tests: `image = blobs.put("image/png", data)`."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}

    def put(self, mime: str, data: bytes) -> Blob:
        digest = sha256(data).hexdigest()
        self._data[digest] = data
        return Blob(mime, digest, len(data))

    def get(self, sha256: str) -> bytes | None:
        return self._data.get(sha256)


class JoinedBlobs:
    """A provider's own store, and those of the agents that use it. Bytes are the same wherever they are found: their hash is asked for.

    The agents' stores are held weakly, so that a provider that serves many agents does not keep what the finished ones have read.
    """

    def __init__(self, own: BlobStore | None) -> None:
        self.own = own
        self._others: tuple[Callable[[], BlobStore | None], ...] = ()
        self._lock = threading.Lock()

    def add(self, store: BlobStore) -> None:
        if store is self.own:
            return
        with self._lock:
            alive = tuple(other for other in self._others if (found := other()) is not None and found is not store)
            self._others = (_weakly(store), *alive)  # the newest first: it is the likeliest to be asked

    def get(self, sha256: str) -> bytes | None:
        if self.own is not None and (data := self.own.get(sha256)) is not None:
            return data
        for other in self._others:
            if (store := other()) is not None and (data := store.get(sha256)) is not None:
                return data
        return None


def _weakly(store: BlobStore) -> Callable[[], BlobStore | None]:
    try:
        return ref(store)
    except TypeError:  # a class with slots, without one for weak references
        return lambda: store
