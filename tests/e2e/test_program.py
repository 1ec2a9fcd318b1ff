"""The program with a real model and nothing set: no key, no server, no name."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from program import Place

LONG = bool(os.environ.get("DRAGOMAN_LONG"))
CONFIG = """
[deployments.local]
default_model = "smollm2"

[settings]
max_output_tokens = 24
"""


@pytest.fixture
def place(tmp_path: Path, weights: Path) -> Iterator[Place]:
    """Where the smallest model is the usual one, and here."""
    made = Place(tmp_path)
    folder = made.home / "dragoman" / "cache" / "weights"
    folder.mkdir(parents=True)
    os.symlink(weights, folder / "smollm2.gguf")
    (made.home / "dragoman" / "config.toml").write_text(CONFIG)
    (made.work / "notes.txt").write_text("The meeting is on Thursday.\n")
    yield made
    made.close()


SLOWLY = {"DRAGOMAN_LOCAL_THREADS": "1"}


def test_a_real_model_answers_and_says_what_it_is(place: Place) -> None:
    done = place.run("--output-format", "json", "-p", "On which day is the meeting in notes.txt?", env=SLOWLY, timeout_s=120)
    assert done.code in (0, 56, 59), f"it may go in circles, or on up to its limit: {done}"
    circled = done.code == 56  # cut by the loop guard in the middle of an answer: the engine tells its usage at the end only
    assert done.json["response"] or circled
    assert done.json["stats"]["requests"] >= 1
    assert done.json["stats"]["tokens"]["output"] > 0 or circled
    assert "SmolLM2 135M Instruct, Q4_1 answers, on this machine. It is a small model" in done.err


def test_ctrl_c_ends_it_while_the_model_is_at_work(place: Place) -> None:
    (place.home / "dragoman" / "config.toml").write_text(CONFIG.replace("24", "8000"))  # it would go on for minutes
    words = ["--output-format", "stream-json", "-p", "Write a very long story about everything there is."]
    with place.start(*words, env=SLOWLY) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "init":
                break
        time.sleep(1.0)  # the weights are being loaded, or the prompt is read
        process.send_signal(signal.SIGINT)
        told = [json.loads(line) for line in process.stdout]
        assert process.wait(60) == 130
        assert told[-1]["type"] == "result"
        assert told[-1]["status"] == "cancelled"


def test_a_real_server_is_found_and_answers(place: Place, served: str) -> None:
    env = {"LLAMACPP_BASE_URL": f"{served}/v1"}
    where = served.removeprefix("http://")
    told = place.run("models", "llamacpp", "--output-format", "json", env=env).json
    assert told["deployments"][0]["answers"] == {"at": where, "models": ["smollm2"]}
    assert told["chosen"]["model"] == "llamacpp/smollm2"
    done = place.run("-m", "llamacpp/smollm2", "--output-format", "json", "-p", "Say hello.", env=env, timeout_s=240)
    assert done.json["stats"]["requests"] >= 1, done
    assert done.json["stats"]["tokens"]["output"] > 0, done


def test_the_next_process_does_not_read_its_instructions_again(place: Place) -> None:
    kept = place.home / "dragoman" / "cache" / "prompts"
    asking = ["--output-format", "json", "-p", "Say hello."]
    place.run(*asking, env=SLOWLY, timeout_s=120)
    [state] = kept.iterdir()
    written = state.read_bytes()
    again = place.run(*asking, env=SLOWLY, timeout_s=120)
    assert [path.name for path in kept.iterdir()] == [state.name]
    assert state.read_bytes() == written
    assert again.json["stats"]["tokens"]["cache_read"] > 100
    if not LONG:
        return
    state.write_bytes(b"not a state")
    assert place.run(*asking, env=SLOWLY, timeout_s=120).json["stats"]["tokens"]["output"] > 0
    assert state.read_bytes() == written, "it is made anew"
