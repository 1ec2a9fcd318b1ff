"""All errors, as one tree. The number is the program's exit code.

    DragomanError                       1
    ├── InputError                     42   the caller gave something that cannot be used
    │   ├── Unsupported                42   the service or model has no such ability
    │   ├── NoSession                  42   there is no such session
    │   └── InUse                      42   another process writes this session
    ├── ConfigError                    52   a setting is wrong; names where, and the nearest right one
    ├── SandboxError                   44
    ├── TurnLimit                      53
    ├── ToolBroken                     54   a tool cannot work at all (a full disk), not a tool that failed
    ├── UntrustedFolder                55
    ├── LoopDetected                   56
    ├── BudgetExceeded                 60   a budget of tokens, dollars, requests, tool calls or seconds is used up
    ├── OutputInvalid                  61   no answer fits the type that was asked for
    ├── HookStopped                    62   a hook refused the prompt, or ended the run
    ├── OutputLimit                    59   the answer was cut by the output limit
    │   └── AnswerTooLong              59   it was stopped, because it is longer than any answer may be
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
        │   └── InvalidAnswer          57   no attempt gave an answer that could be used
        └── Refused                    58   filtered or refused, with the reason

The message is for a person: what happened, in the service's own words if it gave any, and what to do next. It comes from the
catalogue of sentences (words), so every error has the `.key` and the `.values` of its sentence: a program can tell errors apart by
key, and translate them. The raw cause is chained.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from dragoman.words import Sentence, say


class DragomanError(Exception):
    """The root of the tree: everything that we raise on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, *message: object) -> None:  # as Exception has it, which hides its signature
        super().__init__(*message)

    @property
    def sentence(self) -> str:
        """The whole message, as in `str(error)`: a Sentence, unless the error was raised with other text."""
        return self._message if len(self.args) == 1 else str(self)

    @property
    def key(self) -> str:
        """The key of the message in the catalogue of sentences; empty for other text."""
        return self._message.key if isinstance(self._message, Sentence) else ""

    @property
    def values(self) -> Mapping[str, object]:
        """The values filled into the sentence, by name."""
        return self._message.values if isinstance(self._message, Sentence) else {}

    @property
    def _message(self) -> str:
        first = self.args[0] if self.args else ""
        return first if isinstance(first, str) else str(first)

    def __reduce__(self) -> tuple[Any, ...]:
        # Copied and pickled without calling __init__, which takes other arguments in some subclasses.
        return _restore, (type(self), self.args, dict(self.__dict__))


def _restore(kind: type[DragomanError], args: tuple[object, ...], attributes: dict[str, Any]) -> DragomanError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class InputError(DragomanError):
    """The caller gave something that cannot be used: an option, a prompt, a name."""

    exit_code = 42


class Unsupported(InputError):
    """The service or the model has no such ability."""


class NoSession(InputError):
    """There is no such session. A session that exists but cannot be opened is another error, so creating one on this is safe."""


class InUse(InputError):
    """Somebody is writing this session. `.pid` is the id of the process, which may be this one, and 0 if the system does not say."""

    def __init__(self, session_id: str, pid: int) -> None:
        unknown, other = say("sessions.in_use_by_unknown"), say("sessions.in_use_by", pid=pid)
        who = say("sessions.in_use_here", pid=pid) if pid == os.getpid() else other if pid else unknown
        super().__init__(say("sessions.in_use", session=session_id, who=who))
        self.session_id = session_id
        self.pid = pid


class ConfigError(DragomanError):
    """A setting is wrong. The message names the file and the nearest valid setting."""

    exit_code = 52


class SandboxError(DragomanError):
    """The mode needs a sandbox, and none works on this machine."""

    exit_code = 44


class TurnLimit(DragomanError):
    """The run reached its limit of turns (`Limits.max_turns`). The next run may continue."""

    exit_code = 53


class ToolBroken(DragomanError):
    """A tool cannot work at all, for example on a full disk. A tool that merely failed is a result for the model instead."""

    exit_code = 54


class UntrustedFolder(DragomanError):
    """The folder must be trusted first."""

    exit_code = 55


class LoopDetected(DragomanError):
    """The model kept repeating itself, and the run was stopped."""

    exit_code = 56


