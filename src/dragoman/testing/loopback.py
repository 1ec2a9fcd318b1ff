"""The loopback service in a thread of its own: for tests that are not async, and for those that are, in any event loop."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.providers.connect import Connection, connect
from dragoman.testing.mock.rules import rules_of
from dragoman.testing.mock.server import MockServer, ServedExchange
from dragoman.testing.mock.violation import Rules
from dragoman.testing.recorded import RETRY_AT_ONCE
from dragoman.testing.script import Source
from dragoman.values.errors import InputError
from dragoman.words import say


class Loopback:
    """A running service that plays a script in any protocol, on a free port, and keeps what it was asked.

        with Loopback("text: Hello") as loopback:
            agent = dm.Agent(loopback.connect("anthropic"))

    It refuses what the service behind a model refuses, in its words. Outside a `with` block, it starts when it is first used; `close` ends
    it, and every connection to it.
    """

    def __init__(self, script: Source = "") -> None:
        self._rules: dict[str, Rules] = {}
        self._server = MockServer(script, rules=lambda protocol, model: self._rules.get(model, Rules()))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def requests(self) -> list[ServedExchange]:
        """What it was asked, in order: `body`, `headers`, `model`, `protocol`, `violation` of each."""
        return self._server.requests

    @property
    def url(self) -> str:
        self._start()
        return self._server.url

    def play(self, script: Source) -> None:
        """Answer with this script from now on."""
        self._server.play(script)

    def connect(self, model: str, **options: Any) -> Connection:
        """A connection to this service, which plays the one that has this model. Options are those of `dragoman.connect`; unless `retry`
        says otherwise, retries do not wait."""
        deployment, name = builtin_catalog().find(model)
        if deployment.in_process:
            raise InputError(say("testing.in_process", name=deployment.name))
        self._rules[name] = rules_of(deployment, profile_for(deployment, name))
        path = urlsplit(deployment.base_url.replace("{AZURE_OPENAI_ENDPOINT}", "http://azure")).path
        given: dict[str, Any] = {
            "key": "key-for-tests",
            "base_url": self.url + path.rstrip("/"),
            "env": {"GOOGLE_CLOUD_PROJECT": "project"},
            "retry": RETRY_AT_ONCE,
        }
        return connect(model, **(given | options))

    def close(self) -> None:
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._server.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _start(self) -> None:
        if self._loop is not None:
            return
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman-loopback", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.__aenter__(), self._loop).result()
