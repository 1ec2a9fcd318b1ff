"""After a rewind the model is told where the files and what it knows of them have come apart."""

from __future__ import annotations

import json

import pytest

from program import Place, calls, script, service
from terminals import tmux

pytestmark = pytest.mark.usefixtures("with_tmux")
UNDONE = "These changes of yours were undone"
CHANGED = "These files changed on disk since you last read or wrote them"
FIX = calls(("edit", {"file_path": "old.txt", "old_string": "two", "new_string": "TWO\nmore"}))


@pytest.mark.parametrize(
    ("key", "heading", "line"),
    [("Enter", CHANGED, "  old.txt (4 lines, 3 before)"), ("C-o", UNDONE, "  old.txt (+1 -2 lines)"), ("C-f", "", "")],
    ids=["conversation", "files", "both"],
)
def test_a_rewind_tells_where_files_and_conversation_have_come_apart(place: Place, key: str, heading: str, line: str) -> None:
    (place.work / "old.txt").write_text("one\ntwo\nthree\n")
    with service(script(calls(("read_file", {"file_path": "old.txt"})), "text: Read.", FIX, "text: Fixed.", "text: Again.")) as served:
        place.service = served
        with tmux(place, "-m", "anthropic/claude-opus-5", "--approval", "auto-edit", size=(40, 90)) as pane:
            pane.expect("Ask, / for")
            for prompt, answer in (("look", "Read."), ("fix it", "Fixed."), ("/rewind", "Back to before …")):
                pane.type(prompt)
                pane.keys("Enter")
                pane.expect(answer)
            pane.keys(key)
            pane.expect("back as before that prompt" if key == "C-o" else "1 prompt is undone")
            pane.keys("C-u")
            pane.type("otherwise")
            pane.keys("Enter")
            pane.expect("Again.")
        last = json.dumps(served.requests[-1]["messages"][-1])
    assert [each in last for each in (UNDONE, CHANGED)] == [each == heading for each in (UNDONE, CHANGED)]
    assert line in last
