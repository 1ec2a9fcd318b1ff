"""A session that has something of everything: prompts, thinking, calls side by side, a failure, files that change, Markdown."""

from __future__ import annotations

from program import PROTOCOLS, Place, service

FIRST = """\
thought signature="c2ln": The two logs may say when the ship came. I read both at once.
text: I look at both logs.
call: read_file {"file_path": "log.txt"}
call: read_file {"file_path": "tides.txt"}
call: read_file {"file_path": "missing.txt"}
usage: fresh=1800 output=120
---
text: Now I write the page.
call: write_file {"file_path": "harbour.md", "content": "# Harbour\\n\\nThe ship reached Muscat on 4 March.\\nHigh water: 04:05\\n"}
usage: fresh=400 cache_read=1800 output=90
---
call: edit {"file_path": "harbour.md", "old_string": "High water: 04:05", "new_string": "High water: 04:05 and 16:31"}
usage: fresh=200 cache_read=2200 output=60
---
text: "The page is written.\\n\\n| what | when |\\n|---|---|\\n| arrival | **4 March** |\\n\\n- `harbour.md` has it\\n- see https://example.com/tides"
usage: fresh=150 cache_read=2400 output=70
---
call: todo {"items": [{"content": "Read the logs", "status": "completed"}, {"content": "Check the tides", "status": "in_progress"}]}
usage: fresh=100 cache_read=2550 output=30
---
text: The tides are checked: 04:05 and 16:31.
usage: fresh=120 cache_read=2650 output=25
"""
PROMPTS = ("When did the ship reach Muscat? Write it into harbour.md.", "Check the tides again.")


def hold_session(place: Place, protocol: str = "anthropic", script: str = FIRST) -> list[bytes]:
    """Hold the session with the real program; returns what the service was sent, byte for byte."""
    (place.work / "log.txt").write_text("4 March: reached Muscat in light airs.\n" * 20)
    (place.work / "tides.txt").write_text("04:05 high\n10:17 low\n16:31 high\n" * 10)
    with service(script) as place.service:
        for number, prompt in enumerate(PROMPTS):
            again = ("--resume",) if number else ("-m", PROTOCOLS[protocol])
            done = place.run(*again, "--approval", "auto-edit", "-p", prompt)
            assert done.code == 0, done
        return [exchange.data for exchange in place.service.server.requests]
