"""A harbour's assistant as a web service (Starlette).

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
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import dragoman as dm
from dragoman.contracts import Later
from dragoman.errors import BudgetExceeded
from dragoman.events import ErrorRaised, UserCancelled
from dragoman.options import Budget
from dragoman.stores import SqliteStore

STORE = SqliteStore(os.environ.get("SESSIONS", "sessions") + ".db")
MODEL = os.environ.get("MODEL", "openai/gpt-4.1")
running: dict[str, dm.Run[str]] = {}


@dm.tool(read_only=True)
def free_berths(harbour: str) -> list[int]:
    """The numbers of the berths that are free."""
    return [3, 7]


@dm.tool(kind="execute")
def book_berth(harbour: str, number: int) -> str:
    """Book a berth."""
    return f"berth {number} in {harbour} is booked"


def open_agent(user: str) -> dm.Agent:
    return dm.Agent(
        MODEL,
        system="You find and book berths for guests of the harbour.",
        tools=[free_berths, book_berth],
        approval=dm.ApprovalOptions(ask=lambda call, intent: Later()),
        session=dm.SessionOptions(STORE, key=user),
        budget=Budget(usd=0.50, requests=20),
    )


def sse(event: str, data: object) -> str:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


async def end(user: str, agent: dm.Agent, run: dm.Run[str]) -> None:
    try:
        await agent.aclose()
    finally:
        if running.get(user) is run:
            del running[user]


async def stream(user: str, agent: dm.Agent, run: dm.Run[str]) -> AsyncIterator[str]:
    async for event in run:
        match event:
            case dm.TextDelta(text=text):
                yield sse("text", text)
            case dm.ToolCallRequested(call=call):
                yield sse("call", {"id": call.id, "name": call.name})
            case dm.ToolCallFinished(call_id=call_id):
                yield sse("result", {"id": call_id, "text": event.text})
            case UserCancelled():
                yield sse("cancelled", "the run was cancelled")
            case ErrorRaised(error_type=BudgetExceeded.__name__, message=message):
                yield sse("budget", message)
            case _:
                pass
    for waiting in agent.pending:
        yield sse("approval", {"id": waiting.id, "args": waiting.args})
    if not run.result.error:
        yield sse("done", {"cost_usd": agent.cost_usd(agent.history.entries)})
    await end(user, agent, run)  # before the client sees the end, and may ask again


class RunResponse(StreamingResponse):
    def __init__(self, user: str, agent: dm.Agent, run: dm.Run[str]) -> None:
        super().__init__(stream(user, agent, run), media_type="text/event-stream")
        self.whose = user, agent, run
        running[user] = run

    async def __call__(self, *connection: Any) -> None:
        try:
            await super().__call__(*connection)
        finally:  # the client may have left: nobody goes on with the generator then
            await end(*self.whose)


def refuse_second(user: str) -> None:
    if user in running:
        raise HTTPException(409, "a run is under way")


async def messages(request: Request) -> Response:
    user, prompt = request.path_params["user"], (await request.json())["prompt"]
    refuse_second(user)
    agent = open_agent(user)
    return RunResponse(user, agent, agent.run(prompt))


async def approvals(request: Request) -> Response:
    user, decided = request.path_params["user"], await request.json()
    refuse_second(user)
    agent = open_agent(user)
    if not agent.pending:
        await agent.aclose()
        raise HTTPException(404, "nothing waits for approval")
    decisions = {
        call_id: dm.Deny(decision) if isinstance(decision, str) else dm.Allow()
        for call_id, decision in decided.items()
    }
    return RunResponse(user, agent, agent.resume(decisions))


async def cancel(request: Request) -> Response:
    run = running.get(request.path_params["user"])
    if run is not None:
        run.cancel()
    return JSONResponse({"cancelled": run is not None})


app = Starlette(
    routes=[
        Route("/users/{user}/messages", messages, methods=["POST"]),
        Route("/users/{user}/approvals", approvals, methods=["POST"]),
        Route("/users/{user}/cancel", cancel, methods=["POST"]),
    ]
)
