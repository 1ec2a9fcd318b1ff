"""What a prompt names with `@`, and what a command of the user's own printed: shown, sent, and an item of its own afterwards."""

from __future__ import annotations

import pytest

from program import Place, service
from terminals import tmux


@pytest.mark.usefixtures("with_tmux")
def test_a_file_goes_with_a_prompt_and_a_command_keeps_its_own_name(place: Place) -> None:
    (place.work / "calc.py").write_text("one\ntwo\nthree\n")
    with service("text: Read.\n---\ntext: Heard.") as serving:
        place.service = serving
        with tmux(place, size=(30, 90)) as pane:
            pane.expect("Ask, / for")
            pane.type("explain @calc.py:2-3 and @calx.py")
            pane.keys("Enter")
            screen = pane.expect("Read.")
            assert "@calc.py:2-3 · 2 lines" in screen
            assert "@calx.py is no file here" in screen
            pane.type("!echo marked")
            pane.keys("Enter")
            pane.expect("  marked")
            pane.type("and now")
            pane.keys("Enter")
            pane.expect("Heard.")
            pane.type("/context")
            pane.keys("Enter")
            screen = pane.expect("! echo marked I ran")
            assert "@calc.py:2-3 --- calc.py, from line 2 ---" in screen
            pane.keys("Escape")
            pane.expect_gone("system prompt")
            pane.type("/rewind")
            pane.keys("Enter")
            screen = pane.expect("› and now")
            assert "I ran this" not in screen.rpartition("Heard.")[2]
        first, second = (request["messages"][-1]["content"] for request in serving.requests)
    assert any(part["text"].strip().startswith("--- calc.py, from line 2 ---\ntwo\nthree") for part in first)
    assert [part["text"].partition(":")[0].strip() for part in second] == ["I ran this command myself", "and now"]
