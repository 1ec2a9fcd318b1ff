"""The composer: what the user is writing, with a caret in it. Pure: keys in, text and rows out.

A long paste is kept aside and stands in the text as one sign, shown as `[paste 1: 300 lines]`; when the text is sent, it is whole again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from dragoman.base.graphemes import clusters, next_boundary, width_of
from dragoman.tui.keys import is_typed
from dragoman.words import say

FOLD_LINES = 4
FOLD_CHARS = 1_000
RECALLED_LINES = 40
RECALLED_CHARS = 4_000
"""A paste with more lines, or more characters, is folded."""
MEDIA_ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".heif", ".pdf"),
    *(".mp3", ".wav", ".flac", ".ogg", ".opus", ".aac", ".aiff", ".m4a"),
    *(".mp4", ".m4v", ".mov", ".webm", ".mpeg", ".mpg", ".avi", ".flv", ".3gp"),
)
"""A paste that ends like this may be the path of an image or another medium that was dropped on the terminal: `values.media_types.ENDINGS`,
which nothing needs to load for the first picture."""
_FIRST_PASTE = 0xF0000
_MOST_PASTES = 0x1000
_UNDO_DEPTH = 200


class Composer:
    """Text and caret. The caret is an index that never stands inside what is seen as one character."""

    def __init__(self) -> None:
        self.text = ""
        self.caret = 0
        self.pastes: list[str] = []
        self._killed = ""
        self._after_kill: tuple[str, int] | None = None
        """How it stood after the last kill: one that follows at once adds to what is yanked."""
        self._before: list[tuple[str, int]] = []
        self._goal: int | None = None
        """The column that moving up and down keeps to."""

    # --- what it holds

    @property
    def is_empty(self) -> bool:
        return not self.text

    def whole_text(self) -> str:
        """With every paste in its place."""
        return "".join(self._whole(char) for char in self.text)

    def take(self) -> str:
        """The whole text; the composer is empty afterwards."""
        text = self.whole_text()
        self.set("")
        self.pastes.clear()
        self._before.clear()
        return text

    def set(self, text: str, *, fold: bool = True) -> None:
        """Another text in place of this one, folded if it is far longer than what is written by hand. The caret stands behind it."""
        self._remember()
        self.text = self._folded(_clean(text), RECALLED_LINES, RECALLED_CHARS) if fold else _clean(text)
        self.caret = len(self.text)
        self._goal = None

    def word_before_caret(self) -> tuple[int, str]:
        """Where the word that is being written starts, and the word so far."""
        start = max(self.text.rfind(blank, 0, self.caret) for blank in (" ", "\n", "\t")) + 1
        return start, self.text[start : self.caret]

    def replace(self, start: int, end: int, text: str) -> None:
        self._remember()
        self.text = self.text[:start] + text + self.text[end:]
        self.caret = self._boundary_after(start + len(text))
        self._goal = None

    # --- writing

    def insert(self, text: str) -> None:
        self.replace(self.caret, self.caret, _clean(text))

    def paste(self, text: str) -> None:
        self.replace(self.caret, self.caret, self._folded(_clean(text)))

    def press(self, key: str, text: str = "") -> bool:
        """Whether the key means something here."""
        action = _ACTIONS.get(key)
        if action is not None:
            action(self)
            return True
        if not text or not is_typed(text):
            return False
        self.insert(text)
        return True

    # --- moving

    def left(self) -> None:
        self._go(self._boundary_before(self.caret))

    def right(self) -> None:
        if self.caret < len(self.text):
            self._go(next_boundary(self.text, self.caret + 1, self.caret))

    def word_left(self) -> None:
        at = self.caret
        while at and not _is_of_word(self.text[at - 1]):
            at -= 1
        while at and _is_of_word(self.text[at - 1]):
            at -= 1
        self._go(at if self._boundary_after(at) == at else self._boundary_before(at))

    def word_right(self) -> None:
        at = self.caret
        while at < len(self.text) and not _is_of_word(self.text[at]):
            at += 1
        while at < len(self.text) and _is_of_word(self.text[at]):
            at += 1
        self._go(self._boundary_after(at))

    def line_start(self) -> None:
        self._go(self._line_start())

    def line_end(self) -> None:
        self._go(self._line_end())

    def text_start(self) -> None:
        self._go(0)

    def text_end(self) -> None:
        self._go(len(self.text))

    def move_up(self, columns: int) -> bool:
        """False if it stands in the first row already."""
        return self._move_by_rows(-1, columns)

    def move_down(self, columns: int) -> bool:
        return self._move_by_rows(1, columns)

    # --- deleting

    def delete_before(self) -> None:
        if self.caret:
            self.replace(self._boundary_before(self.caret), self.caret, "")

    def delete_after(self) -> None:
        if self.caret < len(self.text):
            end = next_boundary(self.text, self.caret + 1, self.caret)
            start = self.caret
            self.replace(start, end, "")

    def kill_to_end(self) -> None:
        end = self._line_end()
        self._kill(self.caret, end if end > self.caret else min(end + 1, len(self.text)))

    def kill_to_start(self) -> None:
        self._kill(self._line_start(), self.caret)

    def kill_word(self) -> None:
        end = self.caret
        start = end
        while start and self.text[start - 1].isspace():
            start -= 1
        while start and not self.text[start - 1].isspace():
            start -= 1
        self._kill(start, end)

    def kill_word_after(self) -> None:
        start = self.caret
        self.word_right()
        end, self.caret = self.caret, start
        self._kill(start, end)

    def yank(self) -> None:
        self.replace(self.caret, self.caret, self._killed)

    def transpose(self) -> None:
        """The two characters around the caret; at the end of the text the last two."""
        middle = self.caret if self.caret < len(self.text) else self._boundary_before(self.caret)
        if middle:
            start, end = self._boundary_before(middle), next_boundary(self.text, middle + 1, middle)
            self.replace(start, end, self.text[middle:end] + self.text[start:middle])

    def undo(self) -> None:
        if self._before:
            self.text, self.caret = self._before.pop()
            self._goal = None

    def newline(self) -> None:
        self.insert("\n")

    # --- rows

    def layout(self, columns: int) -> tuple[list[str], tuple[int, int]]:
        """The text in rows of at most so many columns, and the caret: its row and column."""
        rows, places = self._laid_out(columns)
        return rows, places[self.caret]

    def _laid_out(self, columns: int) -> tuple[list[str], dict[int, tuple[int, int]]]:
        rows: list[str] = [""]
        used = 0
        places: dict[int, tuple[int, int]] = {}
        at = 0
        for cluster in clusters(self.text):
            places[at] = (len(rows) - 1, used)
            if cluster in ("\n", "\r\n"):
                rows.append("")
                used = 0
            else:
                shown = self.label(cluster[0]) or ("    " if cluster == "\t" else cluster)
                size = sum(map(width_of, clusters(shown)))
                if used and used + size > columns:
                    used = _wrap_word(rows, places, at, columns) if shown == cluster and cluster != " " else 0
                    if not used:
                        rows.append("")
                    places[at] = (len(rows) - 1, used)
                rows[-1] += shown
                used += size
            at += len(cluster)
        if used >= columns:
            rows.append("")
            used = 0
        places[len(self.text)] = (len(rows) - 1, used)
        return rows, places

    def folded_pastes(self) -> list[tuple[int, str]]:
        """Those that stand in the text, with their numbers."""
        return [(number, text) for number, text in enumerate(self.pastes, 1) if chr(_FIRST_PASTE + number - 1) in self.text]

    def label(self, char: str) -> str:
        """How a folded paste is shown; empty for any other character."""
        number = ord(char) - _FIRST_PASTE
        if not 0 <= number < len(self.pastes):
            return ""
        lines = self.pastes[number].removesuffix("\n").count("\n") + 1
        return (
            say("conversation.pasted", number=number + 1, lines=lines)
            if lines > 1
            else say("conversation.pasted_long", number=number + 1, chars=len(self.pastes[number]))
        )

    # --- below

    def _move_by_rows(self, by: int, columns: int) -> bool:
        rows, places = self._laid_out(columns)
        row, column = places[self.caret]
        if not 0 <= row + by < len(rows):
            return False
        goal = column if self._goal is None else self._goal
        there = [(place, at) for at, place in places.items() if place[0] == row + by]
        if not there:
            return False
        best = max(((place, at) for place, at in there if place[1] <= goal), default=min(there))
        self.caret = best[1]
        self._goal = goal
        return True

    def _folded(self, text: str, most_lines: int = FOLD_LINES, most_chars: int = FOLD_CHARS) -> str:
        if (text.count("\n") < most_lines and len(text) <= most_chars) or len(self.pastes) >= _MOST_PASTES:
            return text
        self.pastes.append(text)
        return chr(_FIRST_PASTE + len(self.pastes) - 1)

    def _whole(self, char: str) -> str:
        number = ord(char) - _FIRST_PASTE
        return self.pastes[number] if 0 <= number < len(self.pastes) else char

    def _remember(self) -> None:
        if not self._before or self._before[-1][0] != self.text:
            self._before.append((self.text, self.caret))
            del self._before[:-_UNDO_DEPTH]

    def _go(self, at: int) -> None:
        self.caret = at
        self._goal = None

    def _kill(self, start: int, end: int) -> None:
        if end <= start:
            return
        killed, goes_on = self.text[start:end], self._after_kill == (self.text, self.caret)
        before = self._killed if goes_on else ""
        self._killed = killed + before if end == self.caret else before + killed
        self.replace(start, end, "")
        self._after_kill = (self.text, self.caret)

    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.caret) + 1

    def _line_end(self) -> int:
        end = self.text.find("\n", self.caret)
        return len(self.text) if end < 0 else end

    def _boundary_after(self, at: int) -> int:
        """The place itself if no character is cut there."""
        return next_boundary(self.text, at, self.text.rfind("\n", 0, at) + 1)

    def _boundary_before(self, at: int) -> int:
        start = self.text.rfind("\n", 0, max(at - 1, 0)) + 1
        before = start
        for cluster in clusters(self.text[start:at]):
            before = start
            start += len(cluster)
        return before


def _is_of_word(char: str) -> bool:
    """Letters and digits, and the marks that stand on them: Hindi and Thai words hold many."""
    return char.isalnum() or (not char.isascii() and unicodedata.category(char)[0] == "M")


def _wrap_word(rows: list[str], places: dict[int, tuple[int, int]], at: int, columns: int) -> int:
    """Take the word that has become too long for the last row to a row of its own. Returns its columns so far; 0 if it stays."""
    row = rows[-1]
    cut = row.rfind(" ") + 1
    if not cut or not row[cut:].isascii() or len(row) - cut > columns // 2:
        return 0
    rows[-1] = row[:cut]
    rows.append(row[cut:])
    moved = len(row) - cut
    number = len(rows) - 1
    for back in range(1, moved + 1):
        if at - back in places:
            places[at - back] = (number, moved - back)
    return moved


def _clean(text: str) -> str:
    """What can be sent and shown: no control characters but line breaks and tabs, and none that stand for a paste."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isprintable():
        return text
    return "".join(
        char
        for char in text
        if (char >= " " or char in "\n\t") and char != "\x7f" and not _FIRST_PASTE <= ord(char) < _FIRST_PASTE + _MOST_PASTES
    )


