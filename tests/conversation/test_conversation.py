"""One conversation that several front ends watch, send to and answer: the real agent of the program, against a loopback service."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.app.options import Options
from dragoman.conversation.blocks import join_events
from dragoman.conversation.conversation import Conversation
from dragoman.conversation.events import read_events
from dragoman.conversation.types import QuestionAnswer, ViewEvent
from dragoman.testing.mock.server import MockServer
from dragoman.values.errors import InputError
from dragoman.words import say
from program import Place

WRITE = 'call: write_file {"file_path": "a.txt", "content": "hello\\n"}'


class Watcher:
    """A front end: what it was told, and waiting for what is to come."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.told: list[ViewEvent] = []
        self._changed = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        async for event in self.conversation.watch():
            self.told = [] if event.id == "begin_anew" else [*self.told, event]
            self._changed.set()

    async def until(self, holds: Callable[[], Any]) -> Any:
        async with asyncio.timeout(60):
            while not (found := holds()):
                await self._changed.wait()
                self._changed.clear()
        return found

    async def question(self) -> dict[str, Any]:
        """The next that is asked."""

        def asked() -> dict[str, Any] | None:
            waits = [each.data["question"] for each in self.blocks if each.kind == "question" and each.state == "waiting"]
            return waits[-1] if waits else None

        return await self.until(asked)

    @property
    def blocks(self) -> list[ViewEvent]:
        blocks: dict[str, ViewEvent] = {}
        for event in self.told:
            if event.append and event.id in blocks:
                event = join_events([_lasting(blocks[event.id]), _lasting(event)])[0]
            blocks[event.id] = event
        return [block for block in blocks.values() if block.state != "gone"]

    async def closed(self) -> None:
        async with asyncio.timeout(60):
            await self._task


def _lasting(event: ViewEvent) -> ViewEvent:
    import msgspec

    return msgspec.structs.replace(event, passing=False)


