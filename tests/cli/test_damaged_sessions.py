"""A damaged session is said to be damaged, and goes on as far as it can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.sessions.log import encode_line, read_log
from dragoman.sessions.store import FileStore
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
    assert FileStore(log.parent.parent).find("latest", place.work).path == str(log)


# --- listed and read as far as they go


def replace_byte(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


HARM = {
    "crlf": (lambda data: data.replace(b"\n", b"\r\n"), "end in CRLF"),
    "damaged head": (lambda data: replace_byte(data, 30), "line 1 of the session"),
    "no brace at the head": (lambda data: replace_byte(data, 0), "line 1 of the session"),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_log_that_was_converted_or_lost_its_head_is_listed_read_and_resumed(place: Place, asked: Service, harm: str) -> None:
    [log] = logs(place)
    change, words = HARM[harm]
    log.write_bytes(change(log.read_bytes()))
    assert "what is this?" in place.run("sessions").out
    shown = place.run("sessions", "show", "latest")
    assert "It is a parser." in shown.out
    assert words in shown.err
    done = place.run("--resume", "-p", "are you sure?")
    assert (done.code, done.out) == (0, "Yes, a parser.\n"), done
    assert words in done.err
    assert "It is a parser." in str(asked.requests[-1])


@pytest.mark.parametrize("harm", HARM)
def test_such_a_log_can_be_imported(place: Place, asked: Service, harm: str) -> None:
    [log] = logs(place)
    change, words = HARM[harm]
    (place.work / "copy.jsonl").write_bytes(change(log.read_bytes()))
    log.unlink()
    done = place.run("sessions", "import", "copy.jsonl")
    assert done.code == 0, done
    assert words in done.err
    assert "It is a parser." in place.run("sessions", "show", "latest").out


def test_a_log_of_which_nothing_can_be_read_is_not_said_to_be_missing(place: Place, asked: Service) -> None:
    [log] = logs(place)
    log.write_bytes(log.read_bytes().replace(b'"crc"', b'"crd"'))
    place.run("sessions", "show", log.stem).complaint(42, "no line of session", str(log))
    place.run("sessions", "show", "20261115-120000-0123abcd").complaint(42, "there is no session")


def test_ten_thousand_damaged_lines_are_summed_up(place: Place, asked: Service) -> None:
    [log] = logs(place)
    first, *rest = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(first + b"garbage\n" * 10_000 + b"".join(rest))
    shown = place.run("sessions", "show", "latest")
    assert len(shown.err.splitlines()) == 6
    assert "9,995 further lines of the session, up to line 10001" in shown.err
    assert "It is a parser." in shown.out


# --- who may read and write it


@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_log_that_others_may_write_is_told_and_closed_to_them(place: Place, asked: Service, mode: int) -> None:
    [log] = logs(place)
    log.chmod(mode)
    assert f"its mode is {mode:04o}" in place.run("sessions", "show", "latest").err
    assert log.stat().st_mode & 0o777 == mode, "looking changes nothing"
    done = place.run("--resume", "-p", "are you sure?")
    assert done.code == 0, done
    assert "others could write this session" in done.err
    assert log.stat().st_mode & 0o777 == 0o600
    assert place.run("sessions", "show", "latest").err == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_log_of_another_user_is_read_and_not_written(place: Place, asked: Service) -> None:
    [log] = logs(place)
    os.chown(log, 12_345, 12_345)
    place.run("--resume", "-p", "go on").complaint(42, "belongs to another user (id 12345)")
    assert "It is a parser." in place.run("sessions", "show", "latest").out


# --- odd places and odd files


@pytest.mark.parametrize(
    "words", [("-p", "hi"), ("sessions",), ("models",), ("config",), ("-p", "hi", "--output-format", "json"), ("doctor", "--offline")]
)
def test_a_working_directory_that_was_deleted_is_told(place: Place, words: tuple[str, ...]) -> None:
    gone = place.work / "gone"
    gone.mkdir()
    command = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    run = ["sh", "-c", command, "sh", str(gone), sys.executable, "-m", "dragoman", *words]
    done = subprocess.run(run, env=place.env, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == (1 if "doctor" in words else 42), done
    assert "the working directory is not there any more" in done.stdout + done.stderr


@pytest.mark.parametrize("inside", ['"entries":{deep}', '"entries":[{{"kind":"said","seq":1,"timestamp_ms":1,"message":{deep}}}]'])
def test_an_export_that_is_nested_too_deeply_is_told(place: Place, inside: str) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    (place.work / "deep.json").write_text('{"format":"dragoman-session",' + inside.format(deep=deep) + "}")
    place.run("sessions", "import", "deep.json").complaint(42, "nested too deeply")
