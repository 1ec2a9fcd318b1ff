"""Exports: what was said stays what was said, whatever it looks like, and our own JSON comes back as it went."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import hypothesis
import hypothesis.strategies as st
import pytest

from dragoman.loop.history import History
from dragoman.sessions.export import FORMAT, from_json, is_json_export, to_conversation_record, to_json, to_markdown
from dragoman.sessions.export_words import escape_controls, time_of, utc_of
from dragoman.sessions.transcript import Note, Prompt, Reply, ToolCallStep, read_transcript
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.errors import InputError
from dragoman.values.messages import Citation, FileRef, FinishReason, Response, Text, Thought, ToolCall, assistant, tool_result, user
from dragoman.values.notes import GREETING, LOOP_NOTE
from dragoman.values.record import Entry, FileChange, Unknown, encode_entry
from dragoman.values.usage import Usage

NOW_MS = 1_794_744_062_123
ID = "20261115-120102-1a2b3c4d"
tricky = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            ["```", "`", "````\n", "\n## Prompt\n", "<script>alert(1)</script>", "</div>", "<!--", "]]>", "&lt;", "![x](http://x/y)"]
        ),
        st.sampled_from(["\n", "\r\n", "\r", "\x00", "\x1b[2J", "\u2028", "> ", "[a]: http://x", "~~~\n", "    ", "---\n", "\t"]),
    ),
    max_size=8,
).map("".join)


def lived(
    prompt: str = "Read the file", answer: str = "It says hello.", output: str = "hello", arguments: str = '{"file_path":"a.txt"}'
) -> History:
    """A session with a bit of everything."""
    history = History(now_ms=lambda: NOW_MS)
    history.start(ID, "f00d", ("/home/me/here",), ("dragoman 1",))
    history.configure("claude-opus-5", "Be good.", session_id=ID, deployment="anthropic")
    history.say(user(f"{GREETING}\n\nToday's date is …"), "environment")
    history.say(user(prompt))
    call = ToolCall("call_1", "read_file", arguments)
    history.answer(
        Response(assistant(Thought("**Looking**\nat it"), "I will read it.", call), FinishReason.TOOL_CALLS, usage=Usage(10, 20, 0, 9, 4))
    )
    history.start_tool(call)
    history.finish_tool(tool_result(call, output), display="1 line")
    history.answer(Response(assistant(answer, Citation("https://example.org", "Example")), FinishReason.STOP))
    return history


def test_a_call_that_was_edited_is_told_as_it_ran() -> None:
    history, call = History(now_ms=lambda: NOW_MS), ToolCall("call_1", "read_file", '{"file_path":"a.txt"}')
    history.say(user("Read the file"))
    history.answer(Response(assistant(call), FinishReason.TOOL_CALLS))
    history.start_tool(call, '{"file_path":"b.txt"}')
    history.finish_tool(tool_result(call, "hello"))
    [step] = [each for each in read_transcript(history.entries).steps if isinstance(each, ToolCallStep)]
    assert (step.call.arguments, step.outcome) == ('{"file_path":"b.txt"}', "finished")


def kinds(history: History) -> list[str]:
    return [type(step).__name__ for step in read_transcript(history.entries).steps]


# --- the transcript


def test_the_setup_message_is_told_from_prompts() -> None:
    steps = read_transcript(lived().entries).steps
    assert [step.is_setup for step in steps if isinstance(step, Prompt)] == [True, False]


def test_what_the_program_said_is_nobodys_prompt() -> None:
    history = History()
    history.say(user("Why?"))
    history.say(user(LOOP_NOTE.format(what="x")), "loop")
    transcript = read_transcript(history.entries)
    assert [step.is_note for step in transcript.steps if isinstance(step, Prompt)] == [False, True]
    assert transcript.first_prompt == "Why?"
    assert "Told by the program" in to_markdown(history.entries)


def test_a_session_is_read_as_it_looked() -> None:
    transcript = read_transcript(lived().entries)
    assert kinds(lived()) == ["Prompt", "Prompt", "Reply", "ToolCallStep", "Reply"]
    assert (transcript.session_id, transcript.project, transcript.model) == (ID, "f00d", "claude-opus-5")
    assert transcript.first_prompt == "Read the file"
    assert transcript.usage == Usage(10, 20, 0, 9, 4, incomplete=1), "the last answer told nothing"
    call = transcript.steps[3]
    assert isinstance(call, ToolCallStep)
    assert (call.outcome, call.output, call.display) == ("finished", "hello", "1 line")


def test_rejected_cancelled_and_interrupted_are_marked() -> None:
    history = lived()
    history.reject(history.answer(Response(assistant(""), FinishReason.STOP)), "the model gave an empty answer")
    calls = [ToolCall(f"c{number}", "run_shell", '{"command":"make"}') for number in range(3)]
    history.answer(Response(assistant("Half an ans", *calls), FinishReason.OTHER, "cancelled"))
    history.start_tool(calls[0], '{"command":"make -n"}')
    history.start_tool(calls[1])
    history.finish_tool(tool_result(calls[1], "stopped", is_error=True), "cancelled")
    steps = read_transcript(history.entries).steps[5:]
    empty, half, *ends = steps
    assert isinstance(empty, Reply)
    assert empty.rejected == "the model gave an empty answer"
    assert isinstance(half, Reply)
    assert half.broken_off == "cancelled"
    assert [each.outcome for each in ends if isinstance(each, ToolCallStep)] == ["unknown", "cancelled", "not_run"]
    assert isinstance(ends[0], ToolCallStep)
    assert ends[0].call.arguments == '{"command":"make -n"}'


def test_what_a_rewind_took_back_is_marked_and_stays() -> None:
    history = lived()
    before = history.entries[3]
    history.rewind(before)
    history.say(user("another way"))
    steps = read_transcript(history.entries).steps
    taken_back = [(type(step).__name__, step.taken_back) for step in steps]
    assert taken_back == [
        ("Prompt", False),
        ("Prompt", False),
        ("Reply", True),
        ("ToolCallStep", True),
        ("Reply", True),
        ("Note", False),
        ("Prompt", False),
    ]


def test_a_lost_entry_or_a_wild_number_does_not_hold_up_the_reading() -> None:
    history = lived()
    history.rewind(history.entries[4])
    entries = [entry for entry in history.entries if entry.seq != 5]
    assert read_transcript(entries).steps[1].taken_back is False
    far = Unknown(10**18, 10**18, '{"seq":1000000000000000000,"timestamp_ms":1000000000000000000,"kind":"later"}')
    assert "later" in to_markdown([*entries, far])
    assert read_transcript([]).steps == ()


def test_notes_say_what_happened_to_the_conversation() -> None:
    history = lived()
    history.prune(["call_1"])
    history.compress(history.entries[-1], user("A summary."))
    history.change_model("gemini-3.8-flash", "gemini")
    changed = history.change_files("call_1", [FileChange("/home/me/here/a.txt", "a" * 64, "b" * 64)])
    history.restore_files([changed])
    notes = [(step.kind, step.about) for step in read_transcript(history.entries).steps if isinstance(step, Note)]
    assert notes == [("pruned", "1"), ("compressed", "A summary."), ("model", "gemini/gemini-3.8-flash"), ("restored", "1")]
    text = to_markdown(history.entries)
    assert "A summary." in text
    assert "gemini" in text


# --- Markdown


class Blocks:
    """Markdown as a strict reader sees it: quotations, fences, and the rest, which must all be ours."""

    def __init__(self, text: str) -> None:
        self.contents: list[str] = []
        self.ours: list[str] = []
        lines = text.split("\n")
        while lines:
            line = lines.pop(0)
            if line.startswith("```"):
                fence = line.rstrip("json")
                end = next(number for number, each in enumerate(lines) if each.startswith(fence) and not each.strip("`"))
                self.contents.append("\n".join(lines[:end]))
                del lines[: end + 1]
            elif line.startswith("> "):
                quoted = [line]
                while lines and lines[0].startswith("> "):
                    quoted.append(lines.pop(0))
                self.contents.append("\n".join(each[2:] for each in quoted))
            else:
                self.ours.append(line)


@hypothesis.given(tricky, tricky, tricky)
def test_markdown_holds_what_was_said_and_nothing_gets_out(prompt: str, answer: str, output: str) -> None:
    text = to_markdown(lived(prompt, answer, output).entries)
    blocks = Blocks(text)
    said = [each for each in (prompt, "I will read it.") if each.strip()]
    for each in [*said, answer, output]:
        assert not escape_controls(each).strip() or escape_controls(each) in blocks.contents
    headings = [line for line in blocks.ours if line.startswith("#")]
    assert headings[1:] == ["## Setup", "## Prompt", "## Answer", "## Answer"]
    assert not any("<" in line.replace("\\<", "") for line in blocks.ours if not line.startswith(("- ", "**Call**")))


@pytest.mark.parametrize("active", ["<b>", "![x](http://x/y)", "[x](javascript:alert(1))", "[x]: http://x", "<!--"])
def test_text_that_markdown_would_act_on_is_fenced(active: str) -> None:
    text = to_markdown(lived(answer=f"See {active} there").entries)
    assert f"```\nSee {active} there\n```" in text
    assert "> I will read it." in text, "plain prose is quoted, so that it reads as prose"


@hypothesis.given(st.text(alphabet="`a \n", max_size=30))
def test_a_fence_is_longer_than_any_run_inside(output: str) -> None:
    contents = Blocks(to_markdown(lived(output=output).entries)).contents
    assert not output or output in contents


@hypothesis.given(tricky)
def test_a_tools_own_words_stay_on_their_line(command: str) -> None:
    arguments = json.dumps({"command": command})
    text = to_markdown(lived(arguments=arguments).entries)
    (line,) = [line for line in text.split("\n") if line.startswith("**Call** ")]
    assert line.endswith(": done")
    assert not any(line.startswith("## ") and line not in ("## Setup", "## Prompt", "## Answer") for line in Blocks(text).ours)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the time zone of this process."""

    def set_zone(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("UTC", "2026-11-15 12:01:02 UTC"),
        ("CET-1", "2026-11-15 13:01:02 UTC+01:00"),
        ("IST-5:30", "2026-11-15 17:31:02 UTC+05:30"),
        ("NST3:30", "2026-11-15 08:31:02 UTC-03:30"),
    ],
)
def test_times_are_those_of_the_readers_clock(zone: Callable[[str], None], name: str, shown: str) -> None:
    """They were UTC, and a person had to count."""
    zone(name)
    assert time_of(NOW_MS) == shown
    assert f"`{shown}`" in to_markdown(lived().entries)
    assert to_conversation_record(lived().entries)["startTime"] == "2026-11-15T12:01:02.123Z", "programs are told in UTC"


