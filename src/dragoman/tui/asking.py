"""Questions of a run in the live region: the subject is committed above, the question is shown below until it is answered.

Which keys answer is decided in app/answers.py. All others go to the prompt, which is shown under the question once something is in it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING

from dragoman.app.answers import ENTER, QUIET_S, Answers, Heard
from dragoman.conversation.questions import ESCAPE, wait_for_cancel
from dragoman.conversation.style import Style
from dragoman.tui.canvas import Canvas
from dragoman.tui.composer import Composer
from dragoman.tui.keys import Key, Paste
from dragoman.tui.layout import question_rows
from dragoman.tui.line import Line, Span, line, visible
from dragoman.tui.wrap import fit, wrap, wrap_parts
from dragoman.values.calls import Deny
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.tui.calls import Folded

STYLES: dict[Style, str] = {"": "", "dim": "dim", "red": "bad", "green": "good", "yellow": "warn", "cyan": "accent", "bold": "bold"}
KEY_GAP = "   "
"""Between the keys of a question."""
_SOON: Line = (Span("…", "dim"),)
"""Stands under a question until a key can answer it."""
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
    """Where a question is shown, and under it what was answered."""

    def text(self, text: str, style: Style = "") -> None:
        self._canvas.commit([(Span("  └ ", "dim"), Span(text.strip(), "dim"))])


def answer_row(answers: Answers[Key | Paste], *, is_kept: bool, has_draft: bool) -> Line:
    """The row under a question: whether keys answer it now, and what Enter would answer. `is_kept`: a key has gone to the prompt."""
    if answers.is_held:
        return (Span(f"› {answers.chosen}", "question"), Span(f"  {say('tui.answer_held')}", "dim"))
    if not answers.is_ready:
        return line(say("tui.answer_kept"), "warn") if is_kept else _SOON
    if answers.chosen and not has_draft:
        return (Span(f"› {answers.chosen}", "question"), Span(f"  {say('tui.answer_marked')}", "dim"))
    return (Span("› ", "question"), Span(say("tui.answer_ready"), "dim"))


class LiveDialog:
    """Implements conversation.questions.Asking. `press` gets the keys while a question is open; `write` those that belong to the prompt."""

    def __init__(
        self,
        canvas: Canvas,
        *,
        edit: Callable[[str, str], Awaitable[str | None]],
        stop: Callable[[], None],
        write: Callable[[Key | Paste], None],
        has_draft: Callable[[], bool],
        on_asked: Callable[[], None],
    ) -> None:
        self._canvas = canvas
        self.screen = _QuestionPage(canvas)
        self._edit = edit
        self._stop = stop
        self._write = write
        self._has_draft = has_draft
        self._on_asked = on_asked
        self._prompt = ""
        self._lay_out: Callable[[int], list[Line]] | None = None
        """Of an approval: its question and keys at a width,"""
        self._in_few_words: Callable[[int], list[Line]] | None = None
        """and where there is no room for them."""
        self._answer: asyncio.Future[str | None] | None = None
        self._answers: Answers[Key | Paste] = Answers(())
        self._timer: asyncio.TimerHandle | None = None
        self._is_kept = False
        """Whether the last key went to the prompt."""
        self._early: list[Key | Paste] = []
        """What came behind the key that answered, before that was heeded: it belongs to the line that the answer asks for, if it does,
        and else to the prompt."""
        self._line: Composer | None = None
        """Where a question wants a line,"""
        self._takes_line = False
        """and whether keys go there yet."""
        self.subject: Folded | None = None
        """The edit that is asked about, for Ctrl-O."""

    @property
    def is_open(self) -> bool:
        return self._answer is not None

    @property
    def composer(self) -> Composer | None:
        """The line that the keys go to, if a question wants one."""
        return self._line if self._takes_line or not self._has_draft() else None

    def commit(self, lay_out: Callable[[int], list[Line]]) -> None:
        self._canvas.commit(lay_out(self._canvas.columns))

    def ask_about(self, lay_out: Callable[[int], list[Line]] | None, in_few_words: Callable[[int], list[Line]] | None = None) -> None:
        """How the question is shown from now on; None: as the words it is asked with. `in_few_words`: in a small window."""
        self._lay_out, self._in_few_words = lay_out, in_few_words

    def lines(self) -> list[Line]:
        """The question, for the live region."""
        columns = self._canvas.columns
        if self._lay_out is not None and self._line is None:
            rows = self._lay_out(columns)
        elif self._line is None or self._takes_line:
            gap = KEY_GAP if self._line is None else "\n"  # what the model asks has no keys
            rows = [row for each in self._prompt.split("\n") for row in wrap_parts(each, columns, gap, "question")]
        else:
            rows = list[Line]()  # it wants no answer yet
        if self._line is None:
            answer = answer_row(self._answers, is_kept=self._is_kept, has_draft=self._has_draft())
            if self._in_few_words is not None and len(rows) + len(wrap(answer, columns)) > self._room:
                return [*self._in_few_words(columns), fit(answer, columns)]
            rows += wrap(answer, columns)
        elif self._has_draft():
            rows += wrap(line(say("tui.draft_kept" if self._takes_line else "tui.line_kept"), "warn"), columns)
        elif not self._takes_line:
            rows.append(_SOON)
        return rows

    @property
    def _room(self) -> int:
        """How many rows the question may have beside the status line, and a row of what is written."""
        return question_rows(self._canvas.size[1], self._canvas.size[1]) - 1 - self._has_draft()

    async def ask_key(self, prompt: str, keys: Collection[str]) -> str:
        self._answers = Answers(keys)
        return await self._ask(prompt) or ""

    async def ask_line(self, prompt: str, *, at_once: bool = False) -> str | None:
        self._line, self._takes_line = composer, _ = Composer(), at_once
        try:
            return await self._ask(prompt.strip())
        except asyncio.CancelledError:
            if not composer.is_empty:  # the run was stopped: what was written is not lost
                self.keep(composer.whole_text())
            raise
        finally:
            self._line, self._takes_line = None, False

    def keep(self, text: str) -> None:
        self._write(Paste(text))

    async def edit(self, text: str, name: str) -> str | None:
        return await self._edit(text, name)

    async def stop_run(self) -> Deny:
        self._stop()
        return await wait_for_cancel()

    async def _ask(self, prompt: str) -> str | None:
        self._prompt = prompt
        self._is_kept = False
        self._answer = asyncio.get_running_loop().create_future()
        self._wait()
        early, self._early = self._early, list[Key | Paste]()
        for event in early:
            self.press(event)
        self._on_asked()
        self._canvas.request()
        try:
            return await self._answer
        finally:
            self._answer = None
            self._give_up_waiting()
            self._early[:0] = self._answers.put_off()
            asyncio.get_running_loop().call_soon(self._write_early)
            self._canvas.request()

    # --- keys

    def press(self, event: Key | Paste) -> None:
        """Take one key or paste of the user's, while the question is open."""
        if self._answer is None:
            return
        if self._answer.done():
            self._early.append(event)
        elif self._line is not None and self._takes_line:
            self._press_in_line(self._line, event)
        elif isinstance(event, Key) and event.name in ("esc", "ctrl-c"):
            self._leave_question()
        else:
            self._take(self._hear(event))
            self._wait()
        self._canvas.request()

    def put_off(self) -> None:
        """Wait for the next pause: keys were pressed that were meant for something else."""
        for event in self._answers.put_off():
            self._write(event)
        self._wait()

    def _hear(self, event: Key | Paste) -> Heard[Key | Paste]:
        if self._line is not None:
            return Heard(typed=(event,))
        return self._answers.press(event, key_of(event), has_draft=self._has_draft())

    def _take(self, heard: Heard[Key | Paste]) -> None:
        for event in heard.typed:
            self._write(event)
        self._is_kept = bool(heard.typed)
        if heard.answer and self._answer is not None and not self._answer.done():
            self._answer.set_result(heard.answer)

    def _leave_question(self) -> None:
        if self._lay_out is None and self._line is not None:
            self._stop()  # it is the model that asks; the run ends this question with itself
        elif self._answer is not None:
            self._answer.set_result(ESCAPE if self._line is None else None)

    def _press_in_line(self, composer: Composer, event: Key | Paste) -> None:
        if self._answer is None:
            return
        if isinstance(event, Paste):
            composer.paste(event.text)
        elif event.name == "enter":
            self._answer.set_result(composer.take())
        elif event.name in ("esc", "ctrl-c"):
            self._leave_question()
        elif event.name == "ctrl-d":
            self._answer.set_result(None)
        else:
            composer.press(event.name, event.text)

    def _write_early(self) -> None:
        """Keys behind an answer that asked for nothing more."""
        early, self._early = self._early, list[Key | Paste]()
        for event in early:
            self._write(event)
        if early:
            self._canvas.request()

    # --- pauses

    def _wait(self) -> None:
        self._give_up_waiting()
        if self._answer is not None:
            self._timer = asyncio.get_running_loop().call_later(QUIET_S, self._rest)

    def _give_up_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rest(self) -> None:
        self._timer = None
        if self._canvas.is_behind:  # the terminal is slow: the question is not on the screen yet
            return self._wait()
        if self._line is not None:
            self._takes_line = True
        else:
            self._take(self._answers.rest())
        self._canvas.request()
        return None


def key_of(event: Key | Paste) -> str:
    """The key as `Answers` knows it."""
    return "" if isinstance(event, Paste) else ENTER if event.name == "enter" else event.text
