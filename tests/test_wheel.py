"""The wheel: everything of the package is in it, nothing else, and it works away from the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from checks.install import build_wheel

from program import Place

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel") / "dist")


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    ours = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if not name.endswith("/")}
        [entry_points] = [archive.read(name).decode() for name in held if name.endswith("entry_points.txt")]
        [metadata] = [archive.read(name).decode() for name in held if name.endswith("METADATA")]
    assert {name for name in held if ".dist-info/" not in name} == ours
    assert "dragoman = dragoman.cli.main:main" in entry_points
    assert {line.split(": ")[1] for line in metadata.splitlines() if line.startswith("Provides-Extra: ")} == {
        "vertex",
        "local",
        "httpx",
        "keyring",
        "mcp",
        "otel",
        "ray",
        "harbor",
    }


def test_the_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    place = Place(tmp_path)
    env = place.env | {"PYTHONPATH": str(tmp_path / "site")}

    def run(*command: str) -> str:
        done = subprocess.run([sys.executable, *command], cwd=place.work, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("-c", "import dragoman; print(dragoman.__file__)").startswith(str(tmp_path / "site"))
    assert run("-m", "dragoman", "--version").startswith("dragoman ")
    assert "Anthropic" in run("-m", "dragoman", "models")
    assert "read_file" in run("-c", "import dragoman as dm; print(dm.coding_agent(dm.testing.ScriptedProvider('text: hi')).tools.specs)")
