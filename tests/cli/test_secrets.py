"""Keys: commands do not get them, and ours reach no log, no session, no export and no error, wherever they come back from."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.app.debug_log import log_to_stderr, print_traceback
from program import Place, Service, calls, script

Serve = Callable[..., Service]
OWN = "Zq9/corp+login-77aa55ee33"
"""A key of ours that looks like none, so that only knowing it takes it out."""
SECRETS = {
    "OPENAI_API_KEY": "value-openai-1111",
    "AWS_SECRET_ACCESS_KEY": "value-aws-2222",
    "GITHUB_TOKEN": "value-github-3333",
    "MY_DB_PASSWORD": "value-db-4444",
    "MYSQL_PWD": "value-mysql-5555",
    "CORP_LOGIN": "value-corp-6666",
    "COPY": "value-corp-6666",
}
CORP = '[deployments.corp]\nprotocol = "openai_chat"\nbase_url = "http://127.0.0.1:9/v1"\nkey_env = ["CORP_LOGIN"]\n'


def allow(place: Place, *commands: str) -> None:
    data = place.home / "dragoman" / "data"
    data.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"folder": str(place.work), "key": f"run_shell {command}"}) for command in commands]
    (data / "grants.jsonl").write_text("".join(f"{line}\n" for line in lines))


def configure(place: Place, text: str) -> None:
    (place.home / "dragoman").mkdir(exist_ok=True)
    (place.home / "dragoman" / "config.toml").write_text(text)


@pytest.mark.parametrize("passed", [(), ("GITHUB_TOKEN", "CORP_LOGIN")])
def test_commands_get_no_secrets_but_those_the_user_listed(place: Place, serve: Serve, passed: tuple[str, ...]) -> None:
    """SE01, with `env` in the real shell and a command that declares tools."""
    allow(place, "env")
    dump = place.home / "dump.py"
    dump.write_text("import json, os, sys\njson.dump(dict(os.environ), open(sys.argv[1], 'w'))\nprint('[]')\n")
    tools = [sys.executable, str(dump), str(place.home / "env.json")]
    sandbox = '[sandbox]\nenvironment = ["HARMLESS"]\n'
    configure(
        place, f"{sandbox}[tools]\npass_env = {json.dumps(passed)}\ndiscover = {json.dumps(tools)}\ncall = {json.dumps(tools)}\n{CORP}"
    )
    asked = serve(script(calls(("run_shell", {"command": "env"})), "text: done"))
    done = place.ask("hi", env={**SECRETS, "HARMLESS": "value-harmless"})
    assert done.code == 0
    seen = {"shell": json.dumps(asked.requests[-1]), "tools": (place.home / "env.json").read_text()}
    for where, text in seen.items():
        assert "value-harmless" in text, where
        for name, value in SECRETS.items():
            is_passed = name in passed or (name == "COPY" and "CORP_LOGIN" in passed)
            if where == "shell" and name in ("OPENAI_API_KEY", "CORP_LOGIN", "COPY"):
                is_passed = False  # a key of ours: a command may have it, what it prints of it is taken out
            assert (value in text) == is_passed, (where, name)


def test_a_project_cannot_let_variables_through(place: Place) -> None:
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text('[tools]\npass_env = ["GITHUB_TOKEN"]')
    place.run("-p", "hi", "--trust").complaint(52, "tools.pass_env cannot be set by a project")


def _files(place: Place) -> list[Path]:
    return [path for folder in (place.home, place.work.parent / "out") for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "stored"])
def test_our_own_key_reaches_no_file_and_no_output(place: Place, serve: Serve, name: str) -> None:
    """It comes back in a file that is read, in what commands print (in pieces, and too long for the model), in an answer and in its
    thoughts, in a call's arguments, in an error of the service: never in a session, a log, an export, a list or an error."""
    env = {name: OWN} if name != "stored" else {"ANTHROPIC_API_KEY": ""}
    if name == "stored":
        place.run("auth", "add", "anthropic", stdin=OWN, env=env)
    pieces = f"printf '%s' '{OWN[:9]}'; sleep 0.2; printf '%s\\n' '{OWN[9:]}'; cat .env"
    long = "for n in $(seq 800); do cat .env; done"
    allow(place, pieces, long)
    (place.work / ".env").write_text(f"SOME={OWN}\nURL=http://x/?k={OWN}\n")
    answers = script(
        calls(("read_file", {"file_path": ".env"}), ("grep", {"pattern": "SOME"}), ("run_shell", {"command": pieces})),
        calls(("run_shell", {"command": long}), ("read_file", {"file_path": f"no/{OWN}"})),
        f"thought: {json.dumps(f'I saw {OWN}')}\ntext: {json.dumps(f'The key is {OWN}, and again {OWN}.')}",
        f"error: 400 {json.dumps(f'bad key {OWN}')}",
    )
    asked = serve(answers)
    done = place.run("-m", "anthropic/claude-opus-5", "--output-format", "stream-json", "--debug", "-p", "hi", env=env)
    assert done.code == 0, done.err
    failed = place.run("-m", "anthropic/claude-opus-5", "--resume", "-p", "again", env=env)
    (place.work.parent / "out").mkdir()
    outputs = [done.out, done.err, failed.out, failed.err]
    for form in ("markdown", "html", "json", "record"):
        made = place.run("sessions", "export", "latest", "--as", form, "-o", str(place.work.parent / "out" / f"x.{form}"), env=env)
        outputs += [made.out, made.err]
    for command in (
        ("sessions", "show", "latest"),
        ("sessions",),
        ("context", "--json"),
        ("config",),
        ("auth",),
        ("approvals",),
        ("doctor", "--offline"),
    ):
        made = place.run(*command, env=env)
        outputs += [made.out, made.err]
    forms = [OWN, OWN.replace("/", "\\/")]
    for text in outputs:
        assert not any(form in text for form in forms), text[:2000]
    held = [path for path in _files(place) if any(form.encode() in path.read_bytes() for form in forms)]
    assert [path.name for path in held] == (["keys.json"] if name == "stored" else [])
    assert all(OWN not in json.dumps(request["messages"]) for request in asked.requests)
    assert sum(json.dumps(request).count("REDACTED") for request in asked.requests) > 5


