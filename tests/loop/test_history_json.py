"""A history as JSON text: what goes out comes in again, and sends the same requests."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman.loop.history import History
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.errors import InputError
from dragoman.values.messages import user
from dragoman.values.record import Entry, Unknown
from property.test_fold import Session
from scenarios.workshop import PlainTool, agent_for
from sessions.entries import sessions


@given(st.data())
def test_any_conversation_sends_the_same_after_it(data: st.DataObject) -> None:
    session = Session(data)
    for _ in range(data.draw(st.integers(1, 3))):
        session.step()
    again = History.from_json(session.history.to_json())
    assert again.entries == session.history.entries
    assert again.request == session.history.request
    assert again.view.session_id == session.history.view.session_id


@given(sessions())
def test_any_entries_come_back(entries: tuple[Entry, ...]) -> None:
    history = History(entries=entries)
    again = History.from_json(history.to_json().encode())
    assert again.request == history.request
    assert again.to_json() == history.to_json(), "nothing is lost on the way"


def test_an_agent_goes_on_from_it() -> None:
    with agent_for('call: look {"path": "a"}\n---\ntext: Seen.', PlainTool("look"), system="Be kind.") as agent:
        agent.run_sync("hi", instructions="Answer in French.")
        text = agent.history.to_json()
    assert [entry["kind"] for entry in json.loads(text)][:2] == ["configured", "said"]
    with dm.Agent(ScriptedProvider("text: Good."), session=History.from_json(text), tools=dm.ToolOptions(builtin=False)) as agent:
        assert agent.history.request.system == "Be kind.\n\nAnswer in French."
        agent.run_sync("more")
        assert isinstance(agent.provider, ScriptedProvider)
        texts = [message.text for message in agent.provider.requests[0].messages]
    assert "hi" in texts
    assert texts[-1] == "more"


def test_what_a_later_version_wrote_is_kept() -> None:
    text = '[{"kind":"from_the_future","seq":1,"timestamp_ms":2,"what":"?"}]'
    history = History.from_json(text)
    assert isinstance(history.entries[0], Unknown)
    assert json.loads(history.to_json()) == json.loads(text)


def test_half_a_surrogate_pair_does_no_harm() -> None:
    history = History()
    history.say(user("a\ud800b"))
    assert len(History.from_json(history.to_json()).view.messages) == 1


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[{}]", "[", b"\xff", "nonsense", "\ud800"])
def test_what_is_no_history_is_refused(text: str | bytes) -> None:
    with pytest.raises(InputError, match="not a history"):
        History.from_json(text)
