"""Rules of other programs, by the real program: when they are read, what they refuse, and how they are switched off."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from program import Place, Service, calls, script

Serve = Callable[..., Service]


def write(place: Place) -> None:
    for folder in (place.home, place.work):
        (folder / ".claude").mkdir()
    users = {"permissions": {"allow": ["Bash(touch mine:*)"], "deny": ["Bash(touch never:*)"]}}
    (place.home / ".claude" / "settings.json").write_text(json.dumps(users, indent=1))
    project = {"permissions": {"allow": ["Bash(touch PWN:*)"], "deny": ["Bash(touch theirs:*)"]}}
    (place.work / ".claude" / "settings.json").write_text(json.dumps(project, indent=1))
    (place.work / ".claude" / "settings.local.json").write_text('{"permissions": {"allow": ["Bash"]}}')
    (place.home / ".codex" / "rules").mkdir(parents=True)
    (place.home / ".codex" / "rules" / "default.rules").write_text('prefix_rule(pattern=["touch", "codex"])\n')


def made(place: Place, serve: Serve, *options: str) -> tuple[set[str], str]:
    names = ("mine", "never", "PWN", "theirs", "codex")
    serve(script(calls(*(("run_shell", {"command": f"touch {name}"}) for name in names)), "text: done"))
    done = place.ask("hi", *options)
    return {name for name in names if (place.work / name).exists()}, done.err


def test_they_hold_once_the_folder_is_trusted(place: Place, serve: Serve) -> None:
    write(place)
    assert made(place, serve)[0] == set(), "not trusted: they only tighten"
    ran, told = made(place, serve, "--trust")
    assert ran == {"mine", "codex"}, told
    shown = place.run("config", "--trust").out
    for row in ("allow  run_shell touch mine *", "deny   run_shell touch theirs *", ".claude/settings.json:4)", "default.rules:1)"):
        assert row in shown
    assert "PWN" not in shown


@pytest.mark.parametrize(("key", "ran"), [("claude", {"codex"}), ("codex", {"mine"})])
def test_one_key_switches_each_off(place: Place, serve: Serve, key: str, ran: set[str]) -> None:
    write(place)
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(f"[other_rules]\n{key} = false\n")
    assert made(place, serve, "--trust")[0] == ran


def test_a_wrong_file_is_named_and_stops_nothing(place: Place, serve: Serve) -> None:
    write(place)
    (place.work / ".claude" / "settings.json").write_text('{\n"permissions": \x1b[31m}')
    (place.home / ".codex" / "rules" / "default.rules").write_text("\n\nprefix_rule(pattern=7)\n")
    serve("text: ok")
    done = place.ask("hi", "--trust")
    assert (done.code, done.out) == (0, "ok\n")
    assert f"{place.work}/.claude/settings.json:2 is not used" in done.err
    assert "default.rules:3" in done.err
    assert "\x1b" not in done.err
