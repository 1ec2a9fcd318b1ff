"""One cassette for one test: recorded from the real service when that is asked for, else replayed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.http.clients import open_transport
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import Connection, auth_for, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.cassette import Cassette
from dragoman.values.errors import InputError
from dragoman.words import say


async def _skip_wait(seconds: float) -> None:
    pass


RETRY_AT_ONCE = RetryPolicy(sleep=_skip_wait)
"""As many attempts as ever, without the waits between them: nobody is behind a double who would need them."""


class RecordedService:
    """Connects models whose exchanges are in a file.

    With `record`, they are those of the real service, which needs its key; `save` writes them. Without, the file answers: there is no
    network, no key is needed, and retries do not wait.
    """

    def __init__(self, path: Path, *, record: bool, folders: Sequence[Path] = ()) -> None:
        self.path = path
        self.recording = record
        self._folders = folders
        self._secrets: list[Any] = []
        self._tape: Cassette | None = None

    @property
    def tape(self) -> Cassette:
        """The cassette, opened when it is first used."""
        if self._tape is None:
            if not self.recording and not self.path.exists():
                raise InputError(say("testing.not_recorded", path=self.path))
            self._tape = Cassette(
                self.path,
                open_transport("own") if self.recording else None,
                mode="record" if self.recording else "replay",
                secrets=lambda: [secret for each in self._secrets for secret in each()],
                folders=self._folders,
            )
        return self._tape

    def connect(self, model: str, *, key: str | None = None, **options: Any) -> Connection:
        """A connection to `model`, recorded or replayed. Options are those of `dragoman.connect`."""
        if not self.recording:
            given: dict[str, Any] = {"env": {}, "retry": RETRY_AT_ONCE} | options
            return connect(model, transport=self.tape, key="replayed", **given)
        deployment, _ = builtin_catalog().find(model)
        auth = auth_for(deployment, options.get("env", os.environ), key)
        self._secrets.append(auth.secrets)
        return connect(model, transport=self.tape, auth=auth, **options)

    def save(self) -> None:
        if self._tape is not None and self.recording:
            self._tape.save()
