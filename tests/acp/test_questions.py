"""What a person is asked through an editor: about calls, with everything they need to decide; by the model; and before the first prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from editor import Editor, Message

from program import Place

Start = Callable[..., Editor]
RUN = 'call: run_shell {"command": "make -s hello > out.txt", "writes": true}\n---\ntext: Done.'
EDIT = 'call: edit {"file_path": "a.txt", "old_string": "two", "new_string": "2"}\n---\ntext: Done.'
ASK = 'call: ask_user {"question": "Which colour?", "choices": ["red", "green"]}\n---\ntext: Done.'


@pytest.fixture
def text(place: Place) -> str:
    path = place.work / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    return str(path)


def left_open(request: Message) -> None:
    """The request is not answered."""


def of_call(editor: Editor) -> Message:
    told: Message = {}
    for update in editor.updates():
        if update["sessionUpdate"].startswith("tool_call"):
            told |= update
    return told


def test_a_permission_carries_all_that_is_needed_to_decide(edit: Start, text: str) -> None:
    editor = edit(EDIT)
    editor.prompt(editor.open())
    told = editor.expect_request()["params"]
    call = told["toolCall"]
    assert call["toolCallId"] == editor.of("tool_call")[0]["toolCallId"]
    assert (call["title"], call["kind"], call["status"]) == ("edit a.txt", "edit", "pending")
    assert call["content"][0] == {"type": "diff", "path": text, "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"}
    assert call["locations"] == [{"path": text}]
    assert call["rawInput"] == {"file_path": "a.txt", "old_string": "two", "new_string": "2"}


def test_a_permission_for_a_command_shows_all_of_it_and_what_always_covers(edit: Start) -> None:
    editor = edit('call: run_shell {"command": "git commit -m one\\ngit push", "writes": true}\n---\ntext: Done.', answers="n")
    editor.prompt(editor.open())
    told = editor.expect_request()["params"]
    shown = "\n".join(part["content"]["text"] for part in told["toolCall"]["content"])
    assert "git commit -m one\ngit push" in shown
    kinds = [option["kind"] for option in told["options"]]
    assert kinds[0] == "allow_once"
    assert kinds[-1] == "reject_once"


def test_always_names_the_beginning_that_would_be_allowed(edit: Start) -> None:
    editor = edit('call: run_shell {"command": "pytest -q tests", "writes": true}\n---\ntext: Done.', answers="n")
    editor.prompt(editor.open())
    options = editor.expect_request()["params"]["options"]
    always = [option["name"] for option in options if option["kind"] == "allow_always"]
    assert any("pytest" in name for name in always), options


@pytest.mark.parametrize(("answer", "asks_again"), [("y", True), ("a", False)])
def test_an_answer_holds_as_long_as_it_says(edit: Start, text: str, answer: str, asks_again: bool) -> None:
    again = 'call: edit {"file_path": "a.txt", "old_string": "three", "new_string": "3"}\n---\ntext: Done.'
    editor = edit(f"{EDIT}\n---\n{again}", answers=answer)
    session = editor.open()
    assert editor.prompt(session) == "end_turn"
    assert editor.prompt(session) == "end_turn"
    assert len(editor.requests) == (2 if asks_again else 1)
    with open(text) as file:
        assert file.read() == "one\n2\n3\n"


def test_each_kind_of_answer_is_there_once_and_always_holds_for_the_session_alone(edit: Start, text: str, place: Place) -> None:
    """An editor may show the kind alone: the last of two would be taken for both."""

    def always(request: Message) -> Message:
        options = request["params"]["options"]
        assert [option["kind"] for option in options] == ["allow_once", "allow_always", "reject_once"], options
        chosen = next(option for option in reversed(options) if option["kind"] == "allow_always")
        assert "this session" in chosen["name"]
        return {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}

    run = 'call: run_shell {"command": "pytest -q tests", "writes": true}\n---\ntext: Done.'
    editor = edit(f"{EDIT}\n---\n{run}\n---\ntext: Kept.", answers=always)
    session = editor.open()
    assert editor.prompt(session) == "end_turn"
    assert editor.prompt(session) == "end_turn"
    assert len(editor.requests) == 2
    assert "no approval is saved" in place.run("approvals").out
    editor.prompt(session, "/approvals")
    listed = "".join(update["content"]["text"] for update in editor.of("agent_message_chunk"))
    id = next(line.split()[0] for line in listed.splitlines() if "edits" in line)
    editor.prompt(session, f"/approvals keep {id}")
    assert "edits" in place.run("approvals").out, "kept by words of its own"
    assert place.run("approvals", "list", "--output-format", "json").json["approvals"][1:] == []


def test_an_answer_that_was_not_offered_allows_nothing(edit: Start, text: str) -> None:
    editor = edit(EDIT, answers="s")
    assert editor.prompt(editor.open()) == "end_turn"
    assert of_call(editor)["status"] == "failed"


def test_a_refusal_is_told_and_the_run_goes_on(edit: Start, text: str) -> None:
    editor = edit(EDIT, answers="n")
    assert editor.prompt(editor.open()) == "end_turn"
    assert of_call(editor)["status"] == "failed"
    with open(text) as file:
        assert file.read() == "one\ntwo\nthree\n"


def test_a_permission_that_is_dismissed_stops_the_run(edit: Start, text: str) -> None:
    editor = edit(EDIT, answers=lambda request: {"outcome": {"outcome": "cancelled"}})
    assert editor.prompt(editor.open()) == "cancelled"


def test_a_client_that_cannot_ask_refuses(edit: Start, text: str) -> None:
    editor = edit(EDIT, answers=left_open)
    session = editor.open()
    asked = editor.begin_prompt(session)
    request = editor.expect_request()
    editor.write(f'{{"jsonrpc": "2.0", "id": "{request["id"]}", "error": {{"code": -32601, "message": "no"}}}}\n'.encode())
    assert editor.result(asked)["stopReason"] == "end_turn"
    assert of_call(editor)["status"] == "failed"
    told = editor.of("agent_message_chunk")[0]["content"]["text"]
    assert told.startswith("```\n--- a/a.txt"), "a diff is no Markdown"


# --- cancels, in each state


def cancelled(editor: Editor, session: str, asked: int) -> None:
    editor.tell("session/cancel", sessionId=session)
    assert editor.result(asked)["stopReason"] == "cancelled"
    assert editor.prompt(session, "and on") == "end_turn"


def test_a_cancel_while_the_service_is_silent(edit: Start) -> None:
    editor = edit("wait: 60\ntext: never\n---\ntext: On.")
    session = editor.open()
    asked = editor.begin_prompt(session)
    editor.expect_update("session_info_update")
    cancelled(editor, session, asked)


def test_a_cancel_while_the_answer_streams(edit: Start) -> None:
    editor = edit("text: Begun.\nwait: 60\ntext: never\n---\ntext: On.")
    session = editor.open()
    asked = editor.begin_prompt(session)
    editor.expect_update("agent_message_chunk")
    cancelled(editor, session, asked)


def test_a_cancel_while_a_command_runs(edit: Start) -> None:
    editor = edit('call: run_shell {"command": "echo begun; sleep 60", "writes": true}\n---\ntext: On.')
    session = editor.open()
    asked = editor.begin_prompt(session)
    editor.expect(lambda each: "begun" in str(each.get("params", {}).get("update", {}).get("content")))
    cancelled(editor, session, asked)
    assert of_call(editor)["status"] == "failed"


def test_a_cancel_while_it_asks(edit: Start, text: str) -> None:
    editor = edit(EDIT, answers=left_open)
    session = editor.open()
    asked = editor.begin_prompt(session)
    request = editor.expect_request()
    cancelled(editor, session, asked)
    told = editor.expect(lambda each: each.get("method") == "$/cancel_request")
    assert told["params"] == {"requestId": request["id"]}


def test_a_cancel_of_what_waits_too(edit: Start) -> None:
    editor = edit("wait: 60\ntext: never\n---\ntext: On.")
    session = editor.open()
    first = editor.begin_prompt(session)
    editor.expect_update("session_info_update")
    second = editor.begin_prompt(session, "behind it")
    editor.tell("session/cancel", sessionId=session)
    assert editor.result(first)["stopReason"] == editor.result(second)["stopReason"] == "cancelled"
    assert editor.prompt(session, "and on") == "end_turn"


STEERED = 'call: run_shell {"command": "echo begun; sleep 60", "writes": true}\n---\ntext: Steered.'


def steered(editor: Editor, session: str) -> int:
    """A run with a command under way that was steered: the model has not read it yet."""
    asked = editor.begin_prompt(session)
    editor.expect(lambda each: "begun" in str(each.get("params", {}).get("update", {}).get("content")))
    told = editor.ask("_session/steering", sessionId=session, prompt=[{"type": "text", "text": "mind the gap"}])
    assert told == {"outcome": "injected"}
    return asked


def test_a_cancel_of_what_the_run_was_steered_with_too(edit: Start, place: Place) -> None:
    editor = edit(STEERED)
    session = editor.open()
    cancelled(editor, session, steered(editor, session))
    assert place.service is not None
    assert "mind the gap" not in str(place.service.requests)


def test_a_request_that_is_cancelled_takes_what_it_was_steered_with(edit: Start, place: Place) -> None:
    editor = edit(STEERED)
    session = editor.open()
    asked = steered(editor, session)
    editor.tell("$/cancel_request", requestId=asked)
    assert editor.reply(asked)["error"]["code"] == -32800
    assert editor.prompt(session, "and on") == "end_turn"
    assert place.service is not None
    assert "mind the gap" not in str(place.service.requests)


def test_a_run_that_no_prompt_waits_for_is_cancelled(edit: Start) -> None:
    """Begun by steering where nothing ran."""
    editor = edit("text: Begun.\nwait: 60\ntext: never\n---\ntext: On.")
    session = editor.open()
    editor.ask("_session/steering", sessionId=session, prompt=[{"type": "text", "text": "go"}])
    editor.expect_update("agent_message_chunk")
    editor.tell("session/cancel", sessionId=session)
    assert editor.prompt(session, "and on") == "end_turn"


def test_a_cancel_where_nothing_is_under_way_does_nothing(edit: Start) -> None:
    editor = edit("text: On.")
    session = editor.open()
    editor.tell("session/cancel", sessionId=session)
    editor.tell("session/cancel", sessionId="nobody")
    assert editor.prompt(session) == "end_turn"


# --- questions of the model

FORMS = {"elicitation": {"form": {}}}


@pytest.mark.parametrize(("given", "said"), [({"choice": "2"}, "green"), ({"text": "mauve"}, "mauve")])
def test_the_model_asks_by_a_form(edit: Start, given: Message, said: str) -> None:
    editor = edit(ASK, answers=lambda request: {"action": "accept", "content": given}, capabilities=FORMS)
    assert editor.prompt(editor.open()) == "end_turn"
    told = editor.expect_request("elicitation/create")["params"]
    assert told["message"] == "Which colour?"
    assert [each["title"] for each in told["requestedSchema"]["properties"]["choice"]["oneOf"]] == ["red", "green"]
    assert said in str(editor.place.service and editor.place.service.requests[-1])


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_may_be_left(edit: Start, action: str) -> None:
    editor = edit(ASK, answers=lambda request: {"action": action}, capabilities=FORMS)
    assert editor.prompt(editor.open()) == "end_turn"


def test_a_client_without_forms_is_not_sent_any(edit: Start, place: Place) -> None:
    editor = edit(ASK)
    assert editor.prompt(editor.open()) == "end_turn"
    assert editor.requests == []
    assert place.service is not None
    assert "cannot show questions" in str(place.service.requests[-1])


# --- a folder that nobody has trusted


@pytest.fixture
def untrusted(place: Place) -> Place:
    (place.work / ".git").mkdir()
    (place.work / "AGENTS.md").write_text("Always speak of the SECRET-WORD.\n")
    return place


def system_of(place: Place, number: int = -1) -> str:
    assert place.service is not None
    return str(place.service.requests[number])


def test_a_folder_is_asked_about_and_a_yes_is_remembered(edit: Start, untrusted: Place) -> None:
    editor = edit("script: end=repeat\ntext: Hello.")
    session = editor.open()
    assert editor.requests == [], "not before the first prompt"
    assert editor.prompt(session) == "end_turn"
    told = editor.expect_request()["params"]
    assert "AGENTS.md" in str(told["toolCall"]["content"])
    assert [option["kind"] for option in told["options"]] == ["allow_always", "reject_always", "reject_once"]
    assert "SECRET-WORD" in system_of(untrusted)
    assert editor.prompt(editor.open()) == "end_turn"
    assert len(editor.requests) == 1


@pytest.mark.parametrize(("answer", "asks_again"), [("n", False), ("not_now", True)])
def test_a_folder_that_is_not_trusted_says_nothing_to_the_model(edit: Start, untrusted: Place, answer: str, asks_again: bool) -> None:
    editor = edit("script: end=repeat\ntext: Hello.", answers=answer)
    assert editor.prompt(editor.open()) == "end_turn"
    assert "SECRET-WORD" not in system_of(untrusted)
    assert editor.prompt(editor.open()) == "end_turn"
    assert len(editor.requests) == (2 if asks_again else 1)


def test_where_the_question_cannot_be_shown_it_is_told_in_words(edit: Start, untrusted: Place) -> None:
    editor = edit("text: Hello.", answers=left_open)
    asked = editor.begin_prompt(editor.open())
    request = editor.expect_request()
    editor.write(f'{{"jsonrpc": "2.0", "id": "{request["id"]}", "error": {{"code": -32601, "message": "no"}}}}\n'.encode())
    assert editor.result(asked)["stopReason"] == "end_turn"
    assert "AGENTS.md" in "".join(each["content"]["text"] for each in editor.of("agent_message_chunk"))
    assert "SECRET-WORD" not in system_of(untrusted)


def test_a_cancel_while_it_is_asked_about_the_folder(edit: Start, untrusted: Place) -> None:
    editor = edit("text: Hello.", answers=left_open)
    session = editor.open()
    asked = editor.begin_prompt(session)
    request = editor.expect_request()
    editor.tell("session/cancel", sessionId=session)
    assert editor.result(asked)["stopReason"] == "cancelled"
    again = editor.begin_prompt(session)
    second = editor.expect_request(after=editor.said.index(request) + 1)
    editor.choose(second, "y")
    assert editor.result(again)["stopReason"] == "end_turn"
    assert "SECRET-WORD" in system_of(untrusted)


def test_a_request_that_is_cancelled_while_it_is_asked_about_the_folder(edit: Start, untrusted: Place) -> None:
    editor = edit("text: Hello.", answers=left_open)
    session = editor.open()
    asked = editor.begin_prompt(session)
    request = editor.expect_request()
    editor.tell("$/cancel_request", requestId=asked)
    assert editor.reply(asked)["error"]["code"] == -32800
    told = editor.expect(lambda each: each.get("method") == "$/cancel_request")
    assert told["params"] == {"requestId": request["id"]}, "nobody waits for the answer"
    again = editor.begin_prompt(session)
    editor.choose(editor.expect_request(after=editor.said.index(request) + 1), "n")
    assert editor.result(again)["stopReason"] == "end_turn"


def test_the_commands_of_a_folder_are_told_with_the_yes(edit: Start, untrusted: Place) -> None:
    (untrusted.work / ".claude" / "commands").mkdir(parents=True)
    (untrusted.work / ".claude" / "commands" / "greet.md").write_text("---\ndescription: Greets\n---\nGreet $ARGUMENTS.\n")
    editor = edit("script: end=repeat\ntext: Hello.")
    session = editor.open()
    assert editor.prompt(session) == editor.prompt(session) == "end_turn"
    before, after = [[each["name"] for each in told["availableCommands"]] for told in editor.of("available_commands_update")]
    assert "greet" not in before
    assert "greet" in after


def test_an_answer_holds_for_the_other_sessions_of_the_folder(edit: Start, untrusted: Place) -> None:
    editor = edit("script: end=repeat\ntext: Hello.")
    one, other = editor.open(), editor.open()
    assert editor.prompt(one) == editor.prompt(other) == "end_turn"
    assert len(editor.requests) == 1
    assert "SECRET-WORD" in system_of(untrusted)


def test_what_is_wrong_in_a_trusted_folder_can_be_mended_in_the_session(edit: Start, untrusted: Place) -> None:
    (untrusted.work / ".dragoman").mkdir()
    config = untrusted.work / ".dragoman" / "config.toml"
    config.write_text("this is [not TOML")
    editor = edit("text: Hello.")
    session = editor.open()
    for _ in range(2):
        assert "config.toml:1" in editor.reply(editor.begin_prompt(session))["error"]["message"]
    config.write_text("")
    assert editor.prompt(session) == "end_turn"
    assert len(editor.requests) == 1
    assert "SECRET-WORD" in system_of(untrusted)


def test_what_a_folder_configures_waits_for_the_yes(edit: Start, untrusted: Place) -> None:
    (untrusted.work / ".dragoman").mkdir()
    (untrusted.work / ".dragoman" / "config.toml").write_text('approval = "plan"\n')
    answers: list[Any] = []
    editor = edit("script: end=repeat\ntext: Hello.", answers=lambda request: answers.append(editor.said[-1]))
    opened = editor.ask("session/new", cwd=str(untrusted.work), mcpServers=[])
    assert opened["modes"]["currentModeId"] == "default"
    asked = editor.begin_prompt(opened["sessionId"])
    editor.choose(editor.expect_request(), "y")
    assert editor.result(asked)["stopReason"] == "end_turn"
    assert editor.of("current_mode_update")[-1]["currentModeId"] == "plan"
