"""A real model behind a real server: the smallest one, served by the program itself.

DRAGOMAN_TEST_MODEL names the file of weights; else they are looked for where `dragoman models pull smollm2` puts them, or in the folder
DRAGOMAN_TEST_MODELS. Without them, or without the engine, these tests are skipped; on a build machine (CI is set) they fail.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from dragoman.weights import find

ENV = dict(os.environ)
"""As it was before the tests took the developer's settings out of it."""
START_S = 60


@pytest.fixture(scope="session")
def weights() -> Path:
    if find_spec("xllamacpp") is None:
        _missing("the engine is not installed: pip install 'dragoman[local]'")
    if named := ENV.get("DRAGOMAN_TEST_MODEL", "").strip():
        return Path(named)
    folder = ENV.get("DRAGOMAN_TEST_MODELS", "").strip()
    found = find("smollm2", Path(folder) if folder else None)
    if found is None:
        _missing("the weights of smollm2 are not on this machine: dragoman models pull smollm2")
    assert found is not None
    return found


@pytest.fixture(scope="session")
def served(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `dragoman serve-local`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = str(tmp_path_factory.mktemp("home"))
    env = {"PATH": ENV.get("PATH", ""), "DRAGOMAN_HOME": home, "HOME": home, "DRAGOMAN_LOCAL_THREADS": "1"}
    command = [sys.executable, "-m", "dragoman", "serve-local", str(weights), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        assert f"http://127.0.0.1:{port}" in told, told + process.stdout.read()
        yield f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGINT)
        assert process.wait(START_S) in (0, 130), "Ctrl-C ends it"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _missing(what: str) -> None:
    if ENV.get("CI"):
        pytest.fail(what)
    pytest.skip(what)
