"""An environment for Harbor where there is no Docker: the machine's own programs, read-only, around folders of the trial's own.

For tests alone. It keeps nothing in that wants out: it has the machine's network and its files, for reading.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

OWN = ("app", "tests", "solution", "installed-agent", "harbor", "logs", "tmp")
LEFT_OUT = {"proc", "dev", "sys", *OWN}


class LocalEnvironment(BaseEnvironment):
    """Bubblewrap around a folder. The task's `environment/` is what lies in `/app`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._base = Path(tempfile.mkdtemp(prefix="dragoman-harbor-", dir="/var/tmp"))
        super().__init__(*args, **options)

    @staticmethod
    def type() -> str:
        return "local"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(mounted=True)

    def _validate_definition(self) -> None:
        if not self.environment_dir.is_dir():
            raise FileNotFoundError(self.environment_dir)

    async def start(self, force_build: bool) -> None:
        for name in OWN:
            (self._base / name).mkdir()
        shutil.copytree(self.environment_dir, self._base / "app", dirs_exist_ok=True)

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self._base, ignore_errors=True)

    def _outside(self, path: str) -> Path:
        """Where a path of the environment lies on the machine."""
        bound = [(mount["target"], mount["source"]) for mount in self._mounts if mount["type"] == "bind"]
        for target, source in sorted(bound, key=lambda pair: -len(pair[0])):
            if path == target or path.startswith(f"{target}/"):
                return Path(source + path[len(target) :])
        return self._base / path.lstrip("/")

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self._outside(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._outside(target_dir), dirs_exist_ok=True, symlinks=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy2(self._outside(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._outside(source_dir), target_dir, dirs_exist_ok=True, symlinks=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        # An environment of a container's kind: nothing of the machine's variables.
        around = {"PATH": os.environ["PATH"], "HOME": "/tmp", "LANG": "C.UTF-8"}
        process = await asyncio.create_subprocess_exec(
            *(*self._boundary(), "--chdir", cwd or self.task_env_config.workdir or "/app", "bash", "-c", command),
            env=around | self._startup_env() | (env or {}),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(timeout_sec):
                printed, complained = await process.communicate()
        except BaseException:
            process.kill()
            raise
        return ExecResult(
            stdout=printed.decode("utf-8", "replace"),
            stderr=complained.decode("utf-8", "replace"),
            return_code=0 if process.returncode is None else process.returncode,
        )

    def _boundary(self) -> list[str]:
        found = ["bwrap", "--die-with-parent", "--unshare-pid", "--new-session", "--proc", "/proc", "--dev", "/dev"]
        for name in sorted(set(os.listdir("/")) - LEFT_OUT):
            path = f"/{name}"
            if os.path.islink(path):
                found += ["--symlink", os.readlink(path), path]
            else:
                found += ["--ro-bind", path, path]
        for name in OWN:
            found += ["--bind", str(self._base / name), f"/{name}"]
        for mount in self._mounts:
            if mount["type"] == "bind":
                found += ["--bind", mount["source"], mount["target"]]
        return found
