"""Who sequences run as: root and another user, where we are root; else we ourselves."""

from __future__ import annotations

import os
from typing import Any

from policy.sandbox.storm.runner import Worker
from policy.sandbox.test_escapes import NOBODY, interpreter_for, module_folders

USERS = ("root", "nobody") if os.getuid() == 0 else ("user",)


def prefix_for(user: str) -> list[str]:
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if user == "nobody" else []


def python_for(user: str) -> str:
    return os.path.realpath(interpreter_for(tuple(prefix_for(user))))


def worker_as(user: str, level: int, **options: Any) -> Worker:
    return Worker(level, prefix_for(user), python_for(user), module_folders(), **options)
