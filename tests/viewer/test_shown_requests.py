"""The requests that the page shows are those that were sent, byte for byte: on each protocol, and after whatever changed the context."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from program import PROTOCOLS, Place, service
from viewer.browsing import Serving, serving
from viewer.shown_session import hold_session
from viewer.test_access import JSON, ask, token_of


class Reader:
    """What a page asks for, without a browser."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        body = json.dumps({"token": token_of(server.address())})
        self._key = {"x-dragoman-key": ask(server, "POST", "/api/key", JSON, body)[2]["key"]}

    def get(self, path: str, **query: object) -> Any:
        status, _, answer = ask(self._server, "GET", f"/api/{path}?{urlencode(query)}", self._key)
        assert status == 200, answer
        return answer

    def latest(self) -> str:
        return self.get("sessions")["sessions"][0]["session_id"]

    def answers(self, session_id: str) -> list[int]:
        """The entries of the answers, in order."""
        blocks = self.get(f"sessions/{session_id}")["blocks"]
        return [block["data"]["seq"] for block in blocks if block["kind"] == "usage" and block["data"].get("kind") == "said"]

    def bodies(self, session_id: str, to: str = "") -> list[bytes]:
        found = [self.get(f"sessions/{session_id}/request", seq=seq, to=to) for seq in self.answers(session_id)]
        return [each["body"].encode() for each in found]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.close()


def shown_bodies(place: Place) -> list[bytes]:
    with serving(place) as server:
        reader = Reader(server)
        return reader.bodies(reader.latest())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_session_on_each_protocol(place: Place, protocol: str) -> None:
    sent = hold_session(place, protocol)
    assert len(sent) == 6
    assert shown_bodies(place) == sent


def held(place: Place, *steps: tuple[str, ...], script: str) -> list[bytes]:
    """Run the program once for each step, with these arguments; returns what the service was asked to answer."""
    with service(script) as place.service:
        for arguments in steps:
            done = place.run(*arguments)
            assert done.code == 0, done
        return [exchange.data for exchange in place.service.server.requests]


def run(prompt: str, *more: str, model: str = "anthropic/claude-opus-5") -> tuple[str, ...]:
    return ("-m", model, *more, "-p", prompt)


def on(prompt: str, *more: str) -> tuple[str, ...]:
    return ("--resume", *more, "-p", prompt)


def test_after_results_were_pruned(place: Place) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(
        '[context.prune]\nschedule = "request"\ntools = ["*"]\nage_minutes = 0\nkeep = 0\n', encoding="utf-8"
    )
    (place.work / "log.txt").write_text("4 March: reached Muscat.\n" * 300)
    read = 'call: read_file {"file_path": "log.txt"}'
    sent = held(place, run("One."), on("Two."), on("Three."), script=f"{read}\n---\ntext: A.\n---\n{read}\n---\ntext: B.\n---\ntext: C.")
    assert len(sent[-1]) < len(sent[1]) + len(sent[3]), "nothing was pruned"
    assert shown_bodies(place) == sent


def test_after_a_compression_and_a_change_of_model(place: Place) -> None:
    script = "\n---\n".join(
        [
            f'text: "{spoken(0)}"',
            f'text: "{spoken(300)}"',
            "text: <state_snapshot><goal>Count ships</goal><done>Ships came.</done></state_snapshot>",
            "text: Then.",
            "text: By another.",
        ]
    )
    steps = (run("One."), on("Two."), ("context", "compress"), on("Three."), on("Four.", "-m", "gemini/gemini-3.8-flash"))
    sent = held(place, *steps, script=script)
    shown = shown_bodies(place)
    assert shown == [*sent[:2], *sent[-2:]]  # the one in between asked for the summary
    assert b"Ship 7 came" not in sent[-1]


def spoken(start: int) -> str:
    return " ".join(f"Ship {number} came with {number * 7} bales." for number in range(start, start + 300))


def test_after_an_import(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "exported.json"
    held(place, run("One."), script="text: First.")
    assert place.run("sessions", "export", "latest", "-o", str(log)).code == 0
    assert place.run("sessions", "import", str(log)).code == 0
    sent = held(place, on("Two."), script="text: Second.")
    assert shown_bodies(place)[-1] == sent[0]


def test_a_session_in_any_protocol_is_one_that_its_service_takes(place: Place) -> None:
    hold_session(place)
    with serving(place) as server, service("\n---\n".join(["text: Taken."] * 4)) as taking:
        reader = Reader(server)
        session_id = reader.latest()
        last = reader.answers(session_id)[-1]
        for protocol in PROTOCOLS:
            found = reader.get(f"sessions/{session_id}/request", seq=last, to=protocol)
            connection = http.client.HTTPConnection(taking.url.removeprefix("http://"), timeout=60)
            path = "/" + found["url"].partition("://")[2].partition("/")[2]
            connection.request("POST", path, found["body"].encode(), {"content-type": "application/json"} | _betas(found["headers"]))
            answer = connection.getresponse()
            assert (answer.status, protocol) == (200, protocol), answer.read()
            answer.read()
            connection.close()


def _betas(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower().startswith("anthropic-")}


def test_items_add_up_and_say_what_became_of_them(place: Place) -> None:
    hold_session(place)
    with serving(place) as server:
        reader = Reader(server)
        session_id = reader.latest()
        last = reader.answers(session_id)[-1]
        found = reader.get(f"sessions/{session_id}/items", seq=last)
        assert sum(item["tokens"] for item in found["items"]) == found["tokens"]
        assert found["is_answered"]
        assert all(0 <= item["cached"] <= 1 for item in found["items"])
        shares = [item["cached"] for item in found["items"] if item["tokens"]]
        assert shares == sorted(shares, reverse=True), "a prefix is cached, or nothing"
        blocks = reader.get(f"sessions/{session_id}")["blocks"]
        paid = sum(b["data"]["usd"] - b["data"]["usd_output"] for b in blocks if b["kind"] == "usage" and b["data"].get("kind") == "said")
        assert sum(item["usd"] for item in found["items"]) == pytest.approx(paid, rel=0.02)
