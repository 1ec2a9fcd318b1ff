"""docs/reference/errors.md: every public error with its exit code. `python -m checks.marked errors` writes it.

What a status of HTTP becomes is asked of the function that decides it, and what an exit code means of the help text.
"""

from __future__ import annotations

import inspect
import re

from checks.marked import REFERENCE, Part, one_line, table
from dragoman import builtin_catalog, errors
from dragoman.conversation.help_texts import help_for
from dragoman.providers.faults import error_from_status

STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 498, 500, 502, 503, 504, 529)
"""What services answer with."""


def made() -> str:
    """A row for each error, those below another behind it."""
    rows = [
        (f"{'– ' * depth}`{kind.__name__}`", str(kind.exit_code), _retried(kind), _statuses(kind), _about(kind)) for kind, depth in tree()
    ]
    return table(("error", "exit code", "retried", "HTTP status", ""), rows)


def tree(kind: type[errors.DragomanError] = errors.DragomanError, depth: int = 0) -> list[tuple[type[errors.DragomanError], int]]:
    """The public errors below it, each behind its parent, with its depth."""
    below = [each for each in kind.__subclasses__() if each.__name__ in errors.__all__]
    return [(kind, depth), *(found for each in below for found in tree(each, depth + 1))]


def codes() -> str:
    """What the program exits with."""
    meanings = dict(re.findall(r"\b(\d+)  (\S.*?)(?=  |\n)", help_for("run").partition("exit codes\n")[2].partition("\n\n")[0] + "\n"))
    rows = [
        (code, about, ", ".join(f"`{kind.__name__}`" for kind, _ in tree() if kind.exit_code == int(code)))
        for code, about in meanings.items()
    ]
    return table(("code", "meaning", "errors"), sorted(rows, key=lambda row: int(row[0])))


def _about(kind: type) -> str:
    return one_line(inspect.getdoc(kind) or "")


def _retried(kind: type) -> str:
    return "yes" if getattr(kind, "retryable", False) else ""


def _statuses(kind: type) -> str:
    """Those that become this error where the service says nothing beside the status."""
    deployment = builtin_catalog().deployments["openai"]
    return ", ".join(str(status) for status in STATUSES if type(error_from_status(status, {}, b"", deployment)) is kind)


PARTS = (Part(REFERENCE / "errors.md", "errors", made), Part(REFERENCE / "errors.md", "exit codes", codes))
