"""The first start without a key: a screen with the ways in, of which none ends the program."""

from __future__ import annotations

import json

import pytest

from dragoman.app.asking import question_rows
from dragoman.app.ways_in import KEY_PAGES, service_of_key
from dragoman.base.graphemes import width
from dragoman.providers.catalog import builtin_catalog, needs_only_a_key
from program import Place, service
from terminals import tmux

KEYED = [row.name for row in builtin_catalog().deployments.values() if needs_only_a_key(row)]
QUESTION = "k key   s service   o server   m model   q leave   ? why (Enter: ?):"
KEY = "sk-ant-api03-0123456789abcdefghij"


@pytest.mark.parametrize(
    ("key", "services"),
    [
        (KEY, ["anthropic"]),
        ("AIzaSyA0123456789", ["gemini"]),
        ("sk-or-v1-0123", ["openrouter"]),
        ("sk-proj-0123", ["openai"]),
        ("gsk_0123", ["groq"]),
        ("xai-0123", ["xai"]),
        ("sk-0123456789abcdef", ["openai", "deepseek", "kimi", "qwen"]),
        ("0123456789abcdef", []),
    ],
)
def test_a_key_is_told_by_how_it_begins(key: str, services: list[str]) -> None:
    assert service_of_key(key, KEYED) == services


def test_the_pages_are_those_of_services_that_are_known() -> None:
    assert set(KEY_PAGES) <= set(KEYED)
    assert all(page.startswith("https://") for page in KEY_PAGES.values())


@pytest.mark.usefixtures("with_tmux")
@pytest.mark.parametrize("ui", ["", "plain"])
def test_every_way_leads_on_and_a_pasted_key_answers(place: Place, ui: str) -> None:
    with service("text: Hello.") as serving:
        place.more_env = {"ANTHROPIC_BASE_URL": serving.url, "DRAGOMAN_UI": ui}
        with tmux(place, size=(40, 90), model="") as pane:
            pane.expect(QUESTION)
            screen = " ".join(pane.screen().split())
            assert "491 MB to download" in screen
            assert "often wrong" in screen
            pane.type("o")
            pane.keys("Enter")
            pane.expect("No server answers yet")
            pane.expect(QUESTION, count=2)
            pane.type("s")
            pane.keys("Enter")
            pane.expect("Number or name   b back (Enter: b):")
            pane.keys("Enter")
            pane.expect(QUESTION, count=3)
            pane.type("k")
            pane.keys("Enter")
            pane.expect("Paste the key")
            pane.type(KEY)
            pane.keys("Enter")
            pane.expect("Dragoman 0" if not ui else "dragoman 0")
            pane.expect("stored the key of anthropic")
            pane.type("hi")
            pane.keys("Enter")
            pane.expect("Hello.")
            assert KEY not in pane.screen()
        [asked] = serving.server.requests
        assert asked.headers["x-api-key"] == KEY
    assert KEY in (place.home / "dragoman" / "data" / "keys.json").read_text()


@pytest.mark.usefixtures("with_tmux")
def test_a_key_that_is_typed_where_a_letter_is_asked_for_never_becomes_part_of_a_prompt(place: Place) -> None:
    with tmux(place, size=(40, 90), model="") as pane:
        pane.expect(QUESTION)
        pane.type(KEY)
        pane.keys("Enter")
        pane.expect("stored the key of anthropic")
        pane.expect("Ask, / for")
        assert pane.screen().rpartition("Dragoman 0")[2].count(KEY) == 0


@pytest.mark.usefixtures("with_tmux")
def test_what_is_no_answer_leads_nowhere(place: Place) -> None:
    """Esc before a letter, a number outside the list, Ctrl-C where a key is asked for: the ways stay open, the prompt stays empty."""
    with tmux(place, size=(40, 90), model="") as pane:
        pane.expect(QUESTION)
        pane.keys("Escape")
        pane.type("s")
        pane.keys("Enter")
        pane.expect("b back (Enter: b):")
        pane.type("99")
        pane.keys("Enter")
        pane.expect("99 is not in the list: a number from 1 to 13, or a name.")
        pane.expect("b back (Enter: b):", count=2)
        pane.type("2")
        pane.keys("Enter")
        pane.expect("Key for Anthropic")
        pane.keys("C-c")
        pane.expect(QUESTION, count=2)
        pane.type(KEY)
        pane.keys("Enter")
        pane.expect("Ask, / for")
        assert "is kept for the next prompt" not in pane.screen()


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_letter_and_what_it_means_are_never_parted(columns: int) -> None:
    text = "Download a model of half a billion parameters into the folder ~/.cache/weights?   y yes, get it   n no, thanks   ? why"
    rows = question_rows(text, columns)
    assert all(width(row) <= columns for row in rows)
    assert " ".join(" ".join(rows).split()) == " ".join(text.split())
    for answer in ("y yes, get it", "n no, thanks", "? why"):
        assert any(answer in row for row in rows), rows


@pytest.mark.usefixtures("with_tmux")
def test_in_chinese(place: Place) -> None:
    place.more_env = {"LANG": "zh_CN.UTF-8", "LC_ALL": ""}
    with tmux(place, size=(40, 80), model="") as pane:
        screen = pane.expect("k 密钥   s 服务   o 服务器   m 小模型   q 退出   ? 说明（Enter：?）：")
        assert "还没有可用的模型" in screen
        assert "需下载 491 MB" in screen
        pane.type("q")
        pane.keys("Enter")
        pane.expect("exit code 0")


@pytest.mark.usefixtures("with_tmux")
def test_a_session_whose_model_has_no_key_goes_on_with_another(place: Place) -> None:
    with service("text: Held.\n---\ntext: On.") as serving:
        place.service = serving
        assert place.ask("begin").code == 0
        urls = {"ANTHROPIC_BASE_URL": serving.url, "OPENAI_BASE_URL": f"{serving.url}/v1", "GOOGLE_GEMINI_BASE_URL": serving.url}
        place.service = None
        place.more_env = urls | {"OPENAI_API_KEY": "k"}
        with tmux(place, "-c", size=(40, 110), model="") as pane:
            pane.expect("openai/gpt-5.4 (/model takes another)")
            pane.expect("cache cold")  # the other service has nothing of it
            pane.type("go on")
            pane.keys("Enter")
            pane.expect("On.")
        place.more_env = urls
        with tmux(place, "-c", size=(40, 110), model="") as pane:  # there is no other: the ways in
            pane.expect("is not available")
            pane.expect(QUESTION)
    assert json.dumps(serving.requests[-1]).count("begin")
