"""Token usage and cost of a request.

The invariant: fresh + cache read + cache write = input. It holds by construction, because input is never stored.
"""

from __future__ import annotations

import msgspec

MOST_TOKENS = 10**15
"""More, or less than 0, is a mistake of the service, or of whoever wrote the log. 400 digits cannot be multiplied by a price."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one response, or of several added up."""

    fresh_tokens: int = 0
    """Input that was neither read from nor written to a cache."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    """Everything the model wrote, thinking included."""
    thought_tokens: int = 0
    """The part of output_tokens that was thinking, if the service reports it."""
    cache_write_1h_tokens: int = 0
    """The part of cache_write_tokens kept for an hour, which some services price differently."""
    incomplete: int = 0
    """How many of the answers counted here ended before the service had told everything: cancelled, cut or failed ones, and those of a
    service that tells nothing. Unless it is 0, each count is the least there can have been, and a count of 0 is unknown."""

    def __post_init__(self) -> None:
        counts = msgspec.structs.astuple(self)
        if min(counts) < 0 or max(counts) > MOST_TOKENS:
            for name, count in zip(self.__struct_fields__, counts, strict=True):
                msgspec.structs.force_setattr(self, name, max(min(count, MOST_TOKENS), 0))

    @property
    def input_tokens(self) -> int:
        return self.fresh_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def cached_percent(self) -> int:
        """How much of the input was read from a cache, rounded: the same wherever it is said."""
        return round(100 * self.cache_read_tokens / self.input_tokens) if self.cache_read_tokens else 0

    @property
    def is_unknown(self) -> bool:
        """Whether nothing at all was told of what was used."""
        return bool(self.incomplete) and not self.total_tokens

    def told(self, count: int) -> int | None:
        """One of the counts, or None where it is unknown."""
        return None if self.incomplete and not count else count

    def as_told(self) -> dict[str, int | None]:
        """Every count by its name, for JSON: null where it is unknown."""
        counts = {name: self.told(getattr(self, name)) for name in self.__struct_fields__}
        return {"input_tokens": self.told(self.input_tokens)} | counts | {"incomplete": self.incomplete}

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    @classmethod
    def from_total(cls, input_tokens: int, *, cache_read: int = 0, cache_write: int = 0, output: int = 0, thought: int = 0) -> Usage:
        """Read services that report the whole input and, inside it, what came from the cache.

        A service that reports more cached tokens than input is believed about the cache: fresh is never negative.
        """
        read, write = max(cache_read, 0), max(cache_write, 0)
        return cls(max(input_tokens - read - write, 0), read, write, max(output, 0), min(max(thought, 0), max(output, 0)))


def usage_told(usage: Usage | None) -> Usage:
    """The usage of one answer. No request has no input, so where none is counted the service did not tell it."""
    if usage is None:
        return Usage(incomplete=1)
    if usage.incomplete or usage.input_tokens:
        return usage
    return msgspec.structs.replace(usage, incomplete=1)


class Prices(msgspec.Struct, frozen=True, omit_defaults=True):
    """US dollars per million tokens, and the date of the figures."""

    input: float
    output: float
    cache_read: float | None = None
    """None: the service has no cache price, so a cached token costs as much as a fresh one."""
    cache_write: float | None = None
    cache_write_1h: float | None = None
    above_tokens: int = 0
    """If the service charges more for long inputs: the threshold ..."""
    above: Prices | None = None
    """... and the prices for the whole of a request above it."""
    taken: str = ""
    """ISO date on which these figures were read."""

    def cost_usd(self, usage: Usage) -> float:
        if self.above is not None and usage.input_tokens > self.above_tokens:
            return self.above.cost_usd(usage)
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        write_1h = write if self.cache_write_1h is None else self.cache_write_1h
        short_lived = usage.cache_write_tokens - usage.cache_write_1h_tokens
        spent = usage.fresh_tokens * self.input + usage.cache_read_tokens * read + usage.output_tokens * self.output
        return (spent + short_lived * write + usage.cache_write_1h_tokens * write_1h) / 1_000_000
