"""A damaged session is said to be damaged, and goes on as far as it can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.sessions.log import encode_line, read_log
from dragoman.sessions.store import Store
from dragoman.values.record import Configured, Started
from program import Place, Service

MODEL = "anthropic/claude-opus-5"
TWO = "text: It is a parser.\n---\ntext: Yes, a parser."


@pytest.fixture
def asked(place: Place, serve: Callable[..., Service]) -> Service:
    """A place with one session in it, and a configuration that names a model."""
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(f'model = "{MODEL}"\n')
    made = serve(TWO)
    assert place.run("-p", "what is this?").code == 0
    return made


def logs(place: Place) -> list[Path]:
    return sorted((place.home / "dragoman" / "data" / "sessions").glob("*/*.jsonl"))


def flip_a_bit(log: Path, line: int) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    damaged = bytearray(lines[line - 1])
    damaged[20] ^= 1
    log.write_bytes(b"".join([*lines[: line - 1], bytes(damaged), *lines[line:]]))


def test_a_session_whose_configuration_is_damaged_goes_on_with_the_configured_model(place: Place, asked: Service) -> None:
    [log] = logs(place)
    assert isinstance(read_log(log).entries[1], Configured)
    flip_a_bit(log, 2)
    done = place.run("--resume", "-p", "are you sure?")
    assert done.code == 0, done
    assert "line 2 of the session" in done.err, "the damage is mentioned"
    assert "It is a parser." in str(asked.requests[-1]), "and the conversation is not lost"


def test_an_unavailable_model_is_not_said_to_be_the_sessions_where_that_is_unknown(place: Place, asked: Service) -> None:
    [log] = logs(place)
    flip_a_bit(log, 2)
    done = place.run("--resume", "-p", "go on", env={"DRAGOMAN_MODEL": "nowhere/none"})
    assert done.code == 52, done
    assert "this session used" not in done.err


def test_a_log_that_holds_only_its_head_is_not_the_latest_session(place: Place, asked: Service) -> None:
    [log] = logs(place)
    head = read_log(log).entries[0]
    assert isinstance(head, Started)
    session_id = "20991115-120000-0123abcd"
    later = Started(1, head.timestamp_ms + 10**9, session_id, head.project, head.directories)
    log.with_name(f"{session_id}.jsonl").write_bytes(encode_line(later))
    done = place.run("--resume", "-p", "are you sure?")
    assert (done.code, done.out) == (0, "Yes, a parser.\n"), done
    assert "It is a parser." in str(asked.requests[-1])
    assert Store(log.parent.parent).find("latest", place.work).path == str(log)
