"""A fleet is a grid of tasks and attempts, each the way to its session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from dragoman.viewer import fleets
from dragoman.viewer.fleets import fleet_grid, list_fleets, sessions_of_fleets
from program import Place, service
from viewer.browsing import serving, settle, watched


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.close()


def test_a_fleet_is_a_grid_that_leads_to_its_sessions(place: Place, browser: Browser) -> None:
    tasks = [{"id": "good <b>", "prompt": "Say good.", "check": "true"}, {"id": "bad", "prompt": "Say bad.", "check": "false"}]
    (place.work / "two.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    with service("\n---\n".join(["text: It is done."] * 4)) as place.service:
        flags = ("--model", "anthropic/claude-opus-5", "--workers", "1", "--attempts", "2", "--sandbox", "external")
        done = place.run("fleet", "run", "two.jsonl", *flags)
        assert (place.work / "fleet" / "two").is_dir(), done
    with serving(place) as server, watched(browser, server) as view:
        page = view.open(server.address())
        expect(page.locator(".row.session").first).to_contain_text("two")  # it says of which fleet it is
        page.get_by_role("link", name="Fleets").click()
        expect(page.get_by_role("heading", name="Fleets")).to_be_visible()  # the list has links of that name too
        page.get_by_role("link", name="two").click()
        row = page.get_by_role("row", name="good <b>")
        expect(row.get_by_role("link")).to_have_count(2)
        row.get_by_role("link").first.click()
        settle(page)
        expect(page.locator(".row.prompt")).to_contain_text("Say good.")


def test_the_results_of_a_fleet_are_read_again_only_when_there_are_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "fleet" / "night"
    base.mkdir(parents=True)
    (base / "lock.json").write_text('{"id": "1"}')
    (base / "results.jsonl").write_text('{"result": {"session_id": "a"}}\nnonsense\n{"session_id": 3}\n')
    read: list[str] = []
    real = fleets.read_found
    monkeypatch.setattr(fleets, "read_found", lambda path, *rest, **more: (read.append(Path(path).name), real(path, *rest, **more))[1])
    assert [sessions_of_fleets(str(tmp_path)) for _ in range(3)] == [{"a": "night"}] * 3
    assert read.count("results.jsonl") == 1
    with (base / "results.jsonl").open("a") as file:
        file.write('{"session_id": "b"}\n')
    assert sessions_of_fleets(str(tmp_path)) == {"a": "night", "b": "night"}


def test_results_that_came_with_a_repository_may_be_of_any_kind(tmp_path: Path) -> None:
    attempt = tmp_path / "fleet" / "theirs" / "tasks" / "a" / "1"
    attempt.mkdir(parents=True)
    (tmp_path / "fleet" / "theirs" / "lock.json").write_text('{"id": "1", "tasks": 1, "attempts": 1}')
    (tmp_path / "fleet" / "theirs" / "tasks.jsonl").write_text('{"id": "a"}\n')
    result = {"task": "a", "outcome": "passed", "reason": {}, "session_id": ["x"], "cost_usd": "x", "seconds": 10**400, "turns": 2}
    (attempt / "result.json").write_text(json.dumps(result))
    assert fleet_grid(str(tmp_path), "theirs")["tasks"] == [{"id": "a", "cells": [{"outcome": "passed", "turns": 2}]}]


def test_what_is_no_fleet_is_none_and_what_runs_is_seen(tmp_path: Path) -> None:
    assert list_fleets(str(tmp_path)) == []
    base = tmp_path / "fleet" / "night"
    (base / "tasks" / "a" / "1").mkdir(parents=True)
    (base / "tasks" / "b" / "x").mkdir(parents=True)
    (tmp_path / "fleet" / "broken").mkdir()
    (base / "lock.json").write_text('{"id": "1", "tasks": 2, "attempts": 2, "model": "m"}')
    (base / "tasks.jsonl").write_text('{"id": "a"}\n{"id": "b"}\nnonsense\n')
    (base / "tasks" / "a" / "1" / "task.json").write_text('{"id": "a"}')
    assert [each["name"] for each in list_fleets(str(tmp_path))] == ["night"]
    assert fleet_grid(str(tmp_path), "night")["tasks"] == [
        {"id": "a", "cells": [{"outcome": "begun"}, None]},
        {"id": "b", "cells": [None, None]},
    ]
    for name in ("..", "../fleet/night", "broken", "", "none"):
        assert fleet_grid(str(tmp_path), name) == {}
    (base / "lock.json").write_text('{"id": "1", "tasks": 5000, "attempts": 1000, "model": "m"}')
    (base / "tasks.jsonl").write_text("".join(f'{{"id": "t{number}"}}\n' for number in range(5000)))
    grid = fleet_grid(str(tmp_path), "night")
    assert (len(grid["tasks"]), grid["whole"]) == (20, 5000), "as much as a page can show"
    (tmp_path / "fleet" / "link").symlink_to(base)
    assert [each["name"] for each in list_fleets(str(tmp_path))] == ["night"]


@pytest.mark.parametrize("planted", ["fleet", "fleet/brought", "fleet/brought/tasks"])
def test_a_link_leads_to_no_fleet_outside_of_the_folder(tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    for folder in (outside / "brought" / "tasks" / "one" / "1", outside / "tasks" / "one" / "1", outside / "one" / "1"):
        folder.mkdir(parents=True)
        (folder / "result.json").write_text('{"task": "one", "outcome": "passed", "reason": "seen"}')
    for folder in (outside / "brought", outside):
        (folder / "lock.json").write_text('{"id": "0", "tasks": 1, "attempts": 1}')
        (folder / "tasks.jsonl").write_text('{"id": "one", "prompt": "p"}\n')
    work = tmp_path / "work"
    if planted == "fleet/brought/tasks":
        (work / "fleet" / "brought").mkdir(parents=True)
        for name in ("lock.json", "tasks.jsonl"):
            (work / "fleet" / "brought" / name).write_text((outside / name).read_text())
    (work / planted).parent.mkdir(parents=True, exist_ok=True)
    (work / planted).symlink_to(outside)
    assert "seen" not in json.dumps(fleet_grid(str(work), "brought"))
    assert list_fleets(str(work)) == [] or planted == "fleet/brought/tasks"
