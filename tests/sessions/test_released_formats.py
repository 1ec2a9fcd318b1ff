"""Logs that released versions wrote load for ever, and go back as they came. A fixture is never changed: a new format gets a new one."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from dragoman.context.prune import find_outdated, kind_of
from dragoman.context.settings import PruneRule
from dragoman.loop.history import History
from dragoman.loop.pending import pending_calls
from dragoman.sessions.log import decode_line, encode_line, read_log
from dragoman.values.messages import Blob, Text, user
from dragoman.values.record import CommandOutput, Entry, HostsUsed, Said, Started, ToolFinished, Unknown

FORMAT_1 = Path(__file__).with_name("fixtures") / "format-1.jsonl"
FORMAT_1_CONTEXT = FORMAT_1.with_name("format-1-context.jsonl")
"""The same format after entries about the context came to it."""
FORMAT_1_REFUSED = FORMAT_1.with_name("format-1-refused.jsonl")
"""And after one about a setting that a service refused."""
FORMAT_1_PENDING = FORMAT_1.with_name("format-1-pending.jsonl")
"""And after those about calls that wait."""
FORMAT_1_COMMANDS = FORMAT_1.with_name("format-1-commands.jsonl")
"""And after results of commands became text, with what was printed beside it."""
ALL = sorted(FORMAT_1.parent.glob("format-1*.jsonl"))
"""A new kind of entry brings a file of its own, `format-1-NAME.jsonl`."""


def test_format_1_loads_whole() -> None:
    logs = {path.name: read_log(path) for path in ALL}
    assert [name for name, log in logs.items() if log.damage or log.torn] == []
    assert [entry.seq for entry in logs[FORMAT_1.name].entries] == list(range(1, 17))
    kinds = {type(entry) for log in logs.values() for entry in log.entries}
    assert sorted(kind.__name__ for kind in set(typing.get_args(Entry)) - kinds) == [], "in no file: write one with an entry of the kind"


def test_commands_of_format_1_are_known_by_their_record() -> None:
    loaded = read_log(FORMAT_1_COMMANDS)
    assert not loaded.damage
    failed, running, read = (entry for entry in loaded.entries if isinstance(entry, ToolFinished))
    assert failed.command == CommandOutput(
        "\x1b[31mFAILED\x1b[0m test_cat\n", "make: *** [test] Error 1\n", 2, hosts=HostsUsed(refused=("example.org",))
    )
    assert running.command == CommandOutput("ready\n", "", None, background="bg1", status="running")
    assert read.command is None
    history = History(entries=loaded.entries)
    told = [result.text for message in history.view.messages for result in message.results]
    assert told[1:] == [
        "ready\n[bg1: running in the background]",
        "(the result of read_file was removed to save room: call it again if you need it)",
    ], "the first is shorter than its placeholder"
    now_ms = loaded.entries[-1].timestamp_ms + 3_600_000
    rule = PruneRule(keep=0)
    kinds = [kind_of(each.result.name, each.result.text, each.result.is_error, rule, each.command) for each in history.view.outcomes]
    assert [position for position, _ in find_outdated([1, 1, 1], kinds, now_ms, rule)] == [1]


def test_format_1_says_what_it_said() -> None:
    entries = {entry.seq: entry for entry in read_log(FORMAT_1).entries}
    head, prompt, answer, finished, song = (entries[seq] for seq in (1, 3, 4, 7, 16))
    assert isinstance(head, Started)
    assert (head.session_id, head.directories) == ("20261115-120000-0123abcd", ("/home/me/halcyon",))
    assert isinstance(prompt, Said)
    assert prompt.message == user("Where is the cat? 猫はどこ？ 🐈", Blob("image/png", "00" * 32, 9))
    assert isinstance(answer, Said)
    assert answer.message.calls[0].args == {"file_path": "日.txt"}
    assert answer.usage is not None
    assert answer.usage.input_tokens == 160
    assert isinstance(finished, ToolFinished)
    assert (finished.result.content, finished.outcome, finished.display) == ((Text("Aboard."),), "finished", "1 line")
    assert isinstance(song, Unknown)


def test_what_is_not_understood_is_told() -> None:
    [notice] = read_log(FORMAT_1).notices()
    assert notice.startswith("entries of a kind this version does not know")


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_it_goes_back_byte_for_byte(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    assert [encode_line(decode_line(line)) for line in lines] == lines


def test_what_was_refused_is_still_left_out() -> None:
    history = History(entries=read_log(FORMAT_1_REFUSED).entries)
    assert history.request.omit == ("reasoning.summary",)
    history.change_model("another")
    assert history.request.omit == ()


def test_what_was_decided_about_the_context_still_holds() -> None:
    history = History(entries=read_log(FORMAT_1_CONTEXT).entries)
    assert [message.text for message in history.request.messages] == [
        "This is Dragoman.",
        "What happened so far: the tests pass.",
        "And now?",
    ]
    assert history.usage.input_tokens == 900 + 920 + 800 + 800 + 70


def test_format_1_can_be_gone_on_with() -> None:
    history = History(entries=read_log(FORMAT_1).entries)
    assert (history.view.model, history.view.deployment) == ("gemini-3.8-flash", "gemini")
    history.say(user("And now?"))
    assert [message.role for message in history.request.messages] == ["user", "assistant", "user", "user"]


def test_calls_that_wait_still_wait() -> None:
    waiting = pending_calls(History(entries=read_log(FORMAT_1_PENDING).entries).view)
    assert [(call.id, call.waits_for, call.is_decided, call.arguments) for call in waiting] == [
        ("call-1", "result", False, '{"to":"harbour","amount":4}'),
        ("call-2", "decision", True, '{"to":"pilot","amount":5}'),
    ]
