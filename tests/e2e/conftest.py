"""A real model behind a real server: the smallest one, served by the program itself (see real_weights.py)."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from program import heed_signals
from real_weights import ENV, real_model

START_S = 60


@pytest.fixture(scope="session")
def weights() -> Path:
    return real_model()


@pytest.fixture(scope="session")
def served(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `dragoman serve-local`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = str(tmp_path_factory.mktemp("home"))
    env = {"PATH": ENV.get("PATH", ""), "DRAGOMAN_HOME": home, "HOME": home, "DRAGOMAN_LOCAL_THREADS": "1"}
    command = [sys.executable, "-m", "dragoman", "serve-local", str(weights), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, preexec_fn=heed_signals)
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
