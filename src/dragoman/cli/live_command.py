"""`dragoman doctor --live`: asks first, checks every feature of the model's protocol with the user's key, and shows what worked."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.app.asking import LineQuestions, confirm
from dragoman.app.choice import choose_model
from dragoman.app.connecting import MakeTransport, choose_first_model, connect_model
from dragoman.app.console import Messages
from dragoman.app.live import LiveRun
from dragoman.app.live_checks import SEARCH_TOKENS
from dragoman.app.live_recording import record_with, require_writable
from dragoman.app.opening import run_loop
from dragoman.app.options import Options
from dragoman.app.setup import Setup, catalog_of, is_from_package, set_up
from dragoman.app.signals import Interrupts
from dragoman.base.text import one_line, size
from dragoman.cli.live_page import feature_name, json_of, page_of
from dragoman.conversation.page import look_of
from dragoman.providers.connect import Connection
from dragoman.values.contracts import Transport
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.testing.cassette import Cassette

MOST_ATTEMPTS = 2
"""A request is repeated once at most: what it costs must stay close to what was said."""


def run_live(options: Options) -> tuple[str, int]:
    """What is printed, and the exit code: 0 if everything the service offers worked, 1 if not, 128 + the signal's number if stopped.

    Raises DragomanError if the user does not agree, or if the key is refused.
    """
    setup = set_up(options)
    if options.record:
        _require_http(setup)
    # Here --yes agrees to the requests, not to downloading a model.
    chosen = choose_first_model(replace(setup, options=replace(options, yes=False)), LineQuestions())
    return LiveCommand(replace(chosen, options=options)).run()


def _require_http(setup: Setup) -> None:
    """Raises InputError for a model that is not reached over HTTP: there is nothing to record."""
    catalog = catalog_of(setup)
    model = choose_model(setup, catalog).model
    if is_from_package(model, catalog) or catalog.find(model)[0].in_process:
        raise InputError(say("live_record_nothing", model=model))


class LiveCommand:
    """`dragoman doctor --live`: asks first, tries every feature, and prints the results."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._options = setup.options
        self._messages = Messages(color=not setup.options.no_color)
        self._messages.choose_color(setup.config.color)
        self._record = os.path.join(setup.workspace, os.path.expanduser(self._options.record)) if self._options.record else ""
        self._cassette: Cassette | None = None
        self._connection = self._connect()
        self._run = LiveRun(self._connection, recording=one_line(self._record, 200))

    def run(self) -> tuple[str, int]:
        self._agree()
        began_s = time.monotonic()
        with Interrupts(self._before_exit, raises=False) as interrupts:
            try:
                run_loop(lambda: self._check(interrupts))
                stopped = False
            except asyncio.CancelledError:
                stopped = True
            except DragomanError:
                if recorded := self._recorded():
                    self._messages.line(recorded)
                raise
            finally:
                self._messages.clear()
        seconds = time.monotonic() - began_s
        if self._options.output_format == "json":
            text = json_of(self._run, stopped=stopped, recorded=self._record if self._recorded() else "", seconds=seconds)
        else:
            text = page_of(self._run, look_of(self._setup.config.color), stopped=stopped, seconds=seconds, recorded=self._recorded())
        return text, interrupts.code if stopped else 0 if self._run.worked else 1

    def _connect(self) -> Connection:
        """Connect, with a recording in between if one was asked for. Nothing is sent."""
        setup = self._setup
        record = None
        if self._record:
            require_writable(self._record)
            record = self._recording()
        connection = connect_model(setup, record=record)
        connection.policy = replace(connection.policy, attempts=min(connection.policy.attempts, MOST_ATTEMPTS))
        return connection

    def _recording(self) -> MakeTransport:
        catalog = catalog_of(self._setup)
        deployment, model = catalog.find(choose_model(self._setup, catalog).model)
        record = record_with(self._setup, self._record, f"{deployment.name}/{model}")

        def keep(transport: Transport, secrets: Callable[[], Iterable[str]]) -> Transport:
            self._cassette = record(transport, secrets)
            return self._cassette

        return keep

    # --- asking

    def _agree(self) -> None:
        """Returns if the user agrees, otherwise raises InputError."""
        if not self._options.yes and (sys.stdin is None or not sys.stdin.isatty()):
            raise InputError(say("live_not_asked", summary=self._most()))
        for line in self._announcement():
            self._messages.line(line, dim=self._options.yes)
        if not self._options.yes:
            confirm(say("live_ask"), LineQuestions())

    def _announcement(self) -> list[str]:
        searches = self._run.estimate.searches
        path = one_line(self._record, 200)
        return [
            say("live_intro_local" if self._is_local else "live_intro", model=self._run.name),
            self._most(),
            *([say("live_most_searches", count=searches, tokens=f"{SEARCH_TOKENS:,}")] if searches else []),
            *([say("live_records", path=path)] if path else []),
            *([say("live_replaces", path=path)] if path and os.path.lexists(self._record) else []),
        ]

    def _most(self) -> str:
        most = self._run.estimate
        if most.cost_usd is not None:
            cost = say("live_most_cost", cost=f"${most.cost_usd:.2f}" if most.cost_usd >= 0.01 else "$0.01")
        else:
            cost = say("live_most_local" if self._is_local else "live_most_unknown")
        return say("live_most", requests=most.requests, input=f"{most.input_tokens:,}", output=f"{most.output_tokens:,}", cost=cost)

    @property
    def _is_local(self) -> bool:
        deployment = self._run.service.deployment
        return deployment is not None and deployment.local

    # --- checking

    async def _check(self, interrupts: Interrupts) -> None:
        try:
            with interrupts.cancelling(asyncio.current_task()):
                await self._run.check(self._show_progress)
        finally:
            await self._connection.aclose()  # writes the recording

    def _show_progress(self, number: int, count: int, feature: str) -> None:
        self._messages.transient_line(say("live_progress", number=number, count=count, feature=feature_name(feature)))

    def _before_exit(self, code: int) -> None:
        self._messages.clear()

    def _recorded(self) -> str:
        """Says where the recording is; empty if there is none."""
        if self._cassette is None or not self._cassette.recorded:
            return ""
        path = one_line(self._record, 200)
        return say("live_recorded", path=path, count=self._cassette.recorded, size=size(os.path.getsize(self._record)))
