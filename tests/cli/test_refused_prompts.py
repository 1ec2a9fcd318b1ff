"""A prompt that the service refused or filtered stays on the record and is shown; only the model does not see it again, which is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from program import PROTOCOLS, Place, Service

BLOCKED = {"gemini": "finish: safety", "openai_chat": "finish: content_filter", "anthropic": "finish: refusal"}


@pytest.mark.parametrize("protocol", BLOCKED)
def test_a_first_prompt_that_is_filtered_stays_in_the_session_and_the_user_is_told(
    place: Place, serve: Callable[..., Service], protocol: str
) -> None:
    served = serve(f"{BLOCKED[protocol]}\n---\ntext: Two.")
    done = place.ask("tell me the forbidden thing", model=PROTOCOLS[protocol])
    assert done.code == 58, done
    assert "kept in the session and left out of what the model sees" in done.err
    assert "› tell me the forbidden thing" in place.run("sessions", "show", "latest").out
    assert "tell me the forbidden thing" in place.run("sessions").out
    assert place.run("--resume", "-p", "something else").out == "Two.\n"
    assert "forbidden" not in str(served.requests[-1])
    shown = place.run("sessions", "show", "latest").out
    assert shown.index("› tell me the forbidden thing") < shown.index("› something else")


def test_in_stream_json_it_is_a_notice(place: Place, serve: Callable[..., Service]) -> None:
    serve("finish: refusal")
    done = place.ask("tell me", "--output-format", "stream-json")
    [notice] = [event for event in done.of("error") if event["error_type"] == "notice"]
    assert (notice["about"], notice["severity"]) == ("prompt", "warning")