_ACTIONS: dict[str, Callable[[Composer], None]] = {
    "left": Composer.left, "ctrl-b": Composer.left, "right": Composer.right, "ctrl-f": Composer.right,
    "alt-b": Composer.word_left, "ctrl-left": Composer.word_left, "alt-left": Composer.word_left,
    "alt-f": Composer.word_right, "ctrl-right": Composer.word_right, "alt-right": Composer.word_right,
    "home": Composer.line_start, "ctrl-a": Composer.line_start, "end": Composer.line_end, "ctrl-e": Composer.line_end,
    "backspace": Composer.delete_before, "delete": Composer.delete_after, "ctrl-d": Composer.delete_after,
    "ctrl-k": Composer.kill_to_end, "ctrl-u": Composer.kill_to_start, "ctrl-w": Composer.kill_word, "alt-backspace": Composer.kill_word,
    "alt-d": Composer.kill_word_after, "ctrl-y": Composer.yank, "ctrl-t": Composer.transpose,
    "ctrl-_": Composer.undo, "ctrl-j": Composer.newline, "shift-enter": Composer.newline, "ctrl-enter": Composer.newline,
    "ctrl-home": Composer.text_start, "ctrl-end": Composer.text_end, "ctrl-delete": Composer.kill_word_after,
    "alt-delete": Composer.kill_word_after, "ctrl-backspace": Composer.kill_word, "shift-backspace": Composer.delete_before,
    "shift-left": Composer.left, "shift-right": Composer.right, "shift-home": Composer.line_start, "shift-end": Composer.line_end,
}  # fmt: skip


def visible_rows(rows: Sequence[str], caret_row: int, most: int) -> tuple[Sequence[str], int]:
    """The rows around the caret where there are more than fit, and the caret's row among them."""
    if len(rows) <= most:
        return rows, caret_row
    start = min(max(caret_row - most + 1, 0), len(rows) - most)
    return rows[start : start + most], caret_row - start


def may_name_media(pasted: str) -> bool:
    return len(pasted) < 5_000 and pasted.strip("'\" \n").lower().endswith(MEDIA_ENDINGS)
