"""An approval in the live region: the call and its diff are committed above, the question and its keys are shown below."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.base import jsontext
from dragoman.base.found_files import read_found_text
from dragoman.conversation.deciding import kind_of
from dragoman.conversation.questions import CallApproval, Intend
from dragoman.tui.call_cells import Answer, CallCell
from dragoman.tui.calls import Folded, RunningCalls
from dragoman.tui.question import Question, choices, few_words, subject
from dragoman.values.calls import Allow, Deny, Intent, Tool
from dragoman.values.messages import ToolCall
from dragoman.values.parts import call_in_words

if TYPE_CHECKING:
    from dragoman.tui.asking import LiveDialog

_ANSWERS: dict[str, Answer] = {"y": "yes", "a": "session", "s": "folder", "b": "session", "f": "folder", "w": "session"}
_MOST_BYTES = 2_000_000


class LiveApproval(CallApproval):
    """`calls` are those at work: they hear what the user said, and that one waits for it; `view` opens a text."""

    def __init__(
        self,
        dialog: LiveDialog,
        tool: Tool | None,
        call: ToolCall,
        intent: Intent,
        intend: Intend,
        *,
        calls: RunningCalls,
        view: Callable[[str, str], None],
        workspace: str,
    ) -> None:
        super().__init__(dialog, tool, call, intent, intend)
        self._live = dialog
        self._calls = calls
        self._view = view
        self._workspace = workspace

    async def decide(self) -> Allow | Deny:
        try:
            # The gate asks for a command at work: `<its call>-network`.
            with self._calls.hold_time(self._call.id.removesuffix(f"-{self._call.name}")):
                return await super().decide()
        finally:
            self._live.ask_about(None)
            self._live.subject = None

    def _show(self) -> None:
        kind = kind_of(self._call.name, self._kind)
        question = Question(self._call, self._intent, kind, can_open=kind == "edit")
        self._live.commit(lambda columns: subject(question, columns))
        self._show_reading()
        self._live.ask_about(lambda columns: choices(question, columns), lambda columns: few_words(question, columns))
        if kind == "edit":
            self._live.subject = Folded(call_in_words(self._call, self._workspace), call=CallCell(self._call, display=self._intent.preview))

    async def _handle_key(self, key: str) -> Allow | Deny | None:
        if key == "v" and self._kind == "edit":
            self._open_file()
            return None
        answer = await super()._handle_key(key)
        if isinstance(answer, Allow):
            self._calls.note_answer(self._call.id, "edited" if self._arguments else _ANSWERS.get(key, "yes"))
        return answer

    def _end_mark(self) -> None:
        """The question is not on a line of its own."""

    def _open_file(self) -> None:
        """The whole file as it is now."""
        args = jsontext.decode_object(self._arguments or self._call.arguments or "{}") or {}
        name = str(args.get("file_path", ""))
        try:
            text = read_found_text(os.path.join(self._workspace, name), _MOST_BYTES, cut=True, errors="replace")
        except OSError as error:
            text = error.strerror or str(error)
        self._view(name, text)
