"""`dragoman mcp login` and `logout`, by the real program, with a browser that is a program too."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_issuer import Guarded, guarding

from program import Place, service

NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
BROWSER = """#!/bin/sh
exec {python} -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()' "$@"
"""


@contextmanager
def guarded_server() -> Iterator[Guarded]:
    """In a thread of its own, because the program is waited for."""
    loop, opened = asyncio.new_event_loop(), guarding()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(60)
        asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def configure(place: Place, text: str) -> None:
    file = Path(place.env["DRAGOMAN_HOME"]) / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def browser(place: Place) -> dict[str, str]:
    script = place.home / "browser"
    script.write_text(BROWSER.format(python=shlex.quote(sys.executable)))
    script.chmod(0o755)
    return NO_KEYRING | {"BROWSER": f"{script} %s"}


def test_login_and_logout(place: Place) -> None:
    with guarded_server() as guarded:
        configure(place, f'[mcp.servers.notes]\nurl = "{guarded.url}"\n')
        done = place.run("mcp", "login", "notes", env=browser(place))
        assert done.code == 0, done.err
        assert f"signed in to notes through {guarded.issuer.url}, with notes:read" in done.out
        assert "mcp_tokens.json, which only you can read" in done.out
        assert "To sign in, open this address in a browser" in done.err
        assert "secret" not in done.out
        done = place.run("mcp", "logout", "notes", env=NO_KEYRING)
        assert (done.code, done.out) == (0, f"signed out of notes; {guarded.issuer.url} has revoked the token\n"), done.err
        assert place.run("mcp", "logout", "notes", env=NO_KEYRING).out == "nobody was signed in to notes\n"


def test_login_as_json(place: Place) -> None:
    with guarded_server() as guarded:
        configure(place, f'[mcp.servers.notes]\nurl = "{guarded.url}"\n')
        done = place.run("mcp", "login", "notes", "--json", env=browser(place))
        assert json.loads(done.out)["issuer"] == guarded.issuer.url, done.err
        assert json.loads(place.run("mcp", "logout", "notes", "--json", env=NO_KEYRING).out)["revoked"] is True


def test_what_needs_a_sign_in_says_how(place: Place) -> None:
    with guarded_server() as guarded:
        configure(place, f'[mcp.servers.notes]\nurl = "{guarded.url}"\n')
        done = place.run("mcp", "test", "notes", env=NO_KEYRING)
        assert done.code == 1
        assert "sign in with: dragoman mcp login notes" in done.out + done.err


def test_a_program_is_not_signed_in_to(place: Place) -> None:
    configure(place, '[mcp.servers.local]\ncommand = "true"\n')
    done = place.run("mcp", "login", "local", env=NO_KEYRING)
    assert done.code == 42
    assert "local is a program on this machine" in done.err


def test_a_client_id_is_taken_from_the_entry_of_any_program(place: Place) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with guarded_server() as guarded:
        guarded.issuer.metadata = {"registration_endpoint": None}
        guarded.issuer.clients["by-hand"] = {"redirect_uris": [f"http://localhost:{port}/callback"]}
        entry: dict[str, Any] = {"type": "http", "url": guarded.url, "oauth": {"clientId": "${NOTES_CLIENT}", "callbackPort": port}}
        (place.home / ".claude.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))
        done = place.run("mcp", "login", "notes", env=browser(place) | {"NOTES_CLIENT": "by-hand"})
        assert done.code == 0, done.err
        assert guarded.issuer.authorizations[0]["client_id"] == "by-hand"
        assert guarded.issuer.authorizations[0]["redirect_uri"] == f"http://localhost:{port}/callback"


def address(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    return next(line.decode().strip() for line in process.stderr if b"/authorize?" in line)


def test_without_a_browser_a_pasted_address_is_taken(place: Place) -> None:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    with guarded_server() as guarded:
        configure(place, f'[mcp.servers.notes]\nurl = "{guarded.url}"\n')
        process = place.start("mcp", "login", "notes", env=NO_KEYRING, stdin=subprocess.PIPE)
        with pytest.raises(urllib.error.HTTPError) as redirected:
            urllib.request.build_opener(Stay).open(address(process))
        redirected.value.close()
        out, err = process.communicate(f"nonsense\n\nhttp://[\n{redirected.value.headers['Location']}\n".encode(), timeout=60)
        assert process.returncode == 0, err
        assert b"signed in to notes" in out
        assert err.count(b"Paste the whole address") == 3


def test_ctrl_c_cancels(place: Place) -> None:
    with guarded_server() as guarded:
        configure(place, f'[mcp.servers.notes]\nurl = "{guarded.url}"\n')
        process = place.start("mcp", "login", "notes", env=NO_KEYRING, stdin=subprocess.DEVNULL)
        address(process)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert b"Traceback" not in out + err


def test_the_model_reads_no_token(place: Place) -> None:
    """Not even where our own folder is the workspace."""
    with guarded_server() as guarded:
        configure(place, f'[mcp.servers.notes]\nurl = "{guarded.url}"\n')
        assert place.run("mcp", "login", "notes", env=browser(place)).code == 0
        tokens = next(Path(place.env["DRAGOMAN_HOME"]).rglob("mcp_tokens.json"))
        assert "token-secret-3" in tokens.read_text()
    (place.work / "link.json").symlink_to(tokens)
    calls = [f'call: read_file {{"file_path": "{path}"}}' for path in ("link.json", tokens, "data/mcp_tokens.json")]
    with service("\n---\n".join([*calls, "text: Done."])) as served:
        place.service = served
        refused = place.ask("read it", "--approval", "auto", "--include", str(tokens.parent.parent))
        assert (refused.code, str(tokens.parent.parent) in refused.err) == (44, True), "commands could change our own files there"
        done = place.ask("read it", "--include", str(tokens.parent.parent))
        assert len(served.requests) == 4, done.err
        assert "token-secret-3" not in json.dumps(served.requests) + done.out + done.err
