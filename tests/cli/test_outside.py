"""The program with models and tools that an installed package brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from program import Place
from providers.test_outside import PACKAGE, POINTS


@pytest.fixture
def packages(tmp_path: Path) -> dict[str, str]:
    """A folder of installed packages, as the program is told of it."""
    folder = tmp_path / "packages"
    about = folder / "harbour_tools-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "harbour_tools.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: harbour-tools\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("model", ["echo/loud", "harbour_tools:Echo/loud"])
def test_a_model_of_a_package_answers(model: str, place: Place, packages: dict[str, str]) -> None:
    done = place.run("-m", model, "-p", "Ahoy", "--output-format", "json", env=packages)
    assert (done.code, done.json["response"]) == (0, "loud says: Ahoy"), done


def test_it_can_be_resumed_by_its_entry_point(place: Place, packages: dict[str, str]) -> None:
    assert place.run("-m", "echo/loud", "-p", "Ahoy", env=packages).code == 0
    assert place.run("--resume", "-p", "Again", "--output-format", "json", env=packages).json["response"] == "loud says: Again"


def test_a_model_nobody_brings_is_an_ordinary_mistake(place: Place, packages: dict[str, str]) -> None:
    done = place.run("-m", "ecko/loud", "-p", "Ahoy", env=packages)
    assert (done.code, "ecko/loud" in done.err) == (52, True), done


def test_a_tool_that_cannot_be_loaded_leaves_no_session_locked(place: Place, packages: dict[str, str]) -> None:
    assert place.run("-m", "echo/loud", "-p", "Ahoy", env=packages).code == 0
    (place.work / "c.toml").write_text('[tools]\nload = ["nowhere"]')
    done = place.run("--resume", "--config", "c.toml", "-p", "Again", env=packages)
    assert (done.code, "tools.load" in done.err) == (52, True), done
    assert place.run("--resume", "-p", "Again", env=packages).code == 0
