"""Calls in other names than their tool declares: read as meant, and told; or refused with the names there are. Never ignored."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from program import PROTOCOLS, Place, Service, calls, script

Serve = Callable[..., Service]


def answer(mode: str, name: str, arguments: dict[str, object]) -> str:
    if mode == "native":
        return calls((name, arguments))
    return "text: " + json.dumps(f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>")


def ask(place: Place, mode: str, *options: str) -> list[dict[str, object]]:
    """The results of the run's calls."""
    done = place.ask("hi", "--output-format", "stream-json", *options, *(["--text-tools"] if mode == "text" else []))
    assert done.code == 0, done
    return done.of("tool_result")


@pytest.mark.parametrize("model", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_closed_schemas_are_taken_by_every_protocol(place: Place, serve: Serve, model: str) -> None:
    (place.work / "src").mkdir()
    (place.work / "src" / "inner.txt").touch()
    serve(script(calls(("list_directory", {"dir": "src"})), "text: Done."))
    done = place.ask("hi", "--output-format", "stream-json", model=model)
    assert done.code == 0, done
    assert "inner.txt" in done.of("tool_result")[0]["text"]


@pytest.mark.parametrize("mode", ["native", "text"])
def test_another_name_for_an_optional_parameter_is_understood_and_told(place: Place, serve: Serve, mode: str) -> None:
    (place.work / "src").mkdir()
    (place.work / "src" / "inner.txt").touch()
    service = serve(script(answer(mode, "list_directory", {"dir": "src"}), "text: Done."))
    (result,) = ask(place, mode)
    assert "inner.txt" in str(result["text"])
    assert result["repairs"] == ["dir → path"]
    assert "dir → path" in json.dumps(service.requests[1], ensure_ascii=False), "the model is told"
    (log,) = (place.home / "dragoman").rglob("*.jsonl")
    finished = [entry for line in log.read_text().splitlines() if '"tool_finished"' in (entry := line)]
    assert "dir → path" in finished[0], "and so is whoever reads the record"


@pytest.mark.parametrize("mode", ["native", "text"])
def test_a_parameter_that_cannot_be_explained_is_an_error_that_names_those_there_are(place: Place, serve: Serve, mode: str) -> None:
    serve(script(answer(mode, "write_file", {"file_path": "a.txt", "content": "x", "mode": "append"}), "text: Done."))
    (result,) = ask(place, mode, "--approval", "auto-edit")
    assert result["is_error"]
    assert "mode" in str(result["text"])
    assert "file_path, content" in str(result["text"])
    assert not (place.work / "a.txt").exists()


def test_a_number_in_another_unit_is_not_taken_for_a_typo(place: Place, serve: Serve) -> None:
    serve(script(calls(("run_shell", {"command": "true", "timeout_ms": 5000})), "text: Done."))
    (result,) = ask(place, "native", "--approval", "auto-edit")
    assert result["is_error"]
    assert "did you mean `timeout_s`" in str(result["text"])
    assert "command, description, timeout_s, directory" in str(result["text"])


def test_what_is_judged_is_what_runs(place: Place, serve: Serve) -> None:
    """The rules see the repaired path: a file outside the workspace is not written under another name."""
    outside = place.home / "stolen.txt"
    serve(script(calls(("write_file", {"path": str(outside), "content": "x"})), "text: Done."))
    (result,) = ask(place, "native", "--approval", "auto-edit")
    assert result["is_error"]
    assert "outside the workspace" in str(result["text"])
    assert not outside.exists()


def test_a_repaired_edit_can_be_undone(place: Place, serve: Serve) -> None:
    serve(script(calls(("write_file", {"path": "a.txt", "text": "x"})), "text: Done."))
    (result,) = ask(place, "native", "--approval", "auto-edit")
    assert not result["is_error"]
    assert (place.work / "a.txt").read_text() == "x"
    undone = place.run("sessions", "undo", "latest")
    assert undone.code == 0, undone
    assert not (place.work / "a.txt").exists()


@pytest.mark.parametrize("mode", ["native", "text"])
@pytest.mark.parametrize(
    "table",
    [
        '[text_tools.mapping.list_directory]\nwo = "path"\n[text_tools.mapping.""]\nzeige = "list_directory"\n',
        '[text_tools.model_mapping."claude-*".list_directory]\nwo = "path"\n[text_tools.model_mapping."*/claude-*".""]\n'
        'zeige = "list_directory"\n',
    ],
    ids=["any model", "one model"],
)
def test_configured_names_hold_for_native_calls_and_for_single_models(place: Place, serve: Serve, mode: str, table: str) -> None:
    (place.work / "src").mkdir()
    (place.work / "src" / "inner.txt").touch()
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(table)
    serve(script(answer(mode, "zeige", {"wo": "src"}), "text: Done."))
    (result,) = ask(place, mode)
    assert "inner.txt" in str(result["text"])
    assert result["repairs"] == ["zeige → list_directory", "wo → path"]


def test_the_table_of_one_model_does_not_hold_for_another(place: Place, serve: Serve) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text('[text_tools.model_mapping."qwen*".list_directory]\nwo = "path"\n')
    serve(script(calls(("list_directory", {"wo": "src"})), "text: Done."))
    (result,) = ask(place, "native")
    assert result["is_error"]
    assert "unknown field `wo`" in str(result["text"])
