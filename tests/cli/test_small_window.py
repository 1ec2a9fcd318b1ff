"""A session that is too long for a smaller model, as a user meets it: refused at once, or continued so that larger models lose nothing."""

from __future__ import annotations

import json
from pathlib import Path

from cli.test_context import Kept
from dragoman.sessions.log import read_log
from dragoman.values.messages import FinishReason, Response, assistant, user
from dragoman.values.record import Compressed, Pruned
from program import Place, Service
from program import service as serving

LARGE = "anthropic/claude-opus-5"
SMALL = "small/tiny"
WINDOW = 8_192


def long_session(place: Place, *, calls: int, talk: int = 0) -> Path:
    """Held with a model that has room for it: results of 3,000 tokens each, and as many long prompts as are asked for."""
    kept = Kept(place, minutes=5)
    kept.history.say(user("You work in a folder."), "environment")
    for number in range(talk):
        kept.history.say(user(f"Remember this ({number}): " + "word " * 800))
        kept.history.answer(Response(assistant("I will. " * 200), FinishReason.STOP))
    kept.history.say(user("Fix the parser"))
    for number in range(calls):
        kept.call("read_file", f"file {number}\n" + "some line of it\n" * 800)
    kept.history.answer(Response(assistant("Done."), FinishReason.STOP))
    return Path(kept.closed().path)


def configure(place: Place, service: Service) -> None:
    place.service = service
    (place.home / "dragoman").mkdir(exist_ok=True)
    (place.home / "dragoman" / "config.toml").write_text(
        f'[deployments.small]\nprotocol = "openai_chat"\nbase_url = "{service.url}/v1"\nauth = "none"\n'
        f"[deployments.small.models.tiny]\ncontext_window = {WINDOW}\nmax_output_tokens = 1000\n"
    )


def test_what_cannot_fit_is_refused_at_once_and_changes_nothing(place: Place) -> None:
    """It took minutes, and left the session without its results."""
    with serving("text: Hello.") as service:
        configure(place, service)
        path = long_session(place, calls=36, talk=12)
        before = path.read_bytes()
        done = place.run("--resume", "latest", "-m", SMALL, "-p", "go on")
        done.complaint(57, "8,192", "larger context window", "dragoman context compress", "new session")
        assert path.read_bytes() == before
        assert service.requests == [], "no model was asked for anything"
        assert place.run("--resume", "latest", "-p", "go on").code == 0, "it goes on with the model it was held with"
        [body] = service.requests
        assert "some line of it" in str(body)
        assert len(str(body)) > 300_000, "and with everything that was said"


def test_what_a_small_window_forces_is_lost_to_no_larger_model(place: Place) -> None:
    with serving("answer: times=9\ntext: Hello.") as service:
        configure(place, service)
        path = long_session(place, calls=12)
        whole = json.loads(place.run("context", "--request", LARGE).out)["messages"]
        done = place.run("--resume", "latest", "-m", SMALL, "-p", "go on", "--output-format", "stream-json")
        assert done.code == 0, done
        forced = [event for event in done.of("context") if event["event"] == "pruned"]
        assert [event["window"] for event in forced] == [WINDOW]
        entries = read_log(path).entries
        assert {entry.window for entry in entries if isinstance(entry, Pruned | Compressed)} == {WINDOW}
        assert len(str(service.requests[-1])) < 40_000

        page = place.run("context").out
        assert "for a window of 8,192 or less only" in page
        assert "For models with a window of 8,192 or less only: Old tool output" in place.run("sessions", "show", "latest").out
        again = json.loads(place.run("context", "--request", LARGE).out)["messages"]
        assert again[: len(whole) - 2] == whole[:-2], "the beginning of what the larger model is sent is as it was"
        place.run("--resume", "latest", "-m", LARGE, "-p", "and now?")
        assert len(str(service.requests[-1])) > 120_000
        assert "8,192" not in place.run("context").out.partition("entry ")[0]

        place.run("--resume", "latest", "-m", SMALL, "-p", "once more")
        assert len(str(service.requests[-1])) < 40_000, "the small one is sent what it was sent before, and what came since"
