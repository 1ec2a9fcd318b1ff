"""`dragoman.retry`: a caller's own call, retried as a request to a model is."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, overload

from dragoman.providers.retry import Attempts, RetryPolicy, wait_words
from dragoman.values.errors import ProviderError
from dragoman.values.events import Retrying

T = TypeVar("T")
OnRetry = Callable[[Retrying], object]


def may_pass(error: Exception) -> bool:
    """Whether the same call may succeed later: a ProviderError says so itself; of others, lost connections and timeouts."""
    return error.retryable if isinstance(error, ProviderError) else isinstance(error, ConnectionError | TimeoutError)


def asked_wait_s(error: Exception) -> float | None:
    """How long the server asked to wait: the error's own `retry_after_s`, if it has one."""
    hint = getattr(error, "retry_after_s", None)
    return float(hint) if isinstance(hint, int | float) and hint >= 0 else None


@overload
def retry(
    call: Callable[[], Awaitable[T]],
    policy: RetryPolicy | None = None,
    *,
    retry_on_error: Callable[[Exception], bool] = may_pass,
    retry_after_s: Callable[[Exception], float | None] = asked_wait_s,
    on_retry: OnRetry | None = None,
) -> Coroutine[Any, Any, T]: ...


@overload
def retry(
    call: Callable[[], T],
    policy: RetryPolicy | None = None,
    *,
    retry_on_error: Callable[[Exception], bool] = may_pass,
    retry_after_s: Callable[[Exception], float | None] = asked_wait_s,
    on_retry: OnRetry | None = None,
) -> T: ...


def retry(
    call: Callable[[], Any],
    policy: RetryPolicy | None = None,
    *,
    retry_on_error: Callable[[Exception], bool] = may_pass,
    retry_after_s: Callable[[Exception], float | None] = asked_wait_s,
    on_retry: OnRetry | None = None,
) -> Any:
    """The result of `call`, which is called again where it fails and that may pass: `await retry(fetch)`, or `retry(read)`.

    Give a function without arguments. If it returns an awaitable, so does `retry`; if not, it returns the result and waits with
    `time.sleep`. How often, how long and until when is the policy's (`attempts`, `first_delay_s`, `max_delay_s`, `jitter`, `deadline_s`);
    its `retry_on_error` and its other hooks are for requests to models. `retry_on_error` says which errors may pass, `retry_after_s` how
    long the server asked to wait: never less is waited, and where that is beyond the deadline the error is raised at once, with a note
    that says so. `on_retry` is called before each wait.
    """
    call_again = _Calls(call, policy or RetryPolicy(), retry_on_error, retry_after_s, on_retry)
    return call_again.run()


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
                time.sleep(self._wait_after_s(error))
            else:
                return self._await(result) if isinstance(result, Awaitable) else result

    async def _await(self, first: Awaitable[Any]) -> Any:
        waiting: Awaitable[Any] | None = first
        while True:
            try:
                return await (self._call() if waiting is None else waiting)
            except Exception as error:
                waiting = None
                await self._policy.sleep(self._wait_after_s(error))

    def _wait_after_s(self, error: Exception) -> float:
        """How long to wait before the next call; raises the error where there is none."""
        if self._attempts.is_exhausted or not self._retry_on_error(error):
            raise error
        hint_s = self._retry_after_s(error)
        wait_s = self._attempts.next_wait_s(hint_s)
        if wait_s is None:
            if hint_s is not None:
                error.add_note(str(wait_words(type(error).__name__, hint_s, self._policy.deadline_s)))
            raise error
        if self._on_retry is not None:
            self._on_retry(Retrying(self._attempts.failures, wait_s, str(error)))
        return wait_s
