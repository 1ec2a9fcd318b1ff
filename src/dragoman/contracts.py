"""The contracts between an agent and what can be put in its place: a provider, a transport, a tool, a store, a journal."""

from dragoman.values.calls import Allow, Ask, AskUser, Deny, Intent, Later, PendingCall, RunAtWork, Show, Tool, ToolOutput
from dragoman.values.commands import CommandState
from dragoman.values.contracts import BlobStore, HttpRequest, HttpResponse, Provider, Transport
from dragoman.values.messages import Media
from dragoman.values.record import Journal
from dragoman.values.wrapping import WrappingProvider

__all__ = [
    "Allow",
    "Ask",
    "AskUser",
    "BlobStore",
    "CommandState",
    "Deny",
    "HttpRequest",
    "HttpResponse",
    "Intent",
    "Journal",
    "Later",
    "Media",
    "PendingCall",
    "Provider",
    "RunAtWork",
    "Show",
    "Tool",
    "ToolOutput",
    "Transport",
    "WrappingProvider",
]
