"""`dragoman models`, `config` and `doctor`, as a user runs them."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable

import pytest

from dragoman.app.options import Options
from dragoman.cli.doctor import examine
from program import KEY, Place, Service

Serve = Callable[..., Service]


# --- models


def test_models_lists_deployments_models_and_keys(place: Place) -> None:
    done = place.run("models", env={"ANTHROPIC_API_KEY": KEY})
    assert done.code == 0
    assert done.err == ""
    assert "A run now would use anthropic/claude-sonnet-5-5 (because of ANTHROPIC_API_KEY)." in done.out
    assert "key: ANTHROPIC_API_KEY is set" in done.out
    assert "no key: set GEMINI_API_KEY / GOOGLE_API_KEY" in done.out
    assert " * claude-sonnet-5-5 " in done.out
    assert "ollama" in done.out
    assert max(map(len, done.out.splitlines())) <= 120


def test_services_that_can_be_used_are_listed_first(place: Place) -> None:
    env = {"GROQ_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    names = [each["name"] for each in place.run("models", "--output-format", "json", env=env).json["deployments"]]
    assert set(names[:3]) == {"openai", "responses", "groq"}
    rest = [each["name"] for each in place.run("models", "--output-format", "json").json["deployments"]]
    assert names[3:] == [name for name in rest if name not in names[:3]], "the others in the order of the catalog"
    texts = place.run("models", env=env).out.split("\n\n")
    assert all("is set" in text for text in texts[1:4])
    place.run("auth", "add", "glm", stdin=KEY)
    assert place.run("models", "--output-format", "json").json["deployments"][0]["name"] == "glm", "a stored key is as good"


def test_models_can_be_narrowed_down(place: Place) -> None:
    assert [line.split()[0] for line in place.run("models", "ollama").out.split("\n\n")[1:2]] == ["ollama"]
    haiku = place.run("models", "haiku").out
    assert "claude-haiku" in haiku
    assert "opus" not in haiku
    place.run("models", "gemni").complaint(42, "gemni", "gemini")


def test_models_as_json(place: Place) -> None:
    told = place.run("models", "--output-format", "json", env={"GEMINI_API_KEY": KEY}).json
    assert told["chosen"] == {"model": "gemini/gemini-3.8-flash", "because": "GEMINI_API_KEY"}
    gemini = next(each for each in told["deployments"] if each["name"] == "gemini")
    assert gemini["key"] == {"variables": ["GEMINI_API_KEY", "GOOGLE_API_KEY"], "set": "GEMINI_API_KEY", "stored": None}
    assert gemini["default_model"] in [model["name"] for model in gemini["models"]]


def test_models_shows_rows_of_ones_own(place: Place) -> None:
    (place.work / "c.toml").write_text(
        'model = "corp"\n[deployments.corp]\nprotocol = "anthropic"\nbase_url = "http://x"\ndefault_model = "m"'
    )
    done = place.run("models", "corp", "--config", "c.toml")
    assert "corp/NAME" in done.out


# --- config


def test_config_shows_every_value_and_where_it_came_from(place: Place) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text("max_turns = 7\n[settings]\ntemperature = 0.5")
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text('approval = "plan"')
    done = place.run("config", env={"DRAGOMAN_MODEL": "gemini/x"})
    assert done.code == 0
    rows = {line.split()[0]: line for line in done.out.splitlines() if line.startswith("  ")}
    assert rows["model"].endswith("DRAGOMAN_MODEL in the environment")
    assert rows["max_turns"].endswith("your file")
    assert rows["settings.temperature"].split()[1] == "0.5"
    assert rows["retry.attempts"].split() == ["retry.attempts", "3", "default"]
    assert rows["approval"].split() == ["approval", "default", "default"]
    assert "ignored" in done.out
    trusted = place.run("config", "--trust", "-m", "gemini/y")
    rows = {line.split()[0]: line for line in trusted.out.splitlines() if line.startswith("  ")}
    assert rows["approval"].endswith("the project's file")
    assert rows["model"].endswith("--model")


def test_config_as_json(place: Place) -> None:
    told = place.run("config", "--output-format", "json", "--max-turns", "3").json
    assert told["values"]["max_turns"] == {"value": 3, "source": {"kind": "flag", "name": "--max-turns"}}
    assert [file["state"] for file in told["files"]] == ["absent", "absent"]
    assert told["places"]["config"] == str(place.home / "dragoman")


def test_config_shows_no_secret(place: Place) -> None:
    (place.work / "c.toml").write_text(
        '[deployments.corp]\nprotocol = "anthropic"\nbase_url = "https://me:hunter2secret@x"\n'
        'key_command = ["pass", "hunter2secret"]\nheaders = { "X-Token" = "hunter2secret" }'
    )
    for form in ("text", "json"):
        done = place.run("config", "--config", "c.toml", "--output-format", form)
        assert done.code == 0
        assert "deployments.corp" in done.out
        assert "hunter2secret" not in done.out


@pytest.mark.parametrize("command", ["config", "models"])
def test_a_wrong_file_is_named_by_the_commands_too(place: Place, command: str) -> None:
    (place.work / "c.toml").write_text("max_turn = 3")
    place.run(command, "--config", "c.toml").complaint(52, "c.toml:1", "max_turns")
    told = place.run(command, "--config", "c.toml", "--output-format", "json")
    assert told.code == 52
    assert told.json["error"]["type"] == "ConfigError"


# --- doctor


def findings(place: Place, *arguments: str, **options: object) -> tuple[int, dict[str, list[dict[str, str]]]]:
    done = place.run("doctor", "--output-format", "json", *arguments, **options)  # type: ignore[arg-type]
    found: dict[str, list[dict[str, str]]] = {}
    for finding in done.json["findings"]:
        found.setdefault(finding["what"], []).append(finding)
    return done.code, found


def test_doctor_when_all_is_well(place: Place, serve: Serve) -> None:
    asked = serve("text: ok")
    done = place.run("doctor")
    assert done.code == 0, done
    assert "✓ network" in done.out
    assert "✓ ripgrep" in done.out
    assert "Nothing is broken." in done.out
    assert asked.requests == [], "nothing is asked of the service"
    code, found = findings(place)
    assert code == 0
    assert {what for what, each in found.items() if each[0]["state"] == "ok"} >= {"python", "config", "model", "key", "data", "cache"}
    assert re.match("level [123], |none: ", found["sandbox"][0]["text"])
    assert list(place.home.iterdir()) == [], "looking writes nothing"


def test_doctor_without_a_key(place: Place) -> None:
    code, found = findings(place, "-m", "mistral", "--offline")
    assert code == 1
    assert "MISTRAL_API_KEY" in found["key"][0]["text"]
    assert found["network"][0]["state"] == "warning"


def test_doctor_names_the_headers_of_the_environment_and_a_wrong_one(place: Place) -> None:
    _, found = findings(
        place,
        "-m",
        "openai",
        "--offline",
        env={"OPENAI_API_KEY": KEY, "OPENAI_ORG_ID": "org-1", "OPENAI_CUSTOM_HEADERS": "X-Gateway: hush-hush"},
    )
    [finding] = found["headers"]
    assert (finding["state"], finding["text"]) == ("ok", "sent with every request: OPENAI_ORG_ID, OPENAI_CUSTOM_HEADERS")
    code, found = findings(place, "-m", "openai", "--offline", env={"OPENAI_API_KEY": KEY, "OPENAI_ORG_ID": "組織"})
    assert code == 1
    assert "OPENAI_ORG_ID has a character that a header cannot contain" in found["key"][0]["text"]


def test_doctor_finds_a_wrong_configuration(place: Place) -> None:
    (place.work / "c.toml").write_text("max_turn = 3")
    code, found = findings(place, "--config", "c.toml")
    assert code == 1
    assert "c.toml:1" in found["config"][0]["text"]
    assert "ripgrep" in found, "the rest is looked at all the same"


def test_doctor_finds_a_service_that_does_not_answer(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{taken.getsockname()[1]}"}
        code, found = findings(place, "-m", "anthropic", env=env)
    assert code == 1
    assert "connection refused" in found["network"][0]["text"]


def test_doctor_waits_three_seconds_and_no_longer(place: Place) -> None:
    """A server that accepts and then says nothing where TLS should be spoken."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        held: list[socket.socket] = []
        threading.Thread(target=lambda: held.append(silent.accept()[0]), daemon=True).start()
        env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": f"https://127.0.0.1:{silent.getsockname()[1]}"}
        code, found = findings(place, "-m", "anthropic", env=env, timeout_s=8)
        for each in held:
            each.close()
    assert code == 1
    assert "3 s" in found["network"][0]["text"]


def test_doctor_finds_a_folder_that_cannot_be_written(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(place.home))
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    text, code = examine(Options(command="doctor", offline=True, model="ollama/x"))
    assert code == 1
    assert "✗ data" in text
    assert "DRAGOMAN_HOME" in text


def test_doctor_finds_a_file_where_a_folder_should_be(place: Place) -> None:
    (place.home / "dragoman").write_text("")
    code, found = findings(place)
    assert code == 1
    assert found["data"][0]["state"] == "broken"


def test_doctor_says_an_unknown_model_is_one(place: Place, serve: Serve) -> None:
    serve("text: ok")
    code, found = findings(place, "-m", "anthropic/claude-9")
    assert code == 0
    assert found["model"][0]["state"] == "warning"
