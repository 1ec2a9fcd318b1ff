"""Rules through the real program: flags, files, tiers, the list of them, and the recipe for CI as its page has it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.app import config as config_module
from dragoman.app.options import Options
from dragoman.base.places import find_places
from dragoman.values.errors import ConfigError
from program import Place, Service, calls, script
from system_parts import require_program
from terminals import terminal

Serve = Callable[..., Service]
ROOT = Path(__file__).resolve().parent.parent.parent


def shell(command: str, **more: object) -> str:
    return calls(("run_shell", {"command": command} | more))


def write_config(place: Place, text: str) -> None:
    path = place.home / "dragoman" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_p_runs_what_a_flag_allows_and_nothing_else(place: Place, serve: Serve) -> None:
    serve(script(shell("touch ran"), shell("touch other"), "text: Done."))
    done = place.ask("go", "--allow", "touch ran")
    assert (place.work / "ran").exists()
    assert not (place.work / "other").exists()
    assert "--allow allows commands" in done.err


def test_a_flag_without_its_rule_is_named(place: Place) -> None:
    place.run("-m", "x/y", "--allow", "-p", "go").complaint(42, "--allow needs a value")
    place.run("-m", "x/y", "-p", "go", "--deny", "--trust").complaint(42, "--deny needs a value")
    place.run("-m", "x/y", "-p", "go", "--allow", "cd x && make").complaint(42, "--allow cd x && make", "a rule for each command")


def test_a_flag_that_refuses_wins_and_says_so(place: Place, serve: Serve) -> None:
    service = serve(script(shell("true && touch ran"), "text: Done."))
    done = place.ask("go", "--allow", "touch *", "--deny", "touch", "--approval", "auto-edit")
    assert not (place.work / "ran").exists()
    assert "a rule refused these calls" in done.err
    assert "--deny" in json.dumps(service.requests[-1])


def test_rules_of_the_users_file_hold_and_are_listed_with_their_lines(place: Place, serve: Serve) -> None:
    write_config(
        place, '[rules]\nallow = [\n  "touch ran",\n]\n[[rules.rule]]\ndecision = "deny"\npattern = "touch no"\nreason = "never"\n'
    )
    serve(script(shell("touch ran"), shell("touch no"), "text: Done."))
    place.ask("go")
    assert (place.work / "ran").exists()
    assert not (place.work / "no").exists()
    said = place.run("approvals").out
    assert re.search(r"allow  touch ran  \(.*config\.toml:3\)", said)
    assert re.search(r"deny   touch no  \(.*config\.toml:5\)", said)
    listed = json.loads(place.run("approvals", "--output-format", "json").out)["rules"]
    assert [(row["decision"], row["tier"]) for row in listed] == [("allow", "user"), ("deny", "user")]


def test_a_project_tightens_where_it_is_trusted_and_never_loosens(place: Place, serve: Serve) -> None:
    write_config(place, '[rules]\nallow = ["touch *"]\ndeny = ["touch mine"]\n')
    (place.work / ".dragoman").mkdir()
    project = place.work / ".dragoman" / "config.toml"
    project.write_text('[rules]\ndeny = ["touch no"]\n')
    serve(script(shell("touch no"), "text: a", shell("touch mine"), shell("touch no2"), shell("touch no"), "text: b"))
    place.ask("go")
    assert (place.work / "no").exists(), "not trusted: not read"
    (place.work / "no").unlink()
    place.ask("go", "--trust")
    assert not (place.work / "no").exists()
    assert not (place.work / "mine").exists(), "the project's list does not replace the user's"
    assert (place.work / "no2").exists()
    for loose in (
        '[rules]\nallow = ["touch x"]\n',
        '[[rules.rule]]\ndecision = "allow"\npattern = "touch x"\n',
        '[network]\nhosts = ["x"]\n',
    ):
        project.write_text(loose)
        place.ask("go", "--trust").complaint(52, "cannot be set by a project")


def test_rules_of_the_administrator_outrank_flags(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = tmp_path / "rules.toml"
    admin.write_text('[rules]\nask = ["make"]\n')
    monkeypatch.setattr(config_module, "ADMIN_FILE", str(admin))
    options = Options(allow=("make *",))
    places = find_places({"DRAGOMAN_HOME": str(place.home / "dragoman")})
    rules = config_module.load(options, {}, places, str(place.work)).rules
    assert [(rule.tier, rule.decision) for rule in rules] == [("flag", "allow"), ("admin", "ask")]
    for text, said in (("[rules]\nallow = 1\n", "rules.allow"), ("[other]\n", "other"), ("nonsense", "TOML")):
        admin.write_text(text)
        with pytest.raises(ConfigError, match=said):
            config_module.load(options, {}, places, str(place.work))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[rules]\nallow = ["ls",\n  "* x"]\n', 3, "any program"),
        ('[rules]\ndeny = ["make \\"x"]\n', 2, "not closed"),
        ('[[rules.rule]]\ndecision = "allow"\npattern = "git log *"\nmatch = ["git logout"]\n', 1, "git logout"),
        ('[[rules.rule]]\ndecision = "deny"\npattern = "git"\nno_match = ["git status"]\n', 1, "git status"),
        ('[[rules.rule]]\npattern = "git"\n', 1, "decision"),
        ('[rules]\nallows = ["x"]\n', 2, "allow"),
    ],
)
def test_a_wrong_rule_names_the_file_and_the_line(place: Place, text: str, line: int, said: str) -> None:
    write_config(place, text)
    place.ask("go").complaint(52, f"config.toml:{line}", said)


def test_a_wrong_flag_is_told(place: Place) -> None:
    place.ask("go", "--allow", "* x").complaint(42, "--allow", "any program")


def test_auto_needs_a_sandbox_and_says_what_to_do(place: Place, serve: Serve) -> None:
    serve(script("text: Hello."))
    write_config(place, '[sandbox]\nlevel = "off"\n')
    place.ask("go", "--approval", "auto").complaint(44, "sandbox", "auto-edit")


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
def test_auto_runs_commands_unasked_in_the_sandbox_and_nothing_outside(place: Place, serve: Serve) -> None:
    outside = place.work.parent / "outside"
    serve(script(shell("touch inside"), shell(f"touch {outside}"), "text: Done."))
    assert place.ask("go", "--approval", "auto").code == 0
    assert (place.work / "inside").exists()
    assert not outside.exists()


def test_a_beginning_is_offered_granted_listed_and_revoked(place: Place, serve: Serve) -> None:
    answers = [shell(command, writes=True) for command in ("make -v", "touch x", "touch y", "rm x")]
    serve(script(*(each for answer in answers for each in (answer, "text: Good."))))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("one")
        shown.expect("run): ")
        shown.send("n")
        shown.prompt()
        shown.ask("two")
        assert "commands that begin with `touch`" in shown.expect("run): ")
        shown.send("f")
        shown.prompt()
        shown.ask("three")
        shown.prompt()
        shown.ask("four")
        said = shown.expect("run): ")
        assert "asked about every time" in said
        assert "[a]lways" not in said[said.rindex("Run it?") :]
        shown.send("n")
        shown.prompt()
        shown.send("/approvals\r")
        shown.expect("commands that begin with: touch")
    assert (place.work / "x").exists()
    assert (place.work / "y").exists()
    (row,) = json.loads(place.run("approvals", "--output-format", "json").out)["approvals"]
    assert row["covers"] == {"what": "prefix", "tool": "run_shell", "text": "touch"}
    assert "commands that begin with: touch" in place.run("approvals", "revoke", row["id"]).out


def test_the_recipe_for_ci_works_as_it_is_written(place: Place, serve: Serve, tmp_path: Path) -> None:
    require_program("bash")
    page = (ROOT / "docs" / "operate" / "ci.md").read_text(encoding="utf-8")
    recipe = re.findall(r"```sh\n(.*?)```", page.partition("## In a container")[0], re.DOTALL)[0]
    (place.work / "src").mkdir()
    (place.work / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        open('ran', 'w').close()\n"
    )
    edit = calls(("write_file", {"file_path": "src/a.py", "content": "x = 1\n"}))
    forbidden = calls(("write_file", {"file_path": "tests/a.py", "content": "x = 1\n"}))
    tested = shell("python3 -m unittest -q 2>&1 | tail -3")
    serve(script(tested, edit, forbidden, shell("git push"), shell("curl x"), "text: All green."))
    program = tmp_path / "bin" / "dragoman"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dragoman -m anthropic/claude-opus-5 "$@"\n')
    program.chmod(0o755)
    env = place.env | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", recipe], cwd=place.work, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads((place.work / "answer.json").read_text())
    assert answer["response"] == "All green."
    assert answer["stats"]["tools"]["refused"] == 2
    assert (place.work / "ran").exists()
    assert (place.work / "src" / "a.py").exists()
    assert not (place.work / "tests").exists()


def test_the_file_on_the_page_for_ci_is_valid(place: Place) -> None:
    page = (ROOT / "docs" / "operate" / "ci.md").read_text(encoding="utf-8") + (ROOT / "docs" / "configure" / "rules.md").read_text(
        encoding="utf-8"
    )
    for example in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
        write_config(place, example)
        assert place.run("config").code == 0
