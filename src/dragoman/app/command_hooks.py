"""The user's hook commands as hooks of the loop: each point of a run becomes an event, and the commands' answers are applied.

Loaded only where a file defines hooks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.app.finding_hooks import HooksOf, find_hooks, unasked_notice
from dragoman.app.outside_programs import launch_outside
from dragoman.app.setup import Setup, catalog_of
from dragoman.base import jsontext
from dragoman.extensions.hooks.agreement import hash_of, read_agreed, to_agree
from dragoman.extensions.hooks.answers import Answer
from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.inputs import Occasion
from dragoman.extensions.hooks.names import Event
from dragoman.extensions.hooks.running import HookRunner, Posted
from dragoman.loop.at_work import AtWork, at_work, stop_run, tell_model, tell_user
from dragoman.providers.catalog import secret_variables
from dragoman.tools.child_environment import child_environment, pass_variables
from dragoman.tools.process import run_process
from dragoman.values.calls import Allow, Deny, Intent, Later, ToolOutput
from dragoman.values.errors import HookStopped, ToolBroken
from dragoman.values.events import NoticeGiven
from dragoman.values.hooks import Compressing, Go, Hooks, Proceed, SubagentStart
from dragoman.values.messages import Message, Response, Text, ToolCall
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent

MAX_CONTINUED = 8
"""How often hooks may have one run go on that would have ended."""
MAX_CLOSING_S = 60.0
ADDED = "A hook of the user adds:"
_PARTS: dict[str, tuple[Event, ...]] = {
    "before_prompt": ("SessionStart", "UserPromptSubmit", "PostCompact", "SessionEnd"),
    "before_call": ("PreToolUse",),
    "before_ask": ("PermissionRequest", "Notification"),
    "around_call": ("PostToolUse", "PostToolUseFailure"),
    "after_response": ("Stop", "SubagentStop"),
    "before_compress": ("PreCompact",),
    "after_compress": ("PostCompact", "SessionStart"),
    "before_subagent": ("SubagentStart",),
}
"""Which point of the loop stands for which events."""


def open_hooks(setup: Setup) -> CommandHooks | None:
    """The hooks of this start, or None."""
    found = find_hooks(setup)
    return CommandHooks(setup, found) if found.hooks or found.notices else None


class CommandHooks:
    """The hooks of one agent and of those that run inside it."""

    def __init__(self, setup: Setup, found: HooksOf) -> None:
        self.found = found
        self._setup = setup
        self._agreement = Agreement(setup, found)
        start = partial(run_process, launch=launch_outside())
        self.runner = HookRunner(found.hooks, start, lambda: environment_of(setup), self._agreement.refuse, self._holds, self._post)
        self._has_person = setup.options.prompt is None
        self._agent: Agent | None = None
        self._begun: set[str] = set()
        self._continued: dict[str, tuple[str, int]] = {}
        """By conversation: the prompt that is being answered, and how often a hook had it go on."""
        self._waiting: list[str] = []
        """For the model, with the next prompt."""
        self._told: set[str] = set()

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user before the first run."""
        unasked = self.found.unasked
        return (*self.found.notices, unasked_notice(unasked)) if unasked else self.found.notices

    def bind(self, agent: Agent) -> None:
        self._agent = agent

    def points(self) -> Hooks:
        """The hook functions for the loop: only those for which a command is defined."""
        used: dict[str, Any] = {name: getattr(self, f"_{name}") for name, events in _PARTS.items() if self.runner.has(*events)}
        return Hooks(**used, on_close=self._on_close, everywhere=True)

    # --- prompts

    async def _before_prompt(self, prompt: Message) -> str | None:
        facts = self._facts()
        if facts.agent_id:  # what one agent tells another is not a prompt of the user
            return None
        words = list(self._waiting)
        self._waiting.clear()
        if source := self._source(facts):
            answer = await self._fire("SessionStart", source, {"source": source})
            words.append(answer.context)
        answer = await self._fire("UserPromptSubmit", "", {"prompt": prompt.said})
        if answer.blocks or answer.stops:
            raise HookStopped(say("hooks.prompt_refused", reason=answer.stop_reason or answer.reason or say("hooks.no_reason")))
        return "\n\n".join(each for each in (*words, answer.context) if each) or None

    def _source(self, facts: AtWork) -> str:
        """What begins with this prompt; empty: nothing."""
        if facts.session_id in self._begun:
            return "clear" if facts.is_fresh else ""
        self._begun.add(facts.session_id)
        return "resume" if facts.is_resumed else "startup"

    # --- calls

    async def _before_call(self, call: ToolCall) -> Deny | Proceed | None:
        answer = await self._fire("PreToolUse", call.name, call=call)
        if answer.context:
            tell_model(answer.context)
        if answer.stops:
            stop_run(answer.stop_reason or str(say("hooks.stopped")))
            return Deny(answer.stop_reason or str(say("hooks.stopped")))
        if answer.blocks or answer.permission == "deny":
            return Deny(answer.reason)
        arguments = jsontext.dumps(answer.arguments) if answer.arguments is not None else ""
        match answer.permission:
            case "allow":
                return Proceed(arguments, "skip")
            case "ask":
                return Proceed(arguments, "ask")
            case _:
                return Proceed(arguments) if arguments else None

    async def _before_ask(self, call: ToolCall, intent: Intent) -> Allow | Deny | None:
        answer = await self._fire("PermissionRequest", call.name, call=call)
        if answer.permission == "deny" or answer.stops:
            if answer.stops:
                stop_run(answer.stop_reason or answer.reason or str(say("hooks.stopped")))
            return Deny(answer.reason or answer.stop_reason or str(say("hooks.stopped")))
        if answer.permission == "allow":
            return Allow(jsontext.dumps(answer.arguments) if answer.arguments is not None else "")
        if self._has_person:
            message = str(say("hooks.needs_permission", title=intent.title))
            await self._fire("Notification", "permission_prompt", {"message": message, "notification_type": "permission_prompt"})
        return None

    async def _around_call(self, call: ToolCall, go: Go) -> ToolOutput:
        try:
            output = await go()
        except (ToolBroken, Later):
            raise
        except Exception as error:
            answer = await self._fire("PostToolUseFailure", call.name, {"text": str(error)}, call=call)
            self._stop_if_asked(answer)
            if words := answer.context or answer.reason:
                tell_model(words)
            raise
        text = "".join(part.text for part in output.content if isinstance(part, Text))
        details = {"text": text, "command": output.command}
        answer = await self._fire("PostToolUseFailure" if output.is_error else "PostToolUse", call.name, details, call=call)
        self._stop_if_asked(answer)
        return _with_answer(output, answer)

    def _stop_if_asked(self, answer: Answer) -> None:
        if answer.stops:
            stop_run(answer.stop_reason or str(say("hooks.stopped")))

    # --- the end of an answer

    async def _after_response(self, response: Response) -> str | None:
        if response.message.calls:
            return None
        facts = self._facts()
        who = facts.agent_id or facts.session_id
        prompt_id, count = self._continued.get(who, ("", 0))
        count = count if prompt_id == facts.prompt_id else 0
        details: dict[str, Any] = {"stop_hook_active": count > 0, "last_assistant_message": response.message.text or None}
        if facts.agent_id:
            details["agent_transcript_path"] = facts.agent_transcript or None
        answer = await self._fire("SubagentStop" if facts.agent_id else "Stop", facts.agent_name, details)
        if answer.stops or not answer.blocks:
            return None
        if count >= MAX_CONTINUED:
            self._tell(say("hooks.continued_enough", count=count))
            return None
        self._continued[who] = (facts.prompt_id, count + 1)
        return answer.reason

    # --- summaries, agents inside, the end

    async def _before_compress(self, compressing: Compressing) -> str | Deny | None:
        answer = await self._fire("PreCompact", compressing.trigger, {"trigger": compressing.trigger})
        if answer.blocks or answer.stops:
            return Deny(answer.stop_reason or answer.reason)
        return answer.context or None

    async def _after_compress(self, compressing: Compressing) -> None:
        if compressing.status != "compressed":
            return
        await self._fire("PostCompact", compressing.trigger, {"trigger": compressing.trigger})
        answer = await self._fire("SessionStart", "compact", {"source": "compact"})
        if answer.context and not tell_model(answer.context):
            self._waiting.append(answer.context)

    async def _before_subagent(self, start: SubagentStart) -> str | None:
        answer = await self._fire("SubagentStart", start.name, agent=(start.session_id, start.name))
        return answer.context or None

    async def _on_close(self) -> None:
        try:
            if self._begun and self.runner.has("SessionEnd"):
                async with asyncio.timeout(MAX_CLOSING_S):
                    await self._fire("SessionEnd", "other", {"reason": "other"})
        except TimeoutError:
            pass
        finally:
            await self.runner.close()

    # --- one event

    async def _fire(
        self,
        event: Event,
        subject: str,
        details: Mapping[str, Any] | None = None,
        *,
        call: ToolCall | None = None,
        agent: tuple[str, str] = ("", ""),
    ) -> Answer:
        if not self.runner.has(event):
            return Answer()
        facts = self._facts()
        answer = await self.runner.run(
            Occasion(
                event,
                facts.session_id,
                facts.transcript,
                facts.directory,
                facts.model,
                facts.mode,
                facts.prompt_id or facts.session_id,
                agent[0] or facts.agent_id,
                agent[1] or facts.agent_name,
                subject,
                call.id if call is not None else "",
                (jsontext.decode_object(call.arguments) or {}) if call is not None else {},
                dict(details or {}),
            )
        )
        answer = self._without_keys(answer)
        for message in answer.messages:
            self._tell(say("hooks.message", text=message))
        for warning in answer.warnings:
            if warning not in self._told:  # the same once: a hook may fail at every call
                self._told.add(warning)
                self._tell(warning)
        return answer

    def _without_keys(self, answer: Answer) -> Answer:
        """A hook may show a file that one of our keys stands in, as a tool may."""
        hide = self._agent._harness.outputs.hide if self._agent is not None else str
        return msgspec.structs.replace(
            answer,
            reason=hide(answer.reason),
            context=hide(answer.context),
            replacement=hide(answer.replacement) if answer.replacement is not None else None,
            stop_reason=hide(answer.stop_reason),
            messages=tuple(map(hide, answer.messages)),
            warnings=tuple(map(hide, answer.warnings)),
        )

    def _holds(self, hook: Hook, occasion: Occasion) -> bool:
        from dragoman.app.hook_conditions import holds

        return holds(hook.condition, occasion, self._agent)

    async def _post(self, hook: Hook, body: bytes) -> Posted:
        from dragoman.app.http_hooks import post_hook

        return await post_hook(self._setup, self._agent, hook, body)

    def _facts(self) -> AtWork:
        facts = at_work()
        if facts is not None:
            return facts
        assert self._agent is not None, "bound before anything is run"
        return self._agent.describe()

    def _tell(self, text: str) -> None:
        if not tell_user(NoticeGiven("hook", str(text))):
            logging.getLogger("dragoman.hooks").info("%s", text)


