"""Everything an agent can be set up with."""

from dragoman.context.settings import CompressSettings as CompressSettings
from dragoman.context.settings import ContextSettings as ContextSettings
from dragoman.context.settings import PruneRule as PruneRule
from dragoman.context.settings import PruneSettings as PruneSettings
from dragoman.loop.budget import Account as Account
from dragoman.loop.budget import Budget as Budget
from dragoman.loop.budget import Spending as Spending
from dragoman.loop.options import AnswerPolicy as AnswerPolicy
from dragoman.loop.options import ApprovalOptions as ApprovalOptions
from dragoman.loop.options import Connector as Connector
from dragoman.loop.options import FallbackOptions as FallbackOptions
from dragoman.loop.options import Limits as Limits
from dragoman.loop.options import LoopLimits as LoopLimits
from dragoman.loop.options import Sandboxing as Sandboxing
from dragoman.loop.options import SearchMode as SearchMode
from dragoman.loop.options import SessionOptions as SessionOptions
from dragoman.loop.options import ToolCalling as ToolCalling
from dragoman.loop.options import ToolOptions as ToolOptions
from dragoman.loop.options import WebAccess as WebAccess
from dragoman.loop.options import WorkspaceOptions as WorkspaceOptions
from dragoman.providers.pace import RateLimit as RateLimit
from dragoman.providers.retry import RetryPolicy as RetryPolicy
from dragoman.text_tools.options import TextOptions as TextOptions
from dragoman.tools.web import HostRules as HostRules
from dragoman.values.profile import Deployment as Deployment
from dragoman.words import choose_language as choose_language
