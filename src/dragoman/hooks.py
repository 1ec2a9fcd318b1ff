"""Hooks: what can be called at fixed points of a run (`Agent(hooks=Hooks(before_request=…))`)."""

from dragoman.loop.at_work import AtWork, at_work, stop_run
from dragoman.values.hooks import Compressing, Go, Hooks, Proceed, RunEnd, Step, SubagentEnd, SubagentStart

__all__ = ["AtWork", "Compressing", "Go", "Hooks", "Proceed", "RunEnd", "Step", "SubagentEnd", "SubagentStart", "at_work", "stop_run"]
