"""A research agent in the terminal (pydantic-ai).

Features: dependencies with a type, given to each run and reached from tools; a tool that returns an
image, which the model sees; progress from inside a tool, printed as it comes; a sub-agent as a
tool, with the same dependencies, its usage added up; publishing needs approval, and the person may
edit the arguments before it runs, or say why not; the answer is printed as it streams, and at the
end what all of it used and cost, sub-agent included.

    python research.py ARCHIVE QUESTION
"""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    BinaryImage,
    CustomEvent,
    DeferredToolRequests,
    DeferredToolResults,
    PartDeltaEvent,
    PartStartEvent,
    RunContext,
    TextPart,
    TextPartDelta,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls


@dataclass
class Archive:
    folder: Path
    published: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Progress(CustomEvent):
    done: int
    total: int


def ask_person(_: RunContext[Archive], requests: DeferredToolRequests) -> DeferredToolResults:
    decisions: dict[str, ToolApproved | ToolDenied] = {}
    for call in requests.approvals:
        print(f"\n? {call.tool_name} {call.args_as_json_str()}")
        answer = input("yes, other arguments as JSON, or why not: ")
        if answer == "yes":
            decisions[call.tool_call_id] = ToolApproved()
        elif answer.startswith("{"):
            decisions[call.tool_call_id] = ToolApproved(override_args=json.loads(answer))
        else:
            decisions[call.tool_call_id] = ToolDenied(answer)
    return requests.build_results(approvals=decisions)


reader = Agent(
    "openai-chat:gpt-4.1-mini",
    deps_type=Archive,
    instructions="Read the document that you are asked about, and answer in one sentence.",
)
researcher = Agent(
    "openai-chat:gpt-4.1",
    deps_type=Archive,
    instructions="Answer from the archive. Publish what you found.",
    capabilities=[HandleDeferredToolCalls(handler=ask_person)],
)


@reader.tool
def read_document(ctx: RunContext[Archive], name: str) -> str:
    """The text of a document."""
    return (ctx.deps.folder / name).read_text()


@researcher.tool
async def search(ctx: RunContext[Archive], word: str) -> list[str]:
    """The names of the documents with this word."""
    documents = sorted(ctx.deps.folder.glob("*.txt"))
    found: list[str] = []
    for done, document in enumerate(documents, 1):
        if word in document.read_text():
            found.append(document.name)
        await ctx.emit(Progress(done=done, total=len(documents)))
    return found


@researcher.tool
def look_at(ctx: RunContext[Archive], name: str) -> BinaryImage:
    """Look at an image of the archive."""
    return BinaryImage((ctx.deps.folder / name).read_bytes(), media_type="image/png")


@researcher.tool
async def ask_reader(ctx: RunContext[Archive], question: str) -> str:
    """Have a document read by somebody else: name it in the question."""
    return (await reader.run(question, deps=ctx.deps, usage=ctx.usage)).output


@researcher.tool(requires_approval=True)
def publish(ctx: RunContext[Archive], title: str, text: str) -> str:
    """Publish a finding."""
    ctx.deps.published[title] = text
    return f"{title} is published"


async def research(archive: Archive, question: str) -> None:
    async with researcher.run_stream_events(question, deps=archive) as events:
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart(content=text)):
                    print(text, end="", flush=True)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    print(text, end="", flush=True)
                case Progress(done=done, total=total):
                    print(f"[{done}/{total}]")
                case AgentRunResultEvent(result=result):
                    usage = result.usage
                    print(
                        f"\n[{usage.requests} requests, {usage.total_tokens} tokens, ${usage.cost}]"
                    )
                case _:
                    pass


if __name__ == "__main__":
    archive = Archive(Path(sys.argv[1]))
    asyncio.run(research(archive, sys.argv[2]))
    for title, text in archive.published.items():
        print(f"published: {title}: {text}")
