"""`/sandbox` shows what holds commands and changes it for the session; a server in the sandbox is told of once, and opened to a browser."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from policy.sandbox.sandboxes import sandbox_at
from program import Place, Service, calls, script
from terminals import Terminal, terminal

Serve = Callable[..., Service]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
PORT = 8123
SERVER = calls(("run_shell", {"command": f"echo inside > page.txt; python3 -m http.server {PORT}", "background": True}))
CURL = calls(("run_shell", {"command": f"for i in $(seq 200); do curl -s 127.0.0.1:{PORT}/page.txt && break; sleep 0.05; done"}))


@pytest.fixture(autouse=True)
def at_level_one(tmp_path: Path) -> None:
    """The sandbox of these tests: where it does not work, they are skipped."""
    with sandbox_at(1, tmp_path):
        pass


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def told(shown: Terminal, line: str) -> str:
    shown.ask(line)
    return shown.prompt()


def test_a_server_is_told_of_once_and_opened_to_the_browser_until_it_is_closed(place: Place, serve: Serve) -> None:
    service = serve(script(SERVER, CURL, "text: It serves.", CURL, "text: Still."))
    with terminal(place, "--approval", "auto", "--sandbox", "1") as shown:
        shown.prompt()
        shown.ask("start it")
        said = shown.expect("It serves.")
        assert said.count(f"bg1 listens on port {PORT} inside the sandbox. /sandbox port {PORT} opens it to your browser.") == 1
        shown.prompt()
        found = re.search(rf"port {PORT}: (http://127\.\S+)", told(shown, f"/sandbox port {PORT}"))
        assert found is not None
        assert fetch(f"{found[1]}/page.txt") == "inside\n"
        assert f"port {PORT} is open at {found[1]}" in told(shown, "/sandbox")
        assert "is closed to your browser" in told(shown, f"/sandbox port {PORT} close")
        with pytest.raises(urllib.error.URLError):
            fetch(f"{found[1]}/page.txt")
        assert f"port {PORT} is not open" in told(shown, f"/sandbox port {PORT} close")
        shown.ask("and now?")
        assert "listens on port" not in shown.expect("Still."), "each port is told of once"
    results = json.dumps(service.requests[-1])
    assert "later commands reach" in results or "Later commands reach" in results


def test_it_says_in_words_what_holds(place: Place, serve: Serve) -> None:
    serve(script("text: Hi."))
    place.home.joinpath("dragoman").mkdir()
    place.home.joinpath("dragoman", "config.toml").write_text('[network]\nhosts = ["packages.example.org"]\n')
    with terminal(place, "--sandbox", "1") as shown:
        shown.prompt()
        said = told(shown, "/sandbox")
        for each in (
            "sandbox: level 1",
            f"writes: {place.work}",
            "compilers: ",
            "hidden: ",
            "allowed: packages.example.org",
            "servers: none",
        ):
            assert each in said
        assert "a command that writes in the workspace asks" in said
        assert "write in the workspace without asking" in told(shown, "/sandbox write on")
        assert "commands write in the workspace without asking" in told(shown, "/sandbox")
        assert "ask again" in told(shown, "/sandbox write off")
        for wrong in ("write", "port x", "port 70000", "port 0", "sideways"):
            assert "/sandbox write on|off" in (said := told(shown, f"/sandbox {wrong}")) or "is not a port" in said


def test_turned_off_it_leaves_auto_asks_and_comes_back(place: Place, serve: Serve) -> None:
    outside = place.home / "outside.txt"
    write = calls(("run_shell", {"command": f"echo out > {outside}"}))
    serve(script(write, "text: Done.", write, "text: Again."))
    with terminal(place, "--approval", "auto", "--sandbox", "1") as shown:
        shown.prompt()
        said = told(shown, "/sandbox off")
        assert "the sandbox is off for this session" in said
        assert "approval: default" in said
        assert "turned off for this session; /sandbox on" in told(shown, "/approval auto")
        shown.ask("write it")
        shown.expect("Run it?", "run): ")
        shown.send("y")
        shown.expect("Done.")
        assert outside.read_text() == "out\n", "it ran without a sandbox"
        shown.prompt()
        outside.unlink()
        assert "sandbox: level 1" in told(shown, "/sandbox on")
        assert "approval: auto" in told(shown, "/approval auto")
        shown.ask("write it again")
        shown.expect("Again.")
        assert not outside.exists(), "it ran in the sandbox"
        shown.prompt()
    log = next((place.home / "dragoman").rglob("sessions/**/*.jsonl"))
    said_of_it = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each.get("boundary", "") for each in said_of_it if each["kind"] == "configured"] == ["off", ""]


def test_without_a_sandbox_nothing_is_written_unasked(place: Place, serve: Serve) -> None:
    serve(script("text: Hi."))
    with terminal(place, "--sandbox", "off") as shown:
        shown.prompt()
        assert "only inside a sandbox" in told(shown, "/sandbox write on")
        assert f"port {PORT}: http://127.0.0.1:{PORT}" in told(shown, f"/sandbox port {PORT}")
        assert "--sandbox auto" in told(shown, "/sandbox on")
