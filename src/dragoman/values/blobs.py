"""An in-memory BlobStore: bytes by their SHA-256. Sessions keep theirs in files."""

from __future__ import annotations

from hashlib import sha256

from dragoman.values.messages import Blob


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
