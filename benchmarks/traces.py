"""What traces cost: CPU for each turn of an agent, off, on, and with what was said. In this process, with a model that is a script.

`python -m benchmarks.traces` prints the least of many figures with traces off: to compare two trees, of which one may have none.
"""

from __future__ import annotations

import asyncio
import time
from statistics import median

import dragoman as dm
from benchmarks.table import Table

TURNS = 200
SCRIPT = "script: end=repeat\n---\ntext piece=8: All is well, and the answer goes on for a little while, word by word, to the end of it."


def run(quick: bool) -> list[Table]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    cases = {
        "off": dm.traces.disable,
        "on, no SDK": dm.traces.enable,
        "on": lambda: dm.traces.enable(provider),
        "on, with content": lambda: dm.traces.enable(provider, capture_content=True),
    }
    taken: dict[str, list[float]] = {case: [] for case in cases}
    for _ in range(3 if quick else 15):
        for case, switch in cases.items():
            switch()
            taken[case].append(cpu_us_per_turn())
    dm.traces.disable()
    table = Table("What traces cost", ["traces", "CPU µs/turn", "more than off"])
    off = median(taken["off"])
    table.rows = [[case, median(taken[case]), median(taken[case]) - off] for case in cases]
    table.notes = [f"A turn is a prompt and an answer of 13 pieces, in a conversation of up to {TURNS} of them; the model is a script."]
    return [table]


def cpu_us_per_turn(turns: int = TURNS) -> float:
    async def ask() -> float:
        async with dm.Agent(dm.testing.ScriptedProvider(SCRIPT)) as agent:
            began = time.process_time()
            for _ in range(turns):
                await agent.run("How is it?")
            return (time.process_time() - began) / turns * 1e6

    return asyncio.run(ask())


if __name__ == "__main__":
    print(round(min(cpu_us_per_turn() for _ in range(25))))
