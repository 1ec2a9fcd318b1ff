"""`/search` in the live conversation, in a real terminal and both languages."""

from __future__ import annotations

import pytest

from program import Place, service
from terminals import tmux

pytestmark = pytest.mark.usefixtures("with_tmux")
FOUND = (
    'text: It is **sunny** in Beijing.\nusage: fresh=1500 output=40\ncite title="Weather China" text="in Beijing": https://weather.example/'
)


@pytest.mark.parametrize(
    ("language", "help_line", "told"),
    [("en", "search the web yourself", "with your next prompt"), ("zh", "亲自搜索网络", "由 gemini/gemini-3.8-flash 搜索")],
)
def test_a_person_searches_and_the_model_reads_it(place: Place, language: str, help_line: str, told: str) -> None:
    options = ("-m", "gemini/gemini-3.8-flash", "--lang", language)
    with service(f"{FOUND}\n---\ntext: As I read, it is sunny.") as place.service, tmux(place, *options, size=(30, 120)) as pane:
        pane.expect("⌃D")
        pane.type("/sea")
        pane.expect(help_line)
        pane.type("rch weather in Beijing")
        pane.keys("Enter")
        pane.expect("It is sunny in Beijing[1].")
        pane.expect("[1] Weather China (https://weather.example/)")
        pane.expect(told)
        pane.expect("$0.0013")
        pane.type("So?")
        pane.keys("Enter")
        pane.expect("As I read, it is sunny.")
        assert "in Beijing[1]" in str(place.service.requests[1]["contents"])
