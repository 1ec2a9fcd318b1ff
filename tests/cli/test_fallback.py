"""The fallback through the program: configured, on the command line, in every output format, kept by a resumed session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from program import KEY, Place, Service
from terminals import terminal

Serve = Callable[..., Service]
GEMINI, CLAUDE = "gemini/gemini-3.8-flash", "anthropic/claude-opus-5"
REFUSED = "error: 429 quota_id=GenerateRequestsPerDayPerProjectPerModel-FreeTier"
"""As Gemini says it; to Anthropic's client it would be a plain 429, so the second service plays its own script."""


def two_services(place: Place, serve: Serve, gemini: str, claude: str) -> tuple[Service, dict[str, str]]:
    """Gemini at one address, Anthropic at another. Returns the second, and the environment that says so."""
    first = serve(gemini)
    second = serve(claude)
    place.service = first
    return second, {"ANTHROPIC_BASE_URL": second.url}


def configure(place: Place, text: str) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(text)


def test_the_answer_comes_from_the_fallback_and_one_line_says_so(place: Place, serve: Serve) -> None:
    configure(place, f'model = "{GEMINI}"\nfallback = ["{CLAUDE}"]\n')
    claude, env = two_services(place, serve, REFUSED, "text: Here I am.\n---\ntext: Still here.")
    done = place.run("-p", "hi", env=env)
    assert (done.code, done.out) == (0, "Here I am.\n")
    [line] = done.err.splitlines()
    assert "quota" in line
    assert f"going on with {CLAUDE}" in line
    assert place.service is not None
    assert len(place.service.requests) == 1

    again = place.run("--resume", "-p", "and now?", env=env)
    assert (again.code, again.out, again.err) == (0, "Still here.\n", "")
    assert len(place.service.requests) == 1, "a resumed session stays on the model that answered"
    assert len(claude.requests) == 2


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_programs_are_told_too(place: Place, serve: Serve, form: str) -> None:
    _, env = two_services(place, serve, REFUSED, "text: Here I am.")
    done = place.ask("hi", "--fallback", CLAUDE, "--output-format", form, model=GEMINI, env=env)
    assert done.code == 0
    if form == "json":
        assert done.json["response"] == "Here I am."
        assert done.json["stats"]["cost_usd"] > 0
        assert f"going on with {CLAUDE}" in done.err
        return
    [told] = [event for event in done.of("error") if event["error_type"] == "model_switched"]
    assert (told["severity"], told["previous"], told["model"]) == ("warning", GEMINI, CLAUDE)
    assert done.events[-1]["response"] == "Here I am."


def test_a_fallback_without_a_key_is_skipped_and_an_exhausted_one_is_told(place: Place, serve: Serve) -> None:
    serve(REFUSED)
    env = {"ANTHROPIC_API_KEY": ""}
    done = place.ask("hi", "--fallback", CLAUDE, model=GEMINI, env=env)
    assert done.code == 57
    skipped, failed = done.err.splitlines()
    assert f"{CLAUDE} cannot go on" in skipped
    assert "ANTHROPIC_API_KEY" in skipped
    assert "quota" in failed
    assert CLAUDE in failed


def test_a_misspelt_fallback_is_found_before_anything_is_sent(place: Place, serve: Serve) -> None:
    configure(place, 'fallback = ["antropic/claude-opus-5"]\n')
    asked = serve("text: no")
    done = place.ask("hi", model=GEMINI)
    line = done.complaint(52, "config.toml", "fallback", "antropic")
    assert "anthropic" in line.replace("antropic", "")
    assert asked.requests == []


def test_doctor_says_which_fallback_would_be_skipped(place: Place) -> None:
    env = {"GEMINI_API_KEY": KEY}
    done = place.run("doctor", "--offline", "-m", GEMINI, "--fallback", CLAUDE, "--fallback", "gemini/gemini-2.5-pro", env=env)
    lines = [line for line in done.out.splitlines() if " fallback " in line]
    assert lines[0].startswith("!")
    assert "ANTHROPIC_API_KEY" in lines[0]
    assert lines[1].startswith("✓")


def test_a_conversation_goes_on_with_the_fallback_and_stays_there(place: Place, serve: Serve) -> None:
    configure(place, f'model = "{GEMINI}"\nfallback = ["{CLAUDE}"]\n[settings]\ntop_k = 5\n')
    _, env = two_services(place, serve, REFUSED, "text: Here I am.\n---\ntext: Still here.")
    with terminal(place, model=GEMINI, env=env) as shown:
        shown.prompt()
        shown.ask("hi")
        said = " ".join(shown.prompt().split())
        assert f"going on with {CLAUDE} from now on" in said
        assert f"settings.top_k is not sent: {GEMINI}" in said
        assert f"settings.top_k is not sent: {CLAUDE}" in said
        assert "Here I am." in said
        shown.ask("and now?")
        assert "is not sent" not in (said := shown.prompt())
        assert "Still here." in said
        shown.ask("/model")
        assert CLAUDE in shown.prompt()
    assert place.service is not None
    assert len(place.service.requests) == 1
