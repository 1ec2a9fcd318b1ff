"""How prompts begin, kept on disk as the model has read them: a small model's instructions, tools and examples are the same in every
process, and reading them takes it seconds. Only these are kept, never what a user or a tool said."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from dragoman.base import jsontext

KEPT = 8
"""The newest ones. Each is a few megabytes."""
WORTH_CHARS = 400
"""A shorter beginning is read as quickly as it is found."""
Post = Callable[[str, bytes], tuple[int, bytes]]
Read = Callable[[bytes], bool]


class Beginnings:
    """`post` asks the engine something over its port; `read` has it read a prompt, and tells whether it came to the end of it."""

    def __init__(self, folder: str, identity: Sequence[object], post: Post, read: Read) -> None:
        self._folder = folder
        self._identity = identity
        """Whatever else makes the same words another state: the weights, the window, the engine."""
        self._post = post
        self._read = read

    def recall(self, body: bytes, alike: int = 0) -> None:
        """Have the beginning of a request in the model's memory: from disk, or read now and kept. Whatever goes wrong, the request itself
        will read it."""
        head = _alike(body, alike)
        if head is None:
            return
        name = hashlib.sha256(jsontext.encode([self._identity, head])).hexdigest()[:32] + ".state"
        path = os.path.join(self._folder, name)
        try:
            if os.path.exists(path):
                if self._asked("restore", name):
                    os.utime(path)
                    return
                os.unlink(path)
            if self._read(
                jsontext.encode({"messages": head, "max_tokens": 1, "stream": True, "return_progress": True, "cache_prompt": True})
            ):
                self._keep(name)
        except OSError:
            pass

    def _keep(self, name: str) -> None:
        unfinished = f"{name}.{os.getpid()}"
        path = os.path.join(self._folder, unfinished)
        try:
            if self._asked("save", unfinished):
                os.replace(path, os.path.join(self._folder, name))
        finally:
            if os.path.exists(path):
                os.unlink(path)
        files = sorted((entry for entry in os.scandir(self._folder) if entry.is_file()), key=lambda entry: -entry.stat().st_mtime)
        for entry in files[KEPT:]:
            os.unlink(entry.path)

    def _asked(self, action: str, name: str) -> bool:
        status, _ = self._post(f"/slots/0?action={action}", jsontext.encode({"filename": name}))
        return status == 200


def _alike(body: bytes, count: int) -> list[Any] | None:
    """The instructions and the `count` messages after them, where there is anything beyond and they are worth it."""
    match jsontext.decode_object(body.decode(errors="replace")):
        case {"messages": [{"role": "system", "content": str(text)}, *_] as messages} if (
            len(messages) > count + 1 and len(text) >= WORTH_CHARS
        ):
            return messages[: count + 1]
        case _:
            return None
