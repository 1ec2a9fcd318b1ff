"""save_memory: one line more in the user's memory file, whole or not at all, approved like any other write."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agents import make_agent
from dragoman.loop.memory import load_memory
from dragoman.policy.judge import MustAsk, judge
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools import save_memory
from dragoman.tools.save_memory import HEADING, MAX_FACT_CHARS, MAX_MEMORY_BYTES, SaveMemory, add_line, flatten_fact
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import Allow, Deny, Intent, ToolOutput
from dragoman.values.errors import InputError
from dragoman.values.messages import ToolCall
from file_tools import done, refused
from scenarios.workshop import play


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "dragoman" / "DRAGOMAN.md"


def save(path: Path, fact: str) -> ToolOutput:
    return asyncio.run(SaveMemory(str(path)).run({"fact": fact}, lambda text: None))


def intent(path: Path, fact: str) -> Intent:
    return SaveMemory(str(path)).intend({"fact": fact})


def test_a_fact_is_added_and_the_file_made_for_the_user_alone(path: Path) -> None:
    fact = "Prefers  tabs\nover spaces.\x1b[2J"
    line = "- Prefers tabs over spaces. [2J"
    assert intent(path, fact) == Intent(f"save_memory {path}", line, (str(path),))
    assert not path.parent.exists(), "an intent changes nothing"
    umask = os.umask(0)
    try:
        output = save(path, fact)
    finally:
        os.umask(umask)
    assert done(output) == f"remembered in {path}: Prefers tabs over spaces. [2J"
    assert output.changed == (str(path),)
    assert path.read_text() == f"{HEADING}\n\n{line}\n"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]
    save(path, "Lives in Ulm.")
    assert path.read_text() == f"{HEADING}\n\n{line}\n- Lives in Ulm.\n"
    assert os.listdir(path.parent) == ["DRAGOMAN.md"]


def test_what_the_user_wrote_stays_as_it_is(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"# Mine\r\n\r\nBe brief.\r\n\r\n## Remembered\r\n* One.\r\n\r\n## More\r\nEnd.")
    path.chmod(0o640)
    save(path, "Two.")
    assert path.read_bytes() == b"# Mine\r\n\r\nBe brief.\r\n\r\n## Remembered\r\n* One.\r\n- Two.\r\n\r\n## More\r\nEnd."
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("fact", ["one.", "  ONE", "- One"])
def test_what_is_known_is_not_asked_about_nor_saved(path: Path, fact: str) -> None:
    save(path, "One.")
    before = path.read_bytes()
    assert "remembered already" in intent(path, fact).problem
    assert "remembered already" in refused(save(path, fact), "known")
    assert path.read_bytes() == before


@pytest.mark.parametrize(("fact", "words"), [(" \n\x00", "empty"), ("- ", "empty"), ("x" * (MAX_FACT_CHARS + 1), "501 characters")])
def test_what_cannot_be_a_fact_is_refused(path: Path, fact: str, words: str) -> None:
    assert words in intent(path, fact).problem
    assert words in refused(save(path, fact), "invalid")
    assert not path.exists()


def test_a_full_file_is_left_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    for size in (MAX_MEMORY_BYTES, 11_000_000):
        path.write_bytes(b"x" * size)
        assert "full" in intent(path, "One.").problem
        refused(save(path, "One."), "too_large")
        assert path.stat().st_size == size


def test_a_file_that_cannot_be_read_is_left_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xff")
    refused(save(path, "One."), "encoding")
    path.unlink()
    path.mkdir()
    assert "directory" in intent(path, "One.").problem
    path.rmdir()
    path.write_text("mine")
    path.chmod(0o400)
    refused(save(path, "One."), "permission")
    assert path.read_text() == "mine"


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(parents=True)
    (tmp_path / "dotfiles").mkdir()
    path.symlink_to(tmp_path / "dotfiles" / "memory.md")
    assert intent(path, "One.").writes == (str(tmp_path / "dotfiles" / "memory.md"),)
    save(path, "One.")
    assert path.is_symlink()
    assert (tmp_path / "dotfiles" / "memory.md").read_text().endswith("- One.\n")


def test_somebody_who_saves_at_the_same_time_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, "One.")
    write, others = save_memory.write_atomically, ["Two."]

    def slow(*args: object) -> None:
        if others:
            path.write_text(path.read_text() + f"- {others.pop()}\n")
        write(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(save_memory, "write_atomically", slow)
    done(save(path, "Three."))
    assert path.read_text().splitlines()[2:] == ["- One.", "- Two.", "- Three."]


def test_a_failed_write_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(save_memory, "write_atomically", full)
    refused(save(path, "One."), "disk")
    assert os.listdir(path.parent) == []


def test_it_is_judged_like_a_write_that_is_believed_later(path: Path) -> None:
    """A memory file is never written unasked, whatever else may be edited."""
    tool = SaveMemory(str(path))
    assert tool.spec.kind == "edit"
    assert not tool.spec.read_only
    view = tool.intend({"fact": "One."})
    assert judge(tool.spec, view, "auto-edit", frozenset(["edit"])) == MustAsk(replace(view, guarded="trusted"))
    assert isinstance(judge(tool.spec, view, "plan"), Deny)


def test_a_saved_fact_imports_nothing(path: Path) -> None:
    path.parent.mkdir(parents=True)
    (path.parent / "config.toml").write_text("SECRET")
    save(path, "Look at @config.toml and @./config.toml")
    found = load_memory(str(path.parent.parent), str(path.parent), trusted=False)
    assert found.problems == ()
    assert "SECRET" not in found.files[0][1]
    assert "Look at \\@config.toml and \\@./config.toml" in found.files[0][1]


@given(text=st.text(alphabet="a#- \n\r*R", max_size=40).map(lambda text: text.replace("R", "\n## Remembered\n")), fact=st.text(max_size=30))
def test_one_line_is_added_and_none_is_lost(text: str, fact: str) -> None:
    try:
        line = f"- {flatten_fact(fact)}"
    except ToolRefusal:
        return
    assert line.isprintable()
    after = add_line(text, line)
    lines = [each.strip() for each in after.split("\n")]
    assert lines.count(line.strip()) == [each.strip() for each in text.split("\n")].count(line.strip()) + 1
    kept = [each for each in lines if each]
    kept.remove(line.strip())
    if HEADING not in [each.strip() for each in text.split("\n")]:
        kept.remove(HEADING)
    assert kept == [each.strip() for each in text.split("\n") if each.strip()]


# --- in an agent ---------------------------------------------------------------------------------------------------------


def test_it_is_offered_only_where_there_is_a_file(tmp_path: Path, path: Path) -> None:
    provider = ScriptedProvider("")
    assert "save_memory" not in make_agent(provider, workspace=tmp_path).tools.names
    assert "save_memory" in make_agent(provider, workspace=tmp_path, memory_file=path).tools.names
    assert make_agent(provider, workspace=tmp_path, memory_file=path, builtin=["save_memory"]).tools.names == ("save_memory",)
    assert make_agent(provider, workspace=tmp_path, builtin=["save_memory"]).tools.names == ()
    with pytest.raises(InputError):
        make_agent(provider, workspace=tmp_path, builtin=["save_memories"])


def test_a_person_approves_the_line_and_undo_takes_it_back(tmp_path: Path, path: Path) -> None:
    asked: list[Intent] = []
    saved: list[str] = []
    written = path.read_text

    async def ask(call: ToolCall, view: Intent) -> Allow:
        asked.append(view)
        return Allow()

    async def go() -> None:
        (tmp_path / "work").mkdir()
        script = 'call: save_memory {"fact": "Likes whales."}\n---\ntext: Noted.'
        options = {"memory_file": path, "ask": ask, "sessions": tmp_path / "sessions"}
        async with make_agent(ScriptedProvider(script), workspace=tmp_path / "work", **options) as agent:  # type: ignore[arg-type]
            result = await agent.run("Remember that I like whales.")
            assert result.changed == (str(path),)
            assert [view.preview for view in asked] == ["- Likes whales."]
            saved.append(written())
            assert agent.undo() == (str(path),)

    play(go)
    assert saved == [f"{HEADING}\n\n- Likes whales.\n"]
    assert not path.exists()
