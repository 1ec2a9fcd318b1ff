"""Hooks: what can be called at fixed points of a run (`Agent(hooks=Hooks(before_request=…))`)."""

from dragoman.values.hooks import Go as Go
from dragoman.values.hooks import Hooks as Hooks
from dragoman.values.hooks import RunEnd as RunEnd
from dragoman.values.hooks import Step as Step
