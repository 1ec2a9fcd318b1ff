"""Dragoman: one conversation, every model's dialect.

This is the public API, in one place. Importing it loads nothing else of ours: a name is imported from its module when it is
first asked for, and kept.
"""

__version__ = "0.1.0"

# The name typing.TYPE_CHECKING without the cost of importing typing: type checkers take it as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dragoman.context.plan import Plan as Plan
    from dragoman.context.repair import Repaired as Repaired
    from dragoman.context.repair import repair as repair
    from dragoman.context.settings import CompressSettings as CompressSettings
    from dragoman.context.settings import ContextSettings as ContextSettings
    from dragoman.context.settings import PruneRule as PruneRule
    from dragoman.context.settings import PruneSettings as PruneSettings
    from dragoman.loop.agent import Agent as Agent
    from dragoman.loop.agent import Limits as Limits
    from dragoman.loop.chat import AnswerPolicy as AnswerPolicy
    from dragoman.loop.composing import compose as compose
    from dragoman.loop.history import History as History
    from dragoman.loop.history import MemoryJournal as MemoryJournal
    from dragoman.loop.loop_guard import LoopLimits as LoopLimits
    from dragoman.loop.run import Result as Result
    from dragoman.loop.run import Run as Run
    from dragoman.loop.upkeep import Compression as Compression
    from dragoman.loop.web import Web as Web
    from dragoman.providers.catalog import Catalog as Catalog
    from dragoman.providers.catalog import builtin_catalog as builtin_catalog
    from dragoman.providers.connect import Connection as Connection
    from dragoman.providers.connect import connect as connect
    from dragoman.providers.logged import Logged as Logged
    from dragoman.providers.retry import Retry as Retry
    from dragoman.providers.retry import RetryPolicy as RetryPolicy
    from dragoman.testing.cassette import Cassette as Cassette
    from dragoman.testing.mock.server import MockServer as MockServer
    from dragoman.testing.script import Script as Script
    from dragoman.testing.scripted import ScriptedProvider as ScriptedProvider
    from dragoman.text_tools.wrapper import TextOptions as TextOptions
    from dragoman.text_tools.wrapper import TextTools as TextTools
    from dragoman.tools.function import tool as tool
    from dragoman.values.blobs import MemoryBlobs as MemoryBlobs
    from dragoman.values.contracts import Allow as Allow
    from dragoman.values.contracts import BlobStore as BlobStore
    from dragoman.values.contracts import Deny as Deny
    from dragoman.values.contracts import Intent as Intent
    from dragoman.values.contracts import Journal as Journal
    from dragoman.values.contracts import Prepared as Prepared
    from dragoman.values.contracts import Provider as Provider
    from dragoman.values.contracts import Tool as Tool
    from dragoman.values.contracts import ToolOutput as ToolOutput
    from dragoman.values.contracts import Transport as Transport
    from dragoman.values.errors import BadRequest as BadRequest
    from dragoman.values.errors import Cancelled as Cancelled
    from dragoman.values.errors import ConfigError as ConfigError
    from dragoman.values.errors import ConnectionFailed as ConnectionFailed
    from dragoman.values.errors import ContextOverflow as ContextOverflow
    from dragoman.values.errors import DragomanError as DragomanError
    from dragoman.values.errors import Forbidden as Forbidden
    from dragoman.values.errors import InputError as InputError
    from dragoman.values.errors import LoopDetected as LoopDetected
    from dragoman.values.errors import NotFound as NotFound
    from dragoman.values.errors import OutputLimit as OutputLimit
    from dragoman.values.errors import Overloaded as Overloaded
    from dragoman.values.errors import ProviderError as ProviderError
    from dragoman.values.errors import QuotaExhausted as QuotaExhausted
    from dragoman.values.errors import RateLimited as RateLimited
    from dragoman.values.errors import Refused as Refused
    from dragoman.values.errors import SandboxError as SandboxError
    from dragoman.values.errors import ServerError as ServerError
    from dragoman.values.errors import StreamBroken as StreamBroken
    from dragoman.values.errors import TimedOut as TimedOut
    from dragoman.values.errors import ToolBroken as ToolBroken
    from dragoman.values.errors import TurnLimit as TurnLimit
    from dragoman.values.errors import Unauthorized as Unauthorized
    from dragoman.values.errors import Unsupported as Unsupported
    from dragoman.values.errors import UntrustedFolder as UntrustedFolder
    from dragoman.values.events import CitationAdded as CitationAdded
    from dragoman.values.events import CitationShown as CitationShown
    from dragoman.values.events import ContentAdded as ContentAdded
    from dragoman.values.events import ContextCompressed as ContextCompressed
    from dragoman.values.events import ContextOverflowed as ContextOverflowed
    from dragoman.values.events import ContextPruned as ContextPruned
    from dragoman.values.events import ErrorRaised as ErrorRaised
    from dragoman.values.events import LoopSuspected as LoopSuspected
    from dragoman.values.events import PromptProgress as PromptProgress
    from dragoman.values.events import PromptRead as PromptRead
    from dragoman.values.events import ResponseFinished as ResponseFinished
    from dragoman.values.events import ResponseStarted as ResponseStarted
    from dragoman.values.events import Retrying as Retrying
    from dragoman.values.events import StreamEvent as StreamEvent
    from dragoman.values.events import StreamInvalid as StreamInvalid
    from dragoman.values.events import TextDelta as TextDelta
    from dragoman.values.events import ThoughtAdded as ThoughtAdded
    from dragoman.values.events import ThoughtDelta as ThoughtDelta
    from dragoman.values.events import ToolCallConfirmation as ToolCallConfirmation
    from dragoman.values.events import ToolCallDelta as ToolCallDelta
    from dragoman.values.events import ToolCallFinished as ToolCallFinished
    from dragoman.values.events import ToolCallReady as ToolCallReady
    from dragoman.values.events import ToolCallRequested as ToolCallRequested
    from dragoman.values.events import ToolCallStarted as ToolCallStarted
    from dragoman.values.events import ToolCallUpdated as ToolCallUpdated
    from dragoman.values.events import ToolModeChanged as ToolModeChanged
    from dragoman.values.events import TurnEvent as TurnEvent
    from dragoman.values.events import TurnFinished as TurnFinished
    from dragoman.values.events import TurnRetried as TurnRetried
    from dragoman.values.events import UsageUpdated as UsageUpdated
    from dragoman.values.events import UserCancelled as UserCancelled
    from dragoman.values.messages import Blob as Blob
    from dragoman.values.messages import Citation as Citation
    from dragoman.values.messages import FileRef as FileRef
    from dragoman.values.messages import FinishReason as FinishReason
    from dragoman.values.messages import Message as Message
    from dragoman.values.messages import Opaque as Opaque
    from dragoman.values.messages import PerMessage as PerMessage
    from dragoman.values.messages import Request as Request
    from dragoman.values.messages import Response as Response
    from dragoman.values.messages import Settings as Settings
    from dragoman.values.messages import Text as Text
    from dragoman.values.messages import Thinking as Thinking
    from dragoman.values.messages import Thought as Thought
    from dragoman.values.messages import ToolCall as ToolCall
    from dragoman.values.messages import ToolResult as ToolResult
    from dragoman.values.messages import ToolSpec as ToolSpec
    from dragoman.values.messages import assistant as assistant
    from dragoman.values.messages import result as result
    from dragoman.values.messages import user as user
    from dragoman.values.parts import append_to_last_text as append_to_last_text
    from dragoman.values.parts import check_roles as check_roles
    from dragoman.values.parts import curated as curated
    from dragoman.values.parts import map_text_parts as map_text_parts
    from dragoman.values.parts import merge_assistant_text as merge_assistant_text
    from dragoman.values.parts import part_to_string as part_to_string
    from dragoman.values.parts import request_text as request_text
    from dragoman.values.parts import response_text as response_text
    from dragoman.values.parts import to_messages as to_messages
    from dragoman.values.parts import to_parts as to_parts
    from dragoman.values.profile import Deployment as Deployment
    from dragoman.values.profile import Profile as Profile
    from dragoman.values.usage import Prices as Prices
    from dragoman.values.usage import Usage as Usage

