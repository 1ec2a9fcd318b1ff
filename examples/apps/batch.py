"""Documents into a type, many at once.

Features: every *.txt of a folder becomes an `Invoice`, which is validated, and asked for again
where a check refuses it; 20 at once; each result is appended to a JSON Lines file as soon as it is
there, so that a batch that was interrupted goes on where it stopped; one document that fails does
not stop the others, is reported, and is tried again by the next run; a report of documents, tokens
and USD in all and per document, earlier runs included.

    python batch.py DOCUMENTS RESULTS.jsonl
"""

import asyncio
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import dragoman as dm

AT_ONCE = 20
MODEL = os.environ.get("MODEL", "openai/gpt-4.1")


@dataclass
class Invoice:
    number: str
    customer: str
    lines: list[float]
    total: float


def adds_up(invoice: Invoice) -> None:
    if abs(sum(invoice.lines) - invoice.total) > 0.01:
        raise ValueError(f"the lines add up to {sum(invoice.lines)}, not to {invoice.total}")


async def read_document(document: Path) -> dict[str, object]:
    async with dm.Agent(MODEL, output=Invoice, system="Extract the invoice.") as agent:
        agent.check(adds_up)
        result = await agent.run(document.read_text())
    return {
        "document": document.name,
        "invoice": asdict(result.output),
        "tokens": result.usage.total_tokens,
        "cost_usd": result.cost_usd or 0,
    }


async def run_batch(folder: Path, results: Path) -> int:
    rows = [json.loads(line) for line in results.open()] if results.exists() else []
    done = {row["document"] for row in rows}
    failed: dict[str, str] = {}
    gate = asyncio.Semaphore(AT_ONCE)

    with results.open("a") as file:

        async def work(document: Path) -> None:
            async with gate:
                try:
                    row = await read_document(document)
                except dm.DragomanError as error:
                    failed[document.name] = str(error)
                    return
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)

        async with asyncio.TaskGroup() as group:
            for document in sorted(folder.glob("*.txt")):
                if document.name not in done:
                    group.create_task(work(document))

    for name, error in failed.items():
        print(f"{name}: {error}", file=sys.stderr)
    cost = sum(row["cost_usd"] for row in rows)
    tokens = sum(row["tokens"] for row in rows)
    each = cost / max(len(rows), 1)
    print(f"{len(rows)} documents, {len(failed)} failed, {tokens} tokens")
    print(f"${cost:.4f} in all, ${each:.6f} each")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(run_batch(Path(sys.argv[1]), Path(sys.argv[2]))))
