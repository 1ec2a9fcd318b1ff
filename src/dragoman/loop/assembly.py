"""Puts an agent together from its options: the session is opened, the model connected, and the harness made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.loop.harness import Harness
from dragoman.loop.history import History
from dragoman.loop.model import Models
from dragoman.loop.option_checks import check_options
from dragoman.loop.options import (
    ApprovalOptions,
    Connector,
    FallbackOptions,
    Limits,
    SessionOptions,
    ToolOptions,
    WorkspaceOptions,
    approval_options,
    fallback_options,
    hook_list,
    session_options,
    tool_options,
    workspace_options,
)
from dragoman.loop.session import Session, open_session
from dragoman.policy.judge import Mode
from dragoman.values.calls import Tool
from dragoman.values.contracts import Provider
from dragoman.values.messages import Settings

if TYPE_CHECKING:
    from dragoman.context.settings import ContextSettings
    from dragoman.loop.budget import Account, Budget
    from dragoman.sessions.stores import Store
    from dragoman.values.hooks import Hooks


def assemble(
    model: str | Provider | Connector | None,
    *,
    system: str | None = None,
    tools: Iterable[Tool | Callable[..., Any]] | ToolOptions = (),
    workspace: str | os.PathLike[str] | WorkspaceOptions = ".",
    approval: Mode | ApprovalOptions = "default",
    session: str | os.PathLike[str] | Store | History | SessionOptions | None = None,
    settings: Settings | None = None,
    limits: Limits | None = None,
    context: ContextSettings | None = None,
    fallback: Sequence[str | Provider] | FallbackOptions = (),
    budget: Budget | Account | None = None,
    deps: Any = None,
    hooks: Hooks | Sequence[Hooks] = (),
    name: str = "",
) -> tuple[Harness, tuple[str, ...]]:
    """The harness, and what the user should be told of the session that was opened. Raises InputError where an option is wrong."""
    tools, workspace, approval = tool_options(tools), workspace_options(workspace), approval_options(approval)
    session, fallback = session_options(session), fallback_options(fallback)
    check_options(
        system=system,
        tools=tools,
        workspace=workspace,
        approval=approval,
        session=session,
        settings=settings,
        limits=limits,
        context=context,
        fallback=fallback,
        budget=budget,
        hooks=(hooks := hook_list(hooks)),
        name=name,
    )
    opened, models, notices = _open_with_model(model, session, workspace, tools)
    try:
        harness = Harness(
            opened,
            models,
            workspace,
            tools,
            approval,
            system=system,
            settings=settings or Settings(),
            limits=limits or Limits(),
            context=context,
            fallback=fallback,
        )
    except BaseException:
        opened.close()
        raise
    harness.deps, harness.name = deps, name
    if hooks:
        from dragoman.loop.hooking import Hooking

        harness.hooks = Hooking(hooks)
    if budget is not None:
        _set_budget(harness, budget)
    return harness, notices


def _open_with_model(
    model: str | Provider | Connector | None, options: SessionOptions, workspace: WorkspaceOptions, tools: ToolOptions
) -> tuple[Session, Models, tuple[str, ...]]:
    """The session with its model connected: the one that is given, else the session's own; and what the user should be told."""
    connector = model if isinstance(model, Connector) else None
    wanted = model.model if isinstance(model, Connector) else model
    given = wanted.blobs if isinstance(wanted, Provider) else None
    further = [os.fspath(path) for path in (*workspace.include, *(filter(None, [workspace.temporary])))]
    session, notices = open_session(options, os.path.realpath(workspace.root), given, further=further)
    models = Models(connector, session.blobs, tools.calling, tools.text)
    if isinstance(wanted, Provider):
        models.env = None  # whoever gives a provider has chosen who is talked to
    try:
        session.model = models.use(wanted or session.own_model(connector))
    except BaseException:
        session.close()  # so that the next attempt does not find it in use
        raise
    return session, models, notices


def _set_budget(harness: Harness, budget: Budget | Account) -> None:
    from dragoman.loop.charging import Purse, account_of_session

    history = harness.session.history
    harness.account = account_of_session(budget, history, harness.bill.cost_usd)
    harness.session.purse = Purse([harness.account], history)


def assemble_like(template: Harness, session: Session, caller: Harness | None) -> Harness:
    """Another harness like this one, over another session: for an agent that is called by another, or takes a conversation over.

    Its own `ask` and `deps` hold, and the caller's where it has none; and where the caller only plans, so does it. The model stays
    connected by the template: what it opened is not opened again.
    """
    models = template.models.like(session.blobs)
    model = models.adopt(template.own_model)
    is_callers = caller is not None and session is caller.session
    if not is_callers:
        session.model = model
    workspace, tools, approval = template.made_with
    only_plans = caller is not None and caller.approvals.mode == "plan"
    harness = Harness(
        session,
        models,
        msgspec.structs.replace(workspace, root=template.workspace.root, include=template.directories[1:]),
        msgspec.structs.replace(tools, own=()),
        msgspec.structs.replace(
            approval,
            mode="plan" if only_plans else template.approvals.mode,
            ask=template.approvals.ask or (caller.approvals.ask if caller is not None else None),
            grants=template.approvals.grants,
        ),
        system=template.system,
        settings=template.settings,
        limits=template.limits,
        context=template.context,
        fallback=template.fallback,
    )
    harness.take_tools_of(template)
    harness.unchosen |= template.unchosen
    harness.template, harness.kept_model = template, model if is_callers else None
    harness.deps = template.deps if template.deps is not None or caller is None else caller.deps
    harness.hooks = template.hooks.fresh() if template.hooks is not None else None
    return harness
