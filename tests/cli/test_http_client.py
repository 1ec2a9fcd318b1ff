"""`[http] client`: the program over httpx2, and what is said where it cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from program import PROTOCOLS, Place, Service, calls, script

Serve = Callable[..., Service]
BY_HTTPX = '[http]\nclient = "httpx"\n'


def configure(place: Place, text: str) -> None:
    (place.home / "dragoman").mkdir(exist_ok=True)
    (place.home / "dragoman" / "config.toml").write_text(text)


@pytest.mark.parametrize("model", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_an_answer_comes_over_httpx(place: Place, serve: Serve, model: str) -> None:
    (place.work / "a.txt").write_text("alpha")
    configure(place, BY_HTTPX)
    asked = serve(script(calls(("read_file", {"file_path": "a.txt"})), "text piece=3: It says alpha."))
    done = place.ask(model=model)
    assert (done.code, done.out, done.err) == (0, "It says alpha.\n", "")
    assert len(asked.requests) == 2


def test_a_socks_proxy_is_used_where_httpx_is_chosen_and_else_the_way_out_is_told(place: Place) -> None:
    env = {"ANTHROPIC_API_KEY": "k", "ALL_PROXY": "socks5://user:hunter22@127.0.0.1:9", "ANTHROPIC_BASE_URL": "https://api.example.test"}
    done = place.ask(env=env)
    assert "hunter22" not in done.complaint(52, "socks5:// are not supported; use http://, https://", "pip install '.[httpx]'", "[http]")
    configure(place, BY_HTTPX + "[retry]\nattempts = 1\n")
    done = place.ask(env=env)
    assert "hunter22" not in done.complaint(57, "cannot reach the proxy 127.0.0.1:9: connection refused")


def test_an_unknown_client_is_a_wrong_configuration(place: Place) -> None:
    configure(place, '[http]\nclient = "curl"\n')
    place.ask().complaint(52, "config.toml:2", "http.client must be one of own, httpx")


def test_a_folder_may_not_choose_the_client(place: Place) -> None:
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text(BY_HTTPX)
    place.ask("hi", "--trust").complaint(52, "http.client cannot be set by a project")


def test_doctor_says_that_httpx_is_used(place: Place, serve: Serve) -> None:
    serve("text: ok")
    assert "✓ http " not in place.run("doctor").out
    configure(place, BY_HTTPX)
    done = place.run("doctor")
    assert done.code == 0, done
    assert "✓ http " in done.out
    assert "✓ network" in done.out


def test_what_is_missing_is_named(place: Place, serve: Serve) -> None:
    serve("text: ok")
    configure(place, BY_HTTPX)
    # As where the extra is not installed: nothing of that name is found.
    (place.work / "hiding").mkdir()
    (place.work / "hiding" / "sitecustomize.py").write_text("import sys\nsys.modules['httpcore2'] = None\n")
    env = {"PYTHONPATH": str(place.work / "hiding")}
    missing = "[http] client = \"httpx\" needs one more package: run pip install '.[httpx]' in your clone of Dragoman"
    place.ask(env=env).complaint(52, missing)
    done = place.run("doctor", "--offline", "--output-format", "json", env=env)
    assert done.code == 1
    assert {"what": "http", "state": "broken", "text": missing} in json.loads(done.out)["findings"]
