"""A cassette recorded in one folder, on one day and in one language is replayed in another; what really differs is still found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from destinations import MAIN
from dragoman.context.environment import Surroundings, changed_text, environment_text, generic_text
from dragoman.context.tree import Listing
from dragoman.http.transport import HttpTransport
from dragoman.loop import surroundings
from dragoman.testing.cassette import Cassette
from dragoman.testing.mock.server import MockServer
from dragoman.testing.portable import PortablePlace, fill_places, find_places, hide_places, portable_body
from dragoman.values.errors import InputError

PROTOCOLS = list(MAIN)


@dm.tool(read_only=True)
def tides(harbour: str) -> str:
    """When the tide is high."""
    return "04:05"


def tomorrow(*args: object) -> str:
    return "Mittwoch, 3. März 2027"


async def converse(transport: Any, model: str, folder: Path, *, base_url: str = "", prompt: str = "Look at a.txt.", **options: Any) -> str:
    connection = dm.connect(model, key="key-for-tests", base_url=base_url, transport=transport)
    async with dm.coding_agent(connection, workspace=folder, **options) as agent:
        first = await agent.run(prompt)
        second = await agent.run("And now?")
    return f"{first.text} {second.text}"


def script_for(folder: Path) -> str:
    return f"""
call piece=3: read_file {{"file_path": "{folder}/a.txt"}}
call: list_directory {{"path": "{folder}"}}
---
text piece=4: It lies at {folder}/a.txt, you know.
---
text: Nothing more.
"""


def record(protocol: str, path: Path, folder: Path, **options: Any) -> str:
    async def go() -> str:
        async with MockServer(script_for(folder)) as server:
            tape = Cassette(path, HttpTransport(), mode="record")
            base_url = server.url + ("/v1" if protocol.startswith("openai") else "")
            said = await converse(tape, MAIN[protocol], folder, base_url=base_url, **options)
            await tape.aclose()
            assert [each.violation for each in server.requests] == [None] * 3
            return said

    return asyncio.run(go())


def replay(protocol: str, path: Path, folder: Path, **options: Any) -> tuple[str, int]:
    tape = Cassette(path, mode="replay")
    return asyncio.run(converse(tape, MAIN[protocol], folder, **options)), tape.remaining


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "here", "a.txt", "b.txt")


def make_folder(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("The tide is high.\n")
    return folder


def move(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Another folder with other files, another day, language, system and temporary folder."""
    elsewhere = make_folder(tmp_path / "quite" / "elsewhere", "a.txt", "b.txt")
    monkeypatch.setattr(surroundings, "today", tomorrow)
    monkeypatch.setattr(surroundings, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("TMPDIR", str(make_folder(tmp_path / "other" / "temporary" / "folder")))
    monkeypatch.chdir(elsewhere)
    return elsewhere


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_replays_elsewhere_on_another_day(protocol: str, tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = tmp_path / "tape.jsonl"
    assert record(protocol, tape, here) == f"It lies at {here}/a.txt, you know. Nothing more."
    with monkeypatch.context() as patch:
        elsewhere = move(patch, tmp_path)
        assert replay(protocol, tape, elsewhere) == (f"It lies at {elsewhere}/a.txt, you know. Nothing more.", 0)
    assert replay(protocol, tape, here)[1] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_of_the_machine_is_in_the_file(protocol: str, tmp_path: Path, here: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    record(protocol, tape, here, session=tmp_path / "sessions")
    written = tape.read_text()
    assert str(tmp_path) not in written
    assert "b.txt" not in json.loads(written.splitlines()[0])["request"]["body"]
    assert surroundings.today({}) not in written


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_recording_twice_writes_the_same_file(protocol: str, tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that version control shows what changed in the conversation, and nothing else."""
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    record(protocol, first, here, session=tmp_path / "sessions")
    record(protocol, second, move(monkeypatch, tmp_path), session=tmp_path / "others")
    bodies = [[json.loads(line)["request"]["body"] for line in each.read_text().splitlines()] for each in (first, second)]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("options", "recorded", "sent"),
    [
        ({"prompt": "Look at b.txt."}, "Look at a.txt.", "Look at b.txt."),
        ({"tools": dm.ToolOptions([tides])}, "", "tides"),
        ({"system": "Be brief."}, "", "Be brief."),
    ],
    ids=["prompt", "tool", "system"],
)
def test_a_real_difference_is_shown_where_it_is(
    protocol: str, options: dict[str, Any], recorded: str, sent: str, tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = tmp_path / "tape.jsonl"
    record(protocol, tape, here)
    with pytest.raises(InputError) as caught:
        replay(protocol, tape, move(monkeypatch, tmp_path), **options)
    told = str(caught.value)
    assert "line 1 is not what was sent: the body differs at character" in told
    assert recorded in told
    assert sent in told
    assert any(
        word in told.partition("where:")[2].splitlines()[0] for word in ("messages", "contents", "input", "tools", "system", "instructions")
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_memory_file_says_is_a_real_difference(protocol: str, tmp_path: Path, here: Path) -> None:
    def memory(text: str) -> dm.WorkspaceOptions:
        return dm.WorkspaceOptions(root=here, memory=[(str(here / "AGENTS.md"), text)])

    tape = tmp_path / "tape.jsonl"

    async def go(transport: Any, text: str, base_url: str = "") -> None:
        connection = dm.connect(MAIN[protocol], key="key-for-tests", base_url=base_url, transport=transport)
        async with dm.coding_agent(connection, workspace=memory(text)) as agent:
            await agent.run("Hello")

    async def take() -> None:
        async with MockServer("text: Hi.") as server:
            transport = Cassette(tape, HttpTransport(), mode="record")
            await go(transport, "Use tabs.", server.url + ("/v1" if protocol.startswith("openai") else ""))
            await transport.aclose()

    asyncio.run(take())
    asyncio.run(go(Cassette(tape), "Use tabs."))
    with pytest.raises(InputError, match="Use spaces"):
        asyncio.run(go(Cassette(tape), "Use spaces."))


def test_a_cassette_from_before_is_replayed_too(tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded with everything in it, as cassettes once were."""
    tape = tmp_path / "tape.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.testing.cassette.portable_body", lambda body, places: body)
        patch.setattr("dragoman.testing.cassette.hide_places", lambda chunks, places: chunks)
        record("anthropic", tape, here)
    assert str(here) in tape.read_text()
    elsewhere = move(monkeypatch, tmp_path)
    assert replay("anthropic", tape, elsewhere) == (f"It lies at {elsewhere}/a.txt, you know. Nothing more.", 0)


# --- the parts ----------------------------------------------------------------------------------------------------------------

NAMES = st.text("abcxyz éü.-", min_size=1, max_size=8).map(str.strip).filter(lambda name: name.strip(".") != "")
FOLDERS = st.lists(NAMES, min_size=2, max_size=4).map(lambda names: "/" + "/".join(names))
FACTS = st.builds(
    Surroundings,
    date=st.sampled_from(["Monday, November 16, 2026", "2027年3月3日"]),
    system=st.sampled_from(["linux", "darwin", "win32"]),
    directories=st.lists(FOLDERS, min_size=1, max_size=1).map(tuple),
    temporary=FOLDERS,
    memory=st.just((("AGENTS.md", "Use tabs.\n  And no spaces.\n\nToday's date is of no interest."),)),
).flatmap(
    lambda facts: st.builds(
        lambda names: Surroundings(
            facts.date, facts.system, facts.directories, facts.temporary, {facts.directories[0]: {"": Listing(tuple(names))}}, facts.memory
        ),
        st.lists(NAMES, unique=True, max_size=4),
    )
)


@given(FACTS, FACTS)
def test_environment_messages_are_all_alike(one: Surroundings, other: Surroundings) -> None:
    generic = generic_text(environment_text(one))
    assert generic == generic_text(environment_text(other)) == generic_text(generic)
    assert one.memory[0][1] in generic


def body_of(facts: Surroundings, more: str = "") -> str:
    text = environment_text(facts)
    changes = changed_text([text], Surroundings("another day", "another system", facts.directories, facts.temporary))
    said = [{"content": f"{text}\n\n{more}"}, {"content": [{"text": changes}, {"text": f"See {facts.directories[0]}/a.txt."}]}]
    return json.dumps({"messages": said, "n": 1})


@given(FACTS, FACTS)
def test_bodies_are_alike_but_for_what_was_asked(one: Surroundings, other: Surroundings) -> None:
    def portable(body: str) -> str:
        return portable_body(body, find_places(body))

    assert portable(body_of(one)) == portable(body_of(other)) == portable(portable(body_of(one)))
    assert portable(body_of(one, "Go.")) != portable(body_of(other))


@given(st.lists(st.sampled_from(["/here/it/is", "/here/it/isn't", " ", "/here/it", "a", "ü", "/is/b.txt"]), max_size=8), st.data())
def test_an_answer_gets_the_same_places_however_it_is_parted(words: list[str], data: st.DataObject) -> None:
    """What a reader of all events has read is the whole text with its places replaced."""
    text = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    events = [f"event: delta\ndata: {json.dumps({'delta': {'text': piece}, 'n': 1})}\n\n".encode() for piece in pieces]
    recorded = [PortablePlace("/__directory_1__", "/here/it/is")]
    hidden = hide_places(events, recorded)
    assert read(hidden) == read(hide_places([f"data: {json.dumps({'delta': {'text': text}})}\n\n".encode()], recorded))
    assert read(fill_places(hidden, [], recorded)) == text
    assert b"".join(hidden).count(b"event: delta\n") == len(events)


def read(chunks: Sequence[bytes]) -> str:
    lines = b"".join(chunks).decode().splitlines()
    return "".join(json.loads(line.removeprefix("data: "))["delta"]["text"] for line in lines if line.startswith("data: "))


def test_places_are_whole_paths(tmp_path: Path) -> None:
    body = json.dumps({"text": "/a/b /a/b/c /a/bc /x/a/b /a/b. /a/b.txt"})
    assert json.loads(portable_body(body, [PortablePlace("/P", "/a/b")]))["text"] == "/P /P/c /a/bc /x/a/b /P. /a/b.txt"


def test_a_saved_session_and_long_results_have_stand_ins_too(tmp_path: Path) -> None:
    body = json.dumps({"prompt_cache_key": "20261115-120102-1a2b3c4d", "text": "in /tmp/x/dragoman-0123456789abcdef/1.txt"})
    changed = json.loads(portable_body(body, find_places(body)))
    assert changed == {"prompt_cache_key": "00000000-000000-00000001", "text": "in /__outputs_1__/1.txt"}


def test_a_path_of_windows_is_a_place_too() -> None:
    arguments = json.dumps({"file_path": "C:\\here\\it\\a.txt"})
    events = [f"data: {json.dumps({'delta': piece})}\n\n".encode() for piece in (arguments[:20], arguments[20:])]
    hidden = hide_places(events, [PortablePlace("/__directory_1__", "C:\\here\\it")])
    filled = fill_places(hidden, [], [PortablePlace("/__directory_1__", "D:\\there")])
    told = "".join(json.loads(line.removeprefix("data: "))["delta"] for line in b"".join(filled).decode().split("\n\n") if line)
    assert json.loads(told) == {"file_path": "D:/there\\a.txt"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_folders_that_only_the_test_knows(protocol: str, tmp_path: Path) -> None:
    """The agent describes no folder, and a tool of the user's names one."""

    def converse_about(transport: Cassette, folder: Path, base_url: str = "") -> str:
        @dm.tool(read_only=True)
        def where() -> str:
            """Where the charts are."""
            return f"in {folder}/charts"

        connection = dm.connect(MAIN[protocol], key="key-for-tests", base_url=base_url, transport=transport)
        options = dm.ToolOptions([where], builtin=False)
        with dm.Agent(connection, tools=options, workspace=dm.WorkspaceOptions(root=tmp_path, describe=False)) as agent:
            return agent.run_sync("Where?").text

    tape = tmp_path / "tape.jsonl"
    here, there = tmp_path / "here", tmp_path / "there"
    with dm.testing.Loopback(f"call: where {{}}\n---\ntext: In {here}.") as service:
        recording = Cassette(tape, HttpTransport(), mode="record", folders=[here])
        assert converse_about(recording, here, service.url + ("/v1" if protocol.startswith("openai") else "")) == f"In {here}."
        recording.save()
    assert converse_about(Cassette(tape, folders=[there]), there) == f"In {there}."
    with pytest.raises(InputError, match="is not what was sent"):
        converse_about(Cassette(tape), there)
