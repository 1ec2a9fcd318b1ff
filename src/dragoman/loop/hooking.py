"""Calls the hooks of an agent, and puts what they change on the record. Loaded only where an agent has hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.loop.at_work import tell_user
from dragoman.loop.configuring import compose, record
from dragoman.loop.history import sum_usage
from dragoman.loop.options import RunOptions, as_tool
from dragoman.values.calls import Allow, Decide, Deny, Intent, Later, Tool, ToolOutput
from dragoman.values.errors import HookStopped, InputError
from dragoman.values.events import NoticeGiven, TurnEvent
from dragoman.values.hooks import Compressing, Go, HookCaller, Hooks, Proceed, RunEnd, Step, SubagentEnd, SubagentStart
from dragoman.values.messages import Message, Response, ToolCall, ToolSpec, user
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.harness import Harness
    from dragoman.policy.approvals import Approvals

CHANGED_CANNOT_WAIT = "a hook changed its arguments, and such a call cannot wait to be decided later: it was not run"
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
        self._before_ask = [each.before_ask for each in hooks if each.before_ask is not None]
        self._answers: dict[str, Allow | Deny | Proceed | Exception | None] = {}
        """What the hooks said of calls that are about to be judged, by their ids."""
        self._unsaid: list[str] = []
        """What hooks have for the model, said with its next request."""
        self._stopping: Exception | None = None
        """Why a hook ends the run."""

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
        if (stopping := self._stopping) is not None:
            self._stopping = None
            raise stopping
        await self._say_unsaid(harness)
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

    async def _say_unsaid(self, harness: Harness) -> None:
        if self._unsaid:
            for text in self._unsaid:
                harness.session.history.say(user(text), "hook")
            self._unsaid.clear()
            await harness.session.history.sync()

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
        """What the model gets before it is asked again; empty if nothing."""
        return "\n\n".join(await _words("after_response", self._after_response, response))

    def say(self, text: str) -> None:
        """Give the model this text with its next request."""
        self._unsaid.append(text)

    def stop(self, error: Exception) -> None:
        """End the run before the model is asked again."""
        self._stopping = error

    # --- prompts

    async def before_prompt(self, harness: Harness, prompt: Message | None) -> None:
        """Ask about a prompt that is not on the record yet. What a hook raises leaves it off."""
        self._stopping = None
        if prompt is None or all(each.before_prompt is None for each in self._hooks):
            return
        from dragoman.loop.prepare import is_repeated

        if not is_repeated(harness, prompt):
            self._unsaid += await self._words_about(prompt)

    async def admit(self, text: str) -> bool:
        """Ask about what the user said during the run. False: a hook refused it, and told the user."""
        try:
            self._unsaid += await self._words_about(user(text))
        except HookStopped as stopped:
            tell_user(NoticeGiven("hook", str(stopped)))
            return False
        return True

    async def _words_about(self, prompt: Message) -> list[str]:
        return await _words("before_prompt", [each.before_prompt for each in self._hooks], prompt)

    # --- summaries, and agents inside

    async def before_compress(self, session_id: str, trigger: Literal["manual", "auto"], focus: str) -> str | Deny:
        """What matters in the summary, or why there shall be none."""
        compressing, words = Compressing(session_id, trigger), [focus]
        for hook in self._hooks:
            answer = await _result_of(hook.before_compress(compressing)) if hook.before_compress is not None else None
            if isinstance(answer, Deny):
                return answer
            words.append(answer or "")
        return "\n\n".join(filter(None, words))

    async def after_compress(self, session_id: str, trigger: Literal["manual", "auto"], status: str) -> None:
        for hook in self._hooks:
            if hook.after_compress is not None:
                await _report(hook.after_compress, Compressing(session_id, trigger, status))

    async def before_subagent(self, start: SubagentStart) -> str:
        """What is added to its prompt."""
        return "\n\n".join(await _words("before_subagent", [each.before_subagent for each in self._hooks], start))

    async def after_subagent(self, end: SubagentEnd) -> None:
        for hook in self._hooks:
            if hook.after_subagent is not None:
                await _report(hook.after_subagent, end)

    def beside(self, own: HookCaller | None) -> HookCaller | None:
        """The hooks of an agent that runs inside this one: its own, and those of ours that are called everywhere."""
        theirs = own._hooks if isinstance(own, Hooking) else ()
        ours = [hook for hook in self._hooks if hook.everywhere and not any(hook is each for each in theirs)]
        return Hooking((*ours, *theirs)) if ours else own

    async def close(self) -> None:
        for hook in self._hooks:
            if hook.on_close is not None:
                await _report(hook.on_close)

    # --- calls

    def decide(self, approvals: Approvals, decide: Decide) -> Decide:
        """The hooks first, then the rules and the person, before whom hooks are asked again."""
        if self._before_ask:
            decide = partial(self._answer_or_ask, approvals, decide)
        return partial(self._decide, approvals, decide) if self._before_call else decide

    def _answer_or_ask(self, approvals: Approvals, decide: Decide, call: ToolCall) -> Allow | Deny | Awaitable[Allow | Deny | Later]:
        answer = decide(call)
        return answer if isinstance(answer, Allow | Deny) else self._before_person(approvals, call, answer)

    async def _before_person(self, approvals: Approvals, call: ToolCall, question: Awaitable[Allow | Deny | Later]) -> Allow | Deny | Later:
        view = approvals.view_of(call) or Intent()
        answer: Allow | Deny | None = None
        try:
            for hook in self._before_ask:
                found = await _result_of(hook(call, view))
                answer = found if found is not None else answer
                if isinstance(found, Deny):
                    break
            if isinstance(answer, Allow):
                meant = _with(call, answer.arguments)
                view = (approvals.view_of(meant) or view) if answer.arguments else view
                if not view.guarded:
                    return approvals.forbids(meant) or answer
                answer = None  # a person alone allows that
            return answer if answer is not None else await question
        finally:
            if asyncio.iscoroutine(question):
                question.close()  # no matter where it was awaited to its end

    @property
    def before(self) -> Callable[[ToolCall], Awaitable[None]] | None:
        """Asks the hooks about a call that is about to be judged. What they say is kept until it is."""
        return self._ask_hooks if self._before_call else None

    async def _ask_hooks(self, call: ToolCall) -> None:
        try:
            self._answers[call.id] = await self._answer_of_hooks(call)
        except Exception as error:
            self._answers[call.id] = error

    async def _answer_of_hooks(self, call: ToolCall) -> Allow | Deny | Proceed | None:
        allowed: Allow | Proceed | None = None
        for hook in self._before_call:
            answer = await _result_of(hook(call))
            if isinstance(answer, Deny):
                return answer
            if isinstance(answer, Allow | Proceed):
                arguments = answer.arguments or (allowed.arguments if allowed is not None else "")
                allowed = _stricter(allowed, msgspec.structs.replace(answer, arguments=arguments))
                call = _with(call, arguments)
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
        meant = _with(call, answer.arguments)
        if approvals.runs_outside(meant):  # whatever a hook says, a person or a rule for it decides
            answer = Proceed(answer.arguments, "ask" if isinstance(answer, Proceed) and answer.question == "ask" else "")
        if isinstance(answer, Allow):
            return approvals.forbids(meant) or answer
        if answer.question == "skip" and approvals.may_skip(meant):
            return Allow(answer.arguments)
        verdict = decide(meant)
        if isinstance(verdict, Allow) and answer.question == "ask":
            asking = approvals.ask_about(meant)
            verdict = asking if isinstance(asking, Deny) else self._answer_or_ask(approvals, lambda _: asking, meant)
        if isinstance(verdict, Deny) or not answer.arguments:
            return verdict
        return _with_arguments(verdict, answer.arguments) if isinstance(verdict, Allow) else _wait_for_decision(verdict, answer.arguments)

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


def _with(call: ToolCall, arguments: str) -> ToolCall:
    return msgspec.structs.replace(call, arguments=arguments) if arguments else call


def _stricter(one: Allow | Proceed | None, other: Allow | Proceed) -> Allow | Proceed:
    """The stricter of two answers, with the last arguments."""
    ranks = {"ask": 3, "": 2, "skip": 1}
    if one is None or (_rank(other, ranks) >= _rank(one, ranks)):
        return other
    return msgspec.structs.replace(one, arguments=other.arguments)


def _rank(answer: Allow | Proceed, ranks: dict[str, int]) -> int:
    return ranks[answer.question] if isinstance(answer, Proceed) else 0


def _with_arguments(answer: Allow, arguments: str) -> Allow:
    """The answer with a hook's arguments, unless the person wrote their own."""
    return answer if answer.arguments else msgspec.structs.replace(answer, arguments=arguments)


