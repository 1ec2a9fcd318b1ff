"""What a yes to a hook is bound to: the files of the project it runs, and none that it only writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.extensions.hooks.agreement import code_run_by, hash_of
from dragoman.extensions.hooks.definitions import Hook
from dragoman.values.origin import Origin


def hook(folder: Path, command: str) -> Hook:
    return Hook("PreToolUse", "PreToolUse", command, Origin("claude", "project", "settings.json", 1), project=str(folder))


@pytest.mark.parametrize(
    "command",
    [
        'echo checked >> "$CLAUDE_PROJECT_DIR/log.txt"',
        "jq -r .tool_input.command >>log.txt",
        "date > log.txt 2>&1",
        "date &> './log.txt'",
        "tee /dev/null >| log.txt; true",
    ],
)
def test_a_log_that_a_hook_writes_to_may_grow(tmp_path: Path, command: str) -> None:
    before = hash_of(hook(tmp_path, command))
    (tmp_path / "log.txt").write_text("checked\n")
    assert hash_of(hook(tmp_path, command)) == before


@pytest.mark.parametrize(
    "command",
    [
        "sh run.sh > /dev/null",
        "date > log.txt; sh run.sh",
        "sh < run.sh",
        "date 2>&1 run.sh",
        "date > >(sh run.sh )",
        'date > "$(sh run.sh x)"',
        "echo x '>' run.sh",
        "date \\> run.sh",
        "date > run.sh; sh run.sh",
        "echo 'open > run.sh",
    ],
)
def test_what_a_hook_runs_is_bound_wherever_it_writes(tmp_path: Path, command: str) -> None:
    (tmp_path / "run.sh").write_text("true\n")
    assert code_run_by(hook(tmp_path, command)).files == (str(tmp_path / "run.sh"),)
