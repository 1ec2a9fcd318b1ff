"""Finds out which level of the sandbox holds on this machine, by trying each."""

from __future__ import annotations

import os
import sys
from typing import Literal

import msgspec

from dragoman.base.words import say
from dragoman.policy.sandbox.boundary import Ground
from dragoman.policy.sandbox.bubblewrap import find_bubblewrap, wrap
from dragoman.policy.sandbox.launcher import landlock
from dragoman.policy.sandbox.launcher.order import Boundary, Order
from dragoman.policy.sandbox.launching import Launcher

Level = Literal["auto", 1, 2, 3, "off"]
"""1: own namespaces. 2: bubblewrap. 3: Landlock alone. auto: the first that works here. off: none."""
LANDLOCK_NEEDED = 3
"""Older versions do not see a file being emptied."""
SEATBELT = 4
"""The level on macOS."""
KINDS = {1: "namespaces", 2: "bubblewrap", 3: "landlock"}
_TRIAL = ("/bin/sh", "-c", ":")
_TRIAL_PORT = 8118
_SHOWN = 3


class Detected(msgspec.Struct, frozen=True):
    """Which level holds, and why those before it do not."""

    level: int
    """0: none."""
    reasons: tuple[str, ...] = ()
    can_have_gate: bool = True
    """False: the system does not let us into the network that bubblewrap makes."""

    @property
    def has_own_network(self) -> bool:
        """Whether commands have a network of their own, in which a gate can be made."""
        return self.level in (1, 2) and self.can_have_gate

    @property
    def words(self) -> str:
        """One line: the level, and what it does not hold."""
        level = say(f"policy.sandbox_level_{self.level}")
        if not self.can_have_gate:
            level = say("policy.sandbox_without_gate", words=level)
        return say("policy.sandbox_because", level=level, reasons=self.reasons) if self.reasons else level


def detect(launcher: Launcher, ground: Ground, wanted: Level = "auto") -> Detected:
    """Starts a trial command at each level, in order. Blocks for some 100 ms."""
    if wanted == "off":
        return Detected(0, (say("policy.sandbox_off"),))
    if sys.platform != "linux":
        return Detected(0, (say("policy.sandbox_not_linux"),))
    if "/" in ground.writable:
        return Detected(0, (say("policy.sandbox_root"),))
    reasons: list[str] = []
    for level in (1, 2, 3) if wanted == "auto" else (wanted,):
        reason = _try_level(level, launcher, ground)
        if not reason:
            return Detected(level, tuple(reasons), can_have_gate=level != 2 or _has_gate(launcher, ground))
        reasons.append(say("policy.sandbox_reason", level=level, reason=reason))
    return Detected(0, tuple(reasons))


def make_order(level: int, argv: tuple[str, ...], env: dict[str, str], directory: str, boundary: Boundary, *,
               unix_sockets: bool = False, gate_port: int = 0) -> Order:  # fmt: skip
    if level == 3:  # no network of its own
        gate_port = 0
    if level == 2:
        argv = wrap(find_bubblewrap(), argv, directory, boundary, waits=bool(gate_port))
        directory = "/"
    return Order(argv, env, directory, KINDS[level], boundary, unix_sockets=unix_sockets, gate_port=gate_port)


def _has_gate(launcher: Launcher, ground: Ground) -> bool:
    """Whether a gate can be made in a network of bubblewrap's: systems that let only chosen programs make one may not let us in."""
    return launcher.try_gate(make_order(2, _TRIAL, {"PATH": os.defpath}, "/", ground.draw(), gate_port=_TRIAL_PORT))


def _try_level(level: int, launcher: Launcher, ground: Ground) -> str:
    """Why it does not hold; empty if it does."""
    if level == 2 and not find_bubblewrap():
        return say("policy.sandbox_no_bubblewrap")
    if level == 3 and landlock.version() < LANDLOCK_NEEDED:
        return say("policy.sandbox_no_landlock", version=landlock.version(), needed=LANDLOCK_NEEDED)
    if exposed := ground.find_exposed(can_except=level != 3):
        return say("policy.sandbox_exposed", paths=", ".join(exposed[:_SHOWN]))
    try:
        boundary = ground.draw_for_landlock() if level == 3 else ground.draw()
        return launcher.try_out(make_order(level, _TRIAL, {"PATH": os.defpath}, "/", boundary))
    except OSError as error:
        return str(error.strerror or error)
