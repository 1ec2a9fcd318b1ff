"""How often a user is asked, on the commands of real sessions. `python -m benchmarks.questions` prints which, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.questions import count_answered, count_questions, count_sandboxed

HARMLESS = ("ls", "grep", "find", "cat", "head", "date", "wc")


def test_at_most_two_in_five_commands_ask(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = count_questions(corpora / "traces")
    assert found.distinct > 150
    assert found.share <= 0.4, f"{found.share:.0%}"
    assert [each for each in found.asked if not each.reason] == []


def test_of_the_calls_too_if_what_may_be_allowed_for_good_is(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command comes 34 times: whoever allows it once is asked once."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = corpora / "traces"
    found, exactly, by_beginning = count_questions(folder), count_answered(folder), count_answered(folder, by_beginning=True)
    assert by_beginning < exactly <= 0.4 * found.calls < found.share_of_calls * found.calls


def test_what_only_reads_in_the_workspace_never_asks(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    asked = [each for each in count_questions(corpora / "traces").asked if each.command.split()[0] in HARMLESS]
    assert [each.command for each in asked if "outside the workspace" not in each.reason and "writes to a file" not in each.reason] == []


def test_in_a_sandbox_at_most_one_in_twenty_asks(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = count_sandboxed(corpora / "traces")
    assert found.share_of_calls <= 0.05, f"{found.share_of_calls:.0%}"
    assert found.share <= 0.05, f"{found.share:.0%}"
