"""Temporary files of a killed process are removed by whoever opens a session of the same workspace next; those of a living one stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.base.atomic import process_mark, temporary_name
from dragoman.sessions.leftovers import WritingNote
from dragoman.sessions.store import FileStore

KILLED = """
import asyncio, os, signal, sys
from dragoman.base import atomic
from dragoman.loop.coding import coding_agent
from dragoman.loop.options import WorkspaceOptions
from dragoman.testing.scripted import ScriptedProvider

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

folder, way = sys.argv[1:]
script = 'call: write_file {"file_path": "sub/a.txt", "content": "new"}\\n---\\ntext: Done.'
workspace = WorkspaceOptions(folder + "/work", describe=False)
agent = coding_agent(ScriptedProvider(script), workspace=workspace, session=folder + "/kept", approval="auto-edit")
if way == "while it writes":
    atomic.require_unchanged = die
agent.run_sync("go")
if way == "while it undoes":
    from dragoman.sessions.restore import _Attempt
    _Attempt.clean_up = die
    agent.undo()
"""
WAYS = ("while it writes", "while it undoes")


def temporary_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".dragoman-*.tmp"))


def kill(tmp_path: Path, way: str) -> Path:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), way], capture_output=True, text=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed
    assert len(temporary_files(work)) == 1
    return work


@pytest.mark.parametrize("way", WAYS)
def test_what_a_killed_process_left_is_gone_when_the_next_session_begins(tmp_path: Path, way: str) -> None:
    work = kill(tmp_path, way)
    (work / "sub" / ".dragoman-mine.tmp").write_text("a file of the user's")
    FileStore(tmp_path / "kept").create(work).journal.close()
    assert temporary_files(work) == ["sub/.dragoman-mine.tmp"]
    assert list((tmp_path / "kept").glob("*/writing")) == [], "nothing is left to look at"


@pytest.mark.parametrize("way", WAYS)
def test_it_is_gone_when_the_session_itself_is_opened(tmp_path: Path, way: str) -> None:
    work = kill(tmp_path, way)
    store = FileStore(tmp_path / "kept")
    store.open(store.find("latest", work).path).journal.close()
    assert temporary_files(work) == []


def test_a_temporary_file_of_a_living_process_stays(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "kept")
    living = store.create(tmp_path)
    note = WritingNote(living.note)
    note.add([str(tmp_path)])
    temporary = tmp_path / temporary_name()
    temporary.write_text("half")
    store.create(tmp_path).journal.close()
    assert temporary.exists(), "its session is locked"
    living.journal.close()
    store.create(tmp_path).journal.close()
    assert not temporary.exists()


def test_a_dead_process_does_not_take_those_of_a_living_one_in_the_same_folder_along(tmp_path: Path) -> None:
    work = kill(tmp_path, WAYS[0])
    mine = work / "sub" / temporary_name()
    mine.write_text("half")
    FileStore(tmp_path / "kept").create(work).journal.close()
    assert mine.exists()


@pytest.mark.parametrize("note", [b"", b"\xff\n[1]\n", b'["", "/tmp"]\n', b'["*", "/"]\n', b'["0123abcd", "relative"]\n', b"[" * 100_000])
def test_a_note_that_is_not_ours_does_no_harm(tmp_path: Path, note: bytes) -> None:
    store = FileStore(tmp_path / "kept")
    session = store.create(tmp_path)
    session.journal.close()
    writing = Path(session.path).parent / "writing"
    writing.mkdir()
    (writing / session.session_id).write_bytes(note)
    (writing / "not-a-session").write_bytes(note)
    kept = tmp_path / ".dragoman-0123abcd-x.tmp"
    kept.write_text("mine")
    store.create(tmp_path).journal.close()
    assert kept.exists()


def test_a_forked_child_has_a_mark_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = process_mark()
    assert temporary_name().startswith(f".dragoman-{ours}-")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert process_mark() != ours
