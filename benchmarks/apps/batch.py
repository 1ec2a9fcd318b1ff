"""Documents into a type, many at once (pydantic-ai).

Features: every *.txt of a folder becomes an `Invoice`, which is validated, and asked for again
where a check refuses it; 20 at once; each result is appended to a JSON Lines file as soon as it is
there, so that a batch that was interrupted goes on where it stopped; one document that fails does
not stop the others, is reported, and is tried again by the next run; a report of documents, tokens
and USD in all and per document, earlier runs included.

    python batch.py DOCUMENTS RESULTS.jsonl
"""

import asyncio
import json
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunError, ModelRetry

AT_ONCE = 20


class Invoice(BaseModel):
    number: str
    customer: str
    lines: list[float]
    total: float


agent = Agent("openai-chat:gpt-4.1", output_type=Invoice, instructions="Extract the invoice.")


@agent.output_validator
def adds_up(invoice: Invoice) -> Invoice:
    if abs(sum(invoice.lines) - invoice.total) > 0.01:
        raise ModelRetry(f"the lines add up to {sum(invoice.lines)}, not to {invoice.total}")
    return invoice


async def read_document(document: Path) -> dict[str, object]:
    result = await agent.run(document.read_text())
    return {
        "document": document.name,
        "invoice": result.output.model_dump(),
        "tokens": result.usage.total_tokens,
        "cost_usd": float(result.usage.cost or 0),
    }


async def run_batch(folder: Path, results: Path) -> int:
    rows = (
        [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    )
    done = {row["document"] for row in rows}
    waiting = [path for path in sorted(folder.glob("*.txt")) if path.name not in done]
    failed: dict[str, str] = {}
    gate = asyncio.Semaphore(AT_ONCE)

    with results.open("a") as file:

        async def work(document: Path) -> None:
            async with gate:
                try:
                    row = await read_document(document)
                except AgentRunError as error:
                    failed[document.name] = str(error)
                    return
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()

        async with asyncio.TaskGroup() as group:
            for document in waiting:
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
