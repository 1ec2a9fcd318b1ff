"""Dragoman: one conversation, every model's dialect.

This is the public API, in one place. Importing it loads nothing else of ours: a name is imported from its module when it is
first asked for, and kept.
"""

__version__ = "0.1.0"

# The name typing.TYPE_CHECKING without the cost of importing typing: type checkers take it as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dragoman.agent import Agent as Agent
    from dragoman.agent import Limits as Limits
    from dragoman.blobs import MemoryBlobs as MemoryBlobs
    from dragoman.chat import AnswerPolicy as AnswerPolicy
    from dragoman.composing import compose as compose
    from dragoman.context.plan import Plan as Plan
    from dragoman.context.repair import Repaired as Repaired
    from dragoman.context.repair import repair as repair
    from dragoman.context.settings import CompressSettings as CompressSettings
    from dragoman.context.settings import ContextSettings as ContextSettings
    from dragoman.context.settings import PruneRule as PruneRule
    from dragoman.context.settings import PruneSettings as PruneSettings
    from dragoman.contracts import Allow as Allow
    from dragoman.contracts import BlobStore as BlobStore
    from dragoman.contracts import Deny as Deny
    from dragoman.contracts import Intent as Intent
    from dragoman.contracts import Journal as Journal
    from dragoman.contracts import Prepared as Prepared
    from dragoman.contracts import Provider as Provider
    from dragoman.contracts import Tool as Tool
    from dragoman.contracts import ToolOutput as ToolOutput
    from dragoman.contracts import Transport as Transport
    from dragoman.errors import BadRequest as BadRequest
    from dragoman.errors import Cancelled as Cancelled
    from dragoman.errors import ConfigError as ConfigError
    from dragoman.errors import ConnectionFailed as ConnectionFailed
    from dragoman.errors import ContextOverflow as ContextOverflow
    from dragoman.errors import DragomanError as DragomanError
    from dragoman.errors import Forbidden as Forbidden
    from dragoman.errors import InputError as InputError
    from dragoman.errors import LoopDetected as LoopDetected
    from dragoman.errors import NotFound as NotFound
    from dragoman.errors import OutputLimit as OutputLimit
    from dragoman.errors import Overloaded as Overloaded
    from dragoman.errors import ProviderError as ProviderError
    from dragoman.errors import QuotaExhausted as QuotaExhausted
    from dragoman.errors import RateLimited as RateLimited
    from dragoman.errors import Refused as Refused
    from dragoman.errors import SandboxError as SandboxError
    from dragoman.errors import ServerError as ServerError
    from dragoman.errors import StreamBroken as StreamBroken
    from dragoman.errors import TimedOut as TimedOut
    from dragoman.errors import ToolBroken as ToolBroken
    from dragoman.errors import TurnLimit as TurnLimit
    from dragoman.errors import Unauthorized as Unauthorized
    from dragoman.errors import Unsupported as Unsupported
    from dragoman.errors import UntrustedFolder as UntrustedFolder
    from dragoman.events import CitationAdded as CitationAdded
    from dragoman.events import CitationShown as CitationShown
    from dragoman.events import ContentAdded as ContentAdded
    from dragoman.events import ContextCompressed as ContextCompressed
    from dragoman.events import ContextOverflowed as ContextOverflowed
    from dragoman.events import ContextPruned as ContextPruned
    from dragoman.events import ErrorRaised as ErrorRaised
    from dragoman.events import LoopSuspected as LoopSuspected
    from dragoman.events import PromptProgress as PromptProgress
    from dragoman.events import PromptRead as PromptRead
    from dragoman.events import ResponseFinished as ResponseFinished
    from dragoman.events import ResponseStarted as ResponseStarted
    from dragoman.events import Retrying as Retrying
    from dragoman.events import StreamEvent as StreamEvent
    from dragoman.events import StreamInvalid as StreamInvalid
    from dragoman.events import TextDelta as TextDelta
    from dragoman.events import ThoughtAdded as ThoughtAdded
    from dragoman.events import ThoughtDelta as ThoughtDelta
    from dragoman.events import ToolCallConfirmation as ToolCallConfirmation
    from dragoman.events import ToolCallDelta as ToolCallDelta
    from dragoman.events import ToolCallFinished as ToolCallFinished
    from dragoman.events import ToolCallReady as ToolCallReady
    from dragoman.events import ToolCallRequested as ToolCallRequested
    from dragoman.events import ToolCallStarted as ToolCallStarted
    from dragoman.events import ToolCallUpdated as ToolCallUpdated
    from dragoman.events import ToolModeChanged as ToolModeChanged
    from dragoman.events import TurnEvent as TurnEvent
    from dragoman.events import TurnFinished as TurnFinished
    from dragoman.events import TurnRetried as TurnRetried
    from dragoman.events import UsageUpdated as UsageUpdated
    from dragoman.events import UserCancelled as UserCancelled
    from dragoman.history import History as History
    from dragoman.history import MemoryJournal as MemoryJournal
    from dragoman.loop_guard import LoopLimits as LoopLimits
    from dragoman.messages import Blob as Blob
    from dragoman.messages import Citation as Citation
    from dragoman.messages import FileRef as FileRef
    from dragoman.messages import FinishReason as FinishReason
    from dragoman.messages import Message as Message
    from dragoman.messages import Opaque as Opaque
    from dragoman.messages import PerMessage as PerMessage
    from dragoman.messages import Request as Request
    from dragoman.messages import Response as Response
    from dragoman.messages import Settings as Settings
    from dragoman.messages import Text as Text
    from dragoman.messages import Thinking as Thinking
    from dragoman.messages import Thought as Thought
    from dragoman.messages import ToolCall as ToolCall
    from dragoman.messages import ToolResult as ToolResult
    from dragoman.messages import ToolSpec as ToolSpec
    from dragoman.messages import assistant as assistant
    from dragoman.messages import result as result
    from dragoman.messages import user as user
    from dragoman.parts import append_to_last_text as append_to_last_text
    from dragoman.parts import check_roles as check_roles
    from dragoman.parts import curated as curated
    from dragoman.parts import map_text_parts as map_text_parts
    from dragoman.parts import merge_assistant_text as merge_assistant_text
    from dragoman.parts import part_to_string as part_to_string
    from dragoman.parts import request_text as request_text
    from dragoman.parts import response_text as response_text
    from dragoman.parts import to_messages as to_messages
    from dragoman.parts import to_parts as to_parts
    from dragoman.profile import Deployment as Deployment
    from dragoman.profile import Profile as Profile
    from dragoman.providers.cassette import Cassette as Cassette
    from dragoman.providers.catalog import Catalog as Catalog
    from dragoman.providers.catalog import builtin_catalog as builtin_catalog
    from dragoman.providers.connect import Connection as Connection
    from dragoman.providers.connect import connect as connect
    from dragoman.providers.logged import Logged as Logged
    from dragoman.providers.mock.server import MockServer as MockServer
    from dragoman.providers.retry import Retry as Retry
    from dragoman.providers.retry import RetryPolicy as RetryPolicy
    from dragoman.providers.script import Script as Script
    from dragoman.providers.scripted import ScriptedProvider as ScriptedProvider
    from dragoman.run import Result as Result
    from dragoman.run import Run as Run
    from dragoman.text_tools.wrapper import TextOptions as TextOptions
    from dragoman.text_tools.wrapper import TextTools as TextTools
    from dragoman.tools.function import tool as tool
    from dragoman.upkeep import Compression as Compression
    from dragoman.usage import Prices as Prices
    from dragoman.usage import Usage as Usage
    from dragoman.web import Web as Web

