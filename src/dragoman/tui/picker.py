"""A list to pick from: what is typed filters it, Enter takes, other keys do what its foot says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

from dragoman.base.graphemes import width
from dragoman.tui.composer import Composer
from dragoman.tui.keys import Key, Paste
from dragoman.tui.line import EMPTY, Line, Span, line, visible
from dragoman.tui.wrap import fit, spread, wrap, wrap_parts
from dragoman.words import say

T = TypeVar("T")

_LEAST = 12
_ENOUGH = 24
"""With this many columns a title can be told from another."""
_NOTE_SHARE = 4
"""Notes take no more than this part of the window,"""
_LEAST_ROWS = 4
"""and leave so many rows for the list."""
_GAP = "  "
_DOT = " · "
_MOST_NUMBERED = 9
_NUMBERED = tuple(f"alt-{number}" for number in range(1, _MOST_NUMBERED + 1))
_NUMBER = re.compile(r"[$≥]?[\d.,]+%?|\[\d+\]|\$?[\d.]+[kM]")
"""Numbers stand under each other by their last digit."""


class PickerItem(NamedTuple):
    """One row: what it is, and its cells. One of them gives way where there is too little room."""

    key: str
    cells: tuple[str, ...]
    found_by: str = ""
    """More words that find it."""
    note: str = ""
    """Shown under the list while it is chosen, each line in a row."""


class ItemsOnDemand(Sequence[PickerItem], Generic[T]):
    """Items that are made when they are looked at: of thousands, a window shows forty."""

    def __init__(self, values: Sequence[T], make: Callable[[T], PickerItem]) -> None:
        self._values, self._make = values, make

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, at: int) -> PickerItem: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[PickerItem]: ...

    def __getitem__(self, at: int | slice) -> PickerItem | Sequence[PickerItem]:
        return list(map(self._make, self._values[at])) if isinstance(at, slice) else self._make(self._values[at])


class Picker:
    """`on_pick` gets the key of what was taken; `actions`: what other keys do with it. Both close the list, unless they return True."""

    def __init__(
        self,
        title: str,
        choices: Sequence[PickerItem],
        on_pick: Callable[[str], object],
        *,
        keys: str = "",
        actions: Mapping[str, Callable[[str], object]] | None = None,
        empty: str = "",
        yielding: int = 0,
        spare: Sequence[int] = (),
        always: Sequence[str] = (),
        is_numbered: bool = False,
    ) -> None:
        """`yielding`: the column that is cut where all of them do not fit. `spare`: columns that are left out before it is cut to little,
        in this order. `always`: actions that work with nothing to take, too. `is_numbered`: Alt with a digit takes one of the
        first nine."""
        self._always = always
        self._is_numbered = is_numbered
        self._spare = spare
        self._asked: tuple[str, Composer, Callable[[str], object]] | None = None
        self._title = title
        self._head: Sequence[Line] = ()
        self.hint = ""
        """Shown in place of the keys until the next one is pressed."""
        self.caret: tuple[int, int] | None = None
        self._on_pick = on_pick
        self._keys = keys or say("conversation.picker_keys")
        self._actions = actions or {}
        self._empty = empty
        self._yielding = yielding
        self._filter = Composer()
        self._found: Sequence[PickerItem] = ()
        self._chosen = 0
        self._page = 1
        self.set_choices(choices)

    def set_title(self, title: str, head: Sequence[Line] = ()) -> None:
        """`head`: lines between the title and the list."""
        self._title, self._head = title, head

    @property
    def filter(self) -> str:
        return self._filter.text.strip()

    def ask(self, label: str, text: str, on_answered: Callable[[str], object]) -> None:
        """Have a line written in the place of the filter. Esc leaves everything as it was."""
        line_of_text = Composer()
        line_of_text.insert(text)
        self._asked = (label, line_of_text, on_answered)

    def set_choices(self, choices: Sequence[PickerItem], *, keep_filter: bool = True) -> None:
        self._choices = choices
        if not keep_filter:
            self._filter.set("")
        self._texts: list[str] = []  # made when something is typed
        self._find()

    def _find(self) -> None:
        words = self._filter.text.casefold().split()
        if words and not self._texts:
            self._texts = [" ".join((*each.cells, each.found_by)).casefold() for each in self._choices]
        if words:
            self._found = [each for each, text in zip(self._choices, self._texts, strict=True) if all(word in text for word in words)]
        else:
            self._found = self._choices
        self._chosen = max(min(self._chosen, len(self._found) - 1), 0)

    # --- rows

    def rows(self, columns: int, rows: int) -> Sequence[Line]:
        count = say("conversation.picker_count", count=len(self._found), all=len(self._choices))
        head = [spread(line(self._title, "title"), line(count, "dim"), columns)]
        head += self._head
        label, written = (self._asked[0], self._asked[1]) if self._asked else ("/", self._filter)
        before, after = written.text[: written.caret], written.text[written.caret :]
        under = after[:1] or " "
        self.caret = (len(head), width(f"{label} {visible(before)}"))
        head.append((Span(f"{label} ", "accent"), Span(visible(before)), Span(visible(under), "caret"), Span(visible(after[1:]))))
        note = self._found[self._chosen].note if self._found else ""
        notes = [fit(line(visible(each), "dim"), columns) for each in note.split("\n")[: max(rows // _NOTE_SHARE, 1)]] if note else []
        keys = wrap(line(self.hint, "warn"), columns) if self.hint else wrap_parts(self._keys, columns, _DOT, "dim")
        room = rows - len(head) - 2 - len(keys)
        notes = notes[: max(room - min(len(self._found), _LEAST_ROWS), 0)]
        self._page = max(room - len(notes), 1)
        top = max(min(self._chosen - self._page // 2, len(self._found) - self._page), 0)
        shown = self._found[top : top + self._page]
        body = self._table(shown, top, columns) or wrap(line(self._nothing(), "dim"), columns)
        foot = [*notes, *keys]
        return [*head, EMPTY, *body, *([EMPTY] * (self._page - len(body))), *foot]

    def _nothing(self) -> str:
        return self._empty if self._empty and not self._choices else say("conversation.picker_nothing")

    def _table(self, shown: Sequence[PickerItem], top: int, columns: int) -> list[Line]:
        if not shown:
            return []
        texts = [[visible(cell) for cell in each.cells] for each in shown]
        count = max(map(len, texts))
        widths = [max((width(row[at]) for row in texts if at < len(row)), default=0) for at in range(count)]
        for at in sorted(self._left_out(widths, columns), reverse=True):
            texts = [[*row[:at], *row[at + 1 :]] for row in texts]
            del widths[at]
        count = len(widths)
        room = columns - 2 - len(_GAP) * (count - 1) - sum(widths)
        if room < 0:
            at = min(self._yielding, count - 1)
            widths[at] = max(widths[at] + room, _LEAST)
            if at and at == count - 1 and sum(widths) + len(_GAP) * at > columns - 2:  # the last one: a few letters of it tell nothing
                texts = [row[:at] for row in texts]
        numeric = [all(_NUMBER.fullmatch(row[at]) for row in texts if at < len(row) and row[at]) for at in range(count)]
        rows: list[Line] = []
        for number, row in enumerate(texts, top):
            is_chosen = number == self._chosen
            digit = str(number + 1) if self._is_numbered and number < _MOST_NUMBERED else " "
            spans = [Span("› ", "accent") if is_chosen else Span(f"{digit} ", "dim")]
            for at, cell in enumerate(row):
                text = "".join(span.text for span in fit(line(cell), widths[at]))
                style = "selected" if is_chosen else "" if at == 0 else "dim"
                missing = " " * (widths[at] - width(text))
                if numeric[at]:
                    text, missing = missing + text, ""
                spans.append(Span(text + missing + _GAP if at < len(row) - 1 else text, style))
            rows.append(tuple(spans))
        return rows

    def _left_out(self, widths: Sequence[int], columns: int) -> list[int]:
        """The columns for which there is no room beside enough of the one that yields."""
        gone: list[int] = []
        for at in (each for each in self._spare if each < len(widths)):
            kept = [min(wide, _ENOUGH) if number == self._yielding else wide for number, wide in enumerate(widths) if number not in gone]
            if sum(kept) + len(_GAP) * (len(kept) - 1) <= columns - 2:
                break
            gone.append(at)
        return gone

    # --- keys

    def press(self, event: Key | Paste) -> bool:
        self.hint = ""
        if self._asked is not None:
            self._press_in_line(event, *self._asked)
            return True
        if isinstance(event, Paste):
            self._filter.insert(" ".join(event.text.split()))
            self._find()
            return True
        chosen = self._found[self._chosen].key if self._found else ""
        match event.name:
            case "esc" | "ctrl-c":
                return False
            case "up" | "ctrl-p":
                self._chosen = max(self._chosen - 1, 0)
            case "down" | "ctrl-n":
                self._chosen = min(self._chosen + 1, max(len(self._found) - 1, 0))
            case "pageup":
                self._chosen = max(self._chosen - self._page, 0)
            case "pagedown":
                self._chosen = min(self._chosen + self._page, max(len(self._found) - 1, 0))
            case "enter":
                return bool(self._on_pick(chosen)) if chosen else True
            case name if self._is_numbered and name in _NUMBERED:
                at = _NUMBERED.index(name)
                return bool(self._on_pick(self._found[at].key)) if at < len(self._found) else True
            case name if name in self._actions:
                return bool(self._actions[name](chosen)) if chosen or name in self._always else True
            case name:
                before = self._filter.text
                self._filter.press(name, event.text)
                if self._filter.text != before:
                    self._chosen = 0
                    self._find()
        return True

    def _press_in_line(self, event: Key | Paste, _: str, written: Composer, on_answered: Callable[[str], object]) -> None:
        if isinstance(event, Paste):
            written.insert(" ".join(event.text.split()))
        elif event.name in ("esc", "ctrl-c"):
            self._asked = None
        elif event.name == "enter":
            self._asked = None
            on_answered(written.text)
        else:
            written.press(event.name, event.text)
