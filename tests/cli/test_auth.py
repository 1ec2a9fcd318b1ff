"""`dragoman auth`: keys are stored out of sight, found again, and never shown."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from program import KEY, Place, Service
from terminals import terminal

Serve = Callable[..., Service]
TESTS = str(Path(__file__).resolve().parent.parent)


def keyring(place: Place, backend: str = "FileKeyring") -> dict[str, str]:
    return {
        "PYTHONPATH": TESTS,
        "PYTHON_KEYRING_BACKEND": f"keyring_backend.{backend}",
        "TEST_KEYRING": str(place.home / "ring.json"),
        "PYTHONWARNINGS": "",
    }


NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}


def keys_file(place: Place) -> Path:
    return place.home / "dragoman" / "data" / "keys.json"


def without_keys(service: Service) -> dict[str, str]:
    return dict.fromkeys((name for name in service.env if name.endswith("_API_KEY")), "")


def test_a_key_is_stored_in_the_keyring_and_used(place: Place, serve: Serve) -> None:
    env = keyring(place)
    done = place.run("auth", "add", "anthropic", stdin=f"{KEY}\n", env=env)
    assert done.code == 0, done.err
    assert "stored the key of anthropic in the system's keyring" in done.out
    assert json.loads((place.home / "ring.json").read_text()) == {"dragoman/anthropic": KEY}
    assert KEY not in keys_file(place).read_text()
    service = serve("text: Hello.")
    done = place.ask(env=env | without_keys(service))
    assert done.out == "Hello.\n"
    assert service.server.requests[0].headers["x-api-key"] == KEY


def test_without_a_keyring_it_is_kept_in_a_file_for_the_user_alone_and_that_is_said(place: Place, serve: Serve) -> None:
    done = place.run("auth", "add", "anthropic", stdin=KEY, env=NO_KEYRING)
    assert f"in {keys_file(place)}, which only you can read; not in a keyring, because this system has no keyring" in done.out
    assert stat.S_IMODE(keys_file(place).stat().st_mode) == 0o600
    assert stat.S_IMODE(keys_file(place).parent.stat().st_mode) == 0o700
    service = serve("text: Hello.")
    assert place.run("-p", "hi", env=without_keys(service)).out == "Hello.\n", "and its service is chosen"
    assert service.server.requests[0].headers["x-api-key"] == KEY


@pytest.mark.parametrize(
    ("backend", "reason"),
    [("LockedKeyring", "the keyring failed: RuntimeError"), ("ForgetfulKeyring", "did not give"), ("PoorKeyring", "has no keyring")],
)
def test_a_keyring_that_does_not_keep_it_is_not_relied_on(place: Place, backend: str, reason: str) -> None:
    done = place.run("auth", "add", "openai", stdin=KEY, env=keyring(place, backend))
    assert reason in done.out
    assert KEY in keys_file(place).read_text()
    assert KEY not in done.out + done.err


def test_the_environment_wins_and_that_is_said(place: Place, serve: Serve) -> None:
    done = place.run("auth", "add", "anthropic", stdin="sk-stored-0123456789", env=NO_KEYRING | {"ANTHROPIC_API_KEY": KEY})
    assert "ANTHROPIC_API_KEY is set and wins over it" in done.out
    service = serve("text: Hello.")
    place.ask()
    assert service.server.requests[0].headers["x-api-key"] == KEY
    assert "ANTHROPIC_API_KEY is set; the key that is stored in a file for you alone is not used" in place.run("auth").out


def test_it_is_said_where_a_key_comes_from_and_never_the_key(place: Place) -> None:
    place.run("auth", "add", "anthropic", stdin=KEY, env=NO_KEYRING)
    place.run("auth", "add", "openai", stdin=KEY, env=keyring(place))
    outputs = {
        command: place.run(*command.split()).out
        for command in (
            "auth",
            "auth list --output-format json",
            "models anthropic",
            "config",
            "doctor --offline",
            "config --output-format json",
        )
    }
    assert "anthropic  stored in a file for you alone\nopenai     stored in the system's keyring\n" in outputs["auth"]
    keys = json.loads(outputs["auth list --output-format json"])["keys"]
    assert keys[0] == {"service": "anthropic", "source": {"kind": "file", "variable": None}, "stored": "file"}
    assert "key: stored in a file for you alone" in outputs["models anthropic"]
    assert "Keys: anthropic (stored in a file for you alone)" in outputs["config"]
    assert "key        stored in a file for you alone" in outputs["doctor --offline"]
    assert not [command for command, text in outputs.items() if KEY in text]


@pytest.mark.parametrize("env", [NO_KEYRING, None], ids=["file", "keyring"])
def test_a_key_is_removed(place: Place, env: dict[str, str] | None) -> None:
    env = keyring(place) if env is None else env
    place.run("auth", "add", "openai", stdin=KEY, env=env)
    assert "deleted the key of openai" in place.run("auth", "remove", "openai", env=env).out
    assert "no key is set or stored" in place.run("auth", env=env).out
    assert KEY not in keys_file(place).read_text()
    if "TEST_KEYRING" in env:
        assert KEY not in (place.home / "ring.json").read_text()
    done = place.run("auth", "remove", "openai", env=env)
    assert (done.code, "no key is stored for openai" in done.err) == (42, True)


def test_a_keyring_that_cannot_be_reached_removes_nothing_and_says_so(place: Place) -> None:
    place.run("auth", "add", "openai", stdin=KEY, env=keyring(place))
    done = place.run("auth", "remove", "openai", env=keyring(place, "LockedKeyring"))
    assert (done.code, "nothing was removed" in done.err) == (41, True)
    done = place.run("-p", "hi", "-m", "openai/gpt-4.1", env=NO_KEYRING)
    assert done.code == 41
    assert "is in the system's keyring, which cannot be used (this system has no keyring)" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "antropic"), "no service is called antropic; did you mean anthropic?"),
        (("add",), "dragoman auth add needs SERVICE"),
        (("add", "ollama", "x"), "never taken from the command line"),
        (("ad", "openai"), "did you mean add?"),
        (("remove", "openai"), "no key is stored for openai"),
    ],
)
def test_mistakes_are_told(place: Place, arguments: tuple[str, ...], said: str) -> None:
    done = place.run("auth", *arguments, stdin=KEY)
    assert done.code == 42
    assert said in done.err


def test_a_key_given_as_an_argument_is_refused_and_not_repeated(place: Place) -> None:
    done = place.run("auth", "add", "openai", KEY)
    assert (done.code, KEY in done.out + done.err) == (42, False)
    assert not keys_file(place).exists()


@pytest.mark.parametrize("text", ["", "   \n", "sk-one\nsk-two", "sk-\u4e2d"])
def test_what_is_no_key_is_not_stored_and_not_shown(place: Place, text: str) -> None:
    done = place.run("auth", "add", "openai", stdin=text, env=NO_KEYRING)
    assert done.code == 41
    assert "sk-" not in done.err
    assert not keys_file(place).exists()


def test_in_a_terminal_it_is_asked_for_and_not_shown(place: Place) -> None:
    with terminal(place, "auth", "add", "openai", env=NO_KEYRING, model="") as shown:
        shown.expect("Key for OpenAI (Chat Completions) (not shown):")
        shown.send(f"{KEY}\r")
        assert KEY not in shown.expect("stored the key of openai")
    assert KEY in keys_file(place).read_text()


def test_two_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    file = str(tmp_path / "keys.json")
    code = (
        "import sys; from dragoman.providers.stored_keys import StoredKeys\n"
        "for n in range(15): StoredKeys(sys.argv[1]).add(f'{sys.argv[2]}-{n}', f'sk-{n}')\n"
        "StoredKeys(sys.argv[1]).remove(f'{sys.argv[2]}-0')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, file, name], env=os.environ | NO_KEYRING) for name in ("a", "b")]
    assert [process.wait(60) for process in running] == [0, 0]
    assert set(json.loads(Path(file).read_text())["keys"]) == {f"{name}-{number}" for name in "ab" for number in range(1, 15)}


def test_a_file_that_others_can_read_is_closed_to_them_and_that_is_said(place: Place, serve: Serve) -> None:
    place.run("auth", "add", "anthropic", stdin=KEY, env=NO_KEYRING)
    keys_file(place).chmod(0o644)
    service = serve("text: Hello.")
    done = place.ask(env=without_keys(service))
    assert "could be read or written by others (mode 644); now only you can (mode 600)" in done.err
    assert stat.S_IMODE(keys_file(place).stat().st_mode) == 0o600
    assert place.ask(env=without_keys(service)).err == ""


def test_a_damaged_file_is_named_and_nothing_of_it_shown(place: Place, serve: Serve) -> None:
    keys_file(place).parent.mkdir(parents=True)
    keys_file(place).write_text(f'{{"keys": {{"anthropic": "{KEY}"')
    keys_file(place).chmod(0o600)
    for arguments in (("auth",), ("-p", "hi"), ("auth", "add", "openai")):
        done = place.run(*arguments, stdin=KEY)
        assert done.code == 52
        assert "keys.json is damaged" in done.err
        assert KEY not in done.err + done.out
    serve("text: Hello.")
    assert place.ask().out == "Hello.\n", "where a variable has the key, the file is not even read"


def test_where_a_variable_has_the_key_neither_the_file_nor_the_keyring_is_touched(place: Place, serve: Serve) -> None:
    serve("text: Hello.")
    code = (
        "import sys; from dragoman.cli.main import main; code = main(['-p', 'hi'])\n"
        "assert not {'keyring', 'dragoman.providers.stored_keys'} & set(sys.modules), code\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=place.env, cwd=place.work, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr


def test_the_first_thing_said_where_there_is_no_key_names_the_command(place: Place) -> None:
    done = place.run("-p", "hi", "-m", "anthropic/claude-opus-5")
    assert "or store one with: dragoman auth add anthropic" in done.err
