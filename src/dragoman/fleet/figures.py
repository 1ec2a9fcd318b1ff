"""How the figures of a fleet are written."""

from __future__ import annotations

from dragoman.fleet.result import State
from dragoman.words import say

LEAST_SHOWN_USD = 0.00005
"""Less is shown as nothing."""
_WORDS: dict[State, str] = {
    "passed": "fleet.outcome_passed",
    "failed": "fleet.outcome_failed",
    "agent limit": "fleet.outcome_agent_limit",
    "infrastructure": "fleet.outcome_infrastructure",
    "refused input": "fleet.outcome_refused_input",
    "cancelled": "fleet.outcome_cancelled",
    "running": "fleet.state_running",
    "waiting": "fleet.state_waiting",
}


def outcome_word(name: State) -> str:
    return say(_WORDS[name])


def dollars(usd: float | None) -> str:
    return "$?" if usd is None else f"${usd:.4f}" if usd < 1 else f"${usd:,.2f}"


def cost_text(usd: float | None, *, is_least: bool) -> str:
    """The same, and whether it may be more."""
    return f"{say('fleet.at_least') if is_least else ''}{dollars(usd)}"


def duration(seconds: float) -> str:
    """`4.2 s`, `3:07`, `2:03:07`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
