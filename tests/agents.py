"""Agents for tests, as the program has them, their options written flat: `make_agent(provider, builtin=False, ask=allow)`."""

from __future__ import annotations

from typing import Any

from dragoman.loop.agent import Agent
from dragoman.loop.options import ApprovalOptions, Connector, SessionOptions, ToolOptions, WorkspaceOptions

TOOLS = {"tools": "own", "builtin": "builtin", "web": "web", "calling": "calling", "text": "text", "sandbox": "sandbox"}
WORKSPACE = {"workspace": "root", "include": "include", "describe": "describe", "memory": "memory", "memory_file": "memory_file"}
APPROVAL = {"approval": "mode", "ask": "ask", "ask_user": "ask_user", "grants": "grants", "rules": "rules", "hosts": "hosts"}
SESSION = {"sessions": "store", "resume": "resume", "history": "history", "blobs": "blobs", "outputs": "outputs"}


def make_agent(model: Any, *, connect: Any = None, **options: Any) -> Agent:
    def group(kind: Any, names: dict[str, str]) -> Any:
        return kind(**{names[name]: options.pop(name) for name in list(options) if name in names})

    options.setdefault("builtin", True)
    options.setdefault("describe", True)
    tools, workspace = group(ToolOptions, TOOLS), group(WorkspaceOptions, WORKSPACE)
    approval, session = group(ApprovalOptions, APPROVAL), group(SessionOptions, SESSION)
    model = Connector(connect, model or "") if connect is not None else model
    return Agent(model, tools=tools, workspace=workspace, approval=approval, session=session, **options)
