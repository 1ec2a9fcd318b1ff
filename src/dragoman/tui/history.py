"""The prompts of earlier conversations, in a file for the user alone: Up and Down bring them back, Ctrl-R searches them."""

from __future__ import annotations

import os

from dragoman.base import jsontext
from dragoman.base.private import create_file, make_directory, open_file, write_whole

MOST = 2_000
_READ_BYTES = 2_000_000
_PROMPT_CHARS = 50_000
"""A longer prompt is not kept for later conversations: it was pasted."""


class PromptHistory:
    """Read when it is first looked at. If it cannot be read or written, the conversation continues without it. Without a path nothing is
    kept beyond this conversation."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._prompts: list[str] | None = None
        self._at = 0
        self._draft = ""

    @property
    def prompts(self) -> list[str]:
        """Oldest first."""
        if self._prompts is None:
            self._prompts = self._read()
            self._at = len(self._prompts)
        return self._prompts

    def add(self, prompt: str) -> None:
        if prompt.strip() and (not self.prompts or self.prompts[-1] != prompt):
            self.prompts.append(prompt)
            if len(prompt) <= _PROMPT_CHARS:
                self._write(prompt)
        self._at = len(self.prompts)

    def earlier(self, draft: str) -> str | None:
        """The prompt before; `draft` is what stands in the composer, and comes back after the last one."""
        if self._at == len(self.prompts):
            self._draft = draft
        if not self._at:
            return None
        self._at -= 1
        return self.prompts[self._at]

    def later(self) -> str | None:
        if self._at >= len(self.prompts):
            return None
        self._at += 1
        return self._draft if self._at == len(self.prompts) else self.prompts[self._at]

    def search(self, text: str, before: int | None = None) -> tuple[int, str] | None:
        """The last prompt before number `before` that holds the text, with its number."""
        wanted = text.casefold()
        for number in range(len(self.prompts) if before is None else before)[::-1]:
            if wanted in self.prompts[number].casefold():
                return number, self.prompts[number]
        return None

    def _read(self) -> list[str]:
        if not self._path:
            return []
        try:
            descriptor = open_file(self._path)
        except (OSError, ValueError):
            return []
        with os.fdopen(descriptor, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _READ_BYTES, 0))
            lines = file.read(_READ_BYTES).split(b"\n")
        found: list[str] = []
        for line in lines[-MOST - 1 :]:
            try:
                value = jsontext.decode(line) if line else None
            except ValueError:
                continue
            if isinstance(value, str) and (not found or found[-1] != value):
                found.append(value)
        return found

    def _write(self, prompt: str) -> None:
        if not self._path:
            return
        try:
            make_directory(os.path.dirname(self._path))
            try:
                descriptor = open_file(self._path, writing=True)
            except FileNotFoundError:
                descriptor = create_file(self._path)
            try:
                write_whole(descriptor, jsontext.encode(prompt) + b"\n")
            finally:
                os.close(descriptor)
        except (OSError, ValueError):
            return
