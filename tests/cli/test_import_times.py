"""A session that tells no time has none: it is not dated 1970, and stands in the list where its file does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from program import Place, Service


def write_timeless(place: Place, name: str = "old.jsonl") -> None:
    """A session as pi keeps it, without a single time."""
    head = {"type": "session", "version": 3, "id": name, "cwd": "/somewhere"}
    said = [
        {"type": "message", "id": "1", "parentId": None, "message": {"role": "user", "content": "what is old?"}},
        {"type": "message", "id": "2", "parentId": "1", "message": {"role": "assistant", "content": [{"type": "text", "text": "This."}]}},
    ]
    file = place.work / name
    file.write_text("".join(json.dumps(line) + "\n" for line in (head, *said)))
    os.utime(file, (1_700_000_000, 1_700_000_000))


def test_an_import_without_times_is_of_unknown_age(place: Place) -> None:
    write_timeless(place)
    done = place.run("sessions", "import", "old.jsonl")
    assert done.code == 0, done
    assert "/20231114-" in done.out, "its id has the date of the file"
    row = place.run("sessions").out.splitlines()[1]
    assert row.split()[1] == "?"
    [listed] = place.run("sessions", "--output-format", "json").json["sessions"]
    assert (listed["started_ms"], listed["updated_ms"]) == (None, None)
    for told in (
        place.run("sessions", "show", "latest"),
        place.run("sessions", "export", "latest"),
    ):
        assert "time unknown" in told.out
        assert "1970" not in told.out
    assert "1970" not in place.run("sessions", "export", "latest", "--as", "html").out
    assert "1970" not in place.run("sessions", "export", "latest", "--as", "record").out
    assert "1970" not in place.run("sessions", "search", "old").out
    place.run("sessions", "import", "old.jsonl").complaint(42, "exists already")


def test_it_stands_in_the_list_where_its_file_does(place: Place, serve: Callable[..., Service]) -> None:
    serve("text: One.\n---\ntext: Two.")
    assert place.ask("first").code == 0
    write_timeless(place)
    assert place.run("sessions", "import", "old.jsonl").code == 0
    assert "what is old?" in place.run("sessions").out.splitlines()[1], "it came in last"
    assert place.ask("second").code == 0
    listed = place.run("sessions").out
    assert listed.index("second") < listed.index("what is old?") < listed.index("first")
