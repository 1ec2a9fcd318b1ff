"""`dragoman.retry`: a caller's own call, retried as a request to a model is."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, overload

from dragoman.providers.long_waits import wait_words
from dragoman.providers.persistent_429 import checked_decision, decide_about_429, status_of
from dragoman.providers.retry import (
    Attempts,
    Decision,
    On429,
    RetryPolicy,
    is_retryable,
)
from dragoman.values.errors import InputError, ProviderError
from dragoman.values.events import Retrying
from dragoman.words import say

T = TypeVar("T")
OnRetry = Callable[[Retrying], object]


def may_pass(error: Exception) -> bool:
    """Say whether the same call may succeed later: of a ProviderError, a lost connection, a time-out, or by the status (429 and 5xx)."""
    if isinstance(error, ProviderError):
        return error.retryable
    status = status_of(error)
    return isinstance(error, ConnectionError | TimeoutError) if status is None else status == 429 or status >= 500


def asked_wait_s(error: Exception) -> float | None:
    """How long the server asked to wait: the error's own `retry_after_s`, if it has one."""
    hint = getattr(error, "retry_after_s", None)
    return float(hint) if isinstance(hint, int | float) and hint >= 0 else None


@overload
def retry(
    call: Callable[[], Awaitable[T]],
    policy: RetryPolicy | None = None,
    *,
    retry_on_error: Callable[[Exception], bool] | None = None,
    retry_after_s: Callable[[Exception], float | None] = asked_wait_s,
    on_retry: OnRetry | None = None,
) -> Coroutine[Any, Any, T]: ...


@overload
def retry(
    call: Callable[[], T],
    policy: RetryPolicy | None = None,
    *,
    retry_on_error: Callable[[Exception], bool] | None = None,
    retry_after_s: Callable[[Exception], float | None] = asked_wait_s,
    on_retry: OnRetry | None = None,
) -> T: ...


def retry(
    call: Callable[[], Any],
    policy: RetryPolicy | None = None,
    *,
    retry_on_error: Callable[[Exception], bool] | None = None,
    retry_after_s: Callable[[Exception], float | None] = asked_wait_s,
    on_retry: OnRetry | None = None,
) -> Any:
    """The result of `call`, which is called again where it fails and that may pass: `await retry(fetch)`, or `retry(read)`.

    Give a function without arguments. If it returns an awaitable, so does `retry`; if not, it returns the result and waits with
    `time.sleep`. How often, how long and until when is the policy's (`attempts`, `first_delay_s`, `max_delay_s`, `jitter`, `deadline_s`).
    Its hooks hold here too: `retry_on_error`, which the argument of that name replaces; `retry_on_content`, called with the result: True
    means that it is unusable, and the last attempt's is returned as it is; `on_persistent_429`, called with the error (ours, or another
    library's whose status is 429): where it returns True or a model's name, `call` is called again at once with all attempts before it,
    and `on_retry` is given the name. `retry_after_s` says how long the server asked to wait: never less is waited, and where that is
    beyond the deadline the error is raised at once, with a note that says so. `on_retry` is called before each wait.
    """
    policy = policy or RetryPolicy()
    if retry_on_error is None:
        retry_on_error = may_pass if policy.retry_on_error is is_retryable else policy.retry_on_error
    return _Calls(call, policy, retry_on_error, retry_after_s, on_retry).run()


class _Calls:
    def __init__(
        self,
        call: Callable[[], Any],
        policy: RetryPolicy,
        retry_on_error: Callable[[Exception], bool],
        retry_after_s: Callable[[Exception], float | None],
        on_retry: OnRetry | None,
    ) -> None:
        self._call = call
        self._policy = policy
        self._retry_on_error = retry_on_error
        self._retry_after_s = retry_after_s
        self._on_retry = on_retry
        self._attempts = Attempts(policy)

    def run(self) -> Any:
        while True:
            try:
                result = self._call()
            except Exception as error:
                wait_s = self._wait_after_s(error)
                if wait_s is None:
                    wait_s = self._begin_again(self._decide_now(error), error)
            else:
                if inspect.isawaitable(result):
                    return self._await(result)
                if not self._attempts.wants_another(result):
                    return result
                wait_s = self._wait_after_content_s()
            time.sleep(wait_s)

    async def _await(self, first: Awaitable[Any]) -> Any:
        waiting: Awaitable[Any] | None = first
        while True:
            try:
                result = await (self._call() if waiting is None else waiting)
            except Exception as error:
                wait_s = self._wait_after_s(error)
                if wait_s is None:
                    wait_s = self._begin_again(await self._decide(error), error)
            else:
                if not self._attempts.wants_another(result):
                    return result
                wait_s = self._wait_after_content_s()
            waiting = None
            await self._policy.sleep(wait_s)

    def _wait_after_s(self, error: Exception) -> float | None:
        """How long to wait before the next call; None if there is none, but the hook for 429s is to be asked; else raises the error."""
        if self._attempts.is_exhausted or not self._retry_on_error(error):
            return self._none_left(error)
        hint_s = self._retry_after_s(error)
        wait_s = self._attempts.next_wait_s(hint_s)
        if wait_s is None:
            if hint_s is not None:
                error.add_note(str(wait_words(type(error).__name__, hint_s, self._policy.deadline_s)))
            return self._none_left(error)
        self._tell(wait_s, str(error))
        return wait_s

    def _none_left(self, error: Exception) -> None:
        if self._attempts.hook_for(error) is None:
            raise error

    async def _decide(self, error: Exception) -> Decision:
        return await decide_about_429(self._hook, error)

    def _decide_now(self, error: Exception) -> Decision:
        decision = self._hook(error)
        if not inspect.isawaitable(decision):
            return checked_decision(decision, error)
        if inspect.iscoroutine(decision):
            decision.close()  # else Python warns that it was never awaited
        raise InputError(say("providers.decision_awaited")) from error

    @property
    def _hook(self) -> On429:
        hook = self._policy.on_persistent_429
        assert hook is not None  # asked for by _none_left
        return hook

    def _begin_again(self, decision: Decision, error: Exception) -> float:
        self._attempts.begin_again(decision, error)
        self._tell(0.0, str(error), decision if isinstance(decision, str) else "")
        return 0.0

    def _wait_after_content_s(self) -> float:
        wait_s = self._attempts.after_content()
        self._tell(wait_s, str(say("providers.unusable_content")))
        return wait_s

    def _tell(self, wait_s: float, reason: str, model: str = "") -> None:
        if self._on_retry is not None:
            self._on_retry(Retrying(self._attempts.failures, wait_s, reason, model))
