"""GROUND. Modules that know nothing about agents: JSON, text, files, locks, processes, concurrency limits."""

from functools import cache
from typing import Any, ForwardRef


def late_types(module: str, *names: str) -> tuple[Any, ...]:
    """Types for annotations alone: their module is imported when somebody asks for them by `help`, `inspect` or `get_type_hints`.

    It is called in the branch that type checkers pass over (`if TYPE_CHECKING: … else: …`), for the types of public signatures.
    """
    return tuple(_late_type(module, name) for name in names)


@cache  # reading the expression takes longer than all the rest
def _late_type(module: str, name: str) -> ForwardRef:
    return ForwardRef(f"__import__({module!r}, fromlist=[{name!r}]).{name}")
