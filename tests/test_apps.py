"""The apps of examples/apps do all they say, against a service on loopback, and take no more lines than their twins with pydantic-ai."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks.driving import drive_batch, drive_research, drive_service
from benchmarks.lines import code_lines

ROOT = Path(__file__).resolve().parent.parent
APPS, TWINS = ROOT / "examples" / "apps", ROOT / "benchmarks" / "apps"


def test_the_service_streams_asks_cancels_and_keeps_to_its_budget(tmp_path: Path) -> None:
    uvicorn = [sys.executable, "-m", "uvicorn", "--app-dir", str(APPS), "service:app", "--log-level", "warning", "--port"]
    drive_service(uvicorn, tmp_path)


def test_the_batch_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    drive_batch([sys.executable, str(APPS / "batch.py")], tmp_path)


def test_the_research_agent_sees_asks_and_adds_up(tmp_path: Path) -> None:
    drive_research([sys.executable, str(APPS / "research.py")], tmp_path)


@pytest.mark.parametrize("name", ["service", "batch", "research"])
def test_an_app_takes_no_more_lines_than_its_twin(name: str) -> None:
    ours, twin = (code_lines((folder / f"{name}.py").read_text(encoding="utf-8")) for folder in (APPS, TWINS))
    assert ours <= twin


@pytest.mark.parametrize("name", ["service", "batch", "research"])
def test_an_app_has_the_features_of_its_twin(name: str) -> None:
    ours, twin = ((folder / f"{name}.py").read_text(encoding="utf-8") for folder in (APPS, TWINS))
    assert _features(ours) == _features(twin)


def _features(source: str) -> str:
    return source[source.index("Features:") :].partition('"""')[0]
