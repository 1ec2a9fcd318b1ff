"""The contracts between an agent and what can be put in its place: a provider, a transport, a tool, a store, a journal."""

from dragoman.values.contracts import Allow as Allow
from dragoman.values.contracts import Ask as Ask
from dragoman.values.contracts import AskUser as AskUser
from dragoman.values.contracts import BlobStore as BlobStore
from dragoman.values.contracts import CommandState as CommandState
from dragoman.values.contracts import Deny as Deny
from dragoman.values.contracts import HttpRequest as HttpRequest
from dragoman.values.contracts import HttpResponse as HttpResponse
from dragoman.values.contracts import Intent as Intent
from dragoman.values.contracts import Journal as Journal
from dragoman.values.contracts import Later as Later
from dragoman.values.contracts import Media as Media
from dragoman.values.contracts import PendingCall as PendingCall
from dragoman.values.contracts import Provider as Provider
from dragoman.values.contracts import RunAtWork as RunAtWork
from dragoman.values.contracts import Show as Show
from dragoman.values.contracts import Tool as Tool
from dragoman.values.contracts import ToolOutput as ToolOutput
from dragoman.values.contracts import Transport as Transport
from dragoman.values.wrapping import WrappingProvider as WrappingProvider
