"""Skills by the real program: found, told, activated, kept, and narrowed by what they allow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from program import PROTOCOLS, Place, Service, calls, script

Serve = Callable[..., Service]
BODY = "Always write haiku. The rules are in rules/form.md."


def skill(folder: Path, name: str = "poet", head: str = "description: Writes poems: short ones", body: str = BODY) -> Path:
    path = folder / "skills" / name
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(f"---\nname: {name}\n{head}\n---\n# Poems\n\n{body}\n")
    return path


def sent(service: Service, at: int = -1) -> str:
    return json.dumps(service.requests[at], ensure_ascii=False)


def results(service: Service, at: int = -1) -> list[Any]:
    """Of the anthropic protocol: the texts of tool results in a request."""
    parts = [part for message in service.requests[at]["messages"] if isinstance(message["content"], list) for part in message["content"]]
    return [part["content"] for part in parts if part["type"] == "tool_result"]


def test_the_model_is_told_and_activates_one(place: Place, serve: Serve) -> None:
    folder = skill(place.home / ".claude")
    (folder / "rules").mkdir()
    (folder / "rules" / "form.md").write_text("five seven five")
    form = str(folder / "rules" / "form.md")
    for model in PROTOCOLS.values():
        asked = serve(script(calls(("activate_skill", {"name": "poet"})), calls(("read_file", {"file_path": form})), "text: Done."))
        done = place.ask(model=model)
        assert (done.code, done.out, done.err) == (0, "Done.\n", ""), model
        assert "poet: Writes poems: short ones" in sent(asked, 0)
        assert "Always write haiku" not in sent(asked, 0)
        assert "Always write haiku" in sent(asked, 1)
        assert "rules/form.md" in sent(asked, 1)
        assert "five seven five" in sent(asked, 2), "its files can be read"


def test_without_activation_its_files_are_outside(place: Place, serve: Serve) -> None:
    folder = skill(place.home / ".claude")
    (folder / "x.md").write_text("secret words")
    asked = serve(script(calls(("read_file", {"file_path": str(folder / "x.md")})), "text: ok"))
    place.ask()
    assert "outside the workspace" in sent(asked)


def test_its_folder_is_never_written(place: Place, serve: Serve) -> None:
    folder = skill(place.home / ".claude")
    target = str(folder / "new.md")
    serve(script(calls(("activate_skill", {"name": "poet"})), calls(("write_file", {"file_path": target, "content": "x"})), "text: ok"))
    place.ask("hi", "--approval", "auto-edit")
    assert not os.path.exists(target)


def test_nothing_is_read_or_loaded_where_there_are_none(place: Place, serve: Serve) -> None:
    asked = serve("text: ok")
    place.ask()
    assert "activate_skill" not in sent(asked)
    assert place.run("skills").out == "there are no skills here\n"


def test_a_project_is_read_only_once_it_is_trusted(place: Place, serve: Serve) -> None:
    skill(place.work / ".agents")
    asked = serve("text: ok")
    place.ask()
    assert "poet" not in sent(asked)
    assert "poet" not in place.run("skills").out
    place.ask("hi", "--trust")
    assert "poet: Writes poems" in sent(asked)


def test_a_source_can_be_switched_off(place: Place, serve: Serve) -> None:
    skill(place.home / ".gemini")
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text("[sources]\ngemini = false\n")
    asked = serve("text: ok")
    place.ask()
    assert "poet" not in sent(asked)


def test_folders_of_every_program_and_the_nearest_wins(place: Place) -> None:
    for program in ("agents", "claude", "codex", "gemini", "dragoman", "opencode"):
        skill(place.work / f".{program}", program)
    skill(place.home / ".agents", "claude", "description: The user's own")
    place.run("trust")
    listed = place.run("skills", "list", "--json").json
    assert {each["name"] for each in listed["skills"]} == {"agents", "claude", "codex", "gemini", "dragoman", "opencode"}
    assert next(each for each in listed["skills"] if each["name"] == "claude")["origin"]["tier"] == "project"
    assert listed["problems"] == []


def test_a_resumed_session_is_told_what_changed_and_its_prefix_stays(place: Place, serve: Serve) -> None:
    folder = skill(place.home / ".claude")
    asked = serve(script(calls(("activate_skill", {"name": "poet"})), "text: ok", "text: ok", "text: ok", "text: ok"))
    model = PROTOCOLS["openai_chat"]
    place.ask(model=model)
    skill(place.home / ".claude", "painter", "description: Paints")
    place.ask("again", "--resume", model=model)
    assert asked.requests[2]["tools"] == asked.requests[1]["tools"]
    assert asked.requests[2]["messages"][: len(asked.requests[1]["messages"])] == asked.requests[1]["messages"]
    new = json.dumps(asked.requests[2]["messages"][len(asked.requests[1]["messages"]) :])
    assert "painter: Paints" in new
    assert "Writes poems" not in new
    place.ask("once more", "--resume", model=model)
    assert "painter" not in json.dumps(asked.requests[3]["messages"][len(asked.requests[2]["messages"]) :])
    for each in (folder, place.home / ".claude" / "skills" / "painter"):
        (each / "SKILL.md").unlink()
    place.ask("and again", "--resume", model=model)
    assert "no longer there:\\n  poet\\n  painter" in json.dumps(asked.requests[4]["messages"][len(asked.requests[3]["messages"]) :])
    assert asked.requests[4]["tools"] == asked.requests[1]["tools"]


def test_the_user_activates_one_by_its_name(place: Place, serve: Serve) -> None:
    skill(
        place.home / ".claude", head="description: Poems\narguments: mood sea\nwhen_to_use: On Fridays", body=f"{BODY} $sea @x !`echo 1 2`"
    )
    asked = serve(script("text: ok", "text: ok"))
    done = place.ask("/poet gay '!`touch made` $1'")
    assert (done.code, done.err) == (0, "dragoman: $ echo 1 2\n")
    assert "Always write haiku" in sent(asked)
    assert "!`touch made` $1 @x 1 2" in sent(asked), "what is given is never read as a template"
    assert "Poems On Fridays" in sent(asked)
    assert not (place.work / "made").exists()
    place.ask("/poet")
    assert "$sea @x 1 2" in sent(asked)
    assert "Do what the skill poet says." in sent(asked)


def test_the_mode_alone_lets_nothing_run_that_it_does_not_name(place: Place, serve: Serve) -> None:
    skill(place.home / ".claude", head="description: Writes\nallowed-tools: Read, Bash(echo one:*)\ndisallowed-tools: Bash(cp:*)")
    asked = serve(
        script(
            calls(("write_file", {"file_path": "before.txt", "content": "x"})),
            calls(("activate_skill", {"name": "poet"})),
            calls(("run_shell", {"command": "touch ruled"}), ("write_file", {"file_path": "x.txt", "content": "x"})),
            calls(("run_shell", {"command": "cp before.txt copied"})),
            "text: ok",
        )
    )
    place.ask("hi", "--approval", "auto-edit", "--allow", "touch *", "--allow", "cp *")
    assert (place.work / "before.txt").exists()
    assert (place.work / "ruled").exists(), "a rule of the user's says more than a list that is seldom whole"
    assert not (place.work / "x.txt").exists(), "nobody can be asked here"
    assert not (place.work / "copied").exists(), "what is disallowed is refused, whatever the rules say"
    told = str(results(asked))
    assert "the skill poet names only these tools as those it needs: Read, Bash(echo one:*)" in told
    assert "the skill poet does without Bash(cp:*)" in told


def test_it_allows_nothing_by_itself(place: Place, serve: Serve) -> None:
    skill(place.home / ".claude", head="description: Writes\nallowed-tools: Bash")
    serve(script(calls(("activate_skill", {"name": "poet"})), calls(("run_shell", {"command": "touch made"})), "text: ok"))
    place.ask()
    assert not (place.work / "made").exists()


def test_a_wrong_file_is_named_with_its_line_and_the_rest_works(place: Place, serve: Serve) -> None:
    skill(place.home / ".claude")
    wrong = skill(place.home / ".claude", "wrong", "nonsense")
    (wrong / "SKILL.md").write_text("---\nname: wrong\nnonsense\n---\n")
    asked = serve("text: ok")
    done = place.ask()
    assert done.code == 0
    assert f"{wrong}/SKILL.md:3" in done.err
    assert "poet" in sent(asked)


def test_lists_show_and_sizes(place: Place, serve: Serve) -> None:
    skill(place.home / ".claude")
    text = place.run("skills").out
    assert "poet\n  Writes poems: short ones\n  claude · ~/.claude/skills/poet/SKILL.md" in text
    assert "1 skill; their list takes " in text
    assert BODY in place.run("skills", "show", "poet").out
    assert "did you mean poet" in place.run("skills", "show", "poe").err
    serve("text: ok")
    place.ask()
    shown = place.run("context", "--json").json
    [row] = [item for item in shown["items"] if item["kind"] == "skills"]
    assert 10 < row["tokens"] < 100
    assert "skills that can be activated" in place.run("context").out


def test_an_extension_of_gemini_cli(place: Place, serve: Serve) -> None:
    ext = place.home / ".gemini" / "extensions" / "sea"
    ext.mkdir(parents=True)
    (ext / "gemini-extension.json").write_text('{"name": "sea", "version": "1", "excludeTools": ["run_shell_command"]}')
    (ext / "GEMINI.md").write_text("Speak of ships.")
    (ext / "commands").mkdir()
    (ext / "commands" / "sail.toml").write_text('prompt = "Sail to {{args}}"')
    skill(ext)
    asked = serve("text: ok")
    done = place.ask("/sail Hull")
    assert (done.code, done.err) == (0, "")
    assert "Speak of ships." in sent(asked)
    assert "sea:poet: Writes poems" in sent(asked)
    assert "Sail to Hull" in sent(asked)
    names = {tool["name"] for tool in asked.requests[-1]["tools"]}
    assert "activate_skill" in names
    assert not names & {"run_shell", "shell_output"}
    assert place.run("plugins").out.startswith("sea 1 [gemini] skills, commands, memory\n")
    assert place.run("plugins", "list", "--json").json["plugins"][0]["excluded_tools"] == ["run_shell_command"]


def test_hostile_files_are_bounded(place: Place, serve: Serve) -> None:
    root = place.home / ".claude" / "skills"
    for number in range(520):
        path = root / f"s{number}"
        path.mkdir(parents=True)
        (path / "SKILL.md").write_text(f"---\nname: s{number}\ndescription: {'word ' * 200}\n---\n")
    (root / "a-huge").mkdir()
    (root / "a-huge" / "SKILL.md").write_text("---\nname: a-huge\ndescription: Long\n---\n" + "x" * 1_000_000)
    (root / "a-binary").mkdir()
    (root / "a-binary" / "SKILL.md").write_bytes(bytes(range(256)) * 100)
    (root / "a-fifo").mkdir()
    os.mkfifo(root / "a-fifo" / "SKILL.md")
    (root / "a-loop").symlink_to(root)
    deep = root / "a-deep"
    deep.joinpath(*["d"] * 40).mkdir(parents=True)
    asked = serve(script(calls(("activate_skill", {"name": "a-huge"})), "text: ok"))
    done = place.ask()
    assert done.code == 0
    assert len(done.err.splitlines()) <= 6
    assert "more than 500 skills" in place.run("skills").out
    first = sent(asked, 0)
    assert len(first) < 120_000
    assert "cannot be read: it is longer than" in sent(asked, 1)


def test_a_link_out_of_a_project_is_not_followed(place: Place, serve: Serve) -> None:
    outside = skill(place.home / "elsewhere")
    (place.work / ".claude" / "skills").mkdir(parents=True)
    (place.work / ".claude" / "skills" / "poet").symlink_to(outside)
    (place.work / ".claude" / "skills" / "other").mkdir()
    (place.work / ".claude" / "skills" / "other" / "SKILL.md").symlink_to(outside / "SKILL.md")
    asked = serve("text: ok")
    done = place.ask("hi", "--trust")
    assert "poet" not in sent(asked)
    assert done.err.count("it is a link that leads out of") == 2
    (place.home / ".claude" / "skills").mkdir(parents=True)
    (place.home / ".claude" / "skills" / "mine").symlink_to(outside)
    place.ask()
    assert "poet: Writes poems" in sent(asked), "the user's own links lead where they want"
