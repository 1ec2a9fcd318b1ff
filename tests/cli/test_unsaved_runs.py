"""A run whose session could not be saved says so in every format: in the result, and on standard error."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable

import pytest

from program import Done, Place, Service, heed_signals

FORMATS = ("text", "json", "stream-json")


def full_disk() -> None:
    """No file of this process can grow beyond this many bytes, as on a disk that is full: a head fits, no conversation does."""
    heed_signals()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))


def ask(place: Place, form: str, prepare: Callable[[], None]) -> Done:
    env = {"PYTHONDONTWRITEBYTECODE": "1"}  # Python would leave half of its own files
    process = place.start("-m", "anthropic/claude-opus-5", "-p", "hi", "--output-format", form, env=env, preexec_fn=prepare)
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


@pytest.mark.parametrize("form", FORMATS)
def test_a_full_disk_is_told_in_every_format(place: Place, serve: Callable[..., Service], form: str) -> None:
    serve("text: One.")
    done = ask(place, form, full_disk)
    assert done.code == 0, "it was answered"
    assert done.err.splitlines()[-1].startswith("dragoman: This session is not saved completely: File too large"), done
    if form == "text":
        assert done.out == "One.\n"
        return
    result = json.loads(done.out.splitlines()[-1])
    assert result["response"] == "One."
    assert result["not_saved"].startswith("This session is not saved completely: File too large")


@pytest.mark.parametrize("form", FORMATS)
def test_a_folder_that_cannot_be_made_is_told_in_every_format(place: Place, serve: Callable[..., Service], form: str) -> None:
    serve("text: One.")
    data = place.home / "dragoman" / "data"
    data.mkdir(parents=True)
    (data / "sessions").write_text("in the way")
    done = ask(place, form, heed_signals)
    assert done.code == 0
    assert "This session is not saved completely" in done.err.splitlines()[-1]
    assert form == "text" or "not_saved" in json.loads(done.out.splitlines()[-1])


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_that_was_saved_says_nothing(place: Place, serve: Callable[..., Service], form: str) -> None:
    serve("text: One.")
    done = ask(place, form, heed_signals)
    assert (done.code, done.err) == (0, "")
    assert form == "text" or "not_saved" not in json.loads(done.out.splitlines()[-1])
