"""Hooks around prompts, questions, summaries and agents inside others: what they see and change, and that it is on the record."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.errors import HookStopped
from dragoman.events import NoticeGiven
from dragoman.hooks import Compressing, Hooks, Proceed, SubagentEnd, SubagentStart, at_work, stop_run
from dragoman.options import ApprovalOptions
from dragoman.record import Said
from dragoman.rules import ask as ask_rule
from dragoman.rules import deny
from dragoman.testing import ScriptedProvider

CALL = 'call: sail {"to": "Sur"}\n---\ntext: We sail.'


def make_sail(seen: list[str]) -> Any:
    @dm.tool(kind="execute")
    def sail(to: str) -> str:
        """Set sail."""
        seen.append(to)
        return f"sailing to {to}"

    return sail


def said_by_hooks(agent: dm.Agent) -> list[str]:
    return [entry.message.text for entry in agent.history.entries if isinstance(entry, Said) and entry.about == "hook"]


# --- prompts


def test_a_hook_adds_to_a_prompt_and_a_resumed_session_sends_the_same(tmp_path: Path) -> None:
    async def note(prompt: dm.Message) -> str:
        facts = at_work()
        assert facts is not None
        assert facts.transcript.startswith(str(tmp_path))
        return f"{prompt.text} was asked on a Friday."

    provider = ScriptedProvider("text: One.\n---\ntext: Two.")
    with dm.Agent(provider, session=tmp_path, hooks=Hooks(before_prompt=note)) as agent:
        agent.run_sync("When")
        session = agent.session_id
        assert said_by_hooks(agent) == ["When was asked on a Friday."]
    with dm.Agent(provider, session=dm.options.SessionOptions(tmp_path, session)) as agent:
        agent.run_sync("And then?")
    first, second = provider.requests
    assert [message.text for message in first.messages] == ["When", "When was asked on a Friday."]
    assert second.messages[:2] == first.messages


def test_a_refused_prompt_is_not_on_the_record() -> None:
    def refuse(prompt: dm.Message) -> None:
        if "secret" in prompt.text:
            raise HookStopped("it has a secret")

    provider = ScriptedProvider("text: One.")
    with dm.Agent(provider, hooks=Hooks(before_prompt=refuse)) as agent:
        with pytest.raises(HookStopped, match="it has a secret"):
            agent.run_sync("a secret")
        assert agent.history.view.messages == ()
        assert agent.run_sync("nothing").text == "One."
    assert [message.text for message in provider.requests[0].messages] == ["nothing"]


def test_a_prompt_is_asked_about_once_though_it_is_sent_again_after_a_failure() -> None:
    asked: list[str] = []
    provider = ScriptedProvider("error: 400 no\n---\ntext: One.")
    with dm.Agent(provider, hooks=Hooks(before_prompt=lambda prompt: asked.append(prompt.text))) as agent:
        with pytest.raises(dm.errors.ProviderError):
            agent.run_sync("When?")
        assert agent.run_sync("When?").text == "One."
    assert asked == ["When?"]


def test_what_is_said_during_a_run_is_asked_about_too() -> None:
    async def scenario() -> None:
        def refuse(prompt: dm.Message) -> None:
            if "secret" in prompt.text:
                raise HookStopped("it has a secret")

        provider = ScriptedProvider('call: sail {"to": "Sur"}\n---\ntext: We sail.')
        async with dm.Agent(
            provider, tools=[make_sail([])], approval=ApprovalOptions(ask=lambda call, view: dm.Allow()), hooks=Hooks(before_prompt=refuse)
        ) as agent:
            run = agent.run("Sail.")
            run.steer("a secret")
            run.steer("quickly")
            events = [event async for event in run]
        assert "it has a secret" in [event.message for event in events if isinstance(event, NoticeGiven)]
        texts = [message.text for message in provider.requests[-1].messages]
        assert "quickly" in texts
        assert "a secret" not in texts

    asyncio.run(scenario())


# --- questions


@pytest.mark.parametrize(
    ("hook", "sailed", "questions"),
    [
        (Hooks(before_call=lambda call: Proceed(question="skip")), ["Sur"], 0),
        (Hooks(before_call=lambda call: Proceed('{"to": "Muscat"}')), ["Muscat"], 1),
        (Hooks(before_call=lambda call: Proceed('{"to": "Muscat"}', "skip")), ["Muscat"], 0),
        (Hooks(before_ask=lambda call, view: dm.Allow()), ["Sur"], 0),
        (Hooks(before_ask=lambda call, view: dm.Allow('{"to": "Muscat"}')), ["Muscat"], 0),
        (Hooks(before_ask=lambda call, view: dm.Deny("not today")), [], 0),
        (Hooks(before_ask=lambda call, view: None), ["Sur"], 1),
    ],
)
def test_hooks_before_a_question(hook: Hooks, sailed: list[str], questions: int) -> None:
    seen: list[str] = []
    asked: list[str] = []

    def ask(call: dm.ToolCall, view: Any) -> dm.Allow:
        asked.append(call.arguments)
        return dm.Allow()

    with dm.Agent(ScriptedProvider(CALL), tools=[make_sail(seen)], approval=ApprovalOptions(ask=ask), hooks=hook) as agent:
        agent.run_sync("Sail.")
    assert (seen, len(asked)) == (sailed, questions)


def test_a_hook_has_a_person_asked_whatever_allows_it() -> None:
    seen: list[str] = []
    asked: list[str] = []

    def ask(call: dm.ToolCall, view: Any) -> dm.Deny:
        asked.append(call.name)
        return dm.Deny("no")

    @dm.tool(read_only=True)
    def look() -> str:
        """Look."""
        seen.append("looked")
        return "sea"

    hooks = Hooks(before_call=lambda call: Proceed(question="ask"))
    with dm.Agent(ScriptedProvider("call: look {}\n---\ntext: No."), tools=[look], approval=ApprovalOptions(ask=ask), hooks=hooks) as agent:
        agent.run_sync("Look.")
    assert (seen, asked) == ([], ["look"])


def test_a_hook_s_yes_does_not_override_rules() -> None:
    seen: list[str] = []
    asked: list[str] = []

    def ask(call: dm.ToolCall, view: Any) -> dm.Deny:
        asked.append(call.name)
        return dm.Deny("no")

    for decision, questions in (("deny", 0), ("ask", 1)):
        asked.clear()
        rules = [deny("sail") if decision == "deny" else ask_rule("sail")]
        hooks = Hooks(before_call=lambda call: Proceed(question="skip"))
        approval = ApprovalOptions(ask=ask, rules=rules)
        with dm.Agent(ScriptedProvider(CALL), tools=[make_sail(seen)], approval=approval, hooks=hooks) as agent:
            agent.run_sync("Sail.")
        assert (seen, len(asked)) == ([], questions)


# --- the run


def test_a_hook_ends_the_run_before_the_model_is_asked_again() -> None:
    async def stop(call: dm.ToolCall, go: Any) -> Any:
        output = await go()
        stop_run("enough")
        return output

    seen: list[str] = []
    provider = ScriptedProvider(CALL + "\n---\ntext: Again.")
    approval = ApprovalOptions(ask=lambda call, view: dm.Allow())
    with dm.Agent(provider, tools=[make_sail(seen)], approval=approval, hooks=Hooks(around_call=stop)) as agent:
        with pytest.raises(HookStopped, match="enough"):
            agent.run_sync("Sail.")
        assert (seen, len(provider.requests)) == (["Sur"], 1)
        assert agent.run_sync("Go on.").text == "We sail."


def test_hooks_hear_of_the_end_once() -> None:
    ended: list[str] = []
    agent = dm.Agent(ScriptedProvider("text: hi"), hooks=Hooks(on_close=lambda: ended.append("end")))
    agent.run_sync("hi")
    agent.close()
    agent.close()
    assert ended == ["end"]


# --- summaries, and agents inside


def test_hooks_around_a_summary() -> None:
    heard: list[Compressing] = []
    provider = ScriptedProvider("\n---\n".join(["text: " + "word " * 400] * 6 + ["text: <snapshot><goal>short</goal></snapshot>"]))
    hooks = Hooks(before_compress=lambda about: "Keep the harbours.", after_compress=heard.append)
    with dm.Agent(provider, hooks=hooks) as agent:
        for number in range(6):
            agent.run_sync(f"{number} " + "wave " * 400)
        done = agent.compress_sync()
    assert done.status == "compressed"
    assert "Keep the harbours." in str(provider.requests[-1])
    assert [(each.trigger, each.status) for each in heard] == [("manual", "compressed")]


def test_a_hook_leaves_a_summary_undone() -> None:
    provider = ScriptedProvider("\n---\n".join(["text: " + "word " * 400] * 6))
    with dm.Agent(provider, hooks=Hooks(before_compress=lambda about: dm.Deny("not now"))) as agent:
        for number in range(6):
            agent.run_sync(f"{number} " + "wave " * 400)
        done = agent.compress_sync()
    assert (done.status, done.reason) == ("noop", "not now")


@pytest.mark.parametrize("everywhere", [True, False])
def test_hooks_around_an_agent_inside_another(everywhere: bool) -> None:
    started: list[SubagentStart] = []
    ended: list[SubagentEnd] = []
    called: list[tuple[str, str]] = []

    def start(about: SubagentStart) -> str:
        started.append(about)
        return "Be quick."

    def guard(call: dm.ToolCall) -> None:
        facts = at_work()
        assert facts is not None
        called.append((call.name, facts.agent_name))

    inner_model = ScriptedProvider("call: look {}\n---\ntext: Sea.")

    @dm.tool(read_only=True)
    def look() -> str:
        """Look."""
        return "sea"

    inner = dm.Agent(inner_model, tools=[look])
    hooks = Hooks(before_subagent=start, after_subagent=ended.append, before_call=guard, everywhere=everywhere)
    outer = ScriptedProvider('call: scout {"prompt": "Look."}\n---\ntext: Done.')
    with inner, dm.Agent(outer, tools=[inner.as_tool("scout", "Looks.")], hooks=hooks) as agent:
        agent.run_sync("Go.")
    assert [(each.name, each.prompt) for each in started] == [("scout", "Look.")]
    assert [(each.name, each.text, each.session_id == started[0].session_id) for each in ended] == [("scout", "Sea.", True)]
    assert inner_model.requests[0].messages[-1].text == "Look.\n\nBe quick."
    assert called == [("scout", ""), *([("look", "scout")] if everywhere else [])]