_EXPORTS: dict[str, str] = {
    "Agent": "dragoman.agent",
    "Allow": "dragoman.contracts",
    "AnswerPolicy": "dragoman.chat",
    "BadRequest": "dragoman.errors",
    "Blob": "dragoman.messages",
    "BlobStore": "dragoman.contracts",
    "Cancelled": "dragoman.errors",
    "Cassette": "dragoman.providers.cassette",
    "Catalog": "dragoman.providers.catalog",
    "Citation": "dragoman.messages",
    "CitationAdded": "dragoman.events",
    "CitationShown": "dragoman.events",
    "CompressSettings": "dragoman.context.settings",
    "Compression": "dragoman.upkeep",
    "ConfigError": "dragoman.errors",
    "Connection": "dragoman.providers.connect",
    "ConnectionFailed": "dragoman.errors",
    "ContentAdded": "dragoman.events",
    "ContextCompressed": "dragoman.events",
    "ContextOverflow": "dragoman.errors",
    "ContextOverflowed": "dragoman.events",
    "ContextPruned": "dragoman.events",
    "ContextSettings": "dragoman.context.settings",
    "Deny": "dragoman.contracts",
    "Deployment": "dragoman.profile",
    "DragomanError": "dragoman.errors",
    "ErrorRaised": "dragoman.events",
    "FileRef": "dragoman.messages",
    "FinishReason": "dragoman.messages",
    "Forbidden": "dragoman.errors",
    "History": "dragoman.history",
    "InputError": "dragoman.errors",
    "Intent": "dragoman.contracts",
    "Journal": "dragoman.contracts",
    "Limits": "dragoman.agent",
    "Logged": "dragoman.providers.logged",
    "LoopDetected": "dragoman.errors",
    "LoopLimits": "dragoman.loop_guard",
    "LoopSuspected": "dragoman.events",
    "MemoryBlobs": "dragoman.blobs",
    "MemoryJournal": "dragoman.history",
    "Message": "dragoman.messages",
    "MockServer": "dragoman.providers.mock.server",
    "NotFound": "dragoman.errors",
    "Opaque": "dragoman.messages",
    "OutputLimit": "dragoman.errors",
    "Overloaded": "dragoman.errors",
    "PerMessage": "dragoman.messages",
    "Plan": "dragoman.context.plan",
    "Prepared": "dragoman.contracts",
    "Prices": "dragoman.usage",
    "Profile": "dragoman.profile",
    "PromptAccepted": "dragoman.events",
    "PromptProgress": "dragoman.events",
    "PromptRead": "dragoman.events",
    "Provider": "dragoman.contracts",
    "ProviderError": "dragoman.errors",
    "PruneRule": "dragoman.context.settings",
    "PruneSettings": "dragoman.context.settings",
    "QuotaExhausted": "dragoman.errors",
    "RateLimited": "dragoman.errors",
    "Refused": "dragoman.errors",
    "Repaired": "dragoman.context.repair",
    "Request": "dragoman.messages",
    "Response": "dragoman.messages",
    "ResponseFinished": "dragoman.events",
    "ResponseStarted": "dragoman.events",
    "Result": "dragoman.run",
    "Retry": "dragoman.providers.retry",
    "RetryPolicy": "dragoman.providers.retry",
    "Retrying": "dragoman.events",
    "Run": "dragoman.run",
    "SandboxError": "dragoman.errors",
    "SavingChanged": "dragoman.events",
    "Script": "dragoman.providers.script",
    "ScriptedProvider": "dragoman.providers.scripted",
    "ServerError": "dragoman.errors",
    "Settings": "dragoman.messages",
    "StreamBroken": "dragoman.errors",
    "StreamEvent": "dragoman.events",
    "StreamInvalid": "dragoman.events",
    "Text": "dragoman.messages",
    "TextDelta": "dragoman.events",
    "TextOptions": "dragoman.text_tools.wrapper",
    "TextTools": "dragoman.text_tools.wrapper",
    "Thinking": "dragoman.messages",
    "Thought": "dragoman.messages",
    "ThoughtAdded": "dragoman.events",
    "ThoughtDelta": "dragoman.events",
    "TimedOut": "dragoman.errors",
    "Tool": "dragoman.contracts",
    "ToolBroken": "dragoman.errors",
    "ToolCall": "dragoman.messages",
    "ToolCallConfirmation": "dragoman.events",
    "ToolCallDelta": "dragoman.events",
    "ToolCallFinished": "dragoman.events",
    "ToolCallReady": "dragoman.events",
    "ToolCallRequested": "dragoman.events",
    "ToolCallStarted": "dragoman.events",
    "ToolCallUpdated": "dragoman.events",
    "ToolModeChanged": "dragoman.events",
    "ToolOutput": "dragoman.contracts",
    "ToolResult": "dragoman.messages",
    "ToolSpec": "dragoman.messages",
    "Transport": "dragoman.contracts",
    "TurnEvent": "dragoman.events",
    "TurnFinished": "dragoman.events",
    "TurnLimit": "dragoman.errors",
    "TurnRetried": "dragoman.events",
    "Unauthorized": "dragoman.errors",
    "Unsupported": "dragoman.errors",
    "UntrustedFolder": "dragoman.errors",
    "Usage": "dragoman.usage",
    "UsageUpdated": "dragoman.events",
    "UserCancelled": "dragoman.events",
    "Web": "dragoman.web",
    "append_to_last_text": "dragoman.parts",
    "assistant": "dragoman.messages",
    "builtin_catalog": "dragoman.providers.catalog",
    "check_roles": "dragoman.parts",
    "compose": "dragoman.composing",
    "connect": "dragoman.providers.connect",
    "curated": "dragoman.parts",
    "map_text_parts": "dragoman.parts",
    "merge_assistant_text": "dragoman.parts",
    "part_to_string": "dragoman.parts",
    "repair": "dragoman.context.repair",
    "request_text": "dragoman.parts",
    "response_text": "dragoman.parts",
    "result": "dragoman.messages",
    "to_messages": "dragoman.parts",
    "to_parts": "dragoman.parts",
    "tool": "dragoman.tools.function",
    "user": "dragoman.messages",
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
