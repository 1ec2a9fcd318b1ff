"""Going on with another model where a service keeps refusing: the models of the chain, one after the other, from the same history.

A switch is a ModelChanged entry, so it holds for the rest of the session and for whoever resumes it. If none of the models answers, the
session keeps the model it had.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from dragoman.loop.configuring import configure
from dragoman.loop.model import Model
from dragoman.providers.persistent_429 import decide_about_429
from dragoman.providers.retry import Decision, keeps_refusing
from dragoman.values.errors import DragomanError, ProviderError, RateLimited, Refused
from dragoman.values.events import ModelSwitched, NoticeGiven
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.harness import Emit, Harness
    from dragoman.loop.options import RunOptions
    from dragoman.values.contracts import Provider


class Chain:
    """The models that were tried in one run."""

    def __init__(self, harness: Harness, emit: Emit, run_options: RunOptions | None = None) -> None:
        self._harness = harness
        self._session = harness.session
        self._options = harness.fallback
        self._emit = emit
        self._run_options = run_options
        self._first = harness.session.model
        self._error: DragomanError | None = None
        """Why the first model did not answer."""
        self._insisted = False
        """Whether the hook has had the same model asked again."""
        self._refused: set[str] = set()
        self._tried: list[str] = []

    async def go_on(self, error: DragomanError) -> None:
        """Change to the next model that can be used, or raise: the error itself, or the first model's, with what was tried since."""
        failed = self._session.model
        is_first = self._error is None
        # What is wrong with the user's own model is told at once. One of the chain may fail in any way (its key is refused, it is not
        # there, the conversation is too long for it), and the next one may do.
        if not keeps_refusing(error) and (is_first or isinstance(error, Refused)):
            raise error
        named = await self._decide(error)
        if named is True and not self._insisted:
            self._insisted = True
            return
        self._refused.add(failed.full_name)
        self._harness.refused.add(failed.full_name)
        if is_first:
            self._error = error
        else:
            self._tried.append(f"{failed.full_name} ({error})")
        model = self._next(named)
        if model is None:
            raise self._exhausted(error)
        self._session.change_model(model)
        configure(self._harness, self._run_options)
        self._emit(ModelSwitched(model.full_name, failed.full_name, str(error)))
        self._harness.tell_left_out(self._emit, self._run_options.search if self._run_options is not None else None)

    async def _decide(self, error: DragomanError) -> Decision:
        hook = self._options.on_persistent_429
        return await decide_about_429(hook, error) if hook is not None and isinstance(error, RateLimited) else None

    def _next(self, named: Decision) -> Model | None:
        if isinstance(named, str) and named and (model := self._usable(named)) is not None:
            return model
        later: Model | None = None
        for wanted in self._options.models:
            model = self._usable(wanted)
            if model is not None and model.full_name not in self._harness.refused:
                return model
            later = later or model  # it refused in an earlier run, and may have recovered
        return later

    def _usable(self, wanted: str | Provider) -> Model | None:
        """The model, unless it has failed in this run or cannot be connected."""
        try:
            model = self._harness.models.reuse(wanted)
        except DragomanError as error:
            self._skip(str(wanted), error)
            return None
        return model if model.full_name not in self._refused else None

    def _skip(self, name: str, error: DragomanError) -> None:
        if name in self._refused:
            return
        self._refused.add(name)
        self._tried.append(f"{name} ({error})")
        self._emit(NoticeGiven("fallback", str(say("loop.fallback_skipped", model=name, reason=error))))

    def _exhausted(self, error: DragomanError) -> DragomanError:
        """The session goes back to the model it had: nobody has answered in its place."""
        if self._session.model != self._first:
            self._session.change_model(self._first)
        self._harness.refused.clear()
        if not self._tried or not isinstance(self._error, ProviderError):
            return error
        whole = copy(self._error)
        whole.message = say("loop.fallback_exhausted", message=self._error.message, tried=tuple(self._tried))
        whole.args = (whole.message,)
        whole.__cause__ = error if error is not self._error else self._error.__cause__
        return whole