def test_a_secret_in_a_configured_header_counts_as_a_key(place: Place, serve: Serve) -> None:
    """It comes back in an answer, in an error with --debug, and in a file."""
    in_header, in_variable = "Wp7-headerval-99cc88dd", "Tt5-bearer-11bb22aa"
    asked = serve(
        script(
            calls(("read_file", {"file_path": ".env"})),
            f"text: {json.dumps(f'I was sent {in_header} and {in_variable}')}",
            f"error: 400 {json.dumps(f'bad {in_header} {in_variable}')}",
        )
    )
    (place.work / ".env").write_text(f"A={in_header}\nB={in_variable}\n")
    headers = f'headers = {{ X-Corp-Auth = "{in_header}" }}\nenv_headers = {{ X-Gateway-Token = "CORP_GATE" }}\n'
    configure(place, CORP.replace("http://127.0.0.1:9", asked.url) + headers)
    env = {"CORP_LOGIN": OWN, "CORP_GATE": f"Bearer {in_variable}"}
    done = place.run("-m", "corp/x", "--output-format", "stream-json", "--debug", "-p", "hi", env=env)
    failed = place.run("-m", "corp/x", "-p", "hi", env=env)
    assert "bad REDACTED REDACTED" in failed.err
    for secret in (in_header, in_variable):
        assert not any(secret in text for text in (done.out, done.err, failed.out, failed.err, *map(json.dumps, asked.requests)))
        held = [path.name for path in _files(place) if secret.encode() in path.read_bytes()]
        assert held == (["config.toml"] if secret == in_header else [])


def test_a_traceback_has_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("dragoman")
    handlers, level = list(logger.handlers), logger.level
    log_to_stderr(lambda: [OWN])
    try:
        failed = RuntimeError("it failed")
        failed.__cause__ = ValueError(f"at {OWN}")
        print_traceback(failed)
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)
    written = capsys.readouterr().err
    assert (OWN in written, "at REDACTED" in written) == (False, True)


def test_everything_we_make_is_ours_alone(place: Place, serve: Serve) -> None:
    """SE02: with umask 000, a session, a log, an export, an approval, trust and a stored key."""
    serve("text: ok")
    (place.work / "AGENTS.md").write_text("Hello.")
    before = os.umask(0)
    try:
        place.run("trust")
        place.run("auth", "add", "anthropic", stdin=OWN)
        place.ask("hi", "--debug")
        place.run("sessions", "export", "latest", "-o", str(place.home / "export.md"))
    finally:
        os.umask(before)
    made = [*(place.home / "dragoman").rglob("*"), place.home / "export.md"]
    assert len(made) > 6
    for path in made:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))
