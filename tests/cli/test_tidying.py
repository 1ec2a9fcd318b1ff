"""Sessions that are deleted because the configuration says so are named."""

from __future__ import annotations

from collections.abc import Callable

from program import Place, Service


def test_what_is_deleted_after_a_run_is_told(place: Place, serve: Callable[..., Service]) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text("[sessions]\nmax_count = 1\n")
    serve("text: One.\n---\ntext: Two.")
    assert place.ask("a").err == ""
    [first] = (place.home / "dragoman" / "data" / "sessions").glob("*/*.jsonl")
    done = place.ask("b")
    assert (done.code, done.out) == (0, "Two.\n")
    assert f"deleted sessions beyond the limits of the configuration: 1 ({first.stem})" in done.err
    assert not first.exists()
