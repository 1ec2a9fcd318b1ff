"""Dragoman: one conversation, every model's dialect.

This is the public API, in one place. Importing it loads nothing else of ours: a name is imported from its module when it is
first asked for, and kept. What is needed less often is in public modules of its own: `dragoman.calls`, `dragoman.chat`,
`dragoman.context`, `dragoman.contracts`, `dragoman.errors`, `dragoman.events`, `dragoman.hooks`, `dragoman.mcp`, `dragoman.messages`,
`dragoman.options`, `dragoman.record`, `dragoman.rules`, `dragoman.search`, `dragoman.stores`, `dragoman.traces`, and the doubles for tests
in `dragoman.testing`.
"""

__version__ = "0.2.0"

# The name typing.TYPE_CHECKING without the cost of importing typing: type checkers take it as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dragoman import calls as calls
    from dragoman import chat as chat
    from dragoman import context as context
    from dragoman import contracts as contracts
    from dragoman import errors as errors
    from dragoman import events as events
    from dragoman import hooks as hooks
    from dragoman import mcp as mcp
    from dragoman import messages as messages
    from dragoman import options as options
    from dragoman import record as record
    from dragoman import rules as rules
    from dragoman import search as search
    from dragoman import stores as stores
    from dragoman import testing as testing
    from dragoman import traces as traces
    from dragoman.context.plan import Plan as Plan
    from dragoman.context.settings import ContextSettings as ContextSettings
    from dragoman.loop.agent import Agent as Agent
    from dragoman.loop.coding import coding_agent as coding_agent
    from dragoman.loop.history import History as History
    from dragoman.loop.options import ApprovalOptions as ApprovalOptions
    from dragoman.loop.options import Connector as Connector
    from dragoman.loop.options import Limits as Limits
    from dragoman.loop.options import SessionOptions as SessionOptions
    from dragoman.loop.options import ToolOptions as ToolOptions
    from dragoman.loop.options import WebAccess as WebAccess
    from dragoman.loop.options import WorkspaceOptions as WorkspaceOptions
    from dragoman.loop.requesting import build_request as build_request
    from dragoman.loop.result import Result as Result
    from dragoman.loop.run import Run as Run
    from dragoman.policy.grants import Grants as Grants
    from dragoman.policy.judge import Mode as Mode
    from dragoman.providers.catalog import builtin_catalog as builtin_catalog
    from dragoman.providers.connect import Connection as Connection
    from dragoman.providers.connect import connect as connect
    from dragoman.providers.logged import Logged as Logged
    from dragoman.providers.retry import Retry as Retry
    from dragoman.providers.retry import RetryPolicy as RetryPolicy
    from dragoman.providers.retry_call import retry as retry
    from dragoman.text_tools.wrapper import TextTools as TextTools
    from dragoman.tools.function import tool as tool
    from dragoman.tools.tool_context import ToolContext as ToolContext
    from dragoman.values.calls import Allow as Allow
    from dragoman.values.calls import Ask as Ask
    from dragoman.values.calls import AskUser as AskUser
    from dragoman.values.calls import Deny as Deny
    from dragoman.values.calls import Intent as Intent
    from dragoman.values.calls import Tool as Tool
    from dragoman.values.calls import ToolOutput as ToolOutput
    from dragoman.values.contracts import Provider as Provider
    from dragoman.values.errors import ConfigError as ConfigError
    from dragoman.values.errors import DragomanError as DragomanError
    from dragoman.values.errors import InputError as InputError
    from dragoman.values.errors import ProviderError as ProviderError
    from dragoman.values.events import ResponseFinished as ResponseFinished
    from dragoman.values.events import ResponseStarted as ResponseStarted
    from dragoman.values.events import Retrying as Retrying
    from dragoman.values.events import StreamEvent as StreamEvent
    from dragoman.values.events import TextDelta as TextDelta
    from dragoman.values.events import ThoughtDelta as ThoughtDelta
    from dragoman.values.events import ToolCallFinished as ToolCallFinished
    from dragoman.values.events import ToolCallRequested as ToolCallRequested
    from dragoman.values.events import TurnEvent as TurnEvent
    from dragoman.values.events import TurnFinished as TurnFinished
    from dragoman.values.messages import Blob as Blob
    from dragoman.values.messages import FileRef as FileRef
    from dragoman.values.messages import FinishReason as FinishReason
    from dragoman.values.messages import Media as Media
    from dragoman.values.messages import Message as Message
    from dragoman.values.messages import Request as Request
    from dragoman.values.messages import Response as Response
    from dragoman.values.messages import Settings as Settings
    from dragoman.values.messages import Text as Text
    from dragoman.values.messages import Thinking as Thinking
    from dragoman.values.messages import Thought as Thought
    from dragoman.values.messages import ToolCall as ToolCall
    from dragoman.values.messages import ToolResult as ToolResult
    from dragoman.values.messages import ToolSpec as ToolSpec
    from dragoman.values.parts import assistant as assistant
    from dragoman.values.parts import tool_result as tool_result
    from dragoman.values.parts import user as user
    from dragoman.values.profile import Profile as Profile
    from dragoman.values.record import Entry as Entry
    from dragoman.values.usage import Prices as Prices
    from dragoman.values.usage import Usage as Usage

