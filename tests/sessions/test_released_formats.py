"""Logs that released versions wrote load for ever, and go back as they came. A fixture is never changed: a new format gets a new one."""

from __future__ import annotations

import typing
from pathlib import Path

from dragoman.history import History
from dragoman.messages import Blob, Text, user
from dragoman.record import Entry, Said, Started, ToolFinished, Unknown
from dragoman.sessions.log import encode_line, read_log

FORMAT_1 = Path(__file__).with_name("fixtures") / "format-1.jsonl"


def test_format_1_loads_whole() -> None:
    loaded = read_log(FORMAT_1)
    assert not loaded.damage
    assert not loaded.torn
    assert [entry.seq for entry in loaded.entries] == list(range(1, 17))
    assert {type(entry) for entry in loaded.entries} == set(typing.get_args(Entry)), "it holds an entry of every kind"


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


def test_format_1_goes_back_byte_for_byte() -> None:
    assert b"".join(map(encode_line, read_log(FORMAT_1).entries)) == FORMAT_1.read_bytes()


def test_format_1_can_be_gone_on_with() -> None:
    history = History(entries=read_log(FORMAT_1).entries)
    assert (history.view.model, history.view.deployment) == ("gemini-3.8-flash", "gemini")
    history.say(user("And now?"))
    assert [message.role for message in history.request.messages] == ["user", "assistant", "user", "user"]
