"""Every case to every destination: the service would take the body, the body is pinned, and its bytes depend on nothing else."""

from __future__ import annotations

import difflib

import msgspec
import pytest

from dragoman.testing.mock.validate import validate
from dragoman.values.errors import Unsupported
from wire import pinned
from wire.cases import CASES
from wire.destinations import BY_NAME, DESTINATIONS, OTHERS, Destination
from wire.layout import abbreviate, one_line, write_fields
from wire.pinned import HOW

UNSUPPORTED = {
    "search": {"openai_chat"},
    "search_and_tools": {"openai_chat", "gemini-2.5", "gemini-subset"},
    "json_schema_and_tools": {"gemini-2.5", "gemini-subset"},
}
"""By case: protocols or destinations that cannot do what is asked, and where we say so instead of sending something else."""


def cannot(to: Destination, name: str) -> bool:
    return bool(UNSUPPORTED.get(name, set()) & {to.name, to.protocol})


def ids(destinations: tuple[Destination, ...]) -> list[str]:
    return [to.name for to in destinations]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("to", DESTINATIONS, ids=ids(DESTINATIONS))
def test_the_service_would_take_it(to: Destination, name: str) -> None:
    """What must hold on the wire, with the rules that fit the destination's profile."""
    if cannot(to, name):
        with pytest.raises(Unsupported):
            to.prepare(CASES[name])
        return
    body = to.body(CASES[name])
    found = validate(to.protocol, body, to.rules)
    lines = "\n".join(write_fields(abbreviate(body), {})) if found else ""
    assert found is None, f"({found.line}) {found.message}\n{lines}"


@pytest.mark.parametrize("name", CASES)
def test_the_bodies_are_pinned(name: str, update_bodies: bool) -> None:
    path, now = pinned.path_of(name), pinned.write(name)
    if update_bodies:
        path.write_text(now, encoding="utf-8")
    place = path.relative_to(pinned.BODIES.parent)
    assert path.exists(), f"{place} is missing. {HOW}"
    then = path.read_text(encoding="utf-8")
    diff = "\n".join(difflib.unified_diff(then.split("\n"), now.split("\n"), "pinned", "sent now", lineterm="", n=4))
    if diff:
        pytest.fail(f"{place} is stale. {HOW}\n{diff}", pytrace=False)


@pytest.mark.parametrize("name", CASES)
def test_the_file_of_a_case_says_all_of_its_bodies(name: str) -> None:
    """Read back, it gives what is sent, the order of fields included: neither a difference nor the layout leaves anything out."""
    found = pinned.read(name)
    assert set(found) == {to.name for to in DESTINATIONS if name in pinned.pins(to)}
    for to, body in found.items():
        assert one_line(body) == one_line(pinned.bodies(BY_NAME[to])[name]), to


@pytest.mark.parametrize("to", OTHERS, ids=ids(OTHERS))
def test_a_destination_differs_from_the_one_it_is_like(to: Destination) -> None:
    assert pinned.pins(to), f"{to.name} never differs from {to.like}: it need not be here"


def test_no_file_is_left_over(update_bodies: bool) -> None:
    """A file that belongs to no case."""
    left = {path for path in pinned.BODIES.rglob("*") if path.is_file()} - set(map(pinned.path_of, CASES))
    for path in left if update_bodies else ():
        path.unlink()
    stray = sorted(str(path.relative_to(pinned.BODIES)) for path in left if path.exists())
    assert not stray, f"no case makes these: {', '.join(stray)}. {HOW}"


@pytest.mark.parametrize("to", DESTINATIONS, ids=ids(DESTINATIONS))
def test_bytes_are_the_same_cold_and_warm(to: Destination) -> None:
    """A provider that has rendered every case, and every beginning of it, sends what a fresh one sends, byte for byte."""
    warm = to.connect()
    for name, request in CASES.items():
        if cannot(to, name):
            continue
        request = to.addressed(request)
        for end in range(1, len(request.messages)):
            warm.prepare(msgspec.structs.replace(request, messages=request.messages[:end]))
        first, again, cold = (provider.prepare(request) for provider in (warm, warm, to.connect()))
        assert first == again == cold, name


@pytest.mark.parametrize("to", DESTINATIONS, ids=ids(DESTINATIONS))
def test_a_message_is_rendered_once_whatever_stands_around_it(to: Destination) -> None:
    """Rendering is per message: a longer conversation renders what is new and nothing else."""
    request = to.addressed(CASES["several_steps"])
    provider = to.connect()
    for end in range(1, len(request.messages) + 1):
        provider.prepare(msgspec.structs.replace(request, messages=request.messages[:end]))
        assert provider.provider.messages_rendered(request.model) == end  # type: ignore[attr-defined]


def test_the_request_has_the_documented_shape() -> None:
    """PROVIDERS-4: `contents`, `tools`, `generationConfig` and `systemInstruction` beside each other, the key in a header."""
    to = DESTINATIONS[3]
    prepared = to.prepare(CASES["full_featured_request"])
    body = msgspec.json.decode(prepared.body)
    assert set(body) == {"systemInstruction", "tools", "contents", "generationConfig"}
    assert prepared.url == "http://127.0.0.1:1/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert "key" not in prepared.url
    assert prepared.headers["content-type"] == "application/json"
    assert prepared.headers["user-agent"].startswith("Dragoman/")


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("anthropic", "/v1/messages"),
        ("openai", "/chat/completions"),
        ("responses", "/responses"),
        ("vertex", "/models/gemini-3.8-flash:streamGenerateContent?alt=sse"),
    ],
)
def test_the_request_goes_where_the_protocol_says(name: str, url: str) -> None:
    to = next(each for each in DESTINATIONS if each.name == name)
    prepared = to.prepare(CASES["single_prompt"])
    assert prepared.url.removeprefix("http://127.0.0.1:1") == url
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & set(prepared.headers), "keys are added on the way out"
