"""What every test stands on: no network beyond this machine, no credentials of the developer's, one set of hypothesis profiles."""

from __future__ import annotations

import atexit
import functools
import getpass
import ipaddress
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from dragoman.base.words import speak_for_program
from dragoman.providers import stored_keys

ROOT = Path(__file__).resolve().parent.parent

hypothesis.settings.register_profile(
    "default", max_examples=60, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.register_profile("long", hypothesis.settings.get_profile("default"), max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-offset", action="store_true", help="fault tests cut at every byte offset instead of at a sample")


def pytest_configure(config: pytest.Config) -> None:
    block_network()
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
    if not request.session.testsfailed:
        shutil.rmtree(tmp_path_factory.getbasetemp(), ignore_errors=True)


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
    """The folder of shared corpora beside the checkout. They are read in place and never copied into the project."""
    folder = ROOT.parent / "shared" / "corpora"
    if not folder.is_dir():
        pytest.skip("the shared corpora are not beside this checkout (../shared/corpora)")
    return folder


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


class NetworkBlocked(RuntimeError):
    """A test tried to leave this machine. Not an OSError: code that handles connection faults must not swallow it."""

    def __init__(self, what: str, target: object) -> None:
        super().__init__(f"network blocked in tests: {what} to {target!r}; only loopback addresses and Unix sockets are allowed")


def is_local(host: object) -> bool:
    """Whether a host, as the socket module takes it, stands for this machine."""
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("ascii", "replace")
    if host is None:
        return True
    name = str(host).lower().rstrip(".")
    if name in {"", "localhost"} or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def block_network() -> None:
    """Guard connecting, sending datagrams and resolving names, for the life of this process.

    Processes that a test starts are not guarded.
    """
    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, guard_socket(name))
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        setattr(socket, name, guard_lookup(getattr(socket, name)))


def guard_socket(name: str) -> Callable[..., Any]:
    original = getattr(socket.socket, name)

    @functools.wraps(original)
    def guarded(self: socket.socket, *args: Any) -> Any:
        # The address is the last argument: connect(address), sendto(data, [flags,] address).
        address = args[-1] if args else None
        if self.family == socket.AF_UNIX:
            return original(self, *args)
        if self.family in {socket.AF_INET, socket.AF_INET6} and isinstance(address, tuple) and address and is_local(address[0]):
            return original(self, *args)
        raise NetworkBlocked(name, address)

    return guarded


def guard_lookup(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_local(host):
            raise NetworkBlocked(original.__name__, host)
        return original(host, *args, **kwargs)

    return guarded
