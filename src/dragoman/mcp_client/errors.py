"""What can go wrong with an MCP server, as one tree beneath DragomanError.

    McpError                    `.server`: which one
    ├── ServerNotStarted        its program could not be started
    ├── ServerDied              its program ended, or its connection was lost; `.exit_code_of_server`, `.stderr`
    ├── ServerTimedOut          nothing came from it in time
    ├── ServerRefused           an HTTP status other than 2xx; `.status`, `.challenges` (401 and 403: somebody must sign in)
    │   └── SessionLost         it has forgotten our session, which must be started again
    ├── NotJson                 what was to be sent is not JSON
    ├── ServerGarbled           it said something that is not MCP
    └── ProtocolError           it answered with an error; `.code`, `.data`

The message is for a person, from the catalogue of sentences: `.key` and `.values` tell errors apart.
"""

from __future__ import annotations

from typing import Any

from dragoman.values.errors import DragomanError

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
OPEN_A_PAGE_FIRST = -32042
"""Of revision 2025-11-25: the user shall open pages, and then the request is worth repeating."""
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
MODERN_CODES = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})
"""Only servers of the modern era use them."""


class McpError(DragomanError):
    """Anything that goes wrong with a server."""

    server: str = ""


class ServerNotStarted(McpError):
    """The server's program could not be started."""


class ServerDied(McpError):
    """The server's program ended, or its connection was lost."""

    def __init__(self, message: str, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code_of_server = exit_code
        """As subprocess has it; None if it is not known, or the server is reached by HTTP."""
        self.stderr = stderr
        """The end of what it wrote there."""


class ServerTimedOut(McpError):
    """Nothing came from the server in time."""


class ServerRefused(McpError):
    """The server refused the HTTP request."""

    def __init__(self, message: str, status: int, body: str = "", challenges: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        """The beginning of it."""
        self.challenges = challenges
        """The value of WWW-Authenticate."""


class SessionLost(ServerRefused):
    """A client begins another one by itself: whoever calls sees this only if that is lost at once as well."""


class NotJson(McpError):
    """What was to be sent to the server is not JSON."""


class ServerGarbled(McpError):
    """The server sent something that is not MCP."""


class ProtocolError(McpError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, message: str, code: int, data: Any = None, status: int = 200) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.status = status
        """Of HTTP, where it came with one."""

    @property
    def supported_versions(self) -> tuple[str, ...]:
        """The protocol versions the server supports, if it says that it does not speak ours."""
        given = self.data.get("supported") if isinstance(self.data, dict) else None
        return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
