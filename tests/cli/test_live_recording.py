"""`dragoman doctor --live --record FILE`: what is in the file can be replayed, and what must not be in it is not."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman.app.live import LiveRun
from dragoman.app.live_recording import private_names, record_with
from dragoman.app.options import Options
from dragoman.app.setup import set_up
from dragoman.cli.live_page import json_of
from dragoman.providers.redact import REDACTED
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.cassette import _to_bytes, read_cassette
from dragoman.testing.script_steps import CutStep, Fail, Step
from dragoman.values.contracts import HttpResponse
from dragoman.values.errors import ConnectionFailed
from live_service import GoodModel
from program import KEY, PROTOCOLS, Place, Service, service

FAULTS: dict[str, Step] = {"pdf": Fail(400, f"you sent {KEY}, and we take no pages"), "forced": CutStep()}


@pytest.fixture(params=PROTOCOLS.values())
def model(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def faulty(place: Place) -> Iterator[Service]:
    with service(GoodModel(FAULTS), rules=None, key=KEY) as found:  # type: ignore[arg-type]
        place.service = found
        write_config(place)
        yield found


def write_config(place: Place) -> None:
    (place.home / "dragoman").mkdir(exist_ok=True)
    (place.home / "dragoman" / "config.toml").write_text("[retry]\nfirst_delay_s = 0.01\n")


def record(place: Place, model: str, *arguments: str, **options: Any) -> Any:
    return place.run("doctor", "--live", "--yes", "-m", model, "--record", "tape.jsonl", "--output-format", "json", *arguments, **options)


def table(printed: str, host: str = REDACTED) -> list[dict[str, Any]]:
    """All of the rows but the time. The address of the service is not in a recording."""
    return [row | {"duration_ms": 0} for row in json.loads(printed.replace(host, REDACTED))["rows"]]


def test_a_recording_replays_offline_to_the_same_table(place: Place, faulty: Service, model: str) -> None:
    done = record(place, model)
    path = place.work / "tape.jsonl"
    assert done.json["recorded"] == str(path)
    assert KEY not in path.read_text()

    async def replay() -> LiveRun:
        cassette = dm.testing.Cassette(path, mode="replay", in_order=False)
        assert cassette.about["model"] == model
        connection = dm.connect(model, key="none", env={}, transport=cassette, retry=RetryPolicy(attempts=2, first_delay_s=0))
        run = LiveRun(connection, recording=str(path))
        await run.check()
        assert cassette.remaining == 0
        return run

    again = table(json_of(asyncio.run(replay()), stopped=False, recorded="", seconds=0))
    assert again == table(done.out, faulty.url.removeprefix("http://"))
    assert {row["state"] for row in again} >= {"worked", "failed"}


def test_the_file_is_for_its_owner_alone_and_says_what_it_is(place: Place, faulty: Service) -> None:
    record(place, "anthropic/claude-opus-5")
    path = place.work / "tape.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(place.work) == ["tape.jsonl"]
    first, *others = read_cassette(path)
    assert first.about["program"] == f"dragoman {dm.__version__}"
    assert not any(each.about for each in others)


def test_streams_are_kept_as_they_came(place: Place, faulty: Service) -> None:
    record(place, "anthropic/claude-opus-5")
    streamed = [each for each in read_cassette(place.work / "tape.jsonl") if "Count from one to five" in str(each.request.body)]
    assert streamed[0].response is not None
    body = "".join(map(str, streamed[0].response.chunks))
    assert body.startswith("event: message_start\ndata: ")
    assert "event: message_stop" in body
    assert streamed[0].response.headers["content-type"].startswith("text/event-stream")


def test_only_useful_headers_are_kept(place: Place, faulty: Service) -> None:
    record(place, "anthropic/claude-opus-5")
    for each in read_cassette(place.work / "tape.jsonl"):
        assert set(each.request.headers) <= {"content-type", "user-agent", "anthropic-version", "anthropic-beta", "accept"}


def test_names_of_the_machine_and_the_account_are_not_in_it(place: Place) -> None:
    told = "organization org-abcdefghijklmnopqrst of margaret at /home/margaret/work, project my-own-project, host gate-7.example"
    with service(GoodModel({"pdf": Fail(400, told)}), rules=None, key=KEY) as found:  # type: ignore[arg-type]
        place.service = found
        env = {"USER": "margaret", "HOME": "/home/margaret", "GOOGLE_CLOUD_PROJECT": "my-own-project"}
        done = record(place, "anthropic/claude-opus-5", env=env)
    text = (place.work / "tape.jsonl").read_text()
    assert "of REDACTED at REDACTED" in text
    for name in ("margaret", "my-own-project", "org-abc", str(place.work), str(place.home), found.url.removeprefix("http://")):
        assert name not in text, name
    assert done.code == 1


@pytest.mark.parametrize("mask", ["sk-test-****cdef", "sk-t...def", "sk-…cdef", "sk-test-0••••f"])
def test_a_key_that_a_service_shows_in_part_is_not_in_it(place: Place, mask: str) -> None:
    with service(GoodModel({"pdf": Fail(400, f"Incorrect API key provided: {mask}. Try another")}), rules=None) as found:  # type: ignore[arg-type]
        place.service = found
        record(place, "anthropic/claude-opus-5")
    text = (place.work / "tape.jsonl").read_text()
    assert "provided: REDACTED. Try another" in text


def test_a_file_is_replaced_only_after_saying_so(place: Place, faulty: Service) -> None:
    path = place.work / "tape.jsonl"
    path.write_text("precious")
    done = place.run("doctor", "--live", "-m", "anthropic", "--record", "tape.jsonl")
    assert done.code == 42
    assert path.read_text() == "precious"
    assert "exists already and is replaced" in record(place, "anthropic/claude-opus-5").err
    assert read_cassette(path)


def test_a_place_that_cannot_be_written_is_found_before_anything_is_sent(place: Place, faulty: Service) -> None:
    for name, words in (("no/such/folder/x.jsonl", "no folder"), (".", "is a folder")):
        place.run("doctor", "--live", "--yes", "-m", "anthropic", "--record", name).complaint(42, words)
    assert faulty.requests == []


def test_a_wrong_key_is_recorded_too(place: Place, faulty: Service) -> None:
    done = record(place, "anthropic/claude-opus-5", env={"ANTHROPIC_API_KEY": "sk-wrong-0123456789"})
    assert done.code == 41
    assert "Recorded: " in done.err
    [only] = read_cassette(place.work / "tape.jsonl")
    assert only.response is not None
    assert only.response.status == 401
    assert "sk-wrong" not in (place.work / "tape.jsonl").read_text()


def test_a_model_in_this_process_has_nothing_to_record(place: Place) -> None:
    done = place.run("doctor", "--live", "--yes", "-m", "local", "--record", "x.jsonl")
    done.complaint(42, "nothing to record")


def test_the_project_in_an_address_is_private(tmp_path: Path) -> None:
    env = {"DRAGOMAN_HOME": str(tmp_path), "GOOGLE_CLOUD_PROJECT": "my-own-project", "HOME": "/home/margaret", "OPENAI_ORG_ID": "acme-7"}
    names = set(private_names(set_up(Options(model="vertex/gemini-3.8-flash"), env), "vertex/gemini-3.8-flash"))
    assert {"my-own-project", "/home/margaret", "acme-7"} <= names
    assert "aiplatform.googleapis.com" not in names


# --- no key of any shape survives -------------------------------------------------------------------------------------------------


class Echo:
    """A Transport whose service repeats the key it was sent, in every way a service might."""

    def __init__(self, shapes: list[bytes], cut: int) -> None:
        self._shapes, self._cut = shapes, cut

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncIterator[HttpResponse]:
        yield EchoAnswer(b" and ".join(self._shapes), headers, self._cut)

    async def preconnect(self, url: str) -> None:
        pass

    async def aclose(self) -> None:
        pass


class EchoAnswer:
    status = 400

    def __init__(self, body: bytes, sent: Mapping[str, str], cut: int) -> None:
        self._body, self._cut = body, cut
        self.headers = {f"x-ratelimit-{name.lower()}": value for name, value in sent.items()} | {"openai-version": str(dict(sent))}

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body[: self._cut]
        yield self._body[self._cut :]
        raise ConnectionFailed("cut")


def shapes_of(key: str) -> list[bytes]:
    """A key as it is, in a header, in JSON, in JSON inside JSON, with everything escaped, and in URLs."""
    once = json.dumps(key)[1:-1]
    return [
        key.encode(),
        key.encode("latin-1"),
        once.encode(),
        json.dumps(key, ensure_ascii=False).encode(),
        json.dumps(once)[1:-1].encode(),
        json.dumps(json.dumps(json.dumps({"key": key}))).encode(),
        once.replace("/", "\\/").encode(),
        "".join(char if char.isalnum() and char.isascii() else f"\\u{ord(char):04x}" for char in key).encode(),
        "".join(char if char.isalnum() and char.isascii() else f"\\u{ord(char):04X}" for char in key).encode(),
        quote(key, safe="").encode(),
        quote(key, safe="").lower().encode() if key.islower() else quote(key).encode(),
        quote_plus(key).encode(),
    ]


printable = st.characters(min_codepoint=33, max_codepoint=255, exclude_categories=["Cc", "Cf", "Zs"])
keys = st.text(printable, min_size=8, max_size=40).filter(lambda key: not set(key) <= set(REDACTED))


@given(key=keys, cut=st.integers(0, 400))
def test_no_key_of_any_shape_survives_in_any_byte_of_the_file(key: str, cut: int) -> None:
    async def run(path: Path, home: str) -> None:
        setup = set_up(Options(command="doctor", live=True, model="anthropic/claude-opus-5"), {"DRAGOMAN_HOME": home})
        cassette = record_with(setup, str(path), "anthropic/claude-opus-5")(Echo(shapes_of(key), cut), lambda: [key])
        connection = dm.connect("anthropic", key=key, transport=cassette, retry=RetryPolicy(attempts=1), env={})
        with pytest.raises(dm.DragomanError) as caught:
            await connection.generate(dm.Request("claude-opus-5", (dm.user(f"hello {key}"),)))
        assert key not in str(caught.value)
        await connection.aclose()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tape.jsonl")
        asyncio.run(run(path, folder))
        written = path.read_bytes()
        [only] = read_cassette(path)
    assert only.response is not None
    body = b"".join(map(_to_bytes, only.response.chunks))
    for shape in shapes_of(key):
        assert shape not in body
        assert shape not in written
    assert key not in str(only.response.headers) + str(only.request)
