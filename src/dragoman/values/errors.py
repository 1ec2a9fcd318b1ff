"""Everything that can go wrong, as one tree. The number is the program's exit code.

    DragomanError                       1
    ├── InputError                     42   the caller gave something that cannot be used
    │   └── Unsupported                42   the service or model has no such ability
    ├── ConfigError                    52   a setting is wrong; names where, and the nearest right one
    ├── SandboxError                   44
    ├── TurnLimit                      53
    ├── ToolBroken                     54   a tool cannot work at all (a full disk), not a tool that failed
    ├── UntrustedFolder                55
    ├── LoopDetected                   56
    ├── OutputLimit                    59   the answer was cut by the output limit
    ├── Cancelled                     130
    └── ProviderError                  57   has .status .request_id .provider .retryable .retry_after_s
        ├── BadRequest                 57   400
        │   └── ContextOverflow        57   the request is longer than the model's window
        ├── Unauthorized               41   401
        ├── Forbidden                  41   403
        ├── NotFound                   57   404
        ├── RateLimited                57   429, retryable
        │   └── QuotaExhausted         57   a daily quota or an empty account: waiting does not help
        ├── ServerError                57   5xx, retryable
        │   └── Overloaded             57   503, 529, retryable
        ├── ConnectionFailed           57   no answer at all, retryable
        │   └── TimedOut               57   no event in time, retryable
        ├── StreamBroken               57   the answer was cut, garbled or never ended, retryable
        └── Refused                    58   filtered or refused, with the reason

The message is for a person: what happened, in the service's own words where it gave any, and what to do next.
The raw cause is chained.
"""

from __future__ import annotations

from typing import ClassVar


class DragomanError(Exception):
    exit_code: ClassVar[int] = 1


class InputError(DragomanError):
    exit_code = 42


class Unsupported(InputError):
    """The service or the model has no such ability."""


class ConfigError(DragomanError):
    exit_code = 52


class SandboxError(DragomanError):
    exit_code = 44


class TurnLimit(DragomanError):
    exit_code = 53


class ToolBroken(DragomanError):
    exit_code = 54


class UntrustedFolder(DragomanError):
    exit_code = 55


class LoopDetected(DragomanError):
    exit_code = 56


class OutputLimit(DragomanError):
    exit_code = 59


class Cancelled(DragomanError):
    exit_code = 130


class ProviderError(DragomanError):
    """A service did not give an answer. `.retryable` says whether the same request may succeed later."""

    exit_code = 57
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        request_id: str = "",
        code: str = "",
        retry_after_s: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.status = status
        self.request_id = request_id
        self.code = code
        """The service's own name for the fault (`overloaded_error`, `RESOURCE_EXHAUSTED`)."""
        self.retry_after_s = retry_after_s
        """What the server asked us to wait, if it said."""
        if retryable is not None:
            self.retryable = retryable

    def __str__(self) -> str:
        where = f"{self.provider}: " if self.provider else ""
        status = f" (HTTP {self.status})" if self.status else ""
        request = f" [request {self.request_id}]" if self.request_id else ""
        return f"{where}{self.message}{status}{request}"


class BadRequest(ProviderError):
    pass


class ContextOverflow(BadRequest):
    """The request is longer than the model's window."""


class Unauthorized(ProviderError):
    exit_code = 41


class Forbidden(ProviderError):
    exit_code = 41


class NotFound(ProviderError):
    pass


class RateLimited(ProviderError):
    retryable = True


class QuotaExhausted(RateLimited):
    """A daily quota or an empty account: waiting a minute does not help."""

    retryable = False


class ServerError(ProviderError):
    retryable = True


class Overloaded(ServerError):
    pass


class ConnectionFailed(ProviderError):
    retryable = True


class TimedOut(ConnectionFailed):
    """No event in time. Pings are not events."""


class StreamBroken(ProviderError):
    """The answer was cut, garbled, or never said that it ended."""

    retryable = True


class Refused(ProviderError):
    """The service filtered the prompt or the answer, or the model refused."""

    exit_code = 58
