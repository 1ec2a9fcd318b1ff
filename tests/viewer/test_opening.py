"""What `dragoman view` does in the terminal that it was started in."""

from __future__ import annotations

import http.client
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.app.options import Options
from dragoman.viewer import opening, server
from program import Place, take_terminal

SHELL = """
import os, signal, subprocess, sys
job = subprocess.Popen([sys.executable, "-m", "dragoman", "view", "--no-open"], process_group=0)
print(job.pid, flush=True)
signal.signal(signal.SIGUSR1, lambda *_: os.tcsetpgrp(0, job.pid))
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.waitpid(job.pid, os.WUNTRACED)
job.kill()
"""
"""Begins it in the background, and brings it to the front at a signal."""


def test_in_the_background_it_leaves_what_is_typed_to_the_shell(tmp_path: Path) -> None:
    place = Place(tmp_path)
    terminal, end = pty.openpty()
    shell = subprocess.Popen(
        [sys.executable, "-c", SHELL],
        stdin=end,
        stdout=subprocess.PIPE,
        cwd=place.work,
        env=place.env,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    assert shell.stdout is not None
    lines = iter(shell.stdout.readline, b"")
    job = int(next(line for line in lines if line.strip().isdigit()))
    try:
        address = next(found.group(1) for line in lines if (found := re.search(r"http://([^/]+)/", line.decode())))
        os.write(terminal, b"\n")
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200  # by now it has seen the line
        connection.close()
        shell.send_signal(signal.SIGUSR1)
        assert next(line for line in lines if address.encode() in line)
    finally:
        os.kill(job, signal.SIGKILL)
        shell.kill()
        shell.wait(60)
        shell.stdout.close()
        os.close(terminal)
        os.close(end)


@pytest.mark.parametrize(("given", "opened"), [({}, 1), ({"origin": "https://view.example"}, 0), ({"no_open": True}, 0)])
def test_the_browser_is_opened_only_where_the_address_is_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, object], opened: int
) -> None:
    place = Place(tmp_path)
    monkeypatch.chdir(place.work)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    seen: list[str] = []
    monkeypatch.setattr(opening, "_open_browser", seen.append)
    monkeypatch.setattr(server, "serve", lambda setup, access, bound, tls, **_: bound.close())
    assert opening.run_view(Options(command="view", **given)) == 0
    assert len(seen) == opened
