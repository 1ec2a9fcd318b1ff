"""Hooks: what can be called at fixed points of a run (`Agent(hooks=Hooks(before_request=…))`)."""

from dragoman.loop.at_work import AtWork as AtWork
from dragoman.loop.at_work import at_work as at_work
from dragoman.loop.at_work import stop_run as stop_run
from dragoman.values.hooks import Compressing as Compressing
from dragoman.values.hooks import Go as Go
from dragoman.values.hooks import Hooks as Hooks
from dragoman.values.hooks import Proceed as Proceed
from dragoman.values.hooks import RunEnd as RunEnd
from dragoman.values.hooks import Step as Step
from dragoman.values.hooks import SubagentEnd as SubagentEnd
from dragoman.values.hooks import SubagentStart as SubagentStart