class BudgetExceeded(DragomanError):
    """A budget is used up, or too small for the next request. The record is whole, and the next run may go on."""

    exit_code = 60
    may_have_cost: bool = False
    """Whether the attempt that went before may have cost something that was not told."""
    estimated: float = 0.0
    """How much of `spent` is our own estimate, because the service did not tell it."""

    def __init__(self, message: str, budget: str = "", limit: float = 0.0, spent: float = 0.0) -> None:
        super().__init__(message)
        self.budget = budget
        """Which one: `usd`, `tokens`, `input_tokens`, `output_tokens`, `requests`, `tool_calls` or `seconds`."""
        self.limit = limit
        self.spent = spent


class HookStopped(DragomanError):
    """A hook refused the prompt, or ended the run. The reason is in the hook's own words."""

    exit_code = 62


class OutputInvalid(DragomanError):
    """No answer was a value of the type that was asked for (`output=`), though the model was told what is wrong."""

    exit_code = 61


class OutputLimit(DragomanError):
    """The answer was cut at the output limit."""

    exit_code = 59


class AnswerTooLong(OutputLimit):
    """An answer was stopped that has more characters or events than is allowed (`AnswerPolicy`): a service that never ends."""


class Cancelled(DragomanError):
    """The run was cancelled. What had come in until then is recorded."""

    exit_code = 130


class ProviderError(DragomanError):
    """A service gave no answer. `.retryable` says whether the same request may succeed later."""

    exit_code = 57
    retryable: bool = False
    may_have_cost: bool = False
    """Whether the service may have worked on the request before it failed: what that took is not known."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        request_id: str = "",
        code: str = "",
        field: str = "",
        retry_after_s: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.status = status
        self.request_id = request_id
        self.code = code
        """The service's own code for the error (`overloaded_error`, `RESOURCE_EXHAUSTED`)."""
        self.field = field
        """The field of the request that the service names as the reason, with dots; empty if it names none."""
        self.retry_after_s = retry_after_s
        """How long the server asked us to wait, if it did."""
        if retryable is not None:
            self.retryable = retryable

    @property
    def sentence(self) -> str:
        where = f"{self.provider}: " if self.provider else ""
        status = f" (HTTP {self.status})" if self.status else ""
        request = f" [request {self.request_id}]" if self.request_id else ""
        return say("values.provider_error", where=where, message=self.message, status=status, request=request)

    def __str__(self) -> str:
        return str(self.sentence)


class BadRequest(ProviderError):
    """The service says that the request is wrong (400)."""


class ContextOverflow(BadRequest):
    """The request is longer than the model's window."""


class Unauthorized(ProviderError):
    """The key is missing, wrong or expired (401)."""

    exit_code = 41


class Forbidden(ProviderError):
    """The key is valid, but not for this (403)."""

    exit_code = 41


class NotFound(ProviderError):
    """There is no such model or URL (404)."""


class RateLimited(ProviderError):
    """Too many requests or tokens at the moment (429)."""

    retryable = True


class QuotaExhausted(RateLimited):
    """A daily quota or an empty account: waiting a minute does not help."""

    retryable = False


class ServerError(ProviderError):
    """The service failed (5xx)."""

    retryable = True


class Overloaded(ServerError):
    """The service has too much to do at the moment (503, 529)."""


class ConnectionFailed(ProviderError):
    """No answer came: the service could not be reached, or the connection broke."""

    retryable = True


class TimedOut(ConnectionFailed):
    """No event in time. Pings are not events."""

    may_have_cost = True


class StreamBroken(ProviderError):
    """The answer was cut, garbled, or never said that it ended."""

    retryable = True
    may_have_cost = True


class InvalidAnswer(StreamBroken):
    """No attempt gave an answer that could be used."""


class Refused(ProviderError):
    """The service filtered the prompt or the answer, or the model refused."""

    exit_code = 58


# --- what was given by mistake ---------------------------------------------------------------------------------------------------

INSTEAD_OF_ROLE = {
    "model": "values.role_of_model",
    "ai": "values.role_of_model",
    "bot": "values.role_of_model",
    "system": "values.role_of_system",
    "developer": "values.role_of_system",
    "tool": "values.role_of_tool",
    "function": "values.role_of_tool",
}
"""What to write instead of the roles that other libraries have."""


def shown(value: object) -> str:
    """A value that was given by mistake, in a few characters."""
    if value is None or isinstance(value, str | int | float | bool):
        return repr(value)[:80]
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
