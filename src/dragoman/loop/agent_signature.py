"""The parameters of an agent and of its runs beside the model, the prompt and the output, for type checkers: loaded by nothing else.

The type of a result follows from `output`, so the signatures are overloaded, and each overload would repeat all of these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from typing_extensions import TypedDict  # `closed` is not in typing before Python 3.15

from dragoman.context.settings import ContextSettings
from dragoman.loop.budget import Account, Budget
from dragoman.loop.history import History
from dragoman.loop.options import (
    ApprovalOptions,
    FallbackOptions,
    Limits,
    SearchMode,
    SessionOptions,
    ToolOptions,
    WorkspaceOptions,
)
from dragoman.policy.judge import Mode
from dragoman.sessions.stores import Store
from dragoman.values.calls import Tool
from dragoman.values.contracts import Provider
from dragoman.values.hooks import Hooks
from dragoman.values.messages import Settings


class AgentOptions(TypedDict, total=False, closed=True):
    """The options of `Agent()`."""

    name: str
    system: str | None
    tools: Iterable[Tool | Callable[..., Any]] | ToolOptions
    workspace: str | os.PathLike[str] | WorkspaceOptions
    approval: Mode | ApprovalOptions
    session: str | os.PathLike[str] | Store | History | SessionOptions | None
    settings: Settings | None
    limits: Limits | None
    context: ContextSettings | None
    fallback: Sequence[str | Provider] | FallbackOptions
    budget: Budget | Account | None
    hooks: Hooks | Sequence[Hooks]


class SyncRunOptions(TypedDict, total=False, closed=True):
    """The options of `Agent.run_sync()`."""

    search: SearchMode | None
    settings: Settings | None
    budget: Budget | Account | None
    instructions: str


class RunArguments(TypedDict, total=False, closed=True):
    """The options of `Agent.run()`."""

    settings: Settings | None
    search: SearchMode | None
    budget: Budget | Account | None
    instructions: str
