"""The web through the program: what is declared, what is searched, what an answer rests on."""

from __future__ import annotations

import json
from collections.abc import Callable

from program import Place, Service, calls, script

Serve = Callable[..., Service]
GEMINI = "gemini/gemini-3.8-flash"
GROUNDED = 'text: 今天北京天气晴朗。\ncite title="中国天气网" text="今天北京天气晴朗": https://weather.example/beijing'


def names(body: dict[str, list[dict[str, list[dict[str, str]]]]]) -> set[str]:
    return {each["name"] for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])}


def configure(place: Place, text: str) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(text)


def test_a_search_is_a_request_of_its_own_and_is_paid_for(place: Place, serve: Serve) -> None:
    """SEARCH-2: the model calls google_web_search; the service searches; the answer and its sources go back to the model."""
    asked = serve(script(calls(("google_web_search", {"query": "北京天气"})), GROUNDED, "text: Sunny."))
    done = place.ask("Weather in Beijing?", "--output-format", "json", model=GEMINI)
    assert (done.code, done.json["response"]) == (0, "Sunny.")
    first, search, last = asked.requests
    assert {"google_web_search", "web_fetch"} <= names(first)
    assert search["tools"] == [{"googleSearch": {}}]
    assert "晴朗[1]" in str(last)
    assert "[1] 中国天气网 (https://weather.example/beijing)" in str(last)
    entries = [line for log in (place.home / "dragoman").rglob("*.jsonl") for line in log.read_text().splitlines()]
    assert any('"kind":"spent"' in line and "google_web_search" in line for line in entries), "what the search used is on the bill"


def test_searching_and_fetching_can_be_turned_off(place: Place, serve: Serve) -> None:
    configure(place, '[web]\nsearch = "off"\nfetch = false\n')
    asked = serve("text: ok")
    place.ask(model=GEMINI)
    assert not names(asked.requests[0]) & {"google_web_search", "web_fetch"}


def test_nothing_is_declared_where_nobody_can_search(place: Place, serve: Serve) -> None:
    asked = serve("text: ok")
    place.ask(model="openai/gpt-4.1")
    declared = {tool["function"]["name"] for tool in asked.requests[0]["tools"]}
    assert "google_web_search" not in declared
    assert "web_fetch" in declared


def test_a_grounded_answer_has_its_markers_and_its_sources(place: Place, serve: Serve) -> None:
    configure(place, '[web]\nsearch = "grounding"\n')
    asked = serve(GROUNDED)
    done = place.ask("今天北京的天气怎么样？", model=GEMINI)
    assert done.out == "今天北京天气晴朗[1]。\n\nSources:\n[1] 中国天气网 (https://weather.example/beijing)\n"
    assert {"googleSearch": {}} in asked.requests[0]["tools"]
    assert "google_web_search" not in names(asked.requests[0])


def test_sources_are_data_in_both_kinds_of_json(place: Place, serve: Serve) -> None:
    configure(place, '[web]\nsearch = "grounding"\n')
    serve(f"{GROUNDED}\n---\n{GROUNDED}")
    source = {"uri": "https://weather.example/beijing", "title": "中国天气网"}
    whole = json.loads(place.ask("天气？", "--output-format", "json", model=GEMINI).out)
    assert whole["sources"] == [source | {"cited_text": ["今天北京天气晴朗"]}]
    lines = [json.loads(line) for line in place.ask("天气？", "--output-format", "stream-json", model=GEMINI).out.splitlines()]
    assert [line["citation"] for line in lines if "citation" in line] == [source | {"cited_text": "今天北京天气晴朗"}]
    assert lines[-1]["sources"] == whole["sources"]


def test_a_page_is_fetched_only_when_somebody_says_so(place: Place, serve: Serve) -> None:
    serve(script(calls(("web_fetch", {"url": "https://docs.example/"})), "text: I may not."))
    done = place.ask(model=GEMINI)
    assert done.code == 0
    assert "fetch https://docs.example/" in done.err


def test_a_folder_may_not_open_the_local_network(place: Place) -> None:
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text('[web]\nallow_hosts = ["localhost"]\n')
    done = place.ask("hi", "--trust", env={"ANTHROPIC_API_KEY": "k" * 20})
    assert done.code == 52
    assert "web" in done.err
