"""`dragoman approvals` and `/approvals`: every saved approval can be seen and taken back, for `-p` and for a running session too."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.policy.grants import Grants, read_grants, revoke_grants
from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]


def write(name: str = "a.txt", content: str = "x") -> str:
    return calls(("write_file", {"file_path": name, "content": content}))


def grants_of(place: Place) -> Grants:
    return Grants(str(place.home / "dragoman" / "data" / "grants.jsonl"), str(place.work.resolve()))


def listed(place: Place) -> list[dict[str, object]]:
    return json.loads(place.run("approvals", "--output-format", "json").out)["approvals"]


def test_nothing_is_saved_at_first(place: Place) -> None:
    assert place.run("approvals").out == "no approval is saved\n"
    assert listed(place) == []
    assert "there is nothing to revoke" in place.run("approvals", "revoke", "--all").out
    assert "there is nothing to revoke" in place.run("approvals", "revoke", "all").out


def test_what_was_saved_in_a_conversation_is_listed_in_words(place: Place, serve: Serve) -> None:
    serve(script(write(), "text: Done."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("run): ")
        shown.send("s")
        shown.prompt()
        shown.send("/approval\r")
        assert "you also allowed 1 more" in shown.expect("revokes them)")
    (row,) = listed(place)
    assert row["words"] == "all edits inside the workspace"
    assert row["folder"] == str(place.work.resolve())
    assert row["kind"] == "grant"
    sessions = json.loads(place.run("sessions", "--output-format", "json").out)["sessions"]
    assert row["session"] == sessions[0]["session_id"]
    assert isinstance(row["saved_ms"], int)
    text = place.run("approvals").out
    assert f"{row['id']}  all edits inside the workspace\n" in text
    assert f"in {row['folder']} · saved 20" in text


def test_a_saved_all_edits_holds_for_p_until_it_is_revoked(place: Place, serve: Serve) -> None:
    grants_of(place).add("edit", saved=True)
    serve(script(write(), "text: Done.", write("b.txt"), "text: Not done."))
    assert "ran without asking" in place.ask("go").err
    identity = str(listed(place)[0]["id"])
    done = place.run("approvals", "revoke", identity[:5])
    assert f"revoked {identity}: all edits" in done.out
    assert "grants.jsonl" in done.out
    assert "were refused" in place.ask("go").err
    assert not (place.work / "b.txt").exists()


def test_a_saved_beginning_that_is_too_wide_by_now_is_told_and_marked_and_not_honoured(place: Place, serve: Serve) -> None:
    grants_of(place).add("run_shell* python3", saved=True)
    grants_of(place).add("run_shell* touch", saved=True)
    serve(
        script(
            calls(("run_shell", {"command": "touch b.txt"}), ("run_shell", {"command": "python3 -c pass", "writes": True})), "text: Done."
        )
    )
    done = place.ask("go")
    assert "begin with `python3` will not be used any more" in done.err
    assert "dragoman approvals revoke ID" in done.err
    assert "were refused" in done.err
    assert (place.work / "b.txt").exists()
    rows = {str(row["words"]).partition(" (")[0]: row["used"] for row in listed(place)}
    assert rows == {"commands that begin with: python3": False, "commands that begin with: touch": True}
    assert "python3 (not used any more" in place.run("approvals").out


def test_auto_does_not_empty_the_workspace_unasked(place: Place, serve: Serve) -> None:
    (place.work / "kept.txt").write_text("x")
    (place.work / "build").mkdir()
    commands = [("run_shell", {"command": command}) for command in ("rm -rf build", "rm -rf /", "bash -c 'rm -rf *'", "find . -delete")]
    serve(script(*(calls(each) for each in commands), "text: Done."))
    done = place.ask("go", "--approval", "auto")
    assert "were refused" in done.err
    assert (place.work / "kept.txt").exists()
    assert not (place.work / "build").exists()


def test_a_session_that_runs_asks_again_once_it_is_revoked_elsewhere(place: Place, serve: Serve) -> None:
    grants_of(place).add("edit", saved=True)
    serve(script(write(), "text: Done.", write("b.txt"), "text: Done too."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("Done.")
        shown.prompt()
        place.run("approvals", "revoke", "--all")
        shown.ask("again")
        shown.expect("Run it?", "run): ")
        shown.send("n")
        shown.prompt()


def test_the_slash_command_lists_and_revokes_both_kinds(place: Place, serve: Serve) -> None:
    grants_of(place).add("run_shell make test", saved=True)
    Grants(grants_of(place).file, "/elsewhere").add("edit", saved=True)
    serve(script(write(), "text: Done.", write("b.txt"), "text: Done too."))
    with terminal(place) as shown:
        shown.prompt()
        shown.send("/approvals\r")
        text = shown.expect("takes one back.")
        assert "the command: make test" in text
        assert "/elsewhere" not in text
        shown.prompt()
        shown.ask("go")
        shown.expect("run): ")
        shown.send("a")
        shown.expect("Done.")
        shown.prompt()
        shown.send("/approvals\r")
        assert "until this session ends" in shown.expect("takes one back.")
        shown.prompt()
        shown.send("/approvals revoke all\r")
        assert "(for this session)" in shown.expect("ask again from their next call on")
        shown.prompt()
        shown.ask("again")
        shown.expect("Run it?", "run): ")
        shown.send("n")
        shown.prompt()
        shown.send("/approvals nonsense\r")
        shown.expect("write /approvals, /approvals revoke ID")
    assert [row["folder"] for row in listed(place)] == ["/elsewhere"]


def test_config_and_doctor_say_how_many_hold_here(place: Place) -> None:
    grants_of(place).add("edit", saved=True)
    assert "1 saved for this folder" in place.run("config").out
    assert json.loads(place.run("config", "--output-format", "json").out)["approvals"] == {"saved": 1}
    assert "1 saved for this folder" in place.run("doctor", "--offline").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("revok",), "did you mean revoke?"),
        (("revoke",), "approvals revoke ID"),
        (("revoke", "x", "--all"), "approvals revoke ID"),
        (("revoke", "zz"), "no approval has the id zz"),
        (("list", "x"), "approvals list"),
        (("--all",), "--all"),
    ],
)
def test_mistakes_are_told(place: Place, arguments: tuple[str, ...], said: str) -> None:
    done = place.run("approvals", *arguments)
    assert done.code == 42
    assert said in done.err


def test_hidden_characters_of_a_saved_command_are_seen(place: Place) -> None:
    grants_of(place).add("run_shell echo \u202eevil\nrm x", saved=True)
    assert "<U+202E>" in place.run("approvals").out


# --- the file


def test_lines_written_before_more_was_kept_are_listed_with_what_is_unknown(place: Place) -> None:
    file = Path(grants_of(place).file)
    file.parent.mkdir(parents=True)
    file.write_text('\n{"folder":"/w","key":"web_fetch example.org"}\n')
    (row,) = listed(place)
    assert (row["saved_ms"], row["session"]) == (None, None)
    assert "saved at an unknown time · session unknown" in place.run("approvals").out
    assert "web_fetch, for: example.org" in place.run("approvals").out


KEYS = st.lists(st.text(alphabet='ab \n"\\é', min_size=1, max_size=6), unique=True, max_size=6)


@given(KEYS, st.data())
def test_revoking_some_leaves_exactly_the_others(tmp_path_factory: pytest.TempPathFactory, keys: list[str], data: st.DataObject) -> None:
    file = str(tmp_path_factory.mktemp("grants") / "grants.jsonl")
    grants = Grants(file, "/w")
    for key in keys:
        assert grants.add(key, saved=True) == ""
    gone = data.draw(st.lists(st.sampled_from(keys), unique=True) if keys else st.just([]))
    ids = {grant.id for grant in read_grants(file) if grant.key in gone}
    assert {grant.key for grant in revoke_grants(file, ids)} == set(gone)
    assert grants.keys == set(keys) - set(gone)
    assert len({grant.id for grant in read_grants(file)}) == len(keys) - len(gone)


def test_saving_and_revoking_at_once_loses_nothing(tmp_path: Path) -> None:
    """A grant that is saved while another process rewrites the file must not be lost with the old file."""
    file = str(tmp_path / "grants.jsonl")
    code = (
        "import sys; from dragoman.policy.grants import *; file, name = sys.argv[1:]\n"
        "for n in range(20):\n"
        "    Grants(file, '/w').add(f'{name} {n}', saved=True); Grants(file, '/w').add(f'gone {name} {n}', saved=True)\n"
        "    revoke_grants(file, {g.id for g in read_grants(file) if g.key.startswith('gone ' + name)})\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, file, name]) for name in ("one", "two")]
    assert [process.wait(60) for process in running] == [0, 0]
    assert Grants(file, "/w").keys == {f"{name} {number}" for name in ("one", "two") for number in range(20)}


def test_an_approval_that_cannot_be_saved_is_said(place: Place, serve: Serve) -> None:
    data = place.home / "dragoman" / "data"
    data.mkdir(parents=True)
    (data / "grants.jsonl").mkdir()
    serve(script(write(), "text: Done."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("run): ")
        shown.send("s")
        shown.expect("it holds until this session ends")


def test_a_tool_that_happens_to_be_called_edit_does_not_stand_for_all_edits() -> None:
    from dragoman.policy.judge import grant_key
    from dragoman.values.calls import Intent
    from dragoman.values.messages import ToolSpec

    assert grant_key(ToolSpec("edit", "", kind="other"), Intent()) != grant_key(ToolSpec("edit", "", kind="edit"), Intent())
