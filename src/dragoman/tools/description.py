"""Tool descriptions for the model: prose files beside the code."""

from __future__ import annotations

import os
from functools import cache

_HERE = os.path.join(os.path.dirname(__file__), "descriptions")


@cache
def load_description(name: str) -> str:
    """The description of the built-in tool called `name`."""
    with open(os.path.join(_HERE, f"{name}.md"), encoding="utf-8") as file:
        return file.read().strip()