_MODULES = (
    *("calls", "chat", "context", "contracts", "errors", "events", "hooks", "mcp", "messages", "options", "record", "rules", "search"),
    *("stores", "testing", "traces"),
)
_EXPORTS: dict[str, str] = {
    "Agent": "dragoman.loop.agent",
    "Allow": "dragoman.values.calls",
    "ApprovalOptions": "dragoman.loop.options",
    "Ask": "dragoman.values.calls",
    "AskUser": "dragoman.values.calls",
    "Blob": "dragoman.values.messages",
    "ConfigError": "dragoman.values.errors",
    "Connection": "dragoman.providers.connect",
    "Connector": "dragoman.loop.options",
    "ContextSettings": "dragoman.context.settings",
    "Deny": "dragoman.values.calls",
    "DragomanError": "dragoman.values.errors",
    "Entry": "dragoman.values.record",
    "FileRef": "dragoman.values.messages",
    "FinishReason": "dragoman.values.messages",
    "Grants": "dragoman.policy.grants",
    "History": "dragoman.loop.history",
    "InputError": "dragoman.values.errors",
    "Intent": "dragoman.values.calls",
    "Limits": "dragoman.loop.options",
    "Logged": "dragoman.providers.logged",
    "Media": "dragoman.values.messages",
    "Message": "dragoman.values.messages",
    "Mode": "dragoman.policy.judge",
    "Plan": "dragoman.context.plan",
    "Prices": "dragoman.values.usage",
    "Profile": "dragoman.values.profile",
    "Provider": "dragoman.values.contracts",
    "ProviderError": "dragoman.values.errors",
    "Request": "dragoman.values.messages",
    "Response": "dragoman.values.messages",
    "ResponseFinished": "dragoman.values.events",
    "ResponseStarted": "dragoman.values.events",
    "Result": "dragoman.loop.result",
    "Retry": "dragoman.providers.retry",
    "RetryPolicy": "dragoman.providers.retry",
    "Retrying": "dragoman.values.events",
    "Run": "dragoman.loop.run",
    "SessionOptions": "dragoman.loop.options",
    "Settings": "dragoman.values.messages",
    "StreamEvent": "dragoman.values.events",
    "Text": "dragoman.values.messages",
    "TextDelta": "dragoman.values.events",
    "TextTools": "dragoman.text_tools.wrapper",
    "Thinking": "dragoman.values.messages",
    "Thought": "dragoman.values.messages",
    "ThoughtDelta": "dragoman.values.events",
    "Tool": "dragoman.values.calls",
    "ToolCall": "dragoman.values.messages",
    "ToolCallFinished": "dragoman.values.events",
    "ToolCallRequested": "dragoman.values.events",
    "ToolContext": "dragoman.tools.tool_context",
    "ToolOptions": "dragoman.loop.options",
    "ToolOutput": "dragoman.values.calls",
    "ToolResult": "dragoman.values.messages",
    "ToolSpec": "dragoman.values.messages",
    "TurnEvent": "dragoman.values.events",
    "TurnFinished": "dragoman.values.events",
    "Usage": "dragoman.values.usage",
    "WebAccess": "dragoman.loop.options",
    "WorkspaceOptions": "dragoman.loop.options",
    "assistant": "dragoman.values.parts",
    "build_request": "dragoman.loop.requesting",
    "builtin_catalog": "dragoman.providers.catalog",
    "coding_agent": "dragoman.loop.coding",
    "connect": "dragoman.providers.connect",
    "retry": "dragoman.providers.retry_call",
    "tool": "dragoman.tools.function",
    "tool_result": "dragoman.values.parts",
    "user": "dragoman.values.parts",
}
"""Public name → the module it comes from. The block above holds the same names for type checkers; a test compares them."""

__all__ = ["__version__", *_EXPORTS, *_MODULES]  # pyrefly: ignore[unresolvable-dunder-all]

if not TYPE_CHECKING:  # type checkers go by the block above, so that a misspelt name is an error

    def __getattr__(name):
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        module = _EXPORTS.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        globals()[name] = value  # asked for once; from now on it is an ordinary attribute
        return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
