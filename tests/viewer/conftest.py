"""One browser and one shown session for each module: both are only looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser

from program import Place
from viewer.browsing import Serving, Watched, chromium, serving, watched
from viewer.shown_session import hold_session


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


class Shown(NamedTuple):
    """A place with a session, and what the service was sent in it, byte for byte."""

    place: Place
    sent: list[bytes]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    place = Place(tmp_path_factory.mktemp("shown"))
    yield Shown(place, hold_session(place))
    place.close()


@pytest.fixture(scope="module")
def server(shown: Shown) -> Iterator[Serving]:
    with serving(shown.place) as found:
        yield found


@pytest.fixture
def view(browser: Browser, server: Serving) -> Iterator[Watched]:
    with watched(browser, server, viewport={"width": 1200, "height": 900}) as found:
        yield found
