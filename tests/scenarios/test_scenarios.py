"""Whole conversations through the real program, on all four protocols: what is answered, run, refused, told, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios.harness import PROTOCOLS, QUICK, Desk, prompts, told_results, told_text


@pytest.fixture(params=PROTOCOLS)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """A place to work for each protocol."""
    return Desk.at(tmp_path, request.param)


@pytest.fixture
def one_desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path, "anthropic")


def called(name: str, **arguments: object) -> str:
    return f"call: {name} {json.dumps(arguments)}"


# --- answers ----------------------------------------------------------------------------------------------------------------------


def test_a_plain_answer(desk: Desk) -> None:
    ended = desk.run("text piece=4: It is a house.", prompt="What is it?")
    assert (ended.code, ended.out, ended.err) == (0, "It is a house.\n", "")
    assert len(ended.requests) == 1
    assert prompts(ended.requests[0].body, "What is it?") == 1
    assert str(desk.workspace) in told_text(ended.requests[0].body), "the environment is told"


@pytest.mark.parametrize(("empty", "in_text"), [("finish: stop", False), ("thought: hm", True)], ids=["native", "text"])
def test_a_model_that_says_nothing_after_its_tools_is_asked_once_more(desk: Desk, empty: str, in_text: bool) -> None:
    """M5: it ended with code 0 and no output."""
    desk.write("a.txt", "hello\n")
    written = '<tool_call>\n{"name": "read_file", "arguments": {"file_path": "a.txt"}}\n</tool_call>'
    call = f"text: {json.dumps(written)}" if in_text else called("read_file", file_path="a.txt")
    mode = ("--text-tools",) if in_text else ()
    goes_on = desk.run(f"{call}\n---\n{empty}\n---\ntext: It says hello.", *mode, config=QUICK)
    assert (goes_on.code, goes_on.out) == (0, "It says hello.\n")
    assert "Your last answer was empty" in told_text(goes_on.requests[2].body)
    stays = desk.run(f"{call}\n---\n{empty}\n---\n{empty}", *mode, config=QUICK)
    assert (stays.code, stays.out, len(stays.requests)) == (57, "", 3)
    assert "empty answer after its tools had returned" in stays.err


def test_an_answer_as_json(desk: Desk) -> None:
    ended = desk.run("usage: fresh=1000 output=200\ntext: It is a house.", "--output-format", "json")
    assert (ended.code, ended.err) == (0, "")
    told = ended.result
    assert (told["response"], told["stats"]["requests"], told["stats"]["turns"]) == ("It is a house.", 1, 1)
    assert told["session_id"]
    assert "error" not in told
    tokens = told["stats"]["tokens"]
    assert (tokens["input"], tokens["output"]) == (1000, 200)
    assert told["stats"]["cost_usd"] > 0


def test_an_answer_as_a_stream_of_json(desk: Desk) -> None:
    ended = desk.run("thought: Let me see.\ntext piece=5: It is a house.", "--output-format", "stream-json", prompt="What is it?")
    assert ended.code == 0
    init, asked, *rest = ended.events
    assert (init["type"], init["model"], init["workspace"]) == ("init", desk.model, str(desk.workspace))
    assert {"read_file", "run_shell", "grep"} <= set(init["tools"])
    assert (asked["type"], asked["role"], asked["text"]) == ("message", "user", "What is it?")
    said = [event for event in rest if event["type"] == "message"]
    assert "".join(event["text"] for event in said) == "It is a house."
    assert len(said) > 1, "as it comes"
    assert {event["type"] for event in rest} <= {"message", "thought", "context", "result"}
    assert (ended.result["status"], ended.result["response"], ended.result["session_id"]) == (
        "success",
        "It is a house.",
        init["session_id"],
    )


def test_a_prompt_from_standard_input(one_desk: Desk) -> None:
    ended = one_desk.run("text: Three.", prompt=None, stdin=b"How many?\n")
    assert (ended.code, ended.out) == (0, "Three.\n")
    assert prompts(ended.requests[0].body, "How many?") == 1


def test_standard_input_is_what_the_prompt_is_about(desk: Desk) -> None:
    ended = desk.run("text: Three.", prompt="How many lines?", stdin="eins\nzwei\ndrei ❤\n".encode())
    assert ended.code == 0
    told = told_text(ended.requests[0].body)
    assert told.index("eins\\nzwei\\ndrei ❤") < told.index("How many lines?")


# --- tools ------------------------------------------------------------------------------------------------------------------------


def test_three_tool_rounds_with_parallel_reads_and_a_write_barrier(desk: Desk) -> None:
    """Results in call order; what is read behind a write sees what was written; the file is there afterwards."""
    for name in "abc":
        desk.write(f"{name}.txt", f"this is {name}\n")
    script = "\n---\n".join(
        [
            "\n".join(called("read_file", file_path=f"{name}.txt") for name in "abc"),
            "\n".join(
                [
                    called("grep", pattern="this is b"),
                    called("write_file", file_path="new/d.txt", content="made by the model\n"),
                    called("read_file", file_path="new/d.txt"),
                    called("list_directory"),
                ]
            ),
            called("edit", file_path="a.txt", old_string="this is a", new_string="this was a"),
            "text: All done.",
        ]
    )
    ended = desk.run(script, "--approval", "auto-edit", "--output-format", "stream-json")
    assert (ended.code, ended.result["response"], len(ended.requests)) == (0, "All done.", 4)
    first = told_results(ended.requests[1].body)
    assert [text.strip()[-1] for text in first] == ["a", "b", "c"]
    searched, wrote, read, listed = told_results(ended.requests[2].body)[3:]
    assert searched == "b.txt\n1: this is b"
    assert "made by the model" in read, f"the write came first: {wrote}"
    assert "new" in listed
    assert (desk.workspace / "new/d.txt").read_text() == "made by the model\n"
    assert (desk.workspace / "a.txt").read_text() == "this was a\n"
    stats = ended.result["stats"]
    assert (stats["turns"], stats["tools"]["calls"], stats["tools"]["failures"]) == (4, 8, 0)
    assert stats["files_changed"] == [str(desk.workspace / "new/d.txt"), str(desk.workspace / "a.txt")]
    used, results = ended.told("tool_use"), ended.told("tool_result")
    assert [event["name"] for event in used][:3] == ["read_file"] * 3
    assert sorted(event["id"] for event in used) == sorted(event["id"] for event in results)


def test_a_refused_write_is_told_to_the_model_and_to_the_user(desk: Desk) -> None:
    desk.write("a.txt", "hello\n")
    script = "\n---\n".join(
        [called("read_file", file_path="a.txt"), called("write_file", file_path="a.txt", content="gone"), "text: I may not."]
    )
    ended = desk.run(script)
    assert (ended.code, ended.out) == (0, "I may not.\n")
    assert (desk.workspace / "a.txt").read_text() == "hello\n"
    assert "nobody can be asked" in told_results(ended.requests[2].body)[1]
    assert len(ended.err.splitlines()) == 1
    assert "refused" in ended.err
    assert "write_file a.txt" in ended.err
    assert "auto-edit" in ended.err, "what to do about it"


def test_a_command_is_refused_headless_even_where_edits_run(one_desk: Desk) -> None:
    ended = one_desk.run(f"{called('run_shell', command='touch ran')}\n---\ntext: I may not.", "--approval", "auto-edit")
    assert ended.code == 0
    assert not (one_desk.workspace / "ran").exists()
    assert "touch ran" in ended.err


def test_plan_mode_only_reads(one_desk: Desk) -> None:
    script = f"{called('write_file', file_path='a.txt', content='x')}\n---\ntext: Then not."
    ended = one_desk.run(script, "--approval", "plan")
    assert ended.code == 0
    assert not (one_desk.workspace / "a.txt").exists()
    assert "plan mode" in told_results(ended.requests[1].body)[0]


def test_a_write_outside_the_workspace_is_refused_in_every_mode(one_desk: Desk) -> None:
    outside = one_desk.home / "outside.txt"
    script = f"{called('write_file', file_path=str(outside), content='x')}\n---\ntext: Then not."
    ended = one_desk.run(script, "--approval", "auto-edit")
    assert ended.code == 0
    assert not outside.exists()
    assert "outside the workspace" in told_results(ended.requests[1].body)[0]


def test_another_directory_may_be_included(one_desk: Desk) -> None:
    other = one_desk.home / "other"
    other.mkdir()
    (other / "a.txt").write_text("from elsewhere\n")
    script = f"{called('read_file', file_path=str(other / 'a.txt'))}\n---\ntext: Done."
    ended = one_desk.run(script, "--include", str(other))
    assert "from elsewhere" in told_results(ended.requests[1].body)[0]
    ended = one_desk.run(script)
    assert "outside the workspace" in told_results(ended.requests[1].body)[0]


def test_a_failing_tool_is_a_result_for_the_model(desk: Desk) -> None:
    desk.write("notes.txt", "hello\n")
    ended = desk.run(f"{called('read_file', file_path='note.txt')}\n---\ntext: It is not there.", "--output-format", "json")
    assert (ended.code, ended.result["stats"]["tools"]) == (0, {"calls": 1, "failures": 1, "refused": 0})
    assert "does not exist; similar: notes.txt" in told_results(ended.requests[1].body)[0]


def test_an_unknown_tool_is_answered_with_the_nearest_names(desk: Desk) -> None:
    """PV11."""
    script = f"{called('read_files', paths=['a'])}\n{called('rm_all')}\n---\ntext: I see."
    ended = desk.run(script)
    assert (ended.code, ended.out) == (0, "I see.\n")
    near, far = told_results(ended.requests[1].body)
    assert "read_file" in near
    assert "Did you mean" in near
    assert "rm_all" in far


def test_a_tool_may_be_taken_away(one_desk: Desk) -> None:
    ended = one_desk.run("text: Hello.", "--output-format", "stream-json", config=QUICK + '\n[tools]\ndisabled = ["run_shell"]\n')
    assert "run_shell" not in ended.events[0]["tools"]
    assert "run_shell" not in [tool["name"] for tool in ended.requests[0].body["tools"]]


# --- going in circles, going on for ever --------------------------------------------------------------------------------------------


def test_the_loop_guard_tells_the_model_first_and_it_goes_on(desk: Desk) -> None:
    desk.write("a.txt", "hello\n")
    script = f"answer: times=5\n{called('read_file', file_path='a.txt')}\n---\ntext: I have it now."
    ended = desk.run(script)
    assert (ended.code, ended.out) == (0, "I have it now.\n")
    assert "circles" in told_text(ended.requests[5].body)
    assert "circles" not in told_text(ended.requests[4].body)
    assert "circles" in ended.err


def test_the_loop_guard_stops_the_run_at_the_second_hit(desk: Desk) -> None:
    script = f"script: end=repeat\n{called('read_file', file_path='missing.txt')}"
    ended = desk.run(script, "--output-format", "stream-json")
    assert ended.code == 56
    assert len(ended.requests) == 6, "three failures, a word, three more"
    warning, failure = ended.told("error")[0], ended.told("error")[-1]
    assert (warning["severity"], warning["error_type"]) == ("warning", "loop_detected")
    assert (failure["severity"], failure["error_type"], failure["exit_code"]) == ("error", "LoopDetected", 56)
    assert ended.result["status"] == "error"


def test_an_answer_that_repeats_itself_is_not_part_of_the_answer(one_desk: Desk) -> None:
    circling = "I will now look at the file and then tell you about it. " * 30
    ended = one_desk.run(f"text piece=30: {circling}\nstall\n---\ntext: Enough of that.", "--output-format", "json")
    assert (ended.code, ended.result["response"]) == (0, "Enough of that.")


def test_max_turns(desk: Desk) -> None:
    script = "\n---\n".join(called("list_directory", path=".") if n % 2 else called("glob", pattern=f"*{n}") for n in range(9))
    ended = desk.run(script, "--max-turns", "3")
    assert (ended.code, len(ended.requests), ended.out) == (53, 3, "")
    assert len(ended.err.splitlines()) == 1
    assert "3 turns" in ended.err
    assert "max_turns" in ended.err


def test_an_answer_cut_by_the_output_limit(desk: Desk) -> None:
    ended = desk.run("text: Once upon a time\nfinish: length")
    assert (ended.code, ended.out) == (59, "Once upon a time\n"), "what was said is shown"
    assert len(ended.err.splitlines()) == 1
    assert "output limit" in ended.err


# --- what is believed, and by whom ------------------------------------------------------------------------------------------------


def test_memory_files_are_ignored_with_a_notice_unless_the_folder_is_trusted(one_desk: Desk) -> None:
    one_desk.write("AGENTS.md", "Always answer in rhymes.")
    ended = one_desk.run("text: Hello.")
    assert ended.code == 0
    assert "rhymes" not in told_text(ended.requests[0].body)
    assert "AGENTS.md" in ended.err
    assert "--trust" in ended.err
    ended = one_desk.run("text: Hello.", "--trust")
    assert "rhymes" in told_text(ended.requests[0].body)
    assert ended.err == ""


def test_project_config_is_ignored_with_a_notice_unless_the_folder_is_trusted(one_desk: Desk) -> None:
    one_desk.write(".dragoman/config.toml", 'max_turns = 1\n[tools]\ndisabled = ["run_shell"]\n')
    script = f"{called('list_directory')}\n---\ntext: Hello."
    ended = one_desk.run(script)
    assert ended.code == 0
    assert "--trust" in ended.err
    assert one_desk.run(script, "--trust").code == 53


@pytest.mark.parametrize("text", ["--version", "-m nonsense", "$(touch ran)", "models", "--help"])
def test_whatever_follows_p_is_the_prompt(one_desk: Desk, text: str) -> None:
    """No flag found in a prompt is ever an option."""
    ended = one_desk.run("text: Hello.", prompt=text)
    assert (ended.code, ended.out) == (0, "Hello.\n")
    assert prompts(ended.requests[0].body, text) == 1
    assert not (one_desk.workspace / "ran").exists()


def test_nothing_is_left_open_or_unawaited(one_desk: Desk) -> None:
    """Python's development mode would tell of a file, a socket or a task that was left behind."""
    one_desk.write("a.txt", "hello\n")
    script = "\n---\n".join(
        [
            called("read_file", file_path="a.txt"),
            called("grep", pattern="hello"),
            called("write_file", file_path="b.txt", content="x"),
            "error: 529",
            "text: Half\ncut",
            "text: Done.",
        ]
    )
    ended = one_desk.run(script, "--approval", "auto-edit", python=("-X", "dev", "-W", "error"))
    assert (ended.code, ended.out) == (0, "Done.\n")
    slow = "Executing <"  # asyncio's word for a step that took long, as on a busy machine
    assert [line for line in ended.err.splitlines() if "trying again" not in line and not line.startswith(slow)] == []
