"""How often a user is asked, on the commands of real sessions. `python -m benchmarks.questions` prints which, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.questions import count_questions, count_sandboxed

HARMLESS = ("ls", "grep", "find", "cat", "head", "date", "wc")


def test_at_most_two_in_five_commands_ask(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = count_questions(corpora / "traces")
    assert found.distinct > 150
    assert found.share <= 0.4, f"{found.share:.0%}"
    assert [each for each in found.asked if not each.reason] == []


def test_what_only_reads_in_the_workspace_never_asks(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    asked = [each for each in count_questions(corpora / "traces").asked if each.command.split()[0] in HARMLESS]
    assert [each.command for each in asked if "outside the workspace" not in each.reason and "writes to a file" not in each.reason] == []


def test_in_a_sandbox_at_most_one_in_twenty_asks(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = count_sandboxed(corpora / "traces")
    assert found.share_of_calls <= 0.05, f"{found.share_of_calls:.0%}"
    assert found.share <= 0.05, f"{found.share:.0%}"
