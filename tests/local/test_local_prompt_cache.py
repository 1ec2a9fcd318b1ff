"""What a model has read of its instructions is found again by the next process; and nothing that goes wrong with it is noticed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.local.prompt_cache import MAX_FILES, MIN_CHARS, PromptCache

SYSTEM = "You help a person. " * 30


def body(system: str = SYSTEM, *more: str) -> bytes:
    messages = [{"role": "system", "content": system}, *({"role": "user", "content": text} for text in more or ("hi",))]
    return json.dumps({"messages": messages, "response_format": {"type": "json_object"}}).encode()


class Engine:
    """What it has read, and a folder for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read: list[Any] = []
        self.restored: list[str] = []
        self.status = 200
        self.is_stopped = False

    def post(self, path: str, data: bytes) -> tuple[int, bytes]:
        name = json.loads(data)["filename"]
        assert os.sep not in name
        if self.status == 200 and path == "/slots/0?action=save":
            (self.folder / name).write_bytes(b"state")
        elif self.status == 200 and path == "/slots/0?action=restore":
            self.restored.append(name)
        return self.status, b"{}"

    def hears(self, prompt: bytes) -> bool:
        self.read.append(json.loads(prompt))
        return not self.is_stopped

    def prepare(self, asked: bytes, identity: str = "weights", alike: int = 0) -> None:
        PromptCache(str(self.folder), [identity], self.post, self.hears).prepare(asked, alike)

    @property
    def kept(self) -> list[str]:
        return sorted(os.listdir(self.folder))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def test_instructions_are_read_once_and_found_by_the_next_process(engine: Engine) -> None:
    engine.prepare(body(SYSTEM, "the first secret"))
    assert [message["role"] for message in engine.read[0]["messages"]] == ["system"]
    assert "secret" not in json.dumps(engine.read), "what the user says is not kept"
    [name] = engine.kept
    engine.prepare(body(SYSTEM, "something else", "and more"))
    assert len(engine.read) == 1
    assert engine.restored == [name]


def test_examples_are_kept_with_them_and_nothing_beyond(engine: Engine) -> None:
    engine.prepare(body(SYSTEM, "example", "its answer", "a secret"), alike=2)
    assert [message["content"] for message in engine.read[0]["messages"]] == [SYSTEM, "example", "its answer"]
    engine.prepare(body(SYSTEM, "example", "its answer", "another"), alike=2)
    assert len(engine.read) == len(engine.kept) == 1
    engine.prepare(body(SYSTEM, "example", "its answer"), alike=2)
    assert len(engine.restored) == 1, "what is nothing but the beginning is left alone"


def test_other_instructions_and_another_model_are_another_state(engine: Engine) -> None:
    engine.prepare(body())
    engine.prepare(body(SYSTEM + "More."))
    engine.prepare(body(), "other weights")
    assert len(engine.read) == len(engine.kept) == 3
    assert engine.restored == []


@pytest.mark.parametrize(
    "asked",
    [
        body("x" * (MIN_CHARS - 1)),
        json.dumps({"messages": [{"role": "system", "content": SYSTEM}]}).encode(),
        json.dumps({"messages": [{"role": "user", "content": SYSTEM}, {"role": "user", "content": "hi"}]}).encode(),
        json.dumps({"messages": [{"role": "system", "content": [{"text": SYSTEM}]}, {}]}).encode(),
        b'{"messages": 3}',
        b"not JSON",
        b"\xff",
    ],
)
def test_what_is_not_worth_it_or_not_understood_is_left_to_the_request(engine: Engine, asked: bytes) -> None:
    engine.prepare(asked)
    assert (engine.read, engine.kept) == ([], [])


def test_a_state_the_engine_cannot_use_is_replaced(engine: Engine) -> None:
    engine.prepare(body())
    [name] = engine.kept
    engine.status = 400
    engine.prepare(body())
    assert engine.kept == [], "and nothing half written is left"
    engine.status = 200
    engine.prepare(body())
    assert engine.kept == [name]
    assert len(engine.read) == 3


def test_a_cancel_keeps_nothing(engine: Engine) -> None:
    engine.is_stopped = True
    engine.prepare(body())
    assert engine.kept == []


def test_a_full_disk_is_not_noticed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*names: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    engine.prepare(body())
    assert len(engine.read) == 1
    assert engine.kept == []


def test_only_the_newest_are_kept(engine: Engine) -> None:
    for number in range(MAX_FILES + 3):
        engine.prepare(body(f"{SYSTEM}{number}"))
        for age, name in enumerate(engine.kept):
            os.utime(engine.folder / name, (1_000 - age, 1_000 - age))
    assert len(engine.kept) == MAX_FILES
