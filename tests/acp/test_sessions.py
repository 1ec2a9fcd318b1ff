"""A session in an editor: what is told of a prompt, a call, a failed command, a diff; and that a session that is loaded tells the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import acp_schema
import pytest
from editor import Editor, Message

from node_parts import require_package
from program import Place

Start = Callable[..., Editor]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WORK = """\
thought: Let me look.
text: Looking.
call: read_file {"file_path": "a.txt"}
---
call: edit {"file_path": "a.txt", "old_string": "two", "new_string": "2"}
call: run_shell {"command": "echo so far; exit 3", "writes": true}
---
call: todo {"items": [{"content": "mend it", "status": "in_progress"}]}
---
text: It failed.
---
text: Again.
"""


@pytest.fixture(scope="module", autouse=True)
def oracle() -> None:
    """Every message of these tests is held against the schema: it must be there."""
    require_package("@agentclientprotocol/sdk")


@pytest.fixture
def worked(edit: Start, place: Place) -> tuple[Editor, str]:
    """An editor in which a prompt is done, and its session."""
    (place.work / "a.txt").write_text("one\ntwo\nthree\n")
    editor = edit(WORK)
    session = editor.open()
    assert editor.prompt(session, "mend it") == "end_turn"
    return editor, session


def call(editor: Editor, name: str) -> Message:
    """A call as the client has it, all updates of it together."""
    first = next(each for each in editor.of("tool_call") if each["name"] == name)
    return joined(editor.updates())[first["toolCallId"]]


def joined(updates: list[Message]) -> dict[str, Message]:
    """What a client has in the end: texts by message, calls by id, and the last of everything else. What is told of the session beside
    what is said in it, and what only passes, is left out."""
    left: dict[str, Message] = {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind.endswith("_chunk"):
            before = left.setdefault(f"{kind} {update['messageId']}", {"text": ""})
            before["text"] += update["content"]["text"]
        elif kind in ("tool_call", "tool_call_update"):
            left.setdefault(update["toolCallId"], {}).update({key: value for key, value in update.items() if key != "sessionUpdate"})
        elif kind not in ("available_commands_update", "config_option_update", "current_mode_update"):
            left[kind] = update
    return left


def test_a_prompt_is_told_as_it_is_worked_on(worked: tuple[Editor, str]) -> None:
    editor, _ = worked
    texts = [value["text"] for key, value in joined(editor.updates()).items() if key.startswith("agent_message_chunk")]
    assert texts == ["Looking.", "It failed."]
    assert [value["text"] for key, value in joined(editor.updates()).items() if key.startswith("agent_thought")] == ["Let me look."]
    assert editor.of("plan")[-1]["entries"] == [{"content": "mend it", "status": "in_progress", "priority": "medium"}]
    assert not editor.of("user_message_chunk"), "the client shows its own prompt itself"


def test_a_diff_is_told_with_its_place(worked: tuple[Editor, str], place: Place) -> None:
    told = call(worked[0], "edit")
    path = str(place.work / "a.txt")
    assert told["status"] == "completed"
    assert told["kind"] == "edit"
    assert told["content"] == [{"type": "diff", "path": path, "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"}]
    assert told["locations"] == [{"path": path, "line": 2}]
    assert told["rawInput"] == {"file_path": "a.txt", "old_string": "two", "new_string": "2"}


def test_a_command_that_fails_has_failed_with_its_code(worked: tuple[Editor, str]) -> None:
    told = call(worked[0], "run_shell")
    assert (told["status"], told["kind"], told["rawOutput"]["exitCode"]) == ("failed", "execute", 3)
    assert told["title"] == "$ echo so far; exit 3"
    texts = [part["content"]["text"] for part in told["content"]]
    assert texts == ["```\nso far\n```", "(exit code 3)"]


def test_usage_and_cost_are_told_after_every_request(worked: tuple[Editor, str]) -> None:
    told = worked[0].of("usage_update")
    assert len(told) == 4
    costs = [each["cost"]["amount"] for each in told]
    assert costs == sorted(costs)
    assert costs[0] > 0
    assert all(0 < each["used"] < each["size"] for each in told)


def test_a_session_that_is_loaded_tells_what_was_told_before(worked: tuple[Editor, str], place: Place) -> None:
    editor, session = worked
    live = joined(editor.updates())
    so_far = len(editor.said)
    editor.ask("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])
    loaded = joined(editor.updates(after=so_far))
    prompts = {key: loaded.pop(key) for key in [*loaded] if key.startswith("user_message_chunk")}
    assert [each["text"] for each in prompts.values()] == ["mend it"]
    assert loaded == live


TOLD_AGAIN = [
    'call: edit {"file_path": "l.txt", "old_string": "line 5\\n", "new_string": "LINE\\n"}\n---\n'
    'call: write_file {"file_path": "n.txt", "content": "x"}',
    'call: edit {"file_path": "l.txt", "old_string": "nowhere", "new_string": "x"}\n'
    'call: read_file {"file_path": "none.txt"}\ncall: no_such_tool {}',
    'call: run_shell {"command": "seq 1 40000; echo err >&2; exit 7", "writes": true}',
    'call: run_shell {"command": "echo \'```\'; kill -9 $$", "writes": true}',
    'call: grep {"pattern": "line 1"}\ncall: glob {"pattern": "*.txt"}\ncall: read_file {"file_path": "l.txt", "offset": 10, "limit": 3}',
    "thought: a\ntext: b\nthought: c\ntext: d\ncall: list_directory {}",
    'error: 529 retry_after=0 "overloaded"',
]


@pytest.mark.parametrize("script", TOLD_AGAIN)
def test_whatever_was_told_is_told_again(edit: Start, place: Place, script: str) -> None:
    (place.work / "l.txt").write_text("".join(f"line {number}\n" for number in range(60)))
    editor = edit(f"{script}\n---\ntext: Done.")
    session = editor.open()
    assert editor.prompt(session) == "end_turn"
    live, so_far = joined(editor.updates()), len(editor.said)
    editor.ask("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])
    loaded = joined(editor.updates(after=so_far))
    assert {key: value for key, value in loaded.items() if not key.startswith("user_message_chunk")} == live


def test_a_session_goes_on_where_it_was_after_the_program_has_ended(worked: tuple[Editor, str], edit: Start, place: Place) -> None:
    before, session = worked
    live = joined(before.updates())
    assert before.leave() == 0
    editor = edit("text: Again.")
    editor.ask("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])
    told = {key: value for key, value in joined(editor.updates()).items() if not key.startswith("user_message_chunk")}
    assert told == live
    assert editor.prompt(session, "once more") == "end_turn"
    editor.expect_update("agent_message_chunk", content={"type": "text", "text": "Again."})


def test_a_session_that_is_resumed_is_not_told_again(worked: tuple[Editor, str], place: Place) -> None:
    editor, session = worked
    so_far = len(editor.said)
    editor.ask("session/resume", sessionId=session, cwd=str(place.work), mcpServers=[])
    assert editor.prompt(session, "once more") == "end_turn"
    kinds = [each["sessionUpdate"] for each in editor.updates(after=so_far)]
    assert "tool_call" not in kinds
    assert kinds.count("agent_message_chunk") == 1


def test_sessions_are_listed_closed_and_deleted(worked: tuple[Editor, str], place: Place) -> None:
    editor, session = worked
    [listed] = editor.ask("session/list", cwd=str(place.work))["sessions"]
    assert (listed["sessionId"], listed["cwd"], listed["title"]) == (session, str(place.work), "mend it")
    assert listed["updatedAt"].endswith("Z")
    assert editor.ask("session/list", cwd=str(place.home))["sessions"] == []
    assert editor.ask("session/close", sessionId=session) == {}
    assert editor.fault("session/prompt", sessionId=session, prompt=[])["code"] == -32002
    assert editor.ask("session/delete", sessionId=session) == {}
    assert editor.ask("session/list")["sessions"] == []
    assert editor.ask("session/delete", sessionId=session) == {}, "it is gone already"
    assert editor.fault("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])["code"] == -32002


@pytest.mark.parametrize("name", ["latest", "", "2026", "../../etc/passwd"])
def test_a_session_is_found_by_its_whole_id_alone(worked: tuple[Editor, str], place: Place, name: str) -> None:
    assert worked[0].fault("session/load", sessionId=name, cwd=str(place.work), mcpServers=[])["code"] == -32002


def test_nothing_is_told_of_a_session_before_the_client_knows_it(edit: Start) -> None:
    editor = edit("text: Hello.")
    session = editor.open()
    editor.expect_update("available_commands_update")
    known = next(number for number, each in enumerate(editor.said) if each.get("result", {}).get("sessionId") == session)
    told = next(number for number, each in enumerate(editor.said) if each.get("params", {}).get("sessionId") == session)
    assert known < told


def test_two_sessions_are_told_apart(edit: Start) -> None:
    editor = edit("script: end=repeat\ntext: Hello.")
    one, other = editor.open(), editor.open()
    first, second = editor.begin_prompt(one), editor.begin_prompt(other)
    assert editor.result(first)["stopReason"] == editor.result(second)["stopReason"] == "end_turn"
    for session in (one, other):
        told = [each["content"]["text"] for each in editor.updates(session) if each["sessionUpdate"] == "agent_message_chunk"]
        assert "".join(told) == "Hello."


def test_further_folders_belong_to_the_workspace(edit: Start, place: Place) -> None:
    beside = place.home / "beside"
    beside.mkdir()
    (beside / "b.txt").write_text("from beside\n")
    editor = edit(f'call: read_file {{"file_path": "{beside}/b.txt"}}\n---\ntext: Read.')
    session = editor.open(additionalDirectories=[str(beside)])
    assert editor.prompt(session) == "end_turn"
    assert "from beside" in call(editor, "read_file")["content"][0]["content"]["text"]


@pytest.mark.parametrize("path", ["relative/path", "/nonexistent/folder"])
def test_a_folder_that_is_not_there_is_refused(edit: Start, path: str) -> None:
    fault = edit("text: Hello.").fault("session/new", cwd=path, mcpServers=[])
    assert fault["code"] == -32602
    assert path in fault["message"]


def test_the_schema_refuses_what_is_not_of_it() -> None:
    update: dict[str, Any] = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}, "messageId": "1"}
    assert [*acp_schema.problems("SessionNotification", {"sessionId": "s", "update": update})] == []
    assert [*acp_schema.problems("SessionNotification", {"sessionId": "s", "update": update | {"invented": 1}})] != []
    assert [*acp_schema.problems("SessionNotification", {"sessionId": 1, "update": update})] != []


def test_a_prompt_that_brought_files_along_is_loaded_with_them(edit: Start, place: Place) -> None:
    """A file that it names stands in its text; an image is shown again."""
    (place.work / "a file.txt").write_text("one\n")
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    link = {"type": "resource_link", "uri": f"file://{place.work}/a%20file.txt", "name": "a file.txt"}
    editor = edit("text: Seen.")
    session = editor.open()
    assert editor.prompt(session, "look at ", link, image) == "end_turn"
    assert "one\\n--- end of" in str(place.service and place.service.requests[-1]), "the file was sent along"
    so_far = len(editor.said)
    editor.ask("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])
    told = [each["content"] for each in editor.updates(after=so_far) if each["sessionUpdate"] == "user_message_chunk"]
    assert told == [{"type": "text", "text": 'look at @"a file.txt"'}, image]


@pytest.mark.parametrize(
    "wrong", [{"cwd": "/nonexistent/folder"}, {"mcpServers": [{"type": "sse", "name": "old", "url": "http://127.0.0.1:9/"}]}]
)
def test_a_session_that_cannot_be_loaded_stays_open(worked: tuple[Editor, str], place: Place, wrong: Message) -> None:
    editor, session = worked
    asked = {"sessionId": session, "cwd": str(place.work), "mcpServers": []} | wrong
    assert editor.fault("session/load", **asked)["code"] == -32602
    assert editor.prompt(session, "go on") == "end_turn"


def test_a_session_without_a_prompt_cannot_be_loaded_and_stays_open(edit: Start, place: Place) -> None:
    editor = edit("text: Hello.")
    session = editor.open()
    assert editor.fault("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])["code"] == -32002
    assert editor.prompt(session) == "end_turn"


def test_a_prompt_under_way_is_answered_when_its_session_is_loaded(edit: Start, place: Place) -> None:
    editor = edit("text: Begun.\nwait: 60\ntext: never\n---\ntext: On.")
    session = editor.open()
    first, second = editor.begin_prompt(session), editor.begin_prompt(session, "behind it")
    editor.expect_update("agent_message_chunk")
    editor.ask("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])
    assert editor.result(first)["stopReason"] == editor.result(second)["stopReason"] == "cancelled"
    assert editor.prompt(session, "and on") == "end_turn"


@pytest.mark.parametrize(
    "odd", ['{"file_path": "~\\u0000x/y"}', '{"file_path": "a.txt", "offset": 99999999999999999999}', '{"paths": [1, null]}', "[1]"]
)
def test_odd_arguments_of_a_call_silence_nothing(edit: Start, place: Place, odd: str) -> None:
    editor = edit(f"call: read_file {odd}\n---\ntext: Done.")
    session = editor.open()
    assert editor.prompt(session) == "end_turn"
    [call] = editor.of("tool_call")
    assert all(each.get("line", 0) < 2**32 for each in call.get("locations", ())), "the schema's largest number"
    assert editor.of("agent_message_chunk")[0]["content"]["text"] == "Done."
    assert editor.ask("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])


def test_why_a_call_was_not_run_is_told_once(edit: Start) -> None:
    editor = edit('call: read_file {"nonsense": 1}\n---\ntext: Done.')
    editor.prompt(editor.open())
    [part] = call(editor, "read_file")["content"]
    assert "do not fit" in part["content"]["text"]


def test_a_file_that_is_emptied_is_told_as_a_diff(edit: Start, place: Place) -> None:
    (place.work / "a.txt").write_text("one\ntwo\n")
    editor = edit('call: read_file {"file_path": "a.txt"}\n---\ncall: write_file {"file_path": "a.txt", "content": ""}\n---\ntext: Done.')
    editor.prompt(editor.open())
    diff = {"type": "diff", "path": str(place.work / "a.txt"), "oldText": "one\ntwo\n", "newText": ""}
    assert call(editor, "write_file")["content"] == [diff]
    assert editor.requests[0]["params"]["toolCall"]["content"][0] == diff
