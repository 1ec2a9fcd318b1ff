"""An agent whose conversation is kept: begun with the first prompt, resumed, undone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents import make_agent
from dragoman.loop.agent import Agent
from dragoman.sessions.opening import open_read_only
from dragoman.sessions.store import FileStore
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Intent
from dragoman.values.errors import InputError
from dragoman.values.events import PromptAccepted, SavingChanged
from dragoman.values.messages import Blob, ToolCall
from dragoman.values.record import Started
from scenarios.workshop import events_of, play


async def allow(call: ToolCall, view: Intent) -> Allow:
    return Allow()


def keeping(script: str, tmp_path: Path, resume: str = "") -> Agent:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return make_agent(ScriptedProvider(script), workspace=work, sessions=tmp_path / "sessions", resume=resume, approval="auto-edit")


def logs(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "sessions").rglob("*.jsonl"))


def test_nothing_is_written_before_something_is_said(tmp_path: Path) -> None:
    async def go() -> None:
        async with keeping("text: Hi.", tmp_path) as agent:
            assert logs(tmp_path) == []
            await agent.run("hello")
            assert len(logs(tmp_path)) == 1

    play(go)


def test_the_log_holds_what_the_history_holds_with_a_head(tmp_path: Path) -> None:
    async def go() -> None:
        async with keeping("text: Hi.", tmp_path) as agent:
            await agent.run("hello")
        loaded = open_read_only(logs(tmp_path)[0])
        assert loaded.entries == tuple(agent.history.entries)
        head = loaded.entries[0]
        assert isinstance(head, Started)
        assert head.session_id == agent.session_id == logs(tmp_path)[0].stem

    play(go)


def test_the_prompt_is_on_disk_when_it_is_accepted(tmp_path: Path) -> None:
    async def go() -> None:
        async with keeping("text: Hi.", tmp_path) as agent, agent.run("hello sea") as run:
            async for event in run:
                if isinstance(event, PromptAccepted):
                    assert b"hello sea" in logs(tmp_path)[0].read_bytes()
                    return
            raise AssertionError("the prompt was never accepted")

    play(go)


def test_resumed_it_sends_what_the_live_one_would_have(tmp_path: Path) -> None:
    async def go() -> None:
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "a.txt").write_text("amber\n")
        read = 'call: read_file {"file_path": "a.txt"}\n---\ntext: One.\n---\ntext: Two.'
        async with keeping(read, tmp_path) as first:
            await first.run("a")
        async with keeping("text: Two.", tmp_path, "latest") as second:
            await second.run("b")
        live = make_agent(ScriptedProvider(read), workspace=tmp_path / "work", approval="auto-edit")
        await live.run("a")
        await live.run("b")
        assert second.session_id == first.session_id
        resumed, unbroken = second.provider.requests[-1], live.provider.requests[-1]  # type: ignore[attr-defined]
        assert (resumed.messages, resumed.system, resumed.tools) == (unbroken.messages, unbroken.system, unbroken.tools)

    play(go)


def test_what_a_run_did_to_files_is_undone(tmp_path: Path) -> None:
    async def go() -> None:
        story = tmp_path / "work" / "story.txt"
        story.parent.mkdir()
        story.write_text("old\n")
        script = """
            call: read_file {"file_path": "story.txt"}
            ---
            call: edit {"file_path": "story.txt", "old_string": "old", "new_string": "new"}
            call: write_file {"file_path": "made/b.txt", "content": "b"}
            ---
            text: Done.
        """
        async with keeping(script, tmp_path) as agent:
            await agent.run("change it")
            assert story.read_text() == "new\n"
            changed = agent.undo()
            assert story.read_text() == "old\n"
            assert not (tmp_path / "work" / "made" / "b.txt").exists()
            assert sorted(Path(path).name for path in changed) == ["b.txt", "story.txt"]
            assert agent.undo() == (), "once"

    play(go)


def test_going_back_takes_the_files_along_where_that_is_wanted(tmp_path: Path) -> None:
    async def go() -> None:
        script = """
            text: One.
            ---
            call: write_file {"file_path": "b.txt", "content": "b"}
            ---
            text: Two.
            ---
            text: Three.
            ---
            call: write_file {"file_path": "b.txt", "content": "b"}
            ---
            text: Four.
        """
        async with keeping(script, tmp_path) as agent:
            await agent.run("first")
            here = agent.history.entries[-1].seq
            await agent.run("second")
            made = tmp_path / "work" / "b.txt"
            assert [Path(path).name for path in agent.restore_files(here)] == ["b.txt"]
            assert not made.exists()
            assert agent.history.view.messages[-1].text == "Two.", "the files alone"
            assert agent.rewind(here, files=True) == (), "they are back already"
            assert [message.text for message in agent.history.view.messages][1:] == ["first", "One."]
            assert (await agent.run("third")).text == "Three."
            await agent.run("fourth")
            assert [Path(path).name for path in agent.rewind(here, files=True)] == ["b.txt"]
            assert not made.exists()
            with pytest.raises(InputError, match="no entry 999"):
                agent.rewind(999)

    play(go)


def test_what_somebody_changed_since_is_not_undone_unless_forced(tmp_path: Path) -> None:
    async def go() -> None:
        async with keeping('call: write_file {"file_path": "b.txt", "content": "b"}\n---\ntext: Done.', tmp_path) as agent:
            await agent.run("write it")
            made = tmp_path / "work" / "b.txt"
            made.write_text("mine")
            with pytest.raises(InputError, match="nothing was undone"):
                agent.undo()
            assert made.read_text() == "mine"
            agent.undo(force=True)
            assert not made.exists()

    play(go)


def test_a_picture_that_was_read_is_there_after_a_resume(tmp_path: Path) -> None:
    async def go() -> None:
        (tmp_path / "work").mkdir()
        picture = b"\x89PNG\r\n\x1a\n" + bytes(40)
        (tmp_path / "work" / "a.png").write_bytes(picture)
        async with keeping('call: read_file {"file_path": "a.png"}\n---\ntext: I see.', tmp_path) as first:
            await first.run("look")
        async with keeping("text: Still.", tmp_path, "latest") as second:
            [blob] = [
                part for message in second.history.view.messages for result in message.results for part in result.content
                if isinstance(part, Blob)
            ]  # fmt: skip
            assert second.blobs.get(blob.sha256) == picture

    play(go)


def test_long_output_is_found_again_after_a_resume_and_goes_with_the_session(tmp_path: Path) -> None:
    async def go() -> None:
        long = keeping('call: run_shell {"command": "seq 20000"}\n---\ntext: Long.', tmp_path)
        long.approvals.ask = allow
        async with long as first:
            await first.run("count")
        [spilled] = (tmp_path / "sessions").rglob("outputs/*/*")
        script = f'call: read_file {{"file_path": "{spilled}", "offset": 19999}}\n---\ntext: There.'
        async with keeping(script, tmp_path, "latest") as second:
            result = await second.run("read it")
            assert (result.text, result.tool_failures) == ("There.", 0)
        store = FileStore(tmp_path / "sessions")
        store.delete(store.find("latest", tmp_path / "work").path)
        assert not spilled.exists()

    play(go)


def test_a_fault_is_told_in_the_run_and_the_answer_comes(tmp_path: Path) -> None:
    async def go() -> None:
        agent = keeping("text: Hi.", tmp_path)
        (tmp_path / "sessions").write_text("in the way")
        events = await events_of(agent.run("hello"))
        [told] = [event for event in events if isinstance(event, SavingChanged)]
        assert not told.saved
        assert "NOT being saved" in told.reason
        assert agent.history.view.messages[-1].text == "Hi."
        await agent.aclose()

    play(go)


def test_the_model_of_the_session_is_the_one_to_go_on_with(tmp_path: Path) -> None:
    asked: list[str] = []

    def connect(name: str, blobs: object) -> ScriptedProvider:
        asked.append(name)
        return ScriptedProvider("text: Two.", name="scripted")

    async def go() -> None:
        async with keeping("text: One.", tmp_path) as first:
            await first.run("a")
        second = make_agent(None, connect=connect, workspace=tmp_path / "work", sessions=tmp_path / "sessions", resume="latest")
        assert (await second.run("b")).text == "Two."
        assert asked == ["scripted/scripted"]
        await second.aclose()

    play(go)


def test_without_a_model_and_without_a_conversation_it_is_told() -> None:
    with pytest.raises(InputError, match="name a model"):
        make_agent(None)


def test_a_resumed_session_is_the_agents_alone_until_it_is_closed(tmp_path: Path) -> None:
    async def go() -> None:
        async with keeping("text: One.", tmp_path) as first:
            await first.run("a")
            with pytest.raises(InputError, match="in use"):
                await asyncio.to_thread(keeping, "text: Two.", tmp_path, "latest")
        async with keeping("text: Two.", tmp_path, "latest") as second:
            assert (await second.run("b")).text == "Two."

    play(go)
