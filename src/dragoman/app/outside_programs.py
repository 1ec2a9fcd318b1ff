"""Starts what the user has configured to run by itself: hooks and the commands that declare tools. Outside the sandbox, but by its
launcher, so that nothing of them outlives the call or us, whatever they did to get away."""

from __future__ import annotations

import sys

from dragoman.values.commands import Launch


def launch_outside() -> Launch | None:
    """None where there is no launcher: then processes are found by their group and their environment."""
    if sys.platform != "linux" or not sys.executable or getattr(sys, "frozen", False):
        return None
    from dragoman.policy.sandbox.sandbox import Sandbox

    return Sandbox((), level="off")
