"""Vim's keys in the composer (`ui.vim`): insert and normal mode, counts, the operators d, c and y with motions, f and t."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.tui.composer import Composer
from dragoman.tui.keys import Key

_MOTIONS = frozenset("hjklwbe0^$G")
_OPERATORS = frozenset("dcy")


class VimKeys:
    """`press` returns whether the key was for it. What it leaves (Enter, Ctrl keys, Esc in normal mode) means what it always means."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        self.is_normal = False
        self._count = ""
        self._operator = ""
        self._waits_for = ""
        """`g`, `r` or one of `fFtT`, until the key after it."""
        self._searched = ("", "")
        """The last of `fFtT` and its character, for `;` and `,`."""
        self._register = ""

    def begin(self) -> None:
        """A new prompt: it is written in."""
        self.is_normal = False
        self._forget()

    def press(self, key: Key, columns: int) -> bool:
        if not self.is_normal:
            return self._leave_insert() if key.name == "esc" and not self._composer.is_empty else False
        if key.name in ("left", "right", "up", "down", "home", "end"):
            self._forget()
            return False
        if key.name == "backspace":
            self._composer.left()
            return True
        char = " " if key.name == "space" else key.text
        if key.name == "esc" and (self._operator or self._count or self._waits_for):
            self._forget()
            return True
        if not char or len(char) > 1:
            return False
        self._press_normal(char, columns)
        if self.is_normal and self._line_start() < self._composer.caret == self._line_end():
            self._composer.left()  # in normal mode it stands on a character
        return True

    # --- modes

    def _leave_insert(self) -> bool:
        self.is_normal = True
        self._forget()
        if self._composer.caret > self._line_start():
            self._composer.left()
        return True

    def _enter_insert(self) -> None:
        self.is_normal = False
        self._forget()

    def _forget(self) -> None:
        self._count = self._operator = self._waits_for = ""

    # --- keys of normal mode

    def _press_normal(self, char: str, columns: int) -> None:
        if self._waits_for:
            return self._press_second(char)
        if char.isascii() and char.isdigit() and (char != "0" or self._count):
            self._count += char
            return None
        if char in "grfFtT":
            self._waits_for = char
            return None
        if char in ";," and self._searched[0]:
            way, wanted = self._searched
            return self._search(way if char == ";" else way.swapcase(), wanted)
        if self._operator:
            return self._operate(char, columns)
        if char in _OPERATORS:
            self._operator = char
            return None
        times = self._times()
        self._count = ""
        if char in _MOTIONS or char == " ":
            self._composer.caret = self._target(char, times, columns)
        else:
            self._act(char, times)
        return None

    def _press_second(self, char: str) -> None:
        waited, self._waits_for = self._waits_for, ""
        composer = self._composer
        if waited in "fFtT":
            self._searched = (waited, char)
            return self._search(waited, char)
        if waited == "r" and composer.caret < self._line_end():
            at = composer.caret
            composer.delete_after()
            composer.insert(char)
            composer.caret = at
        elif waited == "g" and char == "g":
            if self._operator:
                self._apply(self._operator, 0, composer.caret)
            else:
                composer.caret = 0
        self._forget()
        return None

    def _search(self, way: str, wanted: str) -> None:
        """`f` and `t` go on to a character of the line, or stop before it; `F` and `T` go back."""
        operator, times, here = self._operator, self._times(), self._composer.caret
        self._forget()
        text, start, end, at = self._composer.text, self._line_start(), self._line_end(), here
        for _ in range(times):
            at = text.find(wanted, at + 1, end) if way in "ft" else text.rfind(wanted, start, at)
            if at < 0:
                return
        at += {"t": -1, "T": 1}.get(way, 0)
        if operator:
            self._apply(operator, min(here, at), max(here, at) + (way in "ft"))
        else:
            self._composer.caret = at

    def _act(self, char: str, times: int) -> None:
        composer = self._composer
        match char:
            case "i":
                self._enter_insert()
            case "a":
                if composer.caret < self._line_end():
                    composer.right()
                self._enter_insert()
            case "I" | "A":
                composer.line_start() if char == "I" else composer.line_end()
                self._enter_insert()
            case "o" | "O":
                composer.line_end() if char == "o" else composer.line_start()
                at = composer.caret
                composer.newline()
                composer.caret = at if char == "O" else composer.caret
                self._enter_insert()
            case "x":
                self._apply("d", composer.caret, min(self._target("l", times, 0), self._line_end()))
            case "X":
                self._apply("d", self._target("h", times, 0), composer.caret)
            case "s":
                self._apply("c", composer.caret, min(self._target("l", times, 0), self._line_end()))
            case "S":
                self._apply("c", self._line_start(), self._line_end())
            case "~":
                end = min(self._target("l", times, 0), self._line_end())
                composer.replace(composer.caret, end, composer.text[composer.caret : end].swapcase())
            case "D" | "C":
                self._apply(char.lower(), composer.caret, self._line_end())
            case "p" | "P":
                if char == "p" and composer.caret < self._line_end():
                    composer.right()
                composer.insert(self._register * times)
            case "u":
                for _ in range(times):
                    composer.undo()
            case _:
                pass

    def _operate(self, char: str, columns: int) -> None:
        operator, times, here = self._operator, self._times(), self._composer.caret
        self._forget()
        if char == operator:  # the whole line
            end = self._line_end()
            start = self._line_start()
            is_last = end >= len(self._composer.text)
            self._apply(operator, start, end if operator == "c" or is_last else end + 1)
        elif char in _MOTIONS:
            there = self._target("e" if (operator, char) == ("c", "w") else char, times, columns)
            if char == "e" or (operator, char) == ("c", "w"):
                there = min(there + 1, len(self._composer.text))
            self._apply(operator, min(here, there), max(here, there))

    def _apply(self, operator: str, start: int, end: int) -> None:
        composer = self._composer
        self._register = composer.text[start:end] or self._register
        if operator != "y":
            composer.replace(start, end, "")
        else:
            composer.caret = start
        if operator == "c":
            self._enter_insert()

    # --- where a motion leads

    def _times(self) -> int:
        return min(int(self._count or 1), 1_000)

    def _target(self, motion: str, times: int, columns: int) -> int:
        composer = self._composer
        here = composer.caret
        for _ in range(times):
            self._move(motion, columns)
        there, composer.caret = composer.caret, here
        return there

    def _move(self, motion: str, columns: int) -> None:
        composer = self._composer
        match motion:
            case "h":
                composer.left()
            case "l" | " ":
                composer.right()
            case "j":
                composer.move_down(columns or 80)
            case "k":
                composer.move_up(columns or 80)
            case "w":
                if not self._skip(_is_word):
                    self._skip(lambda char: not _is_word(char) and not char.isspace())
                self._skip(str.isspace)
            case "b":
                composer.word_left()
            case "e":
                composer.right()
                self._skip(str.isspace)
                composer.word_right()
                composer.left()
            case "0":
                composer.line_start()
            case "^":
                composer.line_start()
                self._skip(lambda char: char in " \t")
            case "$":
                composer.line_end()
            case "G":
                composer.caret = len(composer.text)
            case _:
                pass

    def _skip(self, belongs: Callable[[str], bool]) -> bool:
        """Past every character of a kind; whether there was one."""
        composer = self._composer
        began = composer.caret
        while composer.caret < len(composer.text) and belongs(composer.text[composer.caret]):
            composer.right()
        return composer.caret > began

    def _line_start(self) -> int:
        return self._composer.text.rfind("\n", 0, self._composer.caret) + 1

    def _line_end(self) -> int:
        end = self._composer.text.find("\n", self._composer.caret)
        return len(self._composer.text) if end < 0 else end


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
