"""Every error Dragoman raises. The tree and the exit codes are in the docstring of `dragoman.values.errors`."""

from dragoman.values.errors import AnswerTooLong as AnswerTooLong
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
