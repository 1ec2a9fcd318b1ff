"""Calls the hooks of an agent, and puts what they change on the record. Loaded only where an agent has hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base.words import say
from dragoman.loop.configuring import compose, record
from dragoman.loop.history import sum_usage
from dragoman.loop.options import RunOptions, as_tool
from dragoman.values.contracts import Allow, Decide, Deny, Later, Tool, ToolOutput
from dragoman.values.errors import InputError
from dragoman.values.events import TurnEvent
from dragoman.values.hooks import Go, Hooks, RunEnd, Step
from dragoman.values.messages import Response, ToolCall, ToolSpec, user

if TYPE_CHECKING:
    from dragoman.loop.harness import Harness
    from dragoman.policy.approvals import Approvals

LISTENING_S = 1.0
"""How long those who listen to a cancelled run may still take."""


class Hooking:
    """The hooks of one agent, in the order they were given."""

    def __init__(self, hooks: Sequence[Hooks]) -> None:
        self._hooks = hooks
        self._before_request = [each.before_request for each in hooks if each.before_request is not None]
        self._after_response = [each.after_response for each in hooks if each.after_response is not None]
        self._before_call = [each.before_call for each in hooks if each.before_call is not None]
        self._around_call = [each.around_call for each in hooks if each.around_call is not None]
        self._on_event = [each.on_event for each in hooks if each.on_event is not None]
        self._on_run_end = [each.on_run_end for each in hooks if each.on_run_end is not None]
        self._added: list[str] = []
        """Names of the tools that a hook brought for the last step."""
        self._answers: dict[str, Allow | Deny | Exception | None] = {}
        """What the hooks said of calls that are about to be judged, by their ids."""

    def fresh(self) -> Hooking:
        """The same hooks for another conversation."""
        return Hooking(self._hooks)

    @property
    def configures(self) -> bool:
        """Whether the configuration of a request is known only when its step begins."""
        return bool(self._before_request)

    # --- requests

    async def before_request(self, harness: Harness, options: RunOptions, turn: int, from_entry: int) -> None:
        """Have the next request changed. Everything that differs from the last becomes an entry."""
        if not self._before_request:
            return
        history, model = harness.session.history, harness.session.model
        self._remove_added(harness)
        base = compose(harness, options)
        view = history.view
        step = Step(
            deps=options.deps,
            session_id=harness.session.id,
            turn=turn,
            model=model.full_name,
            system=base.system,
            tools=[spec.name for spec in base.tools],
            settings=base.settings,
            messages=view.messages,
            usage=sum_usage(history.entries[from_entry:]),
        )
        shown = step.messages
        for hook in self._before_request:
            await _result_of(hook(step))
        if step.messages != shown:
            from dragoman.loop.replacing import set_history

            set_history(harness, step.messages)
        tools = self._chosen_tools(harness, base.tools, step.tools)
        record(harness, msgspec.structs.replace(base, system=step.system, tools=tools, settings=step.settings))
        if step.pruned:
            history.prune(_known_calls(harness, step.pruned), reason="hook")
        for text in step.notes:
            history.say(user(text), "hook")
        await history.sync()

    def _chosen_tools(
        self, harness: Harness, offered: tuple[ToolSpec, ...], chosen: Sequence[str | Tool | Callable[..., Any]]
    ) -> tuple[ToolSpec, ...]:
        """What the hook left and brought. The same tools are the same tuple, which caches depend on."""
        by_name = {spec.name: spec for spec in offered}
        specs: list[ToolSpec] = []
        for each in chosen:
            if isinstance(each, str):
                if each not in by_name:
                    raise InputError(say("loop.hook_tool_unknown", name=each, known=", ".join(by_name)))
                specs.append(by_name[each])
                continue
            tool = as_tool(each)
            harness.registry.register(tool, replace=tool.spec.name not in by_name)
            self._added.append(tool.spec.name)
            specs.append(tool.spec)
        return offered if tuple(specs) == offered else tuple(specs)

    def _remove_added(self, harness: Harness) -> None:
        for name in self._added:
            harness.registry.remove(name)
        self._added.clear()

    async def after_response(self, response: Response) -> str:
        """What the model is to be told before it is asked again; empty if nothing."""
        words = [await _result_of(hook(response)) for hook in self._after_response]
        if odd := [each for each in words if each is not None and not isinstance(each, str)]:
            raise TypeError(say("loop.hook_answer", hook="after_response", answer=repr(odd[0])[:80]))
        return "\n\n".join(each for each in words if each)

    # --- calls

    def decide(self, approvals: Approvals, decide: Decide) -> Decide:
        """The hooks first, then the rules and the person."""
        return partial(self._decide, approvals, decide) if self._before_call else decide

    @property
    def before(self) -> Callable[[ToolCall], Awaitable[None]] | None:
        """Asks the hooks about a call that is about to be judged. What they say is kept until it is."""
        return self._ask_hooks if self._before_call else None

    async def _ask_hooks(self, call: ToolCall) -> None:
        try:
            self._answers[call.id] = await self._answer_of_hooks(call)
        except Exception as error:
            self._answers[call.id] = error

    async def _answer_of_hooks(self, call: ToolCall) -> Allow | Deny | None:
        allowed: Allow | None = None
        for hook in self._before_call:
            answer = await _result_of(hook(call))
            if isinstance(answer, Deny):
                return answer
            if isinstance(answer, Allow):
                arguments = answer.arguments or (allowed.arguments if allowed is not None else "")
                allowed = Allow(arguments)
                call = msgspec.structs.replace(call, arguments=arguments or call.arguments)
            elif answer is not None:
                raise TypeError(say("loop.hook_answer", hook="before_call", answer=repr(answer)[:80]))
        return allowed

    def _decide(self, approvals: Approvals, decide: Decide, call: ToolCall) -> Allow | Deny | Awaitable[Allow | Deny | Later]:
        answer = self._answers.pop(call.id, None)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Deny):
            return answer
        if answer is None:
            return decide(call)
        return approvals.forbids(msgspec.structs.replace(call, arguments=answer.arguments or call.arguments)) or answer

    @property
    def around(self) -> Callable[[ToolCall, Go], Awaitable[ToolOutput]] | None:
        """Carries a call out through the hooks, the first outermost."""
        return self._go_through if self._around_call else None

    async def _go_through(self, call: ToolCall, go: Go, at: int = 0) -> ToolOutput:
        if at == len(self._around_call):
            return await go()
        output = await _result_of(self._around_call[at](call, lambda: self._go_through(call, go, at + 1)))
        if not isinstance(output, ToolOutput):
            raise TypeError(say("loop.hook_answer", hook="around_call", answer=repr(output)[:80]))
        return output

    # --- the run

    async def watch(self, run: Any, drive: Awaitable[None]) -> None:
        """Carry a Run out, telling the hooks its events and its end."""
        events: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        emit = run._emit

        def emit_and_queue(event: TurnEvent | None) -> None:
            emit(event)
            if event is None or self._on_event:
                events.put_nowait(event)

        run._emit = emit_and_queue  # in place of the method, so that other runs pay nothing for it
        listening = asyncio.ensure_future(self._listen(run, events))
        try:
            await drive
        finally:
            await _let_finish(run, listening)

    async def _listen(self, run: Any, events: asyncio.Queue[TurnEvent | None]) -> None:
        while (event := await events.get()) is not None:
            for hook in self._on_event:
                await _report(hook, event)
        for end_hook in self._on_run_end:
            await _report(end_hook, RunEnd(run.result, run._error))


async def _let_finish(run: Any, listening: asyncio.Future[None]) -> None:
    """Those who listen may take as long as they need, until the run is cancelled: then a second at most."""
    run._underway = not run._is_cancelling  # so that a cancel reaches us here
    try:
        await asyncio.wait([listening], timeout=LISTENING_S if run.is_unwanted else None)
    except asyncio.CancelledError:
        await asyncio.wait([listening], timeout=LISTENING_S)
    finally:
        run._underway = False
        listening.cancel()


async def _result_of(returned: Any) -> Any:
    return await returned if isinstance(returned, Awaitable) else returned


async def _report(hook: Callable[[Any], Any], told: Any) -> None:
    """Call a hook that only listens. What it raises does not concern the run."""
    try:
        await _result_of(hook(told))
    except Exception as error:
        failed = {"message": str(say("loop.hook_failed", hook=getattr(hook, "__qualname__", repr(hook)))), "exception": error}
        asyncio.get_running_loop().call_exception_handler(failed)


def _known_calls(harness: Harness, call_ids: Sequence[str]) -> tuple[str, ...]:
    known = {result.call_id for message in harness.session.history.view.messages for result in message.results}
    if odd := [each for each in call_ids if each not in known]:
        raise InputError(say("loop.hook_call_unknown", call=odd[0]))
    return tuple(dict.fromkeys(call_ids))
