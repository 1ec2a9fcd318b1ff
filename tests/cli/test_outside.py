"""The program with models and tools that an installed package brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from program import Place, calls, script, service
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


HOOKS = """
import gc, pathlib
from dragoman.hooks import Hooks

def note(call):
    pathlib.Path("noted").write_text(f"{call.name} {gc.isenabled()}")

noting = Hooks(before_call=note)
def made():
    return [noting]
odd = 3
"""


@pytest.mark.parametrize("name", ["harbour", "harbour_hooks:noting", "harbour_hooks:made"])
def test_hooks_of_a_package_are_called(name: str, place: Place, packages: dict[str, str]) -> None:
    put_hooks(packages)
    (place.work / "c.toml").write_text(f'[plugins]\nhooks = ["{name}"]')
    with service(script(calls(("list_directory", {"path": "."})), "text: ok")) as place.service:
        done = place.ask("hi", "--config", "c.toml", env=packages)
    assert (done.code, done.out) == (0, "ok\n"), done
    assert (place.work / "noted").read_text() == "list_directory True", "garbage is not collected before the first request alone"


@pytest.mark.parametrize("name", ["nobody", "harbour_hooks:odd", "harbour_hooks:nothing"])
def test_what_is_no_hook_is_an_ordinary_mistake(name: str, place: Place, packages: dict[str, str]) -> None:
    put_hooks(packages)
    (place.work / "c.toml").write_text(f'[plugins]\nhooks = ["{name}"]')
    done = place.run("-m", "echo/loud", "--config", "c.toml", "-p", "Ahoy", env=packages)
    assert (done.code, "plugins.hooks" in done.err) == (52, True), done


def put_hooks(packages: dict[str, str]) -> None:
    folder = Path(packages["PYTHONPATH"])
    (folder / "harbour_hooks.py").write_text(HOOKS)
    with open(folder / "harbour_tools-1.0.dist-info" / "entry_points.txt", "a") as points:
        points.write("\n[dragoman.hooks]\nharbour = harbour_hooks:noting\n")
