"""Commands in files by the real program: all formats, with arguments, commands of the shell and files in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from program import PROTOCOLS, Place, Service, calls, script
from system_parts import require_read_only
from terminals import MARK, terminal

Serve = Callable[..., Service]
MARKDOWN = """---
description: Reviews a file: carefully
argument-hint: [file] [focus]
---
Review $1 with care for $2.
All: $ARGUMENTS
Status: !`echo from the shell`
File: @notes.txt and somebody@example.org, @missing.txt
"""
TOML = '''description = "Reviews"
prompt = """
Review {{args}}.
Status: !{echo got {{args}}}
File: @{notes.txt}
"""
'''


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def prompt_of(service: Service, at: int = -1) -> str:
    """The user's last message, in the anthropic protocol."""
    content = service.requests[at]["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


PLACES = [".claude/commands/review.md", ".opencode/commands/review.md", ".opencode/command/review.md", ".dragoman/commands/review.md"]


@pytest.mark.parametrize("where", PLACES)
def test_markdown_of_each_program(place: Place, serve: Serve, where: str) -> None:
    put(place.work, where, MARKDOWN)
    (place.work / "notes.txt").write_text("The notes.")
    asked = serve("text: ok")
    done = place.ask("/review src/a.py speed", "--trust", "--allow", "echo *")
    assert (done.code, done.out) == (0, "ok\n")
    prompt = prompt_of(asked)
    assert "Review src/a.py with care for speed." in prompt
    assert "All: src/a.py speed" in prompt
    assert "Status: from the shell\n" in prompt
    assert "--- notes.txt ---\nThe notes.\n--- end of notes.txt ---" in prompt
    assert "somebody@example.org, @missing.txt" in prompt


@pytest.mark.parametrize("where", [".gemini/commands/review.toml", ".dragoman/commands/review.toml"])
def test_toml(place: Place, serve: Serve, where: str) -> None:
    put(place.work, where, TOML)
    (place.work / "notes.txt").write_text("The notes.")
    asked = serve("text: ok")
    done = place.ask("/review it's; touch hacked", "--trust", "--allow", "echo *")
    assert done.code == 0
    prompt = prompt_of(asked)
    assert "Review it's; touch hacked." in prompt
    assert "Status: got it's; touch hacked\n" in prompt, "quoted for the shell"
    assert "The notes." in prompt
    assert not (place.work / "hacked").exists()


@pytest.mark.parametrize("model", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_every_protocol_is_sent_the_same(place: Place, serve: Serve, model: str) -> None:
    put(place.home, ".claude/commands/git/commit.md", "Commit $ARGUMENTS now.")
    asked = serve("text: ok")
    done = place.ask("/git:commit everything", model=model)
    assert (done.code, done.err) == (0, "")
    assert "Commit everything now." in json.dumps(asked.requests[-1])


def without_sandbox(place: Place) -> None:
    """Then every command that may do more than read is asked about before it runs."""
    put(place.home, "dragoman/config.toml", '[sandbox]\nlevel = "off"\n')


def test_a_command_of_the_shell_that_may_not_run_is_told(place: Place, serve: Serve) -> None:
    without_sandbox(place)
    put(place.home, ".claude/commands/x.md", "Made: !`touch made` Read: !`ls`")
    (place.work / "here.txt").write_text("")
    asked = serve("text: ok")
    done = place.ask("/x")
    assert not (place.work / "made").exists()
    assert "(`touch made` was not run: " in prompt_of(asked)
    assert "Read: here.txt" in prompt_of(asked), "what only reads runs, as for the model"
    assert "not run: touch made" in done.err
    place.ask("/x", "--deny", "ls *", "--allow", "touch *")
    assert (place.work / "made").exists()
    assert "(`ls` was not run: " in prompt_of(asked)


def test_arguments_are_never_read_as_a_template(place: Place, serve: Serve) -> None:
    put(place.home, ".claude/commands/x.md", "Say $ARGUMENTS")
    (place.work / "notes.txt").write_text("The notes.")
    asked = serve("text: ok")
    place.ask("/x !`touch made` @notes.txt $1", "--allow", "touch *")
    assert prompt_of(asked) == "Say !`touch made` @notes.txt $1"
    assert not (place.work / "made").exists()


def test_what_is_no_command_is_asked(place: Place, serve: Serve) -> None:
    asked = serve("text: ok")
    place.ask("/nothing here")
    assert prompt_of(asked) == "/nothing here"


def test_standard_input_stands_before_it(place: Place, serve: Serve) -> None:
    put(place.home, ".claude/commands/x.md", "Look at this: $1")
    asked = serve("text: ok")
    place.ask("/x now", stdin="piped words")
    assert "piped words" in prompt_of(asked)
    assert prompt_of(asked).endswith("Look at this: now")


def test_allowed_tools_narrow_the_run(place: Place, serve: Serve) -> None:
    put(place.home, ".claude/commands/x.md", "---\nallowed-tools: Bash(echo:*)\n---\nDo it. !`touch a`")
    write = [calls(("write_file", {"file_path": name, "content": "x"})) for name in ("b", "c")]
    asked = serve(script(write[0], "text: ok", write[1], "text: ok"))
    place.ask("/x", "--approval", "auto-edit")
    assert "the command /x names only these tools" not in prompt_of(asked, 0), "it would have been asked about without it, too"
    assert "(`touch a` was not run" in prompt_of(asked, 0)
    assert not (place.work / "b").exists()
    place.ask("go on", "--resume", "--approval", "auto-edit")
    assert (place.work / "c").exists(), "the next prompt is not narrowed"


def test_a_model_of_its_own(place: Place, serve: Serve) -> None:
    put(place.home, ".claude/commands/x.md", "---\nmodel: haiku\n---\nGo")
    put(place.home, ".claude/commands/y.md", "---\nmodel: nobody-knows\n---\nGo")
    asked = serve(script("text: one", "text: two", "text: three"))
    with terminal(place) as screen:
        screen.expect(MARK)
        for line, answer in (("/x", "one"), ("again", "two"), ("/y", "three")):
            screen.send(f"{line}\r")
            screen.expect(answer, MARK)
        screen.send("/quit\r")
        screen.ended()
        assert "nobody-knows that the command names is not used" in screen.text
    assert [request["model"] for request in asked.requests] == ["claude-haiku-5-5", "claude-opus-5", "claude-opus-5"]


def test_nothing_before_trust(place: Place, serve: Serve) -> None:
    put(place.work, ".claude/commands/x.md", "Hacked !`touch made`")
    asked = serve("text: ok")
    place.ask("/x", "--allow", "touch *")
    assert prompt_of(asked) == "/x"
    assert not (place.work / "made").exists()


def fill_home(place: Place) -> None:
    put(place.home, ".claude/commands/review.md", "---\ndescription: Reviews: all\n---\nReview $1. Made: !`touch made && echo it is made`")
    put(place.home, ".claude/commands/help.md", "Mine")
    put(place.home, ".claude/skills/poet/SKILL.md", "---\ndescription: Poems\n---\nHaiku only.")


def test_in_the_plain_conversation(place: Place, serve: Serve) -> None:
    fill_home(place)
    asked = serve(script("text: Reviewed.", "text: A poem."))
    with terminal(place) as screen:
        screen.expect(MARK)
        screen.send("/help\r")
        screen.expect("/review", "a built-in command has this name", MARK)
        screen.send("/skills\r")
        screen.expect("1 skill; their list takes", MARK)
        screen.send("/review a.py\r")
        screen.expect("touch made", "[y]es", "run): ")
        screen.send("y")
        screen.expect("Reviewed.", MARK)
        screen.send("/poet sea\r")
        screen.expect("A poem.", MARK)
        screen.send("/quit\r")
        screen.ended()
    assert prompt_of(asked, 0) == "Review a.py. Made: it is made"
    assert "Haiku only." in prompt_of(asked, 1)
    assert (place.work / "made").exists()


def test_one_of_the_shell_is_refused_to_write_and_that_is_told(place: Place, serve: Serve) -> None:
    require_read_only(place.work)
    put(place.home, ".claude/commands/x.md", "Made: !`touch made`")
    asked = serve("text: ok")
    done = place.ask("/x")
    assert "(1: $ touch made)" in done.err
    assert "It was not run again with writing allowed" in prompt_of(asked)
    assert not (place.work / "made").exists()


def test_in_the_live_conversation(place: Place, serve: Serve) -> None:
    fill_home(place)
    without_sandbox(place)
    place.ui = ""
    asked = serve(script("text: Reviewed.", "text: A poem."))
    with terminal(place) as screen:
        screen.expect("claude-opus-5")
        screen.send("/rev")
        screen.expect("Reviews: all · claude · ~/.claude/commands/review.md")
        screen.send("iew a.py\r")
        screen.expect("touch made", "a key answers, or a key and Enter")
        screen.send("n")
        screen.expect("not run: touch made", "Reviewed.", "cache warm")
        screen.read_for(0.3)
        screen.send("/poet sea")
        screen.read_for(0.3)
        screen.send("\r")
        screen.expect("A poem.")
        screen.read_for(0.3)
        screen.send("/quit\r")
        screen.ended()
    assert "(`touch made && echo it is made` was not run: " in prompt_of(asked, 0)
    assert "Haiku only." in prompt_of(asked, 1)


def test_a_wrong_file_is_named_once_at_the_start_and_when_it_is_asked_for(place: Place, serve: Serve) -> None:
    put(place.home, ".gemini/commands/broken.toml", 'description = "x"\nprompt = "no end')
    put(place.home, ".claude/commands/git/odd.md", "---\ndescription: x\nnonsense\n---\nGo")
    asked = serve("text: ok")
    assert place.ask("/broken now").err.count(f"{place.home}/.gemini/commands/broken.toml:2: it is not TOML") == 1
    assert prompt_of(asked) == "/broken now"
    assert f"{place.home}/.claude/commands/git/odd.md:3: " in place.ask("/git:odd").err
    assert prompt_of(asked) == "Go"
    assert len(place.ask("/other").err.splitlines()) == 2, "every start says it, once for each file"


def test_a_summary_that_failed_is_counted_wherever_costs_are_told(place: Place, serve: Serve) -> None:
    usage = "usage: fresh=2000 output=40\n"
    serve(script(*[f"{usage}text: Fine. {'word ' * 300}"] * 4, f"{usage}text: I would rather not."))
    with terminal(place) as screen:
        screen.prompt()
        for number in range(4):
            screen.ask(f"question {number}")
            screen.prompt()
        screen.ask("/compress")
        assert "Not summarised" in screen.prompt()
        screen.ask("/usage")
        assert "10,000 tokens in · 200 out · $0.0550" in screen.prompt()
        screen.ask("/stats")
        assert "5 requests, $0.0550" in screen.prompt()


@pytest.mark.parametrize("ui", ["plain", ""])
def test_a_stop_at_the_question_sends_nothing(place: Place, serve: Serve, ui: str) -> None:
    fill_home(place)
    without_sandbox(place)
    place.ui = ui
    asked = serve(script("text: Never.", "text: Other."))
    with terminal(place) as screen:
        screen.expect("claude-opus-5")
        screen.read_for(0.5)
        screen.send("/review a.py\r")
        screen.expect("touch made", "Run")
        screen.read_for(0.3)
        screen.send("\x1b")
        screen.read_for(1.0)
        screen.send("/quit\r")
        assert screen.ended() == 0
    assert asked.requests == []
    assert not (place.work / "made").exists()
