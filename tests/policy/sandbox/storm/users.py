"""Who sequences run as: root and another user, where we are root; else we ourselves."""

from __future__ import annotations

import os
from typing import Any

from policy.sandbox.storm.runner import Worker
from reachable import AS_NOBODY, Reachable, find_reachable

USERS = ("root", "nobody") if os.getuid() == 0 else ("user",)


def prefix_for(user: str) -> tuple[str, ...]:
    return AS_NOBODY if user == "nobody" else ()


def reachable_for(user: str) -> Reachable:
    return find_reachable(prefix_for(user))


def worker_as(user: str, level: int, **options: Any) -> Worker:
    return Worker(level, prefix_for(user), reachable_for(user), **options)