@asynccontextmanager
async def talk(
    tmp_path: Path, script: str, *, folder: Path | None = None, **options: Any
) -> AsyncIterator[tuple[Conversation, MockServer]]:
    place = Place(folder or _made(tmp_path))
    async with MockServer(script) as server:
        env = place.env | {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
        where = Options(model="anthropic/claude-opus-5", directory=str(place.work), sandbox="off", **options)
        conversation = await Conversation.open(where, env)
        try:
            yield conversation, server
        finally:
            await conversation.close()


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def play(scene: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(scene())  # type: ignore[arg-type]


def test_a_prompt_is_answered_and_two_front_ends_see_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        async with talk(tmp_path, "text piece=2: Hello there.\n---\ntext: Again.") as (conversation, _):
            first = Watcher(conversation)
            done = await conversation.send("Hi").ended
            assert (done.how, done.result.text) == ("done", "Hello there.")
            late = Watcher(conversation)
            await conversation.send("Once more").ended
            await conversation.close()
            await first.closed()
            await late.closed()
            lasting = [each for each in first.blocks if not each.passing]
            assert [(each.kind, each.text) for each in lasting if each.kind in ("prompt", "text")] == [
                ("prompt", "Hi"),
                ("text", "Hello there."),
                ("prompt", "Once more"),
                ("text", "Again."),
            ]
            assert {each.id: each.text for each in late.blocks if not each.passing} == {each.id: each.text for each in lasting}
            told = [each.seq for each in first.told if each.id != "session"]  # which changes while others stand
            assert told == sorted(told)

    play(scene)


def test_what_is_seen_is_what_the_record_shows_later(tmp_path: Path) -> None:
    async def scene() -> None:
        async with talk(tmp_path, f"thought: I write.\n{WRITE}\n---\ntext: Done.", approval="auto-edit") as (conversation, _):
            seen = Watcher(conversation)
            await conversation.send("Write it").ended
            record = conversation.agent.history.entries
            await conversation.close()
            await seen.closed()
            live = {each.id: (each.kind, each.text, each.state) for each in seen.blocks if not each.passing and each.kind != "question"}
            assert live == {each.id: (each.kind, each.text, each.state) for each in read_events(record)}

    play(scene)


@pytest.mark.parametrize(
    ("choice", "text", "state", "written"),
    [
        ("y", "", "done", "hello\n"),
        ("a", "", "done", "hello\n"),
        ("n", "", "refused", None),
        ("r", "not there", "refused", None),
        ("e", json.dumps({"file_path": "a.txt", "content": "edited\n"}), "done", "edited\n"),
    ],
)
def test_a_call_is_asked_about_and_answered_by_id(tmp_path: Path, choice: str, text: str, state: str, written: str | None) -> None:
    async def scene() -> None:
        async with talk(tmp_path, f"{WRITE}\n---\ntext: Done.") as (conversation, server):
            seen = Watcher(conversation)
            sent = conversation.send("Write it")
            asked = await seen.question()
            assert asked["detail"].endswith("+hello")
            assert list(asked["paths"]) == [str(tmp_path / "work" / "a.txt")]
            known = {each["key"]: each["meaning"] for each in asked["choices"]}
            assert known == {
                "y": "allow",
                "a": "allow_session",
                "s": "allow_folder",
                "n": "deny",
                "r": "deny_because",
                "e": "edit",
                "esc": "stop",
            }
            conversation.answer(QuestionAnswer(asked["id"], choice, text))
            if choice == "e":
                again = await seen.until(lambda: next((each for each in conversation.open_questions if each.id != asked["id"]), None))
                assert again.detail.endswith("+edited")
                conversation.answer(QuestionAnswer(again.id, "y"))
            assert (await sent.ended).how == "done"
            await conversation.close()
            await seen.closed()
            (call,) = [each for each in seen.blocks if each.kind == "call"]
            assert call.state == state
            (question,) = [each for each in seen.blocks if each.id == f"{call.id}.question"]
            assert question.kind == "answered"
            assert question.state == ("refused" if state == "refused" else "allowed")
            file = tmp_path / "work" / "a.txt"
            assert (file.read_text() if file.exists() else None) == written
            if text == "not there":
                assert "not there" in json.dumps(server.requests[-1].body)

    play(scene)


def test_wrong_answers_leave_the_question_open(tmp_path: Path) -> None:
    async def scene() -> None:
        async with talk(tmp_path, f"{WRITE}\n---\ntext: Done.") as (conversation, _):
            sent = conversation.send("Write it")
            asked = await Watcher(conversation).question()
            for wrong in (
                QuestionAnswer("q99", "y"),
                QuestionAnswer(asked["id"], "maybe"),
                QuestionAnswer(asked["id"]),
                QuestionAnswer(asked["id"], "e"),
                QuestionAnswer(asked["id"], "e", "{"),
                QuestionAnswer(asked["id"], "e", '{"file_path": 3}'),
            ):
                with pytest.raises(InputError):
                    conversation.answer(wrong)
            conversation.answer(QuestionAnswer(asked["id"], "y"))
            await sent.ended
            with pytest.raises(InputError, match="no longer open"):
                conversation.answer(QuestionAnswer(asked["id"], "y"))

    play(scene)


def test_a_run_is_stopped_while_it_asks_and_while_it_streams(tmp_path: Path) -> None:
    async def scene() -> None:
        async with talk(
            tmp_path, f"{WRITE}\n---\nanswer: piece_bytes=200 piece_wait=0.02\ntext piece=20: {'long ' * 2000}\n---\ntext: Here."
        ) as (conversation, _):
            seen = Watcher(conversation)
            sent = conversation.send("Write it")
            await seen.question()
            assert conversation.cancel()
            assert not conversation.cancel()
            assert (await sent.ended).how == "cancelled"
            assert conversation.open_questions == ()
            sent = conversation.send("Talk")
            await seen.until(lambda: any(each.kind == "text" and each.text for each in seen.told))
            conversation.cancel()
            assert (await sent.ended).how == "cancelled"
            assert (await conversation.send("And now?").ended).how == "done"

    play(scene)


def test_what_is_sent_during_a_run_waits_steers_or_is_taken_back(tmp_path: Path) -> None:
    async def scene() -> None:
        script = f"{WRITE}\n---\ntext: First.\n---\ntext: Second."
        async with talk(tmp_path, script) as (conversation, server):
            seen = Watcher(conversation)
            first = conversation.send("One")
            asked = await seen.question()
            second, third = conversation.send("Two"), conversation.send("Three")
            steered = conversation.send("by the way", when="steer")
            assert (await steered.ended).how == "steered"
            waiting = await seen.until(lambda: next((each.data["items"] for each in seen.blocks[::-1] if each.id == "waiting"), None))
            assert waiting[0] == {"id": second.id, "text": "Two"}
            assert conversation.take_back(third.id) is third
            assert (await third.ended).how == "taken_back"
            with pytest.raises(InputError):
                conversation.take_back(third.id)
            conversation.answer(QuestionAnswer(asked["id"], "y"))
            assert (await first.ended).result.text == "First."
            assert (await second.ended).result.text == "Second."
            assert "by the way" in json.dumps(server.requests[1].body)
            await conversation.close()
            await seen.closed()
            assert [each.data["items"] for each in seen.blocks if each.id == "waiting"] == [[]]

    play(scene)


def test_slash_commands_answer_with_a_page_and_never_reach_the_model(tmp_path: Path) -> None:
    async def scene() -> None:
        async with talk(tmp_path, "text: Hello.") as (conversation, server):
            assert "claude-opus-5" in (await conversation.run_command("/model")).text
            wrong = await conversation.run_command("/nosuchthing")
            assert "/nosuchthing" in wrong.text
            assert (await conversation.run_command("/rename")).text
            assert server.requests == []
            await conversation.send("//starts with a slash").ended
            assert "/starts with a slash" in json.dumps(server.requests[0].body)
            assert "1" in (await conversation.run_command("/usage")).text
            page = await conversation.run_command("/rename A new title")
            assert "A new title" in page.text
            titled = next(each for each in conversation.blocks if each.id == "session")
            assert titled.data["title"] == "A new title"

    play(scene)


def test_a_command_that_takes_long_does_not_stop_other_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E.g. `/models`, where a server on this machine takes a connection and then says nothing."""
    answered = threading.Event()
    monkeypatch.setattr("dragoman.conversation.subcommand._call", lambda options: f"{options.command}: {answered.wait(60)}")

    async def scene() -> None:
        async with talk(tmp_path, "text: Hello.") as (conversation, _), talk(tmp_path / "other", "text: Aye.") as (other, _):
            pages = [asyncio.create_task(conversation.run_command(f"/{line}")) for line in ("models", "config", "sessions list")]
            assert (await other.send("Ahoy").ended).how == "done"
            assert not any(page.done() for page in pages)
            answered.set()
            assert [(await page).text for page in pages] == ["models: True", "config: True", "sessions: True"]

    play(scene)


def test_a_command_beside_a_run_that_breaks_has_a_page_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(talk: Any, rest: str) -> str:
        raise RuntimeError("out of ink")

    monkeypatch.setattr("dragoman.conversation.slash.function_of", lambda command: broken)

    async def scene() -> None:
        async with talk(tmp_path, f"{WRITE}\n---\ntext: Done.") as (conversation, _):
            seen = Watcher(conversation)
            sent = conversation.send("Write it")
            asked = await seen.question()
            async with asyncio.timeout(60):
                page = await conversation.run_command("/usage")
            assert page.failed
            assert "RuntimeError: out of ink" in page.text
            conversation.answer(QuestionAnswer(asked["id"], "y"))
            assert (await sent.ended).how == "done"

    play(scene)


def test_who_waits_for_a_command_beside_a_run_is_told_when_the_conversation_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr("dragoman.conversation.subcommand._call", lambda options: str(released.wait(60)))
    monkeypatch.setattr("dragoman.conversation.conversation.ENDING_S", 0.05)

    async def scene() -> None:
        async with talk(tmp_path, f"{WRITE}\n---\ntext: Done.") as (conversation, _):
            seen = Watcher(conversation)
            conversation.send("Write it")
            await seen.question()
            sent = conversation.send("/approvals list")
            await conversation.close()
            assert (await sent.ended).how == "cancelled"
            released.set()

    play(scene)


@pytest.mark.parametrize("line", ["/sessions show nosuchsession", "/models fly", "/context --at 7000", "/config --at 3", "/rename"])
def test_a_command_that_could_not_be_carried_out_says_so_as_data(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with talk(tmp_path, "text: Hello.") as (conversation, _):
            for name, value in conversation.setup.env.items():
                monkeypatch.setenv(name, value)
            await conversation.send("Hi").ended
            page = await conversation.run_command(line)
            assert page.failed
            assert page.text
            listed = (await conversation.run_command("/resume")).text
            assert listed.splitlines()[-1] == say("conversation.resume_usage"), "below the list"
            assert not (await conversation.run_command("/sessions show")).failed

    play(scene)


def test_settings_are_changed_for_what_follows(tmp_path: Path) -> None:
    async def scene() -> None:
        async with talk(tmp_path, "text: One.\n---\ntext: Two.") as (conversation, server):
            conversation.set_mode("auto-edit")
            conversation.set_effort("low")
            assert (conversation.mode, conversation.effort) == ("auto-edit", "low")
            with pytest.raises(InputError):
                conversation.set_mode("reckless")
            with pytest.raises(InputError):
                conversation.set_effort("enormous")
            await conversation.send("One").ended
            conversation.change_model("anthropic/claude-haiku-5-5")
            await conversation.send("Two").ended
            assert [each.body["model"] for each in server.requests] == ["claude-opus-5", "claude-haiku-5-5"]

    play(scene)


def test_it_goes_on_with_its_session_after_it_was_closed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with talk(tmp_path, "text: One.") as (conversation, _):
            await conversation.send("Remember this").ended
            before, session_id = conversation.blocks, conversation.session_id
        async with MockServer("text: Two.") as server:
            env = Place.__new__(Place)
            env.home, env.work, env.service, env.ui, env.more_env = tmp_path / "home", tmp_path / "work", None, "plain", {}
            found = env.env | {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
            again = await Conversation.open(Options(directory=str(tmp_path / "work"), resume=session_id), found)
            lasting = {each.id: each.text for each in before if not each.passing}
            assert {each.id: each.text for each in again.blocks if not each.passing} == lasting
            await again.send("Go on").ended
            assert "Remember this" in json.dumps(server.requests[0].body)
            await again.close()

    play(scene)


def test_a_folder_is_untrusted_until_somebody_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        folder = _made(tmp_path)
        place = Place(folder)
        (place.work / "AGENTS.md").write_text("Always answer in rhymes.\n")
        async with MockServer("text: One.\n---\ntext: Two.") as server:
            env = place.env | {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
            where = Options(model="anthropic/claude-opus-5", directory=str(place.work), sandbox="off")
            conversation = await Conversation.open(where, env, session_id="")
            seen, session_id = Watcher(conversation), conversation.session_id
            asking = asyncio.get_running_loop().create_task(conversation.ask_first())
            asked = await seen.question()
            assert (asked["kind"], [each["key"] for each in asked["choices"]]) == ("trust", ["y", "n"])
            assert "AGENTS.md" in asked["detail"]
            assert not conversation.setup.trust.is_trusted
            conversation.answer(QuestionAnswer(asked["id"], "y"))
            await asking
            assert (conversation.setup.trust.is_trusted, conversation.session_id) == (True, session_id)
            await conversation.send("Hi").ended
            assert "rhymes" in json.dumps(server.requests[0].body)
            await conversation.close()

    play(scene)


def test_nobody_answers_before_it_is_closed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with talk(tmp_path, f"{WRITE}\n---\ntext: Done.") as (conversation, _):
            sent = conversation.send("Write it")
            left = conversation.send("and this")
            await Watcher(conversation).question()
            await conversation.close()
            assert (await left.ended).how == "taken_back"
            assert (await sent.ended).how in ("cancelled", "done")
            with pytest.raises(InputError, match="closed"):
                conversation.send("more")

    play(scene)


def test_two_conversations_stand_side_by_side(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            talk(tmp_path / "a", f"{WRITE}\n---\ntext: A.") as (a, _),
            talk(tmp_path / "b", f"{WRITE}\n---\ntext: B.") as (b, _),
        ):
            sees_a, sees_b = Watcher(a), Watcher(b)
            sent_a, sent_b = a.send("Write"), b.send("Write")
            asked_a, asked_b = await sees_a.question(), await sees_b.question()
            assert asked_a["paths"] != asked_b["paths"]
            b.answer(QuestionAnswer(asked_b["id"], "n"))
            a.answer(QuestionAnswer(asked_a["id"], "y"))
            assert ((await sent_a.ended).result.text, (await sent_b.ended).result.text) == ("A.", "B.")
            assert (tmp_path / "a" / "work" / "a.txt").exists()
            assert not (tmp_path / "b" / "work" / "a.txt").exists()

    play(scene)
