"""What the starts of attempts have cost, by the files they left: of workers that ended, that run, and that were lost."""

from __future__ import annotations

import msgspec

from dragoman.fleet.result import AttemptResult, AttemptSpending, read_late_results, read_result, read_spent


class StartCost(msgspec.Struct, frozen=True):
    """Of one start, or of several together."""

    usd: float | None = 0.0
    """None where prices are not known."""
    estimated_usd: float = 0.0
    """The part of it that no service has told."""
    is_least: bool = False
    """Whether it may have been more."""
    requests: int = 0

    def __add__(self, other: StartCost) -> StartCost:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return StartCost(usd, self.estimated_usd + other.estimated_usd, self.is_least or other.is_least, self.requests + other.requests)


def cost_of_start(folder: str) -> StartCost:
    """What the start with this folder has cost by now."""
    result, late = read_result(folder), read_late_results(folder)
    if result is not None and not result.is_stand_in:
        return sum(map(_by_result, late), _by_result(result))  # others have worked in this folder too
    if late:  # a worker that was believed to be lost has come back
        return max(map(_by_result, late), key=lambda each: (each.requests, each.usd or 0.0))
    spent = read_spent(folder)
    return _by_result(result) if result is not None and result.requests > spent.requests else _by_spending(spent)


def _by_result(result: AttemptResult) -> StartCost:
    return StartCost(result.cost_usd, result.estimated_usd, result.is_cost_least, result.requests)


def _by_spending(spent: AttemptSpending) -> StartCost:
    return StartCost(spent.usd, spent.estimated_usd, spent.is_least, spent.requests)
