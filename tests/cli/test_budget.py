"""Budgets and limits per minute through the program: configured, told in every output format, with an exit code of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from program import Place, Service

Serve = Callable[..., Service]
SCRIPT = 'call: list_directory {"path": "."}\n---\ntext: Done.'


def configure(place: Place, text: str) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(text)


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_run_ends_with_its_budget_and_the_next_one_goes_on(place: Place, serve: Serve, form: str) -> None:
    configure(place, "[budget]\nrequests = 1\n")
    service = serve(SCRIPT)
    done = place.ask("look", "--output-format", form)
    assert done.code == 60, done
    assert len(service.requests) == 1
    if form == "text":
        assert "budget.requests" in done.err
        assert "go on" in done.err
    elif form == "json":
        assert done.json["error"]["type"] == "BudgetExceeded"
    else:
        assert done.events[-1]["exit_code"] == 60
    again = place.run("--resume", "-p", "go on")
    assert (again.code, again.out) == (0, "Done.\n"), again


def test_dollars_are_refused_where_nobody_knows_the_price(place: Place, serve: Serve) -> None:
    configure(place, "[budget]\nusd = 0.5\n")
    service = serve(SCRIPT)
    done = place.ask("look", model="openai/nobody-knows-it")
    assert done.code == 42, done
    assert "budget.tokens" in done.err
    assert service.requests == []


def test_a_project_may_not_raise_it(place: Place, serve: Serve) -> None:
    serve(SCRIPT)
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text("[budget]\nusd = 100\n")
    done = place.ask("look", "--trust")
    assert done.code == 52, done
    assert "budget" in done.err


def test_a_wait_for_the_limit_per_minute_is_told(place: Place, serve: Serve) -> None:
    configure(place, "[budget]\nseconds = 2\n[deployments.anthropic]\nrequests_per_minute = 1\n")
    service = serve(SCRIPT)
    done = place.ask("look")
    assert done.code == 60, done
    assert len(service.requests) == 1
    assert "waiting about 60 s before the next request to anthropic" in done.err
