"""The test doubles as pytest fixtures. In `conftest.py`:

    pytest_plugins = ["dragoman.testing.fixtures"]

None of them needs an event loop: they serve plain tests, pytest-asyncio and anyio alike. pytest is needed by this module alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from dragoman.testing.loopback import Loopback
from dragoman.testing.network import no_network as block_network
from dragoman.testing.recorded import RecordedService
from dragoman.testing.script import Source
from dragoman.testing.scripted import ScriptedProvider
from dragoman.testing.validity import Validated
from dragoman.values.contracts import Provider
from dragoman.values.profile import Profile


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dragoman")
    group.addoption("--record", action="store_true", help="record the cassettes of the selected tests anew, from the real services")


class MakeScripted(Protocol):
    def __call__(
        self,
        script: Source,
        /,
        *,
        name: str = "scripted",
        model: str = "",
        profile: Profile | None = None,
        profiles: Mapping[str, Profile] | None = None,
    ) -> ScriptedProvider: ...


class MakeValidated(Protocol):
    def __call__(self, provider: Provider, where: str | Provider = "") -> Validated: ...


@pytest.fixture
def scripted() -> MakeScripted:
    """`scripted("text: Hello")`: a model that plays a script in this process. `.requests` has what it was asked."""
    return ScriptedProvider


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    """A service on a free port of this machine, for any protocol: `loopback.play(script)`, `loopback.connect("anthropic")`,
    `loopback.requests`."""
    with Loopback() as service:
        yield service


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[RecordedService]:
    """`cassette.connect("gemini")`: the real service, recorded with `--record` and replayed without. The file is
    `cassettes/<module>/<test>.jsonl` beside the test. What a failed test recorded is not kept."""
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    path = request.path.parent / "cassettes" / request.path.stem / f"{name}.jsonl"
    folders: list[Path] = [request.getfixturevalue("tmp_path")] if "tmp_path" in request.fixturenames else []
    failed = request.session.testsfailed
    service = RecordedService(path, record=bool(request.config.getoption("--record")), folders=folders)
    yield service
    if request.session.testsfailed == failed:
        service.save()


@pytest.fixture
def valid_requests() -> Iterator[MakeValidated]:
    """`dm.Agent(valid_requests(provider))`: fails the test at the first request that the service would refuse, in its words."""
    made: list[Validated] = []

    def wrap(provider: Provider, where: str | Provider = "") -> Validated:
        made.append(Validated(provider, where))
        return made[-1]

    yield wrap
    for provider in made:
        if provider.refusals:
            raise provider.refusals[0]


@pytest.fixture
def no_network() -> Iterator[None]:
    """Connecting to anything but this machine fails with `NetworkBlocked`. For every test of a folder: `pytestmark =
    pytest.mark.usefixtures("no_network")`, or an autouse fixture that asks for it."""
    with block_network():
        yield
