"""Setting the markers of a long grounded answer: a megabyte of text, ten thousand supports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.table import Table
from dragoman.tools.web.citations import cite

_WORDS = ("北京", "weather", "晴朗", "très", "cafe\u0301", "👩\u200d💻")
_CHUNKS = [{"web": {"uri": f"https://{number}.example", "title": str(number)}} for number in range(5)]


def run(quick: bool) -> Iterator[Table]:
    sentences = 2_000 if quick else 24_000
    repetitions = 1 if quick else 5
    small, large = _sentences(sentences // 2), _sentences(sentences)
    columns = ["supports", "text, bytes", "supports, count", "ms, best", "× plain", "twice the text ×"]
    table = Table("Markers in a grounded answer", columns)
    plain_s = _best(lambda: cite("".join(large), _supports(large, "bytes", text=False), _CHUNKS), repetitions)
    for name, unit, text in (
        ("offsets alone", "bytes", False),
        ("with their texts, in bytes", "bytes", True),
        ("with their texts, in characters", "characters", True),
        ("with texts that are nowhere", "nowhere", True),
    ):
        spent = [_best(lambda each=each, unit=unit, text=text: cite("".join(each), _supports(each, unit, text=text), _CHUNKS), repetitions)
                 for each in (small, large)]  # fmt: skip
        size, count = len("".join(large).encode()), len(_supports(large, unit, text=text))
        table.rows.append([name, size, count, spent[1] * 1e3, spent[1] / plain_s, spent[1] / spent[0]])
    table.notes = [
        "Sentences in several scripts, every second one supported. Offsets in characters are wrong in most scripts: each text has to be"
        " looked for, far from where it is said to be.",
        f"Twice the text: time for the whole over time for half of it; 2 is linear. Best of {repetitions}.",
    ]
    yield table


def _sentences(count: int) -> list[str]:
    return [f"{_WORDS[number % 6]}{_WORDS[number * 7 % 5]} sentence {number} 最高{_WORDS[number % 4]}。" for number in range(count)]


def _supports(sentences: list[str], unit: str, *, text: bool) -> list[Any]:
    supports: list[Any] = []
    start = 0
    for number, sentence in enumerate(sentences):
        end = start + (len(sentence) if unit == "characters" else len(sentence.encode()))
        if number % 2 == 0:
            told = {"text": f"{sentence}!" if unit == "nowhere" else sentence} if text else {}
            supports.append({"segment": {"startIndex": start, "endIndex": end, **told}, "groundingChunkIndices": [number % 5]})
        start = end
    return supports


def _best(work: Callable[[], object], repetitions: int) -> float:
    def once() -> float:
        before = time.process_time()
        work()
        return time.process_time() - before

    return min(once() for _ in range(repetitions))
