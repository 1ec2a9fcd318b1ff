"""`python -m benchmarks.twins [service|batch|research ...]`: run the twins in an environment of their own, and count their lines."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.beside import Peer, make_environment
from benchmarks.driving import drive_batch, drive_research, drive_service
from benchmarks.lines import code_lines

HERE = Path(__file__).resolve().parent / "apps"
NEEDED = ("pydantic-ai-slim[openai]", "starlette", "uvicorn")


def main(names: list[str]) -> None:
    python = str(make_environment("apps", Peer(NEEDED, "", "")))
    uvicorn = [
        python,
        "-m",
        "uvicorn",
        "--app-dir",
        str(HERE),
        "service:app",
        "--log-level",
        "warning",
        "--port",
    ]
    apps = {
        "service": lambda folder: drive_service(uvicorn, folder),
        "batch": lambda folder: drive_batch([python, str(HERE / "batch.py")], folder),
        "research": lambda folder: drive_research([python, str(HERE / "research.py")], folder),
    }
    for name in names or apps:
        began = time.monotonic()
        with TemporaryDirectory() as folder:
            apps[name](Path(folder))
        lines = code_lines((HERE / f"{name}.py").read_text(encoding="utf-8"))
        print(
            f"{name}: {lines} lines of code; it did all it says, in {time.monotonic() - began:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
