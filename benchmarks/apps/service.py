"""A harbour's assistant as a web service (pydantic-ai, Starlette).

Features: the answer streams as server-sent events (text, calls, results, calls that wait for
approval, the end with its cost); one session per user, kept on disk, which survives a restart and
holds what a cancelled run did; a run under way is refused a second one (409); an endpoint cancels
the run; booking needs approval, given by a second endpoint, also after a restart, which streams
the rest; a budget in USD and in requests for each user's session, told as an event when exceeded,
and what was spent by runs that were cancelled or exceeded it counts.

    POST /users/{user}/messages   {"prompt": "..."}
    POST /users/{user}/approvals  {"<call id>": true, "<call id>": "why not"}
    POST /users/{user}/cancel
"""

import json
import os
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    CancellationToken,
    Conversation,
    ConversationTypeAdapter,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    RunCancelled,
    TextPart,
    TextPartDelta,
    ToolDenied,
    UsageLimitExceeded,
    UsageLimits,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

SESSIONS = Path(os.environ.get("SESSIONS", "sessions"))
BUDGET = UsageLimits(cost_limit=Decimal("0.50"), request_limit=20)

agent = Agent(
    "openai-chat:gpt-4.1",
    instructions="You find and book berths for guests of the harbour.",
    output_type=[str, DeferredToolRequests],
)
running: dict[str, CancellationToken] = {}


@agent.tool_plain
def free_berths(harbour: str) -> list[int]:
    """The numbers of the berths that are free."""
    return [3, 7]


@agent.tool_plain(requires_approval=True)
def book_berth(harbour: str, number: int) -> str:
    """Book a berth."""
    return f"berth {number} in {harbour} is booked"


def load(user: str) -> Conversation:
    path = SESSIONS / f"{user}.json"
    if not path.exists():
        return Conversation()
    return ConversationTypeAdapter.validate_json(path.read_bytes())


def save(user: str, conversation: Conversation) -> None:
    SESSIONS.mkdir(exist_ok=True)
    new = SESSIONS / f"{user}.json.new"
    new.write_bytes(ConversationTypeAdapter.dump_json(conversation))
    new.replace(SESSIONS / f"{user}.json")


def sse(event: str, data: object) -> str:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


def start(user: str, prompt: str | None, results: DeferredToolResults | None = None) -> Response:
    if user in running:
        return JSONResponse({"error": "a run is under way"}, 409)
    running[user] = CancellationToken()
    return StreamingResponse(stream(user, prompt, results), media_type="text/event-stream")


async def stream(
    user: str, prompt: str | None, results: DeferredToolResults | None
) -> AsyncIterator[str]:
    conversation = load(user)
    try:
        async with agent.run_stream_events(
            prompt,
            conversation=conversation,
            deferred_tool_results=results,
            usage_limits=BUDGET,
            cancellation_token=running[user],
        ) as events:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(content=text)) if text:
                        yield sse("text", text)
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                        yield sse("text", text)
                    case FunctionToolCallEvent(part=call):
                        yield sse("call", {"id": call.tool_call_id, "name": call.tool_name})
                    case FunctionToolResultEvent(part=result):
                        yield sse(
                            "result", {"id": result.tool_call_id, "text": str(result.content)}
                        )
                    case AgentRunResultEvent(result=result):
                        conversation = result.conversation
                        if isinstance(result.output, DeferredToolRequests):
                            for call in result.output.approvals:
                                args = call.args_as_dict()
                                yield sse("approval", {"id": call.tool_call_id, "args": args})
                        yield sse("done", {"cost_usd": float(conversation.usage.cost or 0)})
                    case _:
                        pass
    except (RunCancelled, UsageLimitExceeded) as error:
        conversation = Conversation(
            messages=events.all_messages(),
            usage=events.usage,
            conversation_id=conversation.conversation_id,
        )
        yield sse("cancelled" if isinstance(error, RunCancelled) else "budget", str(error))
    finally:
        save(user, conversation)
        del running[user]


async def messages(request: Request) -> Response:
    return start(request.path_params["user"], (await request.json())["prompt"])


async def approvals(request: Request) -> Response:
    user = request.path_params["user"]
    requests = load(user).deferred_tool_requests
    if requests is None:
        return JSONResponse({"error": "nothing waits for approval"}, 404)
    decisions = {
        call_id: ToolDenied(decision) if isinstance(decision, str) else decision
        for call_id, decision in (await request.json()).items()
    }
    return start(user, None, requests.build_results(approvals=decisions))


async def cancel(request: Request) -> Response:
    token = running.get(request.path_params["user"])
    if token is not None:
        token.cancel()
    return JSONResponse({"cancelled": token is not None})


app = Starlette(
    routes=[
        Route("/users/{user}/messages", messages, methods=["POST"]),
        Route("/users/{user}/approvals", approvals, methods=["POST"]),
        Route("/users/{user}/cancel", cancel, methods=["POST"]),
    ]
)
