"""Which of the keys typed at a question answer it. Pure: no input, no clock.

An answer is one of the question's keys and Enter, or one of them alone: typed after a pause, and with a pause behind it. Everything else
belongs to the prompt: a word that was begun before the question came up, a sentence, a paste, a key that the question does not have.

A pause is what whoever reads the keys says it is (`rest`), after QUIET_S in which there was nothing to read. Times of keys are not
compared: a program that was busy reads late, and would see a pause in the middle of a word.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, NamedTuple, TypeVar

QUIET_S = 0.6
"""A pause in typing. Between the keys of a word practised typists take 0.06 to 0.2 s, slow ones up to 0.5 s."""

ENTER = "enter"
_ERASE = "\x7f\x08"
Event = TypeVar("Event")


class Heard(NamedTuple, Generic[Event]):
    """What became of a key or a pause."""

    answer: str = ""
    typed: tuple[Event, ...] = ()
    """What belongs to the prompt, in the order in which it was typed."""


class Answers(Generic[Event]):
    """One question that is on the screen. `marked` is the answer that Enter alone gives; empty: it gives none."""

    def __init__(self, keys: Collection[str], marked: str = "") -> None:
        self._keys = frozenset(keys)
        self._marked = marked
        self._held: tuple[str, Event] | None = None
        self.is_ready = False
        """Whether there was a pause since the question came up, and since the last key that was no answer."""

    @property
    def chosen(self) -> str:
        """What Enter would answer now."""
        return self._held[0] if self._held is not None else self._marked

    @property
    def is_held(self) -> bool:
        """Whether a key waits for Enter, or for a pause."""
        return self._held is not None

    def press(self, event: Event, key: str, *, has_draft: bool = False) -> Heard[Event]:
        """Take a key: the character that it types, ENTER, or empty for any other and for a paste. `has_draft`: something is written in
        the prompt, so that Enter alone may be meant for that."""
        held, self._held = self._held, None
        if held is not None and key == ENTER:
            return Heard(held[0])
        if held is None and self.is_ready:
            if key == ENTER and self._marked and not has_draft:
                return Heard(self._marked)
            if key.lower() in self._keys:
                self._held = key.lower(), event
                return Heard()
        self.is_ready = False
        return Heard(typed=(event,) if held is None else (held[1], event))

    def rest(self) -> Heard[Event]:
        """Take a pause."""
        held, self._held = self._held, None
        self.is_ready = True
        return Heard(held[0]) if held is not None else Heard()

    def put_off(self) -> tuple[Event, ...]:
        """Wait for the next pause: something else was typed or the question is given up. Returns what belongs to the prompt."""
        held, self._held = self._held, None
        self.is_ready = False
        return () if held is None else (held[1],)


def apply_erasing(typed: str) -> str:
    """What is left of typed text once its backspaces have erased what they erase. Other control characters become blanks."""
    kept: list[str] = []
    for char in typed:
        if char in _ERASE:
            del kept[-1:]
        else:
            kept.append(char if char.isprintable() or char == "\n" else " ")
    return "".join(kept)
