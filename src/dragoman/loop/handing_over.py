"""Handing a conversation over: another agent goes on with the same record, by its own system prompt, tools, model and settings.

Limits and budgets stay those of the agent whose run it is. What changes is on the record as one Configured entry, which names the agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.loop.assembly import assemble_like
from dragoman.loop.configuring import configure
from dragoman.loop.harness import Emit, Harness
from dragoman.loop.options import RunOptions
from dragoman.tools.scheduler import CallReport
from dragoman.values.calls import TakesOver
from dragoman.values.errors import LoopDetected
from dragoman.values.events import HandedOver
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.typed_answer import TypedAnswer


def follow_reports(
    root: Harness, reports: Sequence[CallReport], count: int, emit: Emit, typed: TypedAnswer[Any] | None, options: RunOptions
) -> Harness:
    """Within a run: the agent that the last of these calls returned has the conversation. Raises LoopDetected where that was done too
    often; `count` is how often it was, this time included."""
    last = next(report for report in reversed(reports) if report.output.hand_over is not None)
    if count > root.limits.max_hand_overs:
        raise LoopDetected(say("loop.too_many_hand_overs", count=root.limits.max_hand_overs))
    assert last.output.hand_over is not None
    before = root.holder
    taker = hand_over(root, last.output.hand_over, last.call.name)
    if taker is before:
        return taker
    if typed is not None:
        typed.move_to(taker)
    configure(taker, options)
    emit(HandedOver(last.call.id, taker.name or last.call.name, root.session.model.full_name))
    taker.tell_left_out(emit, options.search)
    return taker


def hand_over_now(root: Harness, agent: TakesOver) -> None:
    """Between two runs. An entry only where the conversation has begun: the first run writes one anyway."""
    taker = hand_over(root, agent, "agent")
    if root.session.history.view.model:
        configure(taker)


def hand_over(root: Harness, agent: TakesOver, name: str) -> Harness:
    """Let this agent have the conversation of `root`. An agent without a name is called `name`. Returns what its runs work with."""
    source: Harness = getattr(agent, "_harness")  # noqa: B009 - tools know an agent as TakesOver only
    taker = root if source is root else _taker_like(root, source, source.name or name)
    root.let_hold(taker)
    return taker


def _taker_like(root: Harness, source: Harness, name: str) -> Harness:
    label, number = name, 1
    while (taker := root.takers.get(label)) is not None or label == root.name:
        if taker is not None and taker.template is source:
            return taker
        number += 1
        label = f"{name} ({number})"
    taker = assemble_like(source, root.session, root)
    taker.approvals.work_for(root.approvals)
    taker.name, taker.limits, taker.account, taker.depth_left = label, root.limits, root.account, root.depth_left
    root.takers[label] = taker
    root.models.learn_from(taker.models)
    taker.models.learn_from(root.models)
    return taker
