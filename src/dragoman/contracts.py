"""The contracts between an agent and what can be put in its place: a provider, a transport, a tool, a store, a journal."""

from dragoman.values.calls import Allow as Allow
from dragoman.values.calls import Ask as Ask
from dragoman.values.calls import AskUser as AskUser
from dragoman.values.calls import Deny as Deny
from dragoman.values.calls import Intent as Intent
from dragoman.values.calls import Later as Later
from dragoman.values.calls import PendingCall as PendingCall
from dragoman.values.calls import RunAtWork as RunAtWork
from dragoman.values.calls import Show as Show
from dragoman.values.calls import Tool as Tool
from dragoman.values.calls import ToolOutput as ToolOutput
from dragoman.values.commands import CommandState as CommandState
from dragoman.values.contracts import BlobStore as BlobStore
from dragoman.values.contracts import HttpRequest as HttpRequest
from dragoman.values.contracts import HttpResponse as HttpResponse
from dragoman.values.contracts import Provider as Provider
from dragoman.values.contracts import Transport as Transport
from dragoman.values.messages import Media as Media
from dragoman.values.record import Journal as Journal
from dragoman.values.wrapping import WrappingProvider as WrappingProvider
