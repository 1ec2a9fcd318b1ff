"""What the user writes: the composer with its history, the menu under it, and the search in earlier prompts. Keys in, text out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.base.graphemes import width
from dragoman.tui.completion import FileIndex, Menu, menu_for
from dragoman.tui.composer import Composer, may_name_media
from dragoman.tui.history import PromptHistory
from dragoman.tui.keys import Key, Paste
from dragoman.tui.line import Line, Span, line, visible
from dragoman.words import say

MENU_ROWS = 6


class PromptInput:
    """`press` returns whether the key was for it. What is to be sent is taken by the conversation."""

    def __init__(self, composer: Composer, history: PromptHistory, files: FileIndex, commands: Callable[[], Mapping[str, str]]) -> None:
        self.composer = composer
        self.history = history
        self._files = files
        self._commands = commands
        self.menu: Menu | None = None
        self.as_image: Callable[[str], str] = lambda text: ""
        """What stands for the path of an image that was pasted; empty if it is not an image."""
        self._dismissed = ""
        """The text for which the menu was closed."""
        self._searched: str | None = None
        self._found: tuple[int, str] | None = None

    @property
    def is_searching(self) -> bool:
        return self._searched is not None

    def take(self) -> str:
        text = self.composer.take()
        self.history.add(text)
        self.menu, self._dismissed = None, ""
        return text

    # --- keys

    def paste(self, paste: Paste) -> None:
        self._end_search(keep=True)
        if word := self.as_image(paste.text):
            self.composer.insert(word)
        else:
            self.composer.paste(paste.text)
        self.refresh()

    def press(self, key: Key, columns: int) -> bool:
        if self._searched is not None:
            return self._press_in_search(key)
        if self.menu is not None and self._press_in_menu(key):
            return True
        if not self._press_in_text(key, columns):
            return False
        self.refresh()
        return True

    def refresh(self) -> None:
        """The menu for what is written now."""
        composer = self.composer
        if composer.text == self._dismissed:
            self.menu = None
            return
        self._dismissed = ""
        if "@" in composer.text:
            self._files.list_when_old()
        before = self.menu
        self.menu = menu_for(composer, self._commands(), self._files)
        if before is not None and self.menu is not None and before.suggestions == self.menu.suggestions:
            self.menu.chosen = before.chosen

    def _press_in_menu(self, key: Key) -> bool:
        menu = self.menu
        if menu is None:
            return False
        match key.name:
            case "up" | "ctrl-p":
                menu.move(-1)
            case "down" | "ctrl-n":
                menu.move(1)
            case "tab":
                menu.take(self.composer)
                self.refresh()
            case "enter" if not menu.is_written(self.composer):
                menu.take(self.composer)
                self.refresh()
                return not self.composer.text.startswith("/")  # a command is sent at once
            case "esc":
                self.menu, self._dismissed = None, self.composer.text
            case _:
                return False
        return True

    def _press_in_text(self, key: Key, columns: int) -> bool:
        composer = self.composer
        match key.name:
            case "up" | "ctrl-p":
                if composer.move_up(columns):
                    return True
                earlier = self.history.earlier(composer.whole_text())
                if earlier is not None:
                    composer.set(earlier)
                    self._dismissed = composer.text
                return True
            case "down" | "ctrl-n":
                if not composer.move_down(columns) and (later := self.history.later()) is not None:
                    composer.set(later)
                    self._dismissed = composer.text
                return True
            case "ctrl-r":
                self._searched, self._found = "", None
                return True
        return composer.press(key.name, key.text)

    # --- the search in earlier prompts

    def _press_in_search(self, key: Key) -> bool:
        searched = self._searched or ""
        match key.name:
            case "ctrl-r":
                self._found = self.history.search(searched, self._found[0] if self._found else None) or self._found
            case "esc" | "ctrl-c" | "ctrl-g":
                self._end_search(keep=False)
            case "backspace":
                self._search(searched[:-1])
            case "enter" | "tab" | "right" | "left" | "end" | "home":
                self._end_search(keep=True)
            case _ if key.text:
                self._search(searched + key.text)
            case _:
                self._end_search(keep=True)
        return True

    def _search(self, text: str) -> None:
        self._searched = text
        self._found = self.history.search(text) if text else None

    def _end_search(self, *, keep: bool) -> None:
        if self._searched is not None and keep and self._found is not None:
            self.composer.set(self._found[1])
            self._dismissed = self.composer.text
        self._searched = self._found = None

    # --- lines

    def menu_lines(self, columns: int, most: int) -> list[Line]:
        if self._searched is not None:
            found = (
                " ".join(self._found[1].split())
                if self._found
                else say("conversation.search_nothing" if self._searched else "conversation.search_keys")
            )
            head = (Span(say("conversation.search", text=""), "accent"), Span(visible(self._searched)))
            return [head, line(visible(found), "" if self._found else "dim")]
        return self.menu.lines(columns, min(most, MENU_ROWS)) if self.menu is not None else []

    @property
    def menu_caret(self) -> int | None:
        """The column of the menu's first row where one writes: while one searches."""
        return None if self._searched is None else width(say("conversation.search", text="") + visible(self._searched))


def image_word(pasted: str, workspace: str) -> str:
    """The word that stands for an image whose file was pasted; empty if it is not an image."""
    if not may_name_media(pasted):
        return ""
    from dragoman.tui.images import as_word

    return as_word(pasted, workspace)