class Agreement:
    """Whether a hook may run now: the user's own do; a project's, and those that run a file of the workspace, if the user has agreed to
    what they run as it is now."""

    def __init__(self, setup: Setup, found: HooksOf) -> None:
        self._path = setup.places.hooks_file
        self._agreed = found.agreed
        self._workspace = found.workspace
        self._ran = {hook.id for hook in found.hooks if found.state(hook) == "runs"}
        """Those that might run at the start."""

    def refuse(self, hook: Hook) -> str | None:
        bound = to_agree(hook, self._workspace)
        if bound is None:
            return None
        now = hash_of(bound)
        if now not in self._agreed:
            self._agreed = read_agreed(self._path)  # the user may have agreed meanwhile
        said = self._agreed.get(now)
        if said is not None and said.is_yes:
            return None
        return str(say("hooks_changed", command=hook.line, place=str(hook.origin))) if hook.id in self._ran else ""


def environment_of(setup: Setup) -> dict[str, str]:
    """What hooks get of our environment: no keys, unless the user lets them through."""
    return child_environment(pass_variables(setup.config.tools.pass_env), secret_variables(catalog_of(setup)))


def _with_answer(output: ToolOutput, answer: Answer) -> ToolOutput:
    if answer.replacement is not None:
        command = output.command
        if command is not None:  # what was replaced is not to be on the record
            command = msgspec.structs.replace(command, stdout=answer.replacement, stderr="")
        output = msgspec.structs.replace(output, content=(Text(answer.replacement),), saw=(), files=(), command=command)
    words = [answer.context] if answer.replacement is not None else [answer.reason if answer.blocks else "", answer.context]
    added = "\n\n".join(each for each in words if each)
    if not added:
        return output
    return msgspec.structs.replace(output, content=(*output.content, Text(f"\n\n{ADDED}\n{added}")))
