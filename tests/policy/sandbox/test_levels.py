"""Each level through the program, as root and as an ordinary user: in a plain folder, in one with a `.dragoman/`, and at home."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from policy.sandbox.people import USERS, Person, person
from policy.sandbox.sandboxes import LEVELS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

TRIED = "echo ran >> made; cat ~/.ssh/id_rsa; touch /var/cache/dragoman-probe; echo end"


def run(who: Person, level: int, *options: str, at: Path | None = None, command: str = TRIED) -> str:
    """What the model was told of the command."""
    told = who.let_call(
        ("run_shell", {"command": command, "writes": True}), options=("--sandbox", str(level), "--approval", "auto", *options), at=at
    )
    assert told.done.code == 0, told.done
    return told.results[0]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_command_runs_and_is_confined(level: int, user: str) -> None:
    with person(user) as who:
        who.write(who.home / ".ssh/id_rsa", "SECRET-OF-SSH", 0o600)
        said = run(who, level)
        assert "end" in said.split("\n")[0:1] or "\nend" in said, said
        assert "SECRET-OF-SSH" not in said
        assert (who.work / "made").read_text() == "ran\n"
        assert not Path("/var/cache/dragoman-probe").exists()


@pytest.mark.parametrize("options", [(), ("--trust",)])
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_so_it_does_where_the_folder_brings_settings(level: int, user: str, options: tuple[str, ...]) -> None:
    with person(user) as who:
        settings = who.write(who.work / ".dragoman/config.toml", "max_turns = 9\n")
        run(who, level, *options, command="echo ran >> made; echo 'max_turns = 1' >> .dragoman/config.toml; true")
        assert (who.work / "made").read_text() == "ran\n"
        if level != 3:  # Landlock alone makes no exceptions: it is asked about at the next start
            assert settings.read_text() == "max_turns = 9\n"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_at_home_a_level_holds_or_says_what_it_cannot_except(level: int, user: str) -> None:
    with person(user) as who:
        who.write(who.home / ".ssh/id_rsa", "SECRET-OF-SSH", 0o600)
        who.write(who.home / ".bashrc", "# mine\n")
        if level == 3:
            told = who.let_call(("run_shell", {"command": TRIED}), options=("--sandbox", "3", "--approval", "auto"), at=who.home)
            assert told.done.code == 44, told.done
            assert str(who.home) in told.done.err
            assert not (who.home / "made").exists()
            return
        said = run(who, level, at=who.home, command="echo ran >> made; echo evil >> .bashrc; cat .ssh/id_rsa; echo end")
        assert "end" in said, said
        assert "SECRET-OF-SSH" not in said
        assert ((who.home / "made").read_text(), (who.home / ".bashrc").read_text()) == ("ran\n", "# mine\n")


def test_a_settings_file_of_the_users_own_among_what_commands_write_is_named() -> None:
    with person(USERS[-1]) as who:
        mine = who.write(who.work / "mine.toml", "max_turns = 9\n")
        told = who.let_call(("run_shell", {"command": "true"}), options=("--sandbox", "3", "--approval", "auto", "--config", str(mine)))
        assert told.done.code == 44, told.done
        assert str(mine) in told.done.err


PRINTED = [
    "ls -l /proc/1/exe; false",
    "echo 'x: /proc/1/root/a: Permission denied' >&2; exit 1",
    "echo \"cat: '/proc/1/cwd/../a': No such file or directory\" >&2; exit 1",
    "printf \"x: '/a\\0b': Read-only file system\\n\" >&2; exit 1",
]
"""What programs print that cannot be looked up."""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_command_that_ran_is_never_said_not_to_have_started(level: int, user: str) -> None:
    with person(user) as who:
        made = [("run_shell", {"command": f"echo ran >> made; echo printed; {each}", "writes": True}) for each in PRINTED]
        told = who.let_call(*made, options=("--sandbox", str(level), "--approval", "auto"))
        assert told.done.code == 0, told.done
        assert (who.work / "made").read_text() == "ran\n" * len(PRINTED)
        for command, said in zip(PRINTED, told.results, strict=True):
            assert "could not be started" not in said, command
            assert "printed" in said, command
            assert "exit code 1" in said, command
