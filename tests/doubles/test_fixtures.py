"""The pytest plugin, used as its users do: in a folder of their own, by a pytest of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman as dm

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "embed" / "testing.md").read_text(encoding="utf-8")
CONFTEST, *EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def pytest_in(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "anyio", "-W", "error", *arguments]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")} | variables
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # whatever else is installed here; loading it takes a second
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    return folder


def passed(done: subprocess.CompletedProcess[str]) -> int:
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return int(re.findall(r"(\d+) passed", done.stdout)[-1])


def test_the_examples_on_the_page_pass(suite: Path) -> None:
    own = [code for code in EXAMPLES if "cassette" not in code]
    for number, code in enumerate(own):
        (suite / f"test_page_{number}.py").write_text(code)
    assert passed(pytest_in(suite)) == sum(code.count("def test_") for code in own) + 1 + 3  # those with parameters


def asked(service: dm.testing.Loopback) -> int:
    """How often the model was asked: on a busy machine a stranger may knock at a port that was another's before."""
    return sum(request.path == "/v1/messages" for request in service.requests)


def test_a_cassette_is_recorded_with_a_key_and_replayed_without(suite: Path, tmp_path: Path) -> None:
    (example,) = (code for code in EXAMPLES if "cassette" in code)
    (suite / "test_sailor.py").write_text(example)
    missing = pytest_in(suite)
    assert missing.returncode == 1
    assert "record one with `pytest --record`" in missing.stdout
    with dm.testing.Loopback("text: Aye.") as service:
        key = "key-that-nobody-may-see"
        assert passed(pytest_in(suite, "--record", ANTHROPIC_API_KEY=key, ANTHROPIC_BASE_URL=service.url)) == 1
        assert asked(service) == 1
        tape = suite / "cassettes" / "test_sailor" / "test_it_answers.jsonl"
        assert key not in tape.read_text()
        assert str(tmp_path) not in tape.read_text()
        assert passed(pytest_in(suite, LC_ALL="de_DE.UTF-8", ANTHROPIC_BASE_URL="http://192.0.2.1")) == 1
        assert asked(service) == 1
    moved = suite.rename(tmp_path / "elsewhere")
    assert passed(pytest_in(moved)) == 1
    (moved / "test_sailor.py").write_text(example.replace("Say aye.", "Say no."))
    changed = pytest_in(moved)
    assert changed.returncode == 1
    assert "Say no." in changed.stdout
    assert "where:    messages[" in changed.stdout


def test_what_a_failed_test_recorded_is_not_kept(suite: Path) -> None:
    (example,) = (code for code in EXAMPLES if "cassette" in code)
    (suite / "test_sailor.py").write_text(example)
    with dm.testing.Loopback("text: No.") as service:
        done = pytest_in(suite, "--record", ANTHROPIC_API_KEY="key-for-tests", ANTHROPIC_BASE_URL=service.url)
    assert done.returncode == 1
    assert not (suite / "cassettes").exists()


BAD = """
import msgspec
import dragoman as dm
from dragoman.values.wrapping import WrappingProvider


class Spoiled(WrappingProvider):
    def stream(self, request):
        return self.provider.stream(msgspec.structs.replace(request, messages=()))


def test_it_fails_even_if_nobody_looks_at_the_error(scripted, valid_requests):
    agent = dm.Agent(Spoiled(valid_requests(scripted("text: Aye."))))
    for event in agent.stream_sync("Hello"):
        pass
    agent.close()


def test_nothing_is_resolved(no_network):
    import socket
    socket.getaddrinfo("example.com", 80)
"""


def test_what_must_fail_fails(suite: Path) -> None:
    (suite / "test_bad.py").write_text(BAD)
    done = pytest_in(suite)
    assert done.returncode == 1
    assert "would refuse this request" in done.stdout
    assert "NetworkBlocked" in done.stdout


def test_the_network_is_back_after_the_test(suite: Path) -> None:
    code = """
import socket

BEFORE = (socket.getaddrinfo, socket.socket.connect, socket.socket.sendto)


def test_blocked(no_network):
    assert (socket.getaddrinfo, socket.socket.connect) != BEFORE[:2]


def test_back():
    assert (socket.getaddrinfo, socket.socket.connect, socket.socket.sendto) == BEFORE
"""
    (suite / "test_network.py").write_text(code)
    assert passed(pytest_in(suite, "-p", "no:randomly")) == 2


def test_pytest_is_loaded_by_the_plugin_alone() -> None:
    code = "import dragoman.testing as t, sys; [getattr(t, name) for name in t.__all__]; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("model", ["anthropic", "openai", "responses", "gemini", "kimi", "mistral", "vertex", "azure", "ollama/any"])
def test_a_loopback_service_plays_every_deployment(model: str, tmp_path: Path) -> None:
    with dm.testing.Loopback('call: list_directory {"path": "."}\n---\ntext: Empty.') as service:
        with dm.coding_agent(service.connect(model), workspace=tmp_path) as agent:
            assert agent.run_sync("What is here?").text == "Empty."
        assert [(each.status, each.violation) for each in service.requests] == [(200, None)] * 2
    service.close()  # twice does no harm


def test_a_loopback_service_says_who_cannot_be_played() -> None:
    with dm.testing.Loopback() as service, pytest.raises(dm.errors.InputError, match="run in this process"):
        service.connect("local/qwen3-0.6b")


def test_several_models_with_rules_of_their_own_share_a_service(tmp_path: Path) -> None:
    with dm.testing.Loopback("script: end=repeat\n---\ntext: Aye.") as service:
        for model in ("kimi/kimi-k2.6", "openai/gpt-4.1", "anthropic"):
            with dm.coding_agent(service.connect(model), workspace=tmp_path, settings=dm.Settings(thinking=dm.Thinking("low"))) as agent:
                assert agent.run_sync("Hello").text == "Aye."
        assert [each.violation for each in service.requests] == [None] * 3


def test_doubles_do_not_wait_between_attempts() -> None:
    with (
        dm.testing.Loopback("error: 429 retry_after=30\n---\nerror: 503\n---\ntext: Aye.") as service,
        dm.Agent(service.connect("openai")) as agent,
    ):
        assert agent.run_sync("Hello").text == "Aye."
        assert len(service.requests) == 3


@pytest.mark.parametrize("model", ["", "anthropic", "openai", "responses", "gemini"])
def test_usage_does_not_depend_on_the_folder(model: str, tmp_path: Path) -> None:
    """Else a test on budgets or pruning would pass here and fail there."""
    used = []
    for name in ("a", "another/and/longer"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / f"{'long' * len(name)}.txt").touch()
        script = "text: Aye.\n---\ntext: Aye again."
        with dm.testing.Loopback(script) as service:
            provider = service.connect(model) if model else dm.testing.ScriptedProvider(script)
            with dm.coding_agent(provider, workspace=folder) as agent:
                used.append([agent.run_sync(prompt).usage for prompt in ("Hello", "Hello again")])
    assert used[0] == used[1]
    assert used[0][1].input_tokens > used[0][0].input_tokens > 100
