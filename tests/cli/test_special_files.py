"""Pipes, sockets, devices and endless files where the program looks for files: it ends, takes no memory, and says what it left out."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Callable

import pytest

from program import Done, Place, Service, calls, heed_signals, script
from special_files import KINDS, WATCHDOG_S, WORDS, can_plant, plant

Serve = Callable[..., Service]
MOST_MEMORY = 3 << 30
"""Of addresses, threads' stacks included: far less than a file that is read whole would take."""

TOLD = (
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    "opencode.json",
    "opencode.jsonc",
    ".claude/skills/x/SKILL.md",
    ".claude/commands/x.md",
    ".claude/agents/x.md",
)
"""Files of a project that are read when it is trusted: what is wrong with them is told at the start."""
OF_THE_USER = (".claude.json", ".claude/settings.json", ".gemini/settings.json", ".codex/config.toml", ".config/opencode/opencode.json")
FOLDERS = (".claude/skills/x/SKILL.md", ".claude/commands/x.md", ".claude/agents/x.md")
"""A folder in the place of these is looked into."""
SHELL = script(calls(("run_shell", {"command": "git status", "writes": True})), "text: Done.")
kinds = pytest.mark.parametrize("kind", [kind for kind in KINDS if can_plant(kind)])


def ask(place: Place, *arguments: str) -> Done:
    """`dragoman -p` in a process of its own that has little memory."""

    def limit() -> None:
        heed_signals()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))

    process = place.start("-m", "anthropic/claude-opus-5", *arguments, preexec_fn=limit)
    try:
        out, err = process.communicate(timeout=WATCHDOG_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it did not end\n{err.decode()}") from None
    return Done(process.returncode, out, err)


def told(asked: Service) -> str:
    return json.dumps(asked.requests, ensure_ascii=False)


@kinds
def test_a_trusted_project_full_of_them_is_opened_and_each_is_named(place: Place, serve: Serve, kind: str) -> None:
    names = [name for name in TOLD if kind != "directory" or name not in FOLDERS]
    for name in names:
        plant(place.work / name, kind)
    serve("text: Done.")
    done = ask(place, "--trust", "-p", "hi")
    assert (done.code, done.out) == (0, "Done.\n"), done
    lines = done.err.splitlines()
    assert not [name for name in names if not any(name in line and is_said(kind, line) for line in lines)], done


def is_said(kind: str, line: str) -> bool:
    more = {"huge": ("too long", "longer than", "not text"), "zero": ("leads out", "outside")}
    return any(word in line for word in (WORDS[kind], *more.get(kind, ())))


@kinds
def test_files_of_the_users_other_programs_are_named_too(place: Place, serve: Serve, kind: str) -> None:
    for name in OF_THE_USER:
        plant(place.home / name, kind)
    serve("text: Done.")
    done = ask(place, "-p", "hi")
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert not [name for name in OF_THE_USER if name not in done.err], done


@kinds
@pytest.mark.parametrize("name", ["work/.dragoman/config.toml", "home/dragoman/config.toml"])
def test_a_configuration_of_ours_ends_the_start_with_a_sentence(place: Place, serve: Serve, kind: str, name: str) -> None:
    plant(place.work.parent / name, kind)
    serve("text: Done.")
    done = ask(place, "--trust", "-p", "hi")
    assert WORDS[kind] in done.complaint(done.code, "config.toml")
    assert done.code


@kinds
def test_a_command_of_git_is_judged_and_ends(place: Place, serve: Serve, kind: str) -> None:
    subprocess.run(["git", "init", "-q", str(place.work)], check=True)
    (place.work / "sub").mkdir()
    for name in (".git/config", ".gitignore", "sub/.gitignore"):
        plant(place.work / name, kind)
    asked = serve(SHELL)
    done = ask(place, "-p", "hi")
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert "run_shell needs a person's approval" in told(asked)


@pytest.mark.parametrize("name", [".git/HEAD", ".git/index", ".git/info/exclude"])
def test_our_own_calls_of_git_do_not_wait_for_a_pipe(place: Place, serve: Serve, name: str) -> None:
    subprocess.run(["git", "init", "-q", str(place.work)], check=True)
    (place.work / "a.txt").write_text("words")
    made = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(place.work), "commit", "-q", "--allow-empty", "-m", "first"]
    subprocess.run(made, check=True)
    plant(place.work / name, "pipe")
    asked = serve(script("wait: 1\n" + calls(("read_file", {"file_path": "a.txt"})), "text: Done."))
    done = ask(place, "--trust", "-p", "hi")
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert "Git status" not in told(asked)
    done = ask(place, "--trust", "--worktree=fix", "-p", "hi")
    assert f"{name} is a named pipe or a device: git would wait for it" in done.complaint(done.code)
    assert done.code


