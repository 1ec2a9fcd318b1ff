"""A loopback service that answers the requests of `dragoman doctor --live` as a good model would, and fails where a test asks for it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script_steps import CallStep, Cite, Finish, ReportStep, Say, ScriptedAnswer, Step, Think, answer
from dragoman.values.usage import Usage

CITY = '{"city": "Paris", "river": "Seine", "rating": 4, "distances_km": {"Lyon": 392, "Lille": 204}}'
SIGNATURE = base64.b64encode(b"signed").decode()
MARKERS = {
    "tools": "Atlantis",
    "forced": "Good morning!",
    "thinking": "Which is warmer",
    "schema": "by city name",
    "cache": "Which shelf is first?",
    "search": "Search the web:",
    "search_tools": "call no other tool",
    "image": "Which colour",
    "pdf": "Which number",
    "stream": "Count from one to five",
    "limit": "Count from 1 to 300",
    "effort": "17 times 3",
    "plain": "single word",
}
"""Feature → words of its prompt."""


class GoodModel:
    """What `MockServer` plays. `faults` replaces the answers of single features; `asked` says which feature each request was for."""

    def __init__(self, faults: Mapping[str, Step | ScriptedAnswer] | None = None) -> None:
        self.faults = dict(faults or {})
        self.asked: list[str] = []

    def __call__(self, request: ModelRequest) -> ScriptedAnswer:
        text = json.dumps(request.body, ensure_ascii=False)
        feature = next(name for name, words in MARKERS.items() if words in text)
        self.asked.append(feature)
        if (fault := self.faults.get(feature)) is not None:
            return fault if isinstance(fault, ScriptedAnswer) else answer(fault)
        return answer(*self._steps(feature, text))

    def _steps(self, feature: str, text: str) -> list[Any]:
        has_results = "no such city" in text
        match feature:
            case "tools" if not has_results:
                return [call("get_weather", "Paris"), call("get_weather", "Atlantis")]
            case "thinking" if not has_results:
                return [Think("I need both cities.", SIGNATURE), call("get_weather", "Paris"), call("get_weather", "Rome")]
            case "forced":
                return [call("get_time", "Paris")]
            case "schema":
                return [Say(CITY)]
            case "cache":
                again = self.asked.count("cache") > 1
                read = Usage(fresh_tokens=10, cache_read_tokens=5_000, output_tokens=2)
                return [Say("Shelf 1"), ReportStep(read if again else Usage(fresh_tokens=10, cache_write_tokens=5_000, output_tokens=2))]
            case "search" | "search_tools":
                return [Say("Python 3.15 is the newest."), Cite("https://python.example/news", "News", "Python 3.15")]
            case "limit":
                return [Say("1 2 3 4 5 6"), Finish("length")]
            case "stream":
                return [Say("one two three four five", 4)]
            case _:
                return [Say({"image": "Red", "pdf": "4217", "effort": "51", "plain": "pong"}.get(feature, "Sunny in Paris."))]


def call(name: str, city: str) -> CallStep:
    return CallStep(name, json.dumps({"city": city}), signature=SIGNATURE)
