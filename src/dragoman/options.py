"""Everything an agent can be set up with."""

from dragoman.context.settings import CompressSettings, ContextSettings, PruneRule, PruneSettings
from dragoman.loop.budget import Account, Budget, Spending
from dragoman.loop.options import (
    AnswerPolicy,
    ApprovalOptions,
    Connector,
    FallbackOptions,
    Limits,
    LoopLimits,
    Sandboxing,
    SearchMode,
    SessionOptions,
    ToolCalling,
    ToolOptions,
    WebAccess,
    WorkspaceOptions,
)
from dragoman.providers.pace import RateLimit
from dragoman.providers.retry import RetryPolicy
from dragoman.text_tools.options import TextOptions
from dragoman.tools.web import HostRules
from dragoman.values.profile import Deployment
from dragoman.words import choose_language

__all__ = [
    "Account",
    "AnswerPolicy",
    "ApprovalOptions",
    "Budget",
    "CompressSettings",
    "Connector",
    "ContextSettings",
    "Deployment",
    "FallbackOptions",
    "HostRules",
    "Limits",
    "LoopLimits",
    "PruneRule",
    "PruneSettings",
    "RateLimit",
    "RetryPolicy",
    "Sandboxing",
    "SearchMode",
    "SessionOptions",
    "Spending",
    "TextOptions",
    "ToolCalling",
    "ToolOptions",
    "WebAccess",
    "WorkspaceOptions",
    "choose_language",
]
