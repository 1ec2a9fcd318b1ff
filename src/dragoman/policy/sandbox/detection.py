"""Finds out which level of the sandbox holds on this machine, by trying each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Literal

import msgspec

from dragoman.policy.sandbox.boundary import Ground
from dragoman.policy.sandbox.bubblewrap import find_bubblewrap, wrap
from dragoman.policy.sandbox.launcher import landlock
from dragoman.policy.sandbox.launcher.order import Boundary, Order
from dragoman.policy.sandbox.launching import Holder, Launcher, OrderTaker
from dragoman.words import say

Level = Literal["auto", 1, 2, 3, "off", "external"]
"""1: own namespaces. 2: bubblewrap. 3: Landlock alone. auto: the first that works here. off: none. external: none of ours, because a
container or a virtual machine is the boundary; that is said by the user and never detected."""
LANDLOCK_NEEDED = 3
"""Older versions do not see a file being emptied."""
SEATBELT = 4
"""The level on macOS."""
EXTERNAL = 5
"""The level where a container or a virtual machine is the boundary."""
KINDS = {1: "namespaces", 2: "bubblewrap", 3: "landlock"}
_TRIAL = ("/bin/sh", "-c", ":")
_SHOWN = 3


class Detected(msgspec.Struct, frozen=True):
    """Which level holds, and why those before it do not."""

    level: int
    """0: none; see also SEATBELT and EXTERNAL."""
    reasons: tuple[str, ...] = ()
    can_have_gate: bool = True
    """False: the system does not let us into the network that bubblewrap makes. Then each command has one of its own, and no gate."""

    @property
    def has_own_network(self) -> bool:
        """Whether the commands of a session have a network of their own, in which gates can be made and servers reached."""
        return self.level in (1, 2) and self.can_have_gate

    @property
    def is_external(self) -> bool:
        """Whether the boundary is not ours, but a container or a virtual machine that the user has named as one."""
        return self.level == EXTERNAL

    @property
    def name(self) -> str:
        """As it is written in configuration, where it can be."""
        return {0: "off", SEATBELT: "macos", EXTERNAL: "external"}.get(self.level, str(self.level))

    @property
    def words(self) -> str:
        """One line: the level, and what it does not hold."""
        level = say(f"policy.sandbox_level_{self.level}")
        if not self.can_have_gate:
            level = say("policy.sandbox_without_gate", words=level)
        return say("policy.sandbox_because", level=level, reasons=self.reasons) if self.reasons else level


def detect(launcher: Launcher, holder_at: Callable[[int], Holder], ground: Ground, wanted: Level = "auto") -> Detected:
    """Starts a trial command at each level, in order. `holder_at`: who holds the session's network at a level. Blocks for some 100 ms."""
    if wanted == "off":
        return Detected(0, (say("policy.sandbox_off"),))
    if wanted == "external":
        return Detected(EXTERNAL)
    if sys.platform != "linux":
        return Detected(0, (say("policy.sandbox_not_linux"),))
    if "/" in ground.writable:
        return Detected(0, (say("policy.sandbox_root"),))
    reasons: list[str] = []
    for level in (1, 2, 3) if wanted == "auto" else (wanted,):
        reason = _try_level(level, holder_at(level) if level in (1, 2) else launcher, ground, own_network=False)
        if not reason:
            return Detected(level, tuple(reasons))
        # Systems that let only chosen programs make a network may not let us into it.
        if level == 2 and not _try_level(level, launcher, ground, own_network=True):
            return Detected(level, tuple(reasons), can_have_gate=False)
        reasons.append(say("policy.sandbox_reason", level=level, reason=reason))
    return Detected(0, tuple(reasons))


def make_holder(launcher: Launcher, level: int) -> Holder:
    """Of a session's network at a level; nothing is started yet."""
    return Holder(launcher, find_bubblewrap() if level == 2 else "")


def make_order(level: int, argv: tuple[str, ...], env: dict[str, str], directory: str, boundary: Boundary, *,
               unix_sockets: bool = False, proxies: dict[str, str] | None = None, own_network: bool = False) -> Order:  # fmt: skip
    """`own_network`: of the command's own, at level 2, where it cannot share the session's."""
    if level == 2:
        argv = wrap(find_bubblewrap(), argv, directory, boundary, own_network=own_network)
        directory = "/"
    return Order(argv, env, directory, KINDS[level], boundary, unix_sockets=unix_sockets, proxies=proxies)


def _try_level(level: int, starter: OrderTaker, ground: Ground, *, own_network: bool) -> str:
    """Why it does not hold; empty if it does."""
    if level == 2 and not find_bubblewrap():
        return say("policy.sandbox_no_bubblewrap")
    if level == 3 and landlock.version() < LANDLOCK_NEEDED:
        return say("policy.sandbox_no_landlock", version=landlock.version(), needed=LANDLOCK_NEEDED)
    if exposed := ground.find_exposed(can_except=level != 3):
        return say("policy.sandbox_exposed", paths=", ".join(exposed[:_SHOWN]))
    try:
        boundary = ground.draw_for_landlock() if level == 3 else ground.draw()
        return starter.try_out(make_order(level, _TRIAL, {"PATH": os.defpath}, "/", boundary, own_network=own_network))
    except OSError as error:
        return str(error.strerror or error)
