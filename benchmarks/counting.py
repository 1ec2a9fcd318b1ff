"""How many tokens a request has: by an estimate that is the same whatever tree is measured, and by a tokenizer if there is one.

The tokenizer is tiktoken's `o200k_base`. Its data has to be in `TIKTOKEN_CACHE_DIR` (the package litellm carries it): nothing is fetched.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

CHARS_PER_TOKEN = 3.9


class Tokens(NamedTuple):
    estimated: float
    counted: int | None
    """None: there is no tokenizer here."""

    def __add__(self, other: object) -> Tokens:
        assert isinstance(other, Tokens)
        counted = None if self.counted is None or other.counted is None else self.counted + other.counted
        return Tokens(self.estimated + other.estimated, counted)


NOTHING = Tokens(0.0, 0)


@cache
def tokens_of(text: str) -> Tokens:
    encode = _encoder()
    return Tokens(len(text) / CHARS_PER_TOKEN, encode(text) if encode is not None else None)


def request_tokens(body: dict[str, Any]) -> Tokens:
    """Of every text in it: the names of fields, which models do not see, are left out; tools count as they stand."""
    found = NOTHING
    for text in _texts(body):
        found += tokens_of(text)
    return found


def _texts(value: Any, key: str = "") -> list[str]:
    match value:
        case str():
            return [value]
        case dict() | list() if key == "tools":
            return [json.dumps(value, ensure_ascii=False)]
        case dict():
            return [text for name, each in value.items() for text in _texts(each, name)]
        case list():
            return [text for each in value for text in _texts(each)]
        case _:
            return []


@lru_cache(maxsize=1)
def _encoder() -> Callable[[str], int] | None:
    if not os.environ.get("TIKTOKEN_CACHE_DIR"):
        return None
    try:
        import tiktoken  # type: ignore[import-not-found]
    except ImportError:
        return None
    encoding = tiktoken.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))
