"""The option that pins bodies anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-bodies", action="store_true", help="write tests/wire/bodies anew from what is sent now")


@pytest.fixture(scope="session")
def update_bodies(request: pytest.FixtureRequest) -> bool:
    """Whether to pin what is sent now (`--update-bodies`). The option is known only where this folder is named on the command line."""
    return bool(request.config.getoption("--update-bodies", default=False))
