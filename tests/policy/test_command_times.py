"""When commands could write: what is written down, read again, merged and left by a process that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.policy import command_times
from dragoman.policy.command_times import MARGIN_NS, CommandSpan, RunningTime, believe, merge_file, merge_spans, read_times

SPANS = st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**11)).map(lambda each: CommandSpan(each[0], sum(each))), max_size=80)


@given(SPANS, st.integers(1, 40))
def test_merging_forgets_no_time_and_keeps_few(spans: list[CommandSpan], most: int) -> None:
    merged = merge_spans(spans, most)
    assert len(merged) <= most
    assert list(merged) == sorted(merged)
    assert all(any(few.began_ns <= each.began_ns and each.ended_ns <= few.ended_ns for few in merged) for each in spans)
    assert merge_spans(merged, most) == merged
    assert bool(merged) == bool(spans)


@example([("a", 0, 100_000_004), ("a", 0, 0)])
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 10**12), st.integers(0, 10**10)), max_size=40))
def test_a_file_that_is_merged_covers_all_it_did(lines: list[tuple[str, int, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "commands.jsonl")
        made = [command_times.CommandLine(f"/w/{name}", began, began + length + 1, "1.2.3") for name, began, length in lines]
        command_times.append_lines(file, made)
        believe(file, {"/w/a/AGENTS.md": "1", "/w/b/AGENTS.md": "2"})
        before = read_times(file)
        for most in (command_times.MAX_FOLDERS, 3):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(command_times, "MAX_FOLDERS", most)
                merge_file(file)
            after = read_times(file)
            assert after.believed == before.believed
            for name, began, length in lines:
                assert after.covers(f"/w/{name}/AGENTS.md", began + length // 2)


def test_a_time_lasts_from_the_start_to_the_end_of_a_command(tmp_path: Path) -> None:
    file, path = str(tmp_path / "data" / "commands.jsonl"), str(tmp_path / "work" / "AGENTS.md")
    early = time.time_ns() - 2 * MARGIN_NS
    running = RunningTime(file, [str(tmp_path / "work")])
    assert read_times(file).covers(path, time.time_ns())
    running.close()
    running.close()
    times = read_times(file)
    assert times.covers(path, time.time_ns() - 1_000)
    assert not times.covers(path, early)
    assert not times.covers(path, time.time_ns() + 2 * MARGIN_NS)
    assert not times.covers(str(tmp_path / "other" / "AGENTS.md"), time.time_ns())
    assert not times.covers(str(tmp_path / "work"), time.time_ns()), "what is written in a folder changes the folder"
    assert times.concerns(str(tmp_path / "work" / "deep"))
    assert times.concerns(str(tmp_path))
    assert not times.concerns(str(tmp_path / "other"))
    assert os.stat(file).st_mode & 0o777 == 0o600


def test_what_a_killed_process_left_open_is_closed_by_the_next_reader(tmp_path: Path) -> None:
    file = str(tmp_path / "commands.jsonl")
    code = f"import os\nfrom dragoman.policy.command_times import RunningTime\nRunningTime({file!r}, ['/w'])\nos.kill(os.getpid(), 9)\n"
    subprocess.run([sys.executable, "-c", code], check=False)
    assert read_times(file).covers("/w/AGENTS.md", time.time_ns())
    seen = time.time_ns()
    time.sleep(0.2)
    assert read_times(file).covers("/w/AGENTS.md", seen - 1_000)
    assert not read_times(file).covers("/w/AGENTS.md", time.time_ns())


def test_many_commands_leave_a_short_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(tmp_path / "commands.jsonl")
    monkeypatch.setattr(command_times, "MAX_BYTES", 20_000)
    running = RunningTime(file, ["/w/long"])
    for number in range(300):
        RunningTime(file, [f"/w/{number % 5}"]).close()
    assert os.stat(file).st_size < 40_000
    times = read_times(file)
    assert times.covers("/w/long/x", time.time_ns()), "one that still runs"
    running.close()
    assert set(times.spans) == {"/w/long", *(f"/w/{number}" for number in range(5))}


def test_a_folder_whose_name_is_no_text_counts_with_the_folder_around_it(tmp_path: Path) -> None:
    file = str(tmp_path / "commands.jsonl")
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(odd)
    RunningTime(file, [odd]).close()
    assert read_times(file).covers(os.path.join(odd, "AGENTS.md"), time.time_ns())


def test_only_the_newest_hashes_of_a_file_are_kept(tmp_path: Path) -> None:
    file = str(tmp_path / "commands.jsonl")
    for number in range(10):
        believe(file, {"/w/AGENTS.md": str(number)})
    believe(file, {"/w/AGENTS.md": "8"})
    assert read_times(file).believed == {"/w/AGENTS.md": ("6", "7", "9", "8")}
