"""`make install-check`: builds the wheel and installs it as users do, with uv, pipx and pip, each in an empty home with an empty cache.

The command must work, name its version, complete in bash, and say what to do where there is neither key nor server; the extras must
install; after uninstalling, nothing of it is left. uv and pipx come from the package registry, so this is a command and not a test.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NO_SERVERS = dict.fromkeys(
    ("OLLAMA_BASE_URL", "LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "VLLM_BASE_URL", "SGLANG_BASE_URL"), "http://127.0.0.1:9/v1"
)
"""Where nobody listens."""
KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy")
EXTRAS = ("httpx", "vertex", "local")


class Home(NamedTuple):
    """An empty home, and an installer that works in it."""

    name: str
    path: Path
    install: Callable[[str], list[str]]
    uninstall: list[str]

    @property
    def env(self) -> dict[str, str]:
        installers = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_")) and name != "PIP_USER"}
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return kept | installers | NO_SERVERS | {"HOME": str(self.path), "PATH": f"{self.path}/.local/bin:{os.environ['PATH']}"}

    def run(self, *command: str, code: int = 0) -> str:
        work = self.path / "work"
        work.mkdir(exist_ok=True)
        done = subprocess.run(command, env=self.env, cwd=work, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != code:
            raise SystemExit(f"{self.name}: {' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout + done.stderr


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="install-check-") as folder:
        wheel = build_wheel(Path(folder) / "dist")
        for home in homes(Path(folder)):
            try_plain(home, str(wheel))
            for extra in EXTRAS if home.name == "uv" else EXTRAS[:1]:
                try_extra(home, f"{wheel}[{extra}]", extra)
            check_nothing_is_left(home)
            print(f"{home.name}: installed, used with {', '.join(EXTRAS if home.name == 'uv' else EXTRAS[:1])} and without, uninstalled")


def build_wheel(folder: Path) -> Path:
    """By the build backend itself, as an installer calls it."""
    folder.mkdir()
    code = "import sys, uv_build; print(uv_build.build_wheel(sys.argv[1]))"
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # it looks for its program there
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    return folder / done.stdout.split()[-1]


def homes(folder: Path) -> list[Home]:
    tools = folder / "tools"
    venv.create(tools, with_pip=True)
    subprocess.run([tools / "bin" / "python", "-m", "pip", "install", "--quiet", "uv", "pipx"], check=True)
    python = str(Path(sys.base_prefix) / "bin" / "python3")
    uv, pipx = str(tools / "bin" / "uv"), str(tools / "bin" / "pipx")
    user = [python, "-m", "pip", "install", "--user", "--quiet", "--no-warn-script-location", "--break-system-packages"]
    rows: list[tuple[str, Callable[[str], list[str]], list[str]]] = [
        ("uv", lambda what: [uv, "tool", "install", "--force", what], [uv, "tool", "uninstall", "dragoman"]),
        ("pipx", lambda what: [pipx, "install", "--force", what], [pipx, "uninstall", "dragoman"]),
        ("pip", lambda what: [*user, what], [python, "-m", "pip", "uninstall", "--yes", "--quiet", "--break-system-packages", "dragoman"]),
    ]
    made: list[Home] = []
    for name, install, uninstall in rows:
        path = folder / name
        path.mkdir()
        made.append(Home(name, path, install, uninstall))
    return made


def try_plain(home: Home, wheel: str) -> None:
    home.run(*home.install(wheel))
    dragoman = str(home.path / ".local" / "bin" / "dragoman")
    expect(home, home.run("dragoman", "--version"), "dragoman ")
    expect(home, home.run(dragoman, "--help"), "usage: dragoman")
    expect(home, home.run(dragoman, "models"), "Anthropic")
    expect(home, home.run("bash", "-c", "source <(dragoman completions bash) && complete -p dragoman"), "_dragoman")
    said = home.run(dragoman, "-p", "hi", code=41)
    expect(home, said, "_API_KEY")
    home.run(dragoman, "doctor", "--offline", code=1)


def try_extra(home: Home, requirement: str, extra: str) -> None:
    home.run(*home.install(requirement))
    dragoman = str(home.path / ".local" / "bin" / "dragoman")
    if extra == "local":
        expect(home, home.run(dragoman, "-p", "hi", code=41), "491 MB")
    elif extra == "httpx":
        (home.path / "httpx.toml").write_text('[http]\nclient = "httpx"\n')
        expect(home, home.run(dragoman, "doctor", "--offline", "--config", str(home.path / "httpx.toml"), code=1), "httpx")


def check_nothing_is_left(home: Home) -> None:
    home.run(*home.uninstall)
    # pipx keeps a lock for every name it ever had.
    left = [path for path in home.path.rglob("*dragoman*") if ".cache" not in path.parts and path.name != ".dragoman.lock"]
    if left:
        raise SystemExit(f"{home.name}: left after uninstalling: {', '.join(map(str, left[:5]))}")


def expect(home: Home, said: str, word: str) -> None:
    if word not in said:
        raise SystemExit(f"{home.name}: {word!r} is missing in:\n{said[-2000:]}")


if __name__ == "__main__":
    main()