async def _wait_for_decision(question: Awaitable[Allow | Deny | Later], arguments: str) -> Allow | Deny | Later:
    answer = await question
    if isinstance(answer, Later):  # it would go on with the arguments that the model wrote
        return Deny(CHANGED_CANNOT_WAIT)
    return _with_arguments(answer, arguments) if isinstance(answer, Allow) else answer


async def _words(name: str, hooks: Sequence[Callable[[Any], Any] | None], told: Any) -> list[str]:
    """What hooks that may return words have returned."""
    words = [await _result_of(hook(told)) for hook in hooks if hook is not None]
    if odd := [each for each in words if each is not None and not isinstance(each, str)]:
        raise TypeError(say("loop.hook_answer", hook=name, answer=repr(odd[0])[:80]))
    return [each for each in words if each]


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


async def _report(hook: Callable[..., Any], *told: Any) -> None:
    """Call a hook that only listens. What it raises does not concern the run."""
    try:
        await _result_of(hook(*told))
    except Exception as error:
        failed = {"message": str(say("loop.hook_failed", hook=getattr(hook, "__qualname__", repr(hook)))), "exception": error}
        asyncio.get_running_loop().call_exception_handler(failed)


def _known_calls(harness: Harness, call_ids: Sequence[str]) -> tuple[str, ...]:
    known = {result.call_id for message in harness.session.history.view.messages for result in message.results}
    if odd := [each for each in call_ids if each not in known]:
        raise InputError(say("loop.hook_call_unknown", call=odd[0]))
    return tuple(dict.fromkeys(call_ids))
