"""Prompt cache on disk: the engine's state after the instructions, tools and examples, which are the same in every process and take a
small model seconds to read. Only this prefix is stored, never what a user or a tool said."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from dragoman.base import jsontext

MAX_FILES = 8
"""The newest are kept. Each is a few megabytes."""
MIN_CHARS = 400
"""A shorter prefix is read as quickly as it is restored."""
Post = Callable[[str, bytes], tuple[int, bytes]]
Read = Callable[[bytes], bool]


class PromptCache:
    """`post` sends a request to the engine's port; `read` makes it read a prompt and returns whether it read all of it."""

    def __init__(self, folder: str, identity: Sequence[object], post: Post, read: Read) -> None:
        self._folder = folder
        self._identity = identity
        """What else the state depends on: weights, context window, engine version."""
        self._post = post
        self._read = read

    def prepare(self, body: bytes, example_count: int = 0) -> None:
        """Load the prefix of a request into the engine: restored from disk, or read now and saved. On failure nothing is lost: the
        request itself reads it."""
        messages = _shared_messages(body, example_count)
        if messages is None:
            return
        name = hashlib.sha256(jsontext.encode([self._identity, messages])).hexdigest()[:32] + ".state"
        path = os.path.join(self._folder, name)
        try:
            if os.path.exists(path):
                if self._run_slot_action("restore", name):
                    os.utime(path)
                    return
                os.unlink(path)
            if self._read(
                jsontext.encode({"messages": messages, "max_tokens": 1, "stream": True, "return_progress": True, "cache_prompt": True})
            ):
                self._save(name)
        except OSError:
            pass

    def _save(self, name: str) -> None:
        unfinished = f"{name}.{os.getpid()}"
        path = os.path.join(self._folder, unfinished)
        try:
            if self._run_slot_action("save", unfinished):
                os.replace(path, os.path.join(self._folder, name))
        finally:
            if os.path.exists(path):
                os.unlink(path)
        files = sorted((entry for entry in os.scandir(self._folder) if entry.is_file()), key=lambda entry: -entry.stat().st_mtime)
        for entry in files[MAX_FILES:]:
            os.unlink(entry.path)

    def _run_slot_action(self, action: str, name: str) -> bool:
        status, _ = self._post(f"/slots/0?action={action}", jsontext.encode({"filename": name}))
        return status == 200


def _shared_messages(body: bytes, count: int) -> list[Any] | None:
    """The instructions and the `count` messages after them; None if nothing follows them or they are too short to be worth caching."""
    match jsontext.decode_object(body.decode(errors="replace")):
        case {"messages": [{"role": "system", "content": str(text)}, *_] as messages} if (
            len(messages) > count + 1 and len(text) >= MIN_CHARS
        ):
            return messages[: count + 1]
        case _:
            return None