@pytest.mark.parametrize("timestamp_ms", [10**30, -(10**30)])
def test_a_time_that_no_calendar_has_is_left_out(timestamp_ms: int) -> None:
    assert time_of(timestamp_ms) == utc_of(timestamp_ms) == ""


# --- JSON


@hypothesis.given(tricky, tricky, tricky)
def test_our_json_comes_back_as_it_went(prompt: str, answer: str, output: str) -> None:
    history = lived(prompt, answer, output)
    history.rewind(history.entries[3])
    history.title(prompt)
    history.prune(["call_1"], 3, output)
    history.compress(history.entries[3], user(answer))
    history.restore_files([history.change_files("call_1", [FileChange(output, "a" * 64, "", 0o600)])])
    later = Unknown(99, 5, '{"seq":99, "timestamp_ms": 5,"kind":"later","x":[1, 2.50]}')
    entries: list[Entry] = [*history.entries, later]
    data = to_json(entries).encode()
    assert is_json_export(data)
    back = from_json(data).entries
    assert [encode_entry(entry) for entry in back] == [encode_entry(entry) for entry in entries]
    assert list(back) == entries
    assert json.loads(data)["format"] == FORMAT


def test_attachments_travel_with_the_json() -> None:
    blobs = MemoryBlobs()
    history = History()
    image = blobs.put("image/png", b"\x89PNG")
    call = ToolCall("c", "read_file")
    history.say(user(image))
    history.say(assistant(call))
    history.finish_tool(tool_result(call, blobs.put("image/gif", b"GIF89a")))
    package = from_json(to_json(history.entries, blobs))
    assert sorted(package.blobs.values()) == [("image/gif", b"GIF89a"), ("image/png", b"\x89PNG")]
    assert package.blobs[image.sha256] == ("image/png", b"\x89PNG")


