"""A research agent in the terminal.

Features: dependencies with a type, given to each run and reached from tools; a tool that returns an
image, which the model sees; progress from inside a tool, printed as it comes; a sub-agent as a
tool, with the same dependencies, its usage added up; publishing needs approval, and the person may
edit the arguments before it runs, or say why not; the answer is printed as it streams, and at the
end what all of it used and cost, sub-agent included.

    python research.py ARCHIVE QUESTION
"""

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import dragoman as dm
from dragoman.events import ToolCallUpdated

MODEL = os.environ.get("MODEL", "openai/gpt-4.1")
READER = os.environ.get("MODEL", "openai/gpt-4.1-mini")


@dataclass
class Archive:
    folder: Path
    published: dict[str, str] = field(default_factory=dict[str, str])


@dm.tool(read_only=True)
def read_document(context: dm.ToolContext[Archive], name: str) -> str:
    """The text of a document."""
    return (context.deps.folder / name).read_text()


@dm.tool(read_only=True)
def search(context: dm.ToolContext[Archive], word: str) -> list[str]:
    """The names of the documents with this word."""
    documents = sorted(context.deps.folder.glob("*.txt"))
    found: list[str] = []
    for done, document in enumerate(documents, 1):
        if word in document.read_text():
            found.append(document.name)
        context.progress(done=done, total=len(documents))
    return found


@dm.tool(read_only=True)
def look_at(context: dm.ToolContext[Archive], name: str) -> bytes:
    """Look at an image of the archive."""
    return (context.deps.folder / name).read_bytes()


@dm.tool(kind="edit")
def publish(context: dm.ToolContext[Archive], title: str, text: str) -> str:
    """Publish a finding."""
    context.deps.published[title] = text
    return f"{title} is published"


def ask_person(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow | dm.Deny:
    print(f"\n? {call.name} {call.arguments}")
    answer = input("yes, other arguments as JSON, or why not: ")
    if answer == "yes" or answer.startswith("{"):
        return dm.Allow(answer.removeprefix("yes"))
    return dm.Deny(answer)


reader = dm.Agent(
    READER,
    system="Read the document that you are asked about, and answer in one sentence.",
    tools=[read_document],
)
about = "Have a document read by somebody else: name it in the question."
researcher = dm.Agent[Archive](
    MODEL,
    system="Answer from the archive. Publish what you found.",
    tools=[search, look_at, reader.as_tool("ask_reader", about), publish],
    approval=dm.ApprovalOptions(ask=ask_person),
)


async def research(archive: Archive, question: str) -> None:
    run = researcher.run(question, deps=archive)
    async for event in run:
        match event:
            case dm.TextDelta(text=text):
                print(text, end="", flush=True)
            case ToolCallUpdated(done=int(done), total=total):
                print(f"[{done}/{total}]")
            case _:
                pass
    result = await run
    print(f"\n[{result.requests} requests, {result.usage.total_tokens} tokens, ${result.cost_usd}]")


if __name__ == "__main__":
    archive = Archive(Path(sys.argv[1]))
    asyncio.run(research(archive, sys.argv[2]))
    for title, text in archive.published.items():
        print(f"published: {title}: {text}")
