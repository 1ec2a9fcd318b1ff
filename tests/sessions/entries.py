"""Entries to fill logs with: one per sequence number, the same whoever asks."""

from __future__ import annotations

from hypothesis import strategies as st

from dragoman.values.messages import Text, ToolResult, assistant, user
from dragoman.values.record import AnswerRejected, Entry, Kept, Pruned, Rewound, Said, Started, Titled, ToolFinished, ToolStarted, Unknown

SESSION = "20261115-120102-1a2b3c4d"
texts = st.text() | st.sampled_from(["你好，世界", "عربي", "👩‍👩‍👧‍👦", "a\u2028b\u0085c\r\nd", '","crc":"00000000"}\n{"seq":1', "\0"])


def started() -> Started:
    return Started(1, 1_700_000_000_000, SESSION, "0" * 64, ("/srv/häuser",), ("dragoman 0.1",))


def entry(seq: int, text: str = "") -> Entry:
    """The entry with this number: of many kinds, and never two alike."""
    at = 1_700_000_000_000 + seq
    text = text or f"entry {seq}: çà et là, 世界 🌍"
    match seq % 5:
        case _ if seq == 1:
            return started()
        case 0:
            return Said(seq, at, user(text), by="person")
        case 1:
            return Said(seq, at, assistant(text), "model/x", by="model")
        case 2:
            return ToolStarted(seq, at, f"call-{seq}", "run_shell", text)
        case 3:
            return ToolFinished(seq, at, ToolResult(f"call-{seq - 1}", "run_shell", (Text(text),)))
        case _:
            return Titled(seq, at, text)


def some(count: int, first: int = 1) -> tuple[Entry, ...]:
    return tuple(entry(seq) for seq in range(first, first + count))


@st.composite
def sessions(draw: st.DrawFn, max_size: int = 8) -> tuple[Entry, ...]:
    """Entries of a session, numbers increasing, unknown kinds among them."""
    made: list[Entry] = []
    seq = 0
    for _ in range(draw(st.integers(1, max_size))):
        seq += draw(st.integers(1, 3))
        text = draw(texts)
        made.append(
            draw(
                st.sampled_from(
                    [
                        Said(seq, seq, user(text), by="person"),
                        Said(seq, seq, assistant(text, text), by="model"),
                        AnswerRejected(seq, seq, 1, text),
                        ToolStarted(seq, seq, text, text, text),
                        Pruned(seq, seq, (text, text), 3, text),
                        Kept(seq, seq, (text,), False, 3),
                        Rewound(seq, seq, 1),
                        Titled(seq, seq, text),
                        Unknown(seq, seq, f'{{"kind":"of_tomorrow","seq":{seq},"timestamp_ms":{seq},"new":[1, 2.50,{{"a" : "ü"}}]}}'),
                    ]
                )
            )
        )
    return tuple(made)
