"""What every test stands on: no network beyond this machine, no credentials of the developer's, one set of hypothesis profiles."""

from __future__ import annotations

import atexit
import gc
import getpass
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from dragoman.providers import stored_keys
from dragoman.testing.network import no_network
from dragoman.words import speak_for_program
from outside_folders import CORPORA, NO_CORPORA
from prepared import end_prepared
from program import Place, Service, service
from progress import Progress
from workers import Workers

ROOT = Path(__file__).resolve().parent.parent

hypothesis.settings.register_profile(
    "default", max_examples=40, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.register_profile("long", hypothesis.settings.get_profile("default"), max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-terminal",
        action="store_true",
        help="the conversation also at 40 and 200 columns, in screen, dragged about, on a slow line",
    )
    parser.addoption("--workers", type=int, default=1, help="processes that run tests side by side")
    parser.addoption("--every-offset", action="store_true", help="fault tests cut at every byte offset instead of at a sample")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.verbose <= 0 and (reporter := config.pluginmanager.get_plugin("terminalreporter")):
        config.pluginmanager.register(Progress(config, reporter), "progress")
    if (count := config.getoption("workers")) > 1 and not config.option.usepdb:
        config.pluginmanager.register(Workers(config, count), "workers")
    guard = no_network()
    guard.__enter__()
    config.add_cleanup(lambda: guard.__exit__(None, None, None))
    atexit.register(remove_empty_folders)  # after pytest has given up its lock, which it does at exit too


def remove_empty_folders() -> None:
    """pytest's own, around those of its runs. One that is in use holds a lock."""
    folder = Path(tempfile.gettempdir()) / f"pytest-of-{getpass.getuser()}"
    for each in [*folder.glob("pytest-*"), folder]:
        try:
            each.unlink() if each.is_symlink() and not each.exists() else each.rmdir()
        except OSError:
            pass


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the program and the tests put into the system's temporary folder goes into pytest's own. All of it is removed at the end, if
    every test passed: not after each test, as pytest could, because some replace what removing needs."""
    folder = str(tmp_path_factory.mktemp("t", numbered=False))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TMPDIR", "TMUX_TMPDIR"):
            patch.setenv(name, folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield
    end_prepared()
    if not request.session.testsfailed:
        shutil.rmtree(tmp_path_factory.getbasetemp(), ignore_errors=True)


def pytest_collection_finish() -> None:
    """All that was loaded stays until the end: a test that collects garbage need not go through it again, which takes a second."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "corpora" in getattr(item, "fixturenames", ()):
            item.add_marker("corpus")


@pytest.fixture(scope="session")
def every_offset(request: pytest.FixtureRequest) -> bool:
    """Whether fault tests are to be exhaustive (`--every-offset`)."""
    return bool(request.config.getoption("--every-offset"))


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of other programs' data. It is read in place and never copied into the project."""
    if not CORPORA.is_dir():
        pytest.skip(NO_CORPORA)
    return CORPORA


AMBIENT = re.compile(
    r"_(API_KEY|AUTH_TOKEN|ACCESS_TOKEN|BASE_URL|API_BASE|ENDPOINT|PROXY)$|^(ANTHROPIC|AZURE_OPENAI|DRAGOMAN|GEMINI|GOOGLE|OPENAI|VERTEX)_",
    re.IGNORECASE,
)
"""Variables that choose or authorise a provider, or a way to reach one."""


@pytest.fixture(autouse=True)
def library_words() -> Iterator[None]:
    """A test that runs the program in this process leaves it speaking for the program."""
    yield
    speak_for_program(False)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the developer's keys, base URLs and proxies out of the environment of every test."""
    for name in list(os.environ):
        if AMBIENT.search(name):
            monkeypatch.delenv(name)
    monkeypatch.setattr(
        stored_keys, "_HOMES", ()
    )  # nor the keys the developer has stored; processes that tests start have a home of their own


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A fresh workspace and home with the real program in them."""
    made = Place(tmp_path)
    yield made
    made.close()


@pytest.fixture
def serve(place: Place) -> Iterator[Callable[..., Service]]:
    """Play a script to the program: `serve("text: Hello")`."""
    with ExitStack() as stack:

        def start(script: str, **options: Any) -> Service:
            place.service = stack.enter_context(service(script, **options))
            return place.service

        yield start