def test_a_command_that_waits_for_a_pipe_ends_in_its_time(place: Place, serve: Serve) -> None:
    """Deep in the tree nobody looks before git does."""
    subprocess.run(["git", "init", "-q", str(place.work)], check=True)
    (place.work / "sub").mkdir()
    (place.work / "sub" / "a.txt").write_text("words")
    plant(place.work / "sub" / ".gitignore", "pipe")
    asked = serve(script(calls(("run_shell", {"command": "git status -uall", "timeout_s": 2})), "text: Done."))
    done = ask(place, "-p", "hi")
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert "[ended after 2 s, when its time was up." in told(asked)


@kinds
def test_an_import_of_a_memory_file_is_left_out_in_words(place: Place, serve: Serve, kind: str) -> None:
    (place.work / "AGENTS.md").write_text("Be kind.\n@notes.md\n@sub/more.md\n")
    for name in ("notes.md", "sub/more.md"):
        plant(place.work / name, kind)
    asked = serve("text: Done.")
    done = ask(place, "--trust", "-p", "hi")
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert "Be kind." in told(asked)
    assert "notes.md is not put in here" in told(asked)
    assert "notes.md" in done.err
    assert "more.md" in done.err


@kinds
def test_file_tools_refuse_them_in_words(place: Place, serve: Serve, kind: str) -> None:
    plant(place.work / "strange", kind)
    (place.work / "plain.txt").write_text("a plain word")
    looks = (
        ("read_file", {"file_path": "strange"}),
        ("read_many_files", {"paths": ["*"]}),
        ("list_directory", {}),
        ("search_text", {"pattern": "plain"}),
        ("edit", {"file_path": "strange", "old_string": "a", "new_string": "b"}),
        ("write_file", {"file_path": "strange", "content": "b"}),
    )
    asked = serve(script(*(calls(look) for look in looks), "text: Done."))
    done = ask(place, "--approval", "auto-edit", "-p", "look at strange")
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert len(asked.requests) == len(looks) + 1
    assert "a plain word" in told(asked)


@kinds
def test_a_command_that_names_one_is_told_what_was_left_out(place: Place, serve: Serve, kind: str) -> None:
    plant(place.work / "strange", kind)
    (place.work / ".claude" / "commands").mkdir(parents=True)
    (place.work / ".claude" / "commands" / "look.md").write_text("Look at @strange please")
    serve("text: Done.")
    done = ask(place, "--trust", "-p", "/look")
    assert (done.code, done.out) == (0, "Done.\n"), done


@kinds
def test_lists_of_what_a_project_brings_end(place: Place, kind: str) -> None:
    for name in TOLD:
        plant(place.work / name, kind)
    for listing in (("skills",), ("agents",), ("hooks",), ("mcp", "list"), ("config",)):
        done = place.run("--trust", *listing, timeout_s=WATCHDOG_S)
        assert done.code in (0, 1), done


@kinds
@pytest.mark.parametrize("name", ["trust.jsonl", "grants.jsonl", "hooks.jsonl", "mcp.jsonl"])
def test_lists_of_decisions_of_ours_are_not_waited_for(place: Place, serve: Serve, kind: str, name: str) -> None:
    (place.work / "AGENTS.md").write_text("Be kind.")
    plant(place.home / "dragoman" / name, kind)
    serve(SHELL)
    done = place.ask("hi", timeout_s=WATCHDOG_S)
    assert done.code == 0, done


@kinds
def test_an_import_of_a_session_is_refused_in_words(place: Place, kind: str) -> None:
    plant(place.work / "session.jsonl", kind)
    done = place.run("sessions", "import", "session.jsonl", timeout_s=WATCHDOG_S)
    assert WORDS[kind] in done.complaint(42, "session.jsonl")
