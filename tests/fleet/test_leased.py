"""What an attempt notes of its requests."""

from __future__ import annotations

from pathlib import Path

from dragoman.fleet.leased import AttemptMeter
from dragoman.fleet.result import read_spent
from dragoman.testing import ScriptedProvider
from dragoman.values.messages import Request, ToolCall, assistant, tool_result, user
from dragoman.values.notes import GREETING


def hash_of(folder: Path, said: str = "Do it.") -> str:
    """As it is noted for an epoch whose copy lies in this folder."""
    import asyncio

    (folder / "out").mkdir(parents=True)
    call = ToolCall("1", "read_file", f'{{"file_path":"{folder}/work/a.txt"}}')
    around = user(f"{GREETING}\n\nYour folder is {folder}/work, for temporary files {folder}/tmp/{folder.name}-1a2b.")
    request = Request("m", (around, user(said), assistant(call), user(tool_result(call, f"{folder}/work/a.txt: hello"))))
    meter = AttemptMeter("a.1.1", str(folder / "out"), f"{folder}/work", None, lambda is_waiting: None)
    asyncio.run(meter.enter(ScriptedProvider("text: x"), request))
    return read_spent(str(folder / "out")).request_hash


def test_equal_requests_of_two_epochs_have_the_same_hash(tmp_path: Path) -> None:
    """By it a supervisor knows that a failure is deterministic. Each epoch has a copy of its own, in another folder."""
    first, second = hash_of(tmp_path / "epoch-1"), hash_of(tmp_path / "epoch-22")
    assert first == second
    assert hash_of(tmp_path / "other", "Do something else.") != first
