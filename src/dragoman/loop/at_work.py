"""What a hook or a tool may know of the run it is called in, and ending that run. Loaded only where somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.policy.judge import Mode
from dragoman.values.calls import run_at_work
from dragoman.values.errors import HookStopped
from dragoman.values.events import TurnEvent

if TYPE_CHECKING:
    from dragoman.loop.harness import Harness


class AtWork(msgspec.Struct, frozen=True):
    """The run that the current task works for."""

    session_id: str
    """Of the conversation that the user has, also where an agent runs inside it."""
    transcript: str
    """The path of its log; empty if it is not kept, or not in a file."""
    model: str
    """`deployment/model`."""
    mode: Mode
    """How approvals are given."""
    directory: str
    prompt_id: str = ""
    """The prompt that is being answered; empty outside a run."""
    agent_id: str = ""
    """The session of the agent that runs inside the conversation; empty in the conversation itself."""
    agent_name: str = ""
    agent_transcript: str = ""
    is_resumed: bool = False
    is_fresh: bool = True
    """Nothing has been said yet, or all was cleared."""


def at_work() -> AtWork | None:
    """The run that a hook or a tool is called in; None outside a run."""
    run: Any = run_at_work.get()()
    return describe(run._harness, run.prompt_id) if run is not None else None


def describe(harness: Harness, prompt_id: str = "") -> AtWork:
    outer = harness
    while outer.called_by is not None:
        outer = outer.called_by
    is_inner = outer is not harness
    return AtWork(
        outer.session.id,
        transcript_of(outer),
        harness.session.model.full_name,
        harness.approvals.mode,
        harness.workspace.root,
        prompt_id,
        harness.session.id if is_inner else "",
        harness.name if is_inner else "",
        transcript_of(harness) if is_inner else "",
        outer.session.is_resumed,
        not outer.session.history.view.messages,
    )


def transcript_of(harness: Harness) -> str:
    return harness.session.log.path_of(harness.session.id) if harness.session.log is not None else ""


def stop_run(reason: str) -> None:
    """End the run at work before its model is asked again, with HookStopped. Outside a run nothing happens."""
    run: Any = run_at_work.get()()
    if run is not None and run._harness.hooks is not None:
        run._harness.hooks.stop(HookStopped(reason))


def tell_user(event: TurnEvent) -> bool:
    """Tell those who watch the run at work; False if there is no run."""
    run: Any = run_at_work.get()()
    if run is not None:
        run.tell(event)
    return run is not None


def tell_model(text: str) -> bool:
    """Give the model this text with the next request of the run at work; False if there is no run."""
    run: Any = run_at_work.get()()
    if run is None or run._harness.hooks is None:
        return False
    run._harness.hooks.say(text)
    return True
