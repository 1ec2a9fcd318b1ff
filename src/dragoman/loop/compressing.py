"""A compression that is asked for, between two runs."""

from __future__ import annotations

from dragoman.loop.compression import Compression
from dragoman.loop.configuring import configure
from dragoman.loop.harness import Harness
from dragoman.loop.quiet_work import quiet_work


async def compress_now(harness: Harness, focus: str, *, force: bool = True) -> Compression:
    """Have the older part of the conversation summed up, however short it is. Without `force`: only where the request is too long."""
    session, history = harness.session, harness.session.history
    harness.require_none_pending()  # a cut behind them would answer them
    async with quiet_work(session):
        if history.view.messages:
            history.close_interrupted()
        if not history.view.model:
            configure(harness)
        done = await harness.upkeep.compress(focus, force=force)
        await history.sync()
        return done
