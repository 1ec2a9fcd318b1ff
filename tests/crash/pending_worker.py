"""One process of a conversation with calls that wait: `python -m crash.pending_worker FOLDER URL MODEL WORK`.

`begin` runs a prompt, says which calls wait, and stays until it is killed. `decide`, `start` and `tool` go on with both calls allowed, and
kill their own process: once the decisions are on disk, once the first call has begun, and once it has taken effect. `finish` goes on to the
end, allowing what is not decided. `straight` does all of it in one go, with somebody there who allows everything.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import dragoman as dm
from dragoman.contracts import Later
from dragoman.testing.network import no_network


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it lives")


def say(words: str) -> None:
    print(words, flush=True)


async def main(folder: Path, url: str, model: str, work: str) -> None:
    @dm.tool(kind="execute")
    def pay(to: str) -> str:
        """Pay somebody."""
        if work == "start":
            die()
        with open(folder / "paid", "a", encoding="utf-8") as paid:
            paid.write(f"{to}\n")
        if work == "tool":
            die()
        return f"paid {to}"

    @dm.tool(read_only=True)
    def balance() -> str:
        """What is left."""
        return "120"

    async def ask(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow | Later:
        return dm.Allow() if work == "straight" else Later()

    provider = dm.connect(model, key="key-for-tests", base_url=url)
    session = dm.SessionOptions(folder / "sessions", key="user-42")
    async with dm.Agent(provider, system="Be brief.", tools=[pay, balance], approval=dm.ApprovalOptions(ask=ask), session=session) as agent:
        if work in ("begin", "straight"):
            result = await agent.run("Pay the harbour dues, then the pilot.")
            say(" ".join(call.id for call in result.pending) or result.text)
            if work == "begin":
                await asyncio.Event().wait()
            return
        if work == "decide":
            agent.approvals.apply = lambda call, answer, shown="": die()  # type: ignore[method-assign]
        result = await agent.resume({call.id: dm.Allow() for call in agent.pending if not call.is_decided})
        say(result.text)


if __name__ == "__main__":
    with no_network():
        asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