_EXPORTS: dict[str, str] = {
    "Agent": "dragoman.loop.agent",
    "Allow": "dragoman.values.contracts",
    "AnswerPolicy": "dragoman.loop.chat",
    "BadRequest": "dragoman.values.errors",
    "Blob": "dragoman.values.messages",
    "BlobStore": "dragoman.values.contracts",
    "Cancelled": "dragoman.values.errors",
    "Cassette": "dragoman.testing.cassette",
    "Catalog": "dragoman.providers.catalog",
    "Citation": "dragoman.values.messages",
    "CitationAdded": "dragoman.values.events",
    "CitationShown": "dragoman.values.events",
    "CompressSettings": "dragoman.context.settings",
    "Compression": "dragoman.loop.upkeep",
    "ConfigError": "dragoman.values.errors",
    "Connection": "dragoman.providers.connect",
    "ConnectionFailed": "dragoman.values.errors",
    "ContentAdded": "dragoman.values.events",
    "ContextCompressed": "dragoman.values.events",
    "ContextOverflow": "dragoman.values.errors",
    "ContextOverflowed": "dragoman.values.events",
    "ContextPruned": "dragoman.values.events",
    "ContextSettings": "dragoman.context.settings",
    "Deny": "dragoman.values.contracts",
    "Deployment": "dragoman.values.profile",
    "DragomanError": "dragoman.values.errors",
    "ErrorRaised": "dragoman.values.events",
    "FileRef": "dragoman.values.messages",
    "FinishReason": "dragoman.values.messages",
    "Forbidden": "dragoman.values.errors",
    "History": "dragoman.loop.history",
    "InputError": "dragoman.values.errors",
    "Intent": "dragoman.values.contracts",
    "Journal": "dragoman.values.contracts",
    "Limits": "dragoman.loop.agent",
    "Logged": "dragoman.providers.logged",
    "LoopDetected": "dragoman.values.errors",
    "LoopLimits": "dragoman.loop.loop_guard",
    "LoopSuspected": "dragoman.values.events",
    "MemoryBlobs": "dragoman.values.blobs",
    "MemoryJournal": "dragoman.loop.history",
    "Message": "dragoman.values.messages",
    "MockServer": "dragoman.testing.mock.server",
    "NotFound": "dragoman.values.errors",
    "Opaque": "dragoman.values.messages",
    "OutputLimit": "dragoman.values.errors",
    "Overloaded": "dragoman.values.errors",
    "PerMessage": "dragoman.values.messages",
    "Plan": "dragoman.context.plan",
    "Prepared": "dragoman.values.contracts",
    "Prices": "dragoman.values.usage",
    "Profile": "dragoman.values.profile",
    "PromptAccepted": "dragoman.values.events",
    "PromptProgress": "dragoman.values.events",
    "PromptRead": "dragoman.values.events",
    "Provider": "dragoman.values.contracts",
    "ProviderError": "dragoman.values.errors",
    "PruneRule": "dragoman.context.settings",
    "PruneSettings": "dragoman.context.settings",
    "QuotaExhausted": "dragoman.values.errors",
    "RateLimited": "dragoman.values.errors",
    "Refused": "dragoman.values.errors",
    "Repaired": "dragoman.context.repair",
    "Request": "dragoman.values.messages",
    "Response": "dragoman.values.messages",
    "ResponseFinished": "dragoman.values.events",
    "ResponseStarted": "dragoman.values.events",
    "Result": "dragoman.loop.run",
    "Retry": "dragoman.providers.retry",
    "RetryPolicy": "dragoman.providers.retry",
    "Retrying": "dragoman.values.events",
    "Run": "dragoman.loop.run",
    "SandboxError": "dragoman.values.errors",
    "SavingChanged": "dragoman.values.events",
    "Script": "dragoman.testing.script",
    "ScriptedProvider": "dragoman.testing.scripted",
    "ServerError": "dragoman.values.errors",
    "Settings": "dragoman.values.messages",
    "StreamBroken": "dragoman.values.errors",
    "StreamEvent": "dragoman.values.events",
    "StreamInvalid": "dragoman.values.events",
    "Text": "dragoman.values.messages",
    "TextDelta": "dragoman.values.events",
    "TextOptions": "dragoman.text_tools.wrapper",
    "TextTools": "dragoman.text_tools.wrapper",
    "Thinking": "dragoman.values.messages",
    "Thought": "dragoman.values.messages",
    "ThoughtAdded": "dragoman.values.events",
    "ThoughtDelta": "dragoman.values.events",
    "TimedOut": "dragoman.values.errors",
    "Tool": "dragoman.values.contracts",
    "ToolBroken": "dragoman.values.errors",
    "ToolCall": "dragoman.values.messages",
    "ToolCallConfirmation": "dragoman.values.events",
    "ToolCallDelta": "dragoman.values.events",
    "ToolCallFinished": "dragoman.values.events",
    "ToolCallReady": "dragoman.values.events",
    "ToolCallRequested": "dragoman.values.events",
    "ToolCallStarted": "dragoman.values.events",
    "ToolCallUpdated": "dragoman.values.events",
    "ToolModeChanged": "dragoman.values.events",
    "ToolOutput": "dragoman.values.contracts",
    "ToolResult": "dragoman.values.messages",
    "ToolSpec": "dragoman.values.messages",
    "Transport": "dragoman.values.contracts",
    "TurnEvent": "dragoman.values.events",
    "TurnFinished": "dragoman.values.events",
    "TurnLimit": "dragoman.values.errors",
    "TurnRetried": "dragoman.values.events",
    "Unauthorized": "dragoman.values.errors",
    "Unsupported": "dragoman.values.errors",
    "UntrustedFolder": "dragoman.values.errors",
    "Usage": "dragoman.values.usage",
    "UsageUpdated": "dragoman.values.events",
    "UserCancelled": "dragoman.values.events",
    "Web": "dragoman.loop.web",
    "append_to_last_text": "dragoman.values.parts",
    "assistant": "dragoman.values.messages",
    "builtin_catalog": "dragoman.providers.catalog",
    "check_roles": "dragoman.values.parts",
    "compose": "dragoman.loop.composing",
    "connect": "dragoman.providers.connect",
    "curated": "dragoman.values.parts",
    "map_text_parts": "dragoman.values.parts",
    "merge_assistant_text": "dragoman.values.parts",
    "part_to_string": "dragoman.values.parts",
    "repair": "dragoman.context.repair",
    "request_text": "dragoman.values.parts",
    "response_text": "dragoman.values.parts",
    "result": "dragoman.values.messages",
    "to_messages": "dragoman.values.parts",
    "to_parts": "dragoman.values.parts",
    "tool": "dragoman.tools.function",
    "user": "dragoman.values.messages",
}
"""Public name → the module it comes from. The block above holds the same names for type checkers."""

__all__ = ["__version__", *_EXPORTS]  # pyrefly: ignore[unresolvable-dunder-all]


def __getattr__(name: str) -> "Any":
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value  # asked for once; from now on it is an ordinary attribute
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
