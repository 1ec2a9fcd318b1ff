"""`-p` says what it refused and why, and what a saved approval let run."""

from __future__ import annotations

import json
from collections.abc import Callable

from program import Place, Service, calls, script

Serve = Callable[..., Service]
WRITE = calls(("write_file", {"file_path": "a.txt", "content": "x"}), ("run_shell", {"command": "env true"}))


def test_plan_mode_counts_what_it_refuses_and_says_so(place: Place, serve: Serve) -> None:
    serve(script(WRITE, "text: I would write it."))
    done = place.ask("go", "--approval", "plan", "--output-format", "json")
    assert json.loads(done.out)["stats"]["tools"]["refused"] == 2
    assert done.err == (
        "dragoman: plan mode only reads, so these calls were refused (2: write_file a.txt, $ env true); "
        "without --approval plan they would be asked about\n"
    )


def test_a_hint_that_would_not_help_is_not_given(place: Place, serve: Serve) -> None:
    serve(script(WRITE, "text: Done."))
    done = place.ask("go", "--approval", "auto-edit")
    assert done.err == (
        "dragoman: calls that need approval were refused, because nobody can be asked (1: $ env true); "
        "--allow allows commands (--allow 'pytest *'), and dragoman without -p asks you\n"
    )


def test_what_a_saved_approval_let_run_is_said(place: Place, serve: Serve) -> None:
    data = place.home / "dragoman" / "data"
    data.mkdir(parents=True)
    (data / "grants.jsonl").write_text(json.dumps({"folder": str(place.work.resolve()), "key": "edit"}))
    serve(script(WRITE, "text: Done."))
    done = place.ask("go")
    assert (place.work / "a.txt").read_text() == "x"
    assert "ran without asking, because you saved an approval for this folder (1: write_file a.txt); dragoman approvals" in done.err
    assert "(1: $ env true)" in done.err