def test_an_entry_laid_out_over_lines_becomes_one_line() -> None:
    text = '{"format":"dragoman-session","entries":[{"seq":1,\n"timestamp_ms":2,\n"kind":"later"}]}'
    (entry,) = from_json(text).entries
    assert isinstance(entry, Unknown)
    assert b"\n" not in encode_entry(entry)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format":"other","entries":[]}',
        '{"format":"dragoman-session"}',
        '{"format":"dragoman-session","entries":[5]}',
        '{"format":"dragoman-session","entries":[{"seq":2,"timestamp_ms":0,"kind":"x"},{"seq":1,"timestamp_ms":0,"kind":"x"}]}',
        '{"format":"dragoman-session","entries":[],"blobs":{"a":["b","not base64"]}}',
    ],
)
def test_what_is_no_export_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        from_json(text)


# --- gemini-cli's ConversationRecord


def test_conversation_record_has_all_its_fields() -> None:
    """SESSIONS-4: sessionId, projectHash, startTime, lastUpdated, messages[id, timestamp, type, content, thoughts, tokens, model]."""
    record = to_conversation_record(lived().entries)
    assert list(record) == ["sessionId", "projectHash", "startTime", "lastUpdated", "messages"]
    assert (record["sessionId"], record["projectHash"]) == (ID, "f00d")
    assert record["startTime"] == record["lastUpdated"] == "2026-11-15T12:01:02.123Z"
    prompt, answer, last = record["messages"]
    assert prompt == {"id": "4", "timestamp": "2026-11-15T12:01:02.123Z", "type": "user", "content": [{"text": "Read the file"}]}
    assert (answer["type"], answer["model"], answer["content"]) == ("gemini", "claude-opus-5", [{"text": "I will read it."}])
    assert answer["thoughts"] == [{"subject": "Looking", "description": "at it", "timestamp": "2026-11-15T12:01:02.123Z"}]
    assert answer["tokens"] == {"input": 30, "output": 5, "cached": 20, "thoughts": 4, "tool": 0, "total": 39}
    (call,) = answer["toolCalls"]
    assert (call["id"], call["name"], call["args"], call["status"]) == ("call_1", "read_file", {"file_path": "a.txt"}, "success")
    assert call["result"][0]["functionResponse"]["response"] == {"output": "hello"}
    assert last["content"] == [{"text": "It says hello."}]


def test_conversation_record_holds_what_stands() -> None:
    history = lived()
    history.reject(history.answer(Response(assistant("bad", ToolCall("c9", "x")), FinishReason.STOP)), "no")
    history.rewind(history.entries[3])
    assert [message["type"] for message in to_conversation_record(history.entries)["messages"]] == ["user"]


def test_text_parts_keep_their_order() -> None:
    history = History()
    history.say(user(Text("a"), FileRef("image/png", "gs://x"), Text("b")))
    (message,) = to_conversation_record(history.entries)["messages"]
    assert message["content"] == [{"text": "a"}, {"fileData": {"mimeType": "image/png", "fileUri": "gs://x"}}, {"text": "b"}]
