"""`make release-check`: builds what would be published, checks its metadata, and installs it from an index on this machine.

Each Python that is found here gets an empty environment, in which the program is asked for its version, answers a prompt of a loopback
service, and is removed again. Nothing is published. What is built on comes from the package registry, so this is a command and not a test.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from checks.install import NO_SERVERS, ROOT

OLDEST, NEWEST = (3, 11), (3, 14)
SMOKE = """
import asyncio, subprocess, sys
import dragoman as dm

async def main():
    async with dm.testing.MockServer('call: read_file {"file_path": "a.txt"}\\n---\\ntext: It says hello.') as server:
        env = {**__import__("os").environ, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url}
        program = await asyncio.create_subprocess_exec(
            sys.argv[1], "-m", "anthropic/claude-opus-5", "-p", "What does a.txt say?", env=env, stdout=subprocess.PIPE)
        said, _ = await program.communicate()
        assert (program.returncode, said.decode()) == (0, "It says hello.\\n"), (program.returncode, said)

asyncio.run(main())
"""


def main() -> None:
    version = str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    check_texts(version)
    with tempfile.TemporaryDirectory(prefix="release-check-") as folder:
        wheel, source = build(Path(folder) / "dragoman")
        check_wheel(wheel, version)
        check_source(source, version)
        check_metadata(Path(folder), wheel, source)
        with served(Path(folder)) as index:
            for python in pythons():
                install(python, Path(folder), index, version)
    print(f"dragoman {version} could be published from this commit")


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive, by the build backend itself."""
    folder.mkdir()
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for kind in ("wheel", "sdist"):
        code = f"import sys, uv_build; print(uv_build.build_{kind}(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, env=env, check=True, capture_output=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    print(f"built {wheel.name} ({wheel.stat().st_size // 1024} KiB) and {source.name} ({source.stat().st_size // 1024} KiB)")
    return wheel, source


def check_texts(version: str) -> None:
    """The changelog has a section for this version, and the package says the same one."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE):
        print(f"note: CHANGELOG.md has no section for {version} yet", file=sys.stderr)
    from dragoman import __version__

    require(__version__ == version, f"dragoman.__version__ is {__version__}, pyproject.toml says {version}")


def check_wheel(wheel: Path, version: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        head = email.message_from_bytes(archive.read(f"dragoman-{version}.dist-info/METADATA"))
    require(head["Version"] == version, f"the wheel says {head['Version']}")
    require(
        all(name.startswith(("dragoman/", f"dragoman-{version}.dist-info/")) for name in names),
        "the wheel holds something beside the package",
    )
    require("dragoman/py.typed" in names, "py.typed is missing")
    require(
        not any("__pycache__" in name or name.endswith((".pyc", ".jsonl.xz")) for name in names),
        "the wheel holds what was made by running it",
    )
    said = {each for each in head.get_all("Classifier", []) if re.search(r":: 3\.\d+$", each)}
    require(f"Programming Language :: Python :: {OLDEST[0]}.{OLDEST[1]}" in said, "the classifiers lack the oldest Python")


def check_source(source: Path, version: str) -> None:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "README.md", "LICENSE", "src/dragoman/__init__.py"):
        require(needed in names, f"{needed} is missing in {source.name}")
    require(source.name == f"dragoman-{version}.tar.gz", f"the archive is called {source.name}")


def check_metadata(folder: Path, *files: Path) -> None:
    """As the index would when it is uploaded."""
    tools = folder / "tools"
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
    python = tools / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "twine"], check=True)
    done = subprocess.run([python, "-m", "twine", "check", "--strict", *map(str, files)], capture_output=True, text=True)
    require(done.returncode == 0, done.stdout + done.stderr)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A package index on loopback that has this one package; the address of its pages."""
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def pythons() -> list[Path]:
    """One of each minor version that is on PATH or in pyenv's folder."""
    found: dict[tuple[int, int], Path] = {}
    folders = [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if each]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(root.glob("versions/*/bin"))
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        for folder in folders:
            path = folder / f"python3.{minor}"
            if (3, minor) not in found and path.exists() and runs(path, minor):
                found[3, minor] = path
    missing = [f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1) if (3, minor) not in found]
    if missing:
        print(f"not here, so not tried: Python {', '.join(missing)}")
    return list(found.values())


def runs(path: Path, minor: int) -> bool:
    """A shim of pyenv is there for a version that is not chosen."""
    done = subprocess.run([path, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == str(minor)


def install(python: Path, folder: Path, index: str, version: str) -> None:
    place = Path(tempfile.mkdtemp(prefix="place-", dir=folder))
    home = place / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG") or name.startswith(("PIP_", "SSL_"))}
    env = kept | NO_SERVERS | {"HOME": str(home)}
    subprocess.run([python, "-m", "venv", place / "env"], check=True, env=env)
    own = place / "env" / "bin"
    pip = [own / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "install", "--extra-index-url", index, "--trusted-host", "127.0.0.1", f"dragoman=={version}"], check=True, env=env
    )
    (home / "a.txt").write_text("hello\n")
    said = subprocess.run([own / "dragoman", "--version"], check=True, env=env, capture_output=True, text=True).stdout
    require(said.strip().endswith(version), said)
    subprocess.run([own / "python", "-c", SMOKE, own / "dragoman"], check=True, env=env, cwd=home)
    subprocess.run([*pip, "uninstall", "--yes", "dragoman"], check=True, env=env)
    left = [path for path in (place / "env").rglob("dragoman*") if path.suffix != ".lock"]
    require(not left, f"left after uninstalling: {left[:3]}")
    named = subprocess.run([python, "-c", "import sys; print(sys.version.split()[0])"], check=True, capture_output=True, text=True).stdout
    print(f"Python {named.strip()}: installed from the index, used, removed")
    shutil.rmtree(place)


def require(holds: bool, why: str) -> None:
    if not holds:
        raise SystemExit(f"release-check: {why}")


if __name__ == "__main__":
    main()
