"""Questions of a run in the live region: the subject is committed above, the question is shown below until a key answers it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dragoman.base.words import say
from dragoman.cli.screen import Style
from dragoman.tui.canvas import Canvas
from dragoman.tui.composer import Composer
from dragoman.tui.keys import Key, Paste
from dragoman.tui.line import Line, Span, line, visible
from dragoman.tui.wrap import wrap
from dragoman.values.calls import Deny

if TYPE_CHECKING:
    from dragoman.tui.calls import Folded

STYLES: dict[Style, str] = {"": "", "dim": "dim", "red": "bad", "green": "good", "yellow": "warn", "cyan": "accent", "bold": "bold"}
QUIET_S = 0.6
"""While the user is writing, a question waits so long for a pause: a letter of a word must not answer it."""

_LIST_ROW = re.compile(r"( *)(?:\S+(?: \S+){0,2} {2,})?")


def hang_of(text: str, columns: int) -> int:
    """Where the further rows of a line begin: under its second column if it is a row of a list, else under its first letter."""
    found = _LIST_ROW.match(text)
    if found is None:
        return 0
    return found.end() if found.end() <= columns // 2 else len(found[1])


class Printer:
    """What commands and questions write, as committed lines."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas

    @property
    def columns(self) -> int:
        return self._canvas.columns

    def message(self, text: str, style: Style = "") -> None:
        self._canvas.commit(wrap(line(visible(" ".join(text.split())), STYLES[style]), self._canvas.columns, (), (Span("  "),)))

    def line(self, text: str, style: Style = "") -> None:
        for each in text.split("\n"):
            shown = visible(each)
            at = hang_of(shown, self.columns)
            self._canvas.commit(wrap(line(shown[at:], STYLES[style]), self.columns, line(shown[:at], STYLES[style])))

    def page(self, text: str) -> None:
        from dragoman.base.wrapping import lay_out

        for each in lay_out(text, self._canvas.columns).split("\n"):
            self._canvas.commit([line(visible(each))])

    def text(self, text: str, style: Style = "") -> None:
        self.line(text.removesuffix("\n"), style)


class _QuestionPage(Printer):
    """Where a question is shown. What only says that a key means nothing stays in the live region."""

    def __init__(self, canvas: Canvas) -> None:
        super().__init__(canvas)
        self.hint = ""

    def text(self, text: str, style: Style = "") -> None:
        if style == "yellow":
            self.hint = text.strip()
        else:
            self._canvas.commit([(Span("  └ ", "dim"), Span(text.strip(), "dim"))])


class LiveDialog:
    """Implements cli.approval.Asking. `press` gets the keys while a question is open."""

    def __init__(
        self,
        canvas: Canvas,
        *,
        edit: Callable[[str, str], Awaitable[str | None]],
        stop: Callable[[], None],
        is_writing: Callable[[], bool],
        on_asked: Callable[[], None],
    ) -> None:
        self._canvas = canvas
        self.screen = _QuestionPage(canvas)
        self._edit = edit
        self._stop = stop
        self._is_writing = is_writing
        self._on_asked = on_asked
        self._prompt = ""
        self._lay_out: Callable[[int], list[Line]] | None = None
        """Of an approval: its question and keys at a width."""
        self._answer: asyncio.Future[str | None] | None = None
        self._armed_s = 0.0
        self._early: list[Key | Paste] = []
        """What came behind the key that answered, before that was heeded: it belongs to the line that the answer asks for, if it does."""
        self.composer: Composer | None = None
        """Where a question wants a line."""
        self.subject: Folded | None = None
        """The edit that is asked about, for Ctrl-O."""

    @property
    def is_open(self) -> bool:
        return self._answer is not None

    @property
    def takes_keys(self) -> bool:
        """False while the user is still writing something else."""
        return self.is_open and time.monotonic() >= self._armed_s

    def commit(self, lay_out: Callable[[int], list[Line]]) -> None:
        self._canvas.commit(lay_out(self._canvas.columns))

    def ask_about(self, lay_out: Callable[[int], list[Line]] | None) -> None:
        """How the question is shown from now on; None: as the words it is asked with."""
        self._lay_out = lay_out

    def put_off(self) -> None:
        """The user wrote on: the question waits for the next pause."""
        self._armed_s = time.monotonic() + QUIET_S

    def lines(self) -> list[Line]:
        """The question, for the live region."""
        columns = self._canvas.columns
        if self._lay_out is not None and self.composer is None:
            rows = self._lay_out(columns)
        else:
            rows = [row for each in self._prompt.split("\n") for row in wrap(line(each, "question"), columns)]
        if self.screen.hint:
            rows.append(line(visible(self.screen.hint), "warn"))
        return rows

    async def ask_key(self, prompt: str) -> str:
        return await self._ask(prompt) or ""

    async def ask_line(self, prompt: str) -> str | None:
        self.composer = Composer()
        try:
            return await self._ask(prompt.strip())
        finally:
            self.composer = None

    async def edit(self, text: str, name: str) -> str | None:
        return await self._edit(text, name)

    async def stop_run(self) -> Deny:
        self._stop()
        return await asyncio.get_running_loop().create_future()

    async def _ask(self, prompt: str) -> str | None:
        self._prompt = prompt
        self._answer = asyncio.get_running_loop().create_future()
        self._armed_s = time.monotonic() + (QUIET_S if self._is_writing() and self.composer is None else 0)
        early, self._early = self._early, list[Key | Paste]()
        if self.composer is not None:
            for event in early:
                self.press(event)
        self._on_asked()
        self._canvas.request()
        try:
            return await self._answer
        finally:
            self._answer = None
            asyncio.get_running_loop().call_soon(self._early.clear)
            self._canvas.request()

    def press(self, event: Key | Paste) -> None:
        """One key or paste of the user's, while the question is open."""
        if self._answer is None:
            return
        if self._answer.done():
            self._early.append(event)
            return
        self.screen.hint = ""
        if self.composer is not None:
            self._press_in_line(event)
        elif isinstance(event, Paste):
            self.screen.hint = say("many_keys")
        elif event.name in ("esc", "ctrl-c"):
            self._answer.set_result("\x1b")
        elif event.text:
            self._answer.set_result(event.text)
        self._canvas.request()

    def _press_in_line(self, event: Key | Paste) -> None:
        if self._answer is None or self.composer is None:
            return
        if isinstance(event, Paste):
            self.composer.paste(event.text)
        elif event.name == "enter":
            self._answer.set_result(self.composer.take())
        elif event.name in ("esc", "ctrl-c") and self._lay_out is None:
            self._stop()  # it is the model that asks; the run ends this question with itself
        elif event.name in ("esc", "ctrl-c", "ctrl-d"):
            self._answer.set_result(None)
        else:
            self.composer.press(event.name, event.text)
