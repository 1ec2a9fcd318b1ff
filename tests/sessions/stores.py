"""Stores with sessions in them, and a count of the logs that were opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.sessions import summary
from dragoman.sessions.log import encode_line
from dragoman.sessions.projects import project_hash
from dragoman.sessions.sqlite.store import SqliteStore
from dragoman.sessions.store import FileStore
from dragoman.sessions.stores import Store
from dragoman.values.messages import Message, assistant, user
from dragoman.values.notes import GREETING
from dragoman.values.record import Configured, Entry, Said, Started, Titled
from dragoman.values.usage import Usage

NOW_MS = 1_790_000_000_000


def session_id(number: int) -> str:
    return f"20261115-{number // 3600 % 24:02}{number // 60 % 60:02}{number % 60:02}-{number:08x}"


def entries(number: int, workspace: Path, *said: str, title: str = "", started_ms: int = NOW_MS) -> list[Entry]:
    """A session of prompts and answers by turns, each a second after the one before, the first at a time of its own."""
    at = started_ms + number * 1_000_000
    made: list[Entry] = [
        Started(1, at, session_id(number), project_hash(workspace), (os.path.realpath(workspace),), ("test",)),
        Configured(2, at, "model-one", session_id=session_id(number)),
    ]
    for text in said or (f"Question {number}", f"Answer {number}"):
        message: Message = assistant(text) if len(made) % 2 else user(text)
        answered = message.role == "assistant"
        made.append(
            Said(
                len(made) + 1,
                at + len(made) * 1000,
                message,
                "model-two" if answered else "",
                Usage(10, 5, 0, 3) if answered else None,
                by="model" if answered else "program" if text.startswith(GREETING) else "person",
                about="environment" if text.startswith(GREETING) else "",
            )
        )
    if title:
        made.append(Titled(len(made) + 1, at + len(made) * 1000, title))
    return made


def add(store: FileStore, workspace: Path, number: int, *said: str, title: str = "", started_ms: int = NOW_MS) -> Path:
    return Path(store.add(workspace, entries(number, workspace, *said, title=title, started_ms=started_ms)))


def append(path: Path, *more: Entry) -> None:
    with path.open("ab") as file:
        file.writelines(map(encode_line, more))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "data" / "sessions")


KINDS = ("files", "sqlite")


def store_in(kind: str, folder: Path) -> FileStore | SqliteStore:
    """The same folder and kind: the same sessions."""
    return FileStore(folder / "sessions") if kind == "files" else SqliteStore(folder / "chats.db")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def any_store(kind: str, tmp_path: Path) -> FileStore | SqliteStore:
    """Whatever holds of it holds of both stores."""
    return store_in(kind, tmp_path / "data")


def add_to(store: Store, workspace: Path, number: int, *said: str, started_ms: int = NOW_MS) -> str:
    return store.add(workspace, entries(number, workspace, *said, started_ms=started_ms))


def append_to(store: Store, path: str, *more: Entry) -> None:
    opened = store.open(path)
    for entry in more:
        opened.journal.append(entry)
    opened.journal.close()
    assert opened.journal.is_saved


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that were opened to be read, in order."""
    names: list[str] = []
    open_file = summary.open_file

    def noting(path: str, **options: Any) -> int:
        names.append(os.path.basename(path))
        return open_file(path, **options)

    monkeypatch.setattr(summary, "open_file", noting)
    return names
