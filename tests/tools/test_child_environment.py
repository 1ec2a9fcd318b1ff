"""Which variables a command gets: what tools need, and no secret, whatever it is called."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from dragoman.loop.coding import coding_agent
from dragoman.loop.options import Connector
from dragoman.providers.catalog import builtin_catalog
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools.child_environment import child_environment
from program import Place, calls, script, service

SECRET = [
    "DB_PASS",
    "MYSQL_PWD",
    "SSHPASS",
    "PGPASSWORD",
    "GH_PAT",
    "NPM_CONFIG__AUTH",
    "SESSION_COOKIE",
    "AWS_CREDS",
    "DB_PASS2",
    "DB_PASS_2",
    "DBPWD",
    "ADMIN_OAUTH",
    "CORP_BEARER",
    "DOCKER_AUTH_CONFIG",
    "AZURE_STORAGE_CONNECTION_STRING",
    "SLACK_WEBHOOK_URL",
    "OP_SESSION_my",
    "BW_SESSION",
]
SECRET += ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "CLIENT_SECRET", "GPG_PASSPHRASE", "GOOGLE_APPLICATION_CREDENTIALS", "db_pass"]
NEEDED = [
    "PATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "SSH_AUTH_SOCK",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "LANG",
    "VIRTUAL_ENV",
    "DATABASE_URL",
    "XAUTHORITY",
    "GIT_AUTHOR_NAME",
    "GOPRIVATE",
    "DESKTOP_SESSION",
]


@pytest.mark.parametrize("name", SECRET)
def test_what_is_called_like_a_secret_is_kept_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "hush")
    assert name not in child_environment()


@pytest.mark.parametrize("name", NEEDED)
def test_what_tools_need_is_passed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "here")
    assert child_environment()[name] == "here"


def test_variables_that_are_named_and_copies_of_their_values_are_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORP_LOGIN", "a-long-secret")
    monkeypatch.setenv("COPY_OF_IT", "a-long-secret")
    monkeypatch.setenv("CORP_MODE", "on")
    monkeypatch.setenv("OTHER_MODE", "on")
    found = child_environment(secret=["CORP_LOGIN", "CORP_MODE"])
    assert not {"CORP_LOGIN", "COPY_OF_IT", "CORP_MODE"} & set(found)
    assert found["OTHER_MODE"] == "on", "a value that anything may have is no secret"


def test_a_command_of_an_agent_gets_no_variable_that_a_deployment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "protocol": "openai_chat",
        "base_url": "http://127.0.0.1:9/v1",
        "key_env": ["CORP_LOGIN"],
        "token_env": ["CORP_BEARER"],
        "headers_env": "CORP_EXTRA",
        "env_headers": {"X-Team": "CORP_TEAM"},
    }
    for name in ("CORP_LOGIN", "CORP_BEARER", "CORP_EXTRA", "CORP_TEAM"):
        monkeypatch.setenv(name, f"value of {name}")
    connector = Connector(lambda model, blobs: ScriptedProvider("text: ok"), "x/y", builtin_catalog().with_rows({"corp": row}))
    shell = coding_agent(connector, workspace=str(tmp_path)).tools.get("run_shell")
    assert shell is not None
    output = asyncio.run(shell.run({"command": "env"}, lambda text: None)).content[0].text
    assert "PATH=" in output
    assert "CORP_" not in output


def test_the_program_keeps_the_key_of_its_service_from_commands(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.home / "dragoman" / "data").mkdir(parents=True)
    with service(script(calls(("run_shell", {"command": "env"})), "text: Done.")) as served:
        place.service = served
        config = f'[deployments.corp]\nprotocol = "anthropic"\nbase_url = "{served.url}"\nkey_env = ["CORP_LOGIN"]\nauth = "x-api-key"\n'
        (place.home / "dragoman" / "config.toml").write_text(config)
        grant = f'{{"folder":"{os.path.realpath(place.work)}","key":"run_shell env"}}'
        (place.home / "dragoman" / "data" / "grants.jsonl").write_text(grant)
        done = place.ask(model="corp/claude-opus-5", env={"CORP_LOGIN": "corp-login-value-1"})
        assert done.out == "Done.\n", done.err
        told = str(served.requests[1]["messages"][-1])
    assert "PATH=" in told
    assert "corp-login-value-1" not in told
