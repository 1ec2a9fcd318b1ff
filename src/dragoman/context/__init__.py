"""ROOM. What the model sees: the view of the record, pruning, compression and token estimates. No I/O and no clock of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.context.prune import prune_outdated as prune_outdated
    from dragoman.context.replay import replay_cost as replay_cost
    from dragoman.context.settings import PruneRule as PruneRule
    from dragoman.context.simplify import simplify_outdated_results as simplify_outdated_results
    from dragoman.context.tokens import estimate_tokens as estimate_tokens

__all__ = ["PruneRule", "estimate_tokens", "prune_outdated", "replay_cost", "simplify_outdated_results"]

_HOME = {
    "PruneRule": "dragoman.context.settings",
    "estimate_tokens": "dragoman.context.tokens",
    "prune_outdated": "dragoman.context.prune",
    "replay_cost": "dragoman.context.replay",
    "simplify_outdated_results": "dragoman.context.simplify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
