"""Questions that wait for an answer by their id, whichever front end gives it: about calls, of the model and of servers, and before a run.

One at a time: a person reads one thing, and what is allowed for a session may spare the next question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.visible import escape_hidden
from dragoman.conversation.deciding import CallKind, choices_for, decide, kind_of, question_words, shown_name
from dragoman.conversation.preview import MAX_BLANKS, longest_blank
from dragoman.conversation.types import AnswerChoice, AskedQuestion, QuestionAnswer, ViewEvent
from dragoman.values.calls import Allow, Deny, Intent, Only, Tool
from dragoman.values.errors import InputError
from dragoman.values.messages import ToolCall
from dragoman.values.schema import problems
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.asking import FirstQuestion

# Sent to the model: in English, whatever the program's language.
NOBODY_ANSWERED = "the user closed the conversation without an answer"


Check = Callable[[QuestionAnswer], None]
"""Raises InputError for what is no answer."""


class OpenQuestions:
    """`tell` shows events; `block_of` gives the block of a call; `find` and `intend` are those of the agent; `stop` cancels its run."""

    def __init__(
        self,
        tell: Callable[[ViewEvent], object],
        block_of: Callable[[str], str],
        find: Callable[[str], Tool | None],
        intend: Callable[[Tool, Mapping[str, Any]], Intent],
        stop: Callable[[], object],
    ) -> None:
        self._tell = tell
        self._block_of = block_of
        self._find = find
        self._intend = intend
        self._stop = stop
        self._one_at_a_time = asyncio.Lock()
        self.asked = 0
        """How many there were."""
        self._open: dict[str, _Open] = {}
        self._is_closed = False

    @property
    def open(self) -> tuple[AskedQuestion, ...]:
        return tuple(each.question for each in self._open.values())

    def answer(self, answer: QuestionAnswer) -> None:
        """Raises InputError for what is no answer to it; then it stays open."""
        waiting = self._open.get(answer.question)
        if waiting is None or waiting.answered.done():
            raise InputError(say("conversation.no_such_question"))
        waiting.check(answer)
        waiting.answered.set_result(answer)

    def dismiss(self, id: str) -> None:
        """Nobody will answer this one: as if the conversation were closed. Does nothing where it is not open."""
        waiting = self._open.get(id)
        if waiting is not None and not waiting.answered.done():
            waiting.answered.set_result(None)

    def close(self) -> None:
        """Nobody will answer any more: calls are refused, other questions are left unanswered."""
        self._is_closed = True
        for waiting in self._open.values():
            if not waiting.answered.done():
                waiting.answered.set_result(None)

    # --- what is asked

    async def ask(self, call: ToolCall, intent: Intent) -> Allow | Deny:
        """Implements calls.Ask."""
        tool = self._find(call.name)
        kind = kind_of(call.name, tool.spec.kind if tool is not None else "other")
        arguments = ""
        async with self._one_at_a_time:
            while True:
                question = self._about(call, intent, kind, arguments, tool)
                answer = await self._wait(question, lambda given, tool=tool: self._check_edit(given, call, tool))
                if answer is None:
                    return Deny(NOBODY_ANSWERED)
                if answer.choice == "esc":
                    return await self._stop_run()
                if answer.choice == "e" and tool is not None:
                    arguments = self._edited(answer.text, call)
                    intent = self._intend(tool, jsontext.decode_object(arguments) or {})
                    continue
                decided = decide(answer.choice, intent, arguments, answer.text)
                assert decided is not None, "only what is offered is an answer"
                return decided

    async def ask_user(self, question: str, choices: Sequence[str]) -> str:
        """Implements calls.AskUser. An empty string: the user did not answer."""
        offered = tuple(AnswerChoice(str(number), escape_hidden(text, one_line=True)) for number, text in enumerate(choices, 1))
        is_closed = isinstance(choices, Only)
        async with self._one_at_a_time:
            asked = AskedQuestion(self._next_id(), "ask_user", escape_hidden(question), choices=offered, takes_text=not is_closed)
            answer = await self._wait(asked)
        if answer is None:
            return ""
        return choices[int(answer.choice) - 1] if answer.choice else answer.text.strip()

    async def ask_first(self, question: FirstQuestion) -> str:
        """A question before anything begins: the letter of the answer; empty where nobody answered."""
        said = tuple(AnswerChoice(key, words or key) for key, words in question.said.items())
        kind = "offer" if "e" in question.said or len(question.intro) > 1 else "trust"
        detail = "\n".join(question.intro)
        why = (question.why,) if question.why else ()
        async with self._one_at_a_time:
            answer = await self._wait(AskedQuestion(self._next_id(), kind, question.text, detail=detail, notes=why, choices=said))
        return answer.choice if answer is not None else ""

    # --- how it waits

    async def _wait(self, question: AskedQuestion, check: Callable[[QuestionAnswer], None] | None = None) -> QuestionAnswer | None:
        if self._is_closed:
            return None
        waiting = self._open[question.id] = _Open(question, asyncio.get_running_loop().create_future(), check)
        await asyncio.sleep(0)  # what was shown of the call before comes before its question
        self._tell(question_event(question))
        answer: QuestionAnswer | None = None
        try:
            answer = await waiting.answered
            return answer
        finally:
            del self._open[question.id]
            data = {"question": question.id, "choice": answer.choice, "text": answer.text} if answer is not None else {}
            data |= {"call": question.call, "call_id": question.call_id}
            # How a call was decided is told with the call.
            state = "cancelled" if answer is None else "refused" if answer.choice in ("n", "r", "esc") else "allowed"
            self._tell(ViewEvent(0, "answered", block_of(question), question.title, state=state, data=data, passing=True))

    async def _stop_run(self) -> Deny:
        from dragoman.conversation.questions import wait_for_cancel

        self._stop()
        return await wait_for_cancel()

    def _next_id(self) -> str:
        self.asked += 1
        return f"q{self.asked}"

    # --- a question about a call

    def _about(self, call: ToolCall, intent: Intent, kind: CallKind, arguments: str, tool: Tool | None) -> AskedQuestion:
        written = arguments or call.arguments
        detail = escape_hidden(intent.preview or written).removesuffix("\n")
        choices = [each for each in choices_for(call.name, intent, kind, alone=True) if each.meaning != "edit" or tool is not None]
        return AskedQuestion(
            self._next_id(),
            "approval",
            question_words(call.name, intent, kind, _file_of(written) if kind == "edit" else ""),
            shown_name(intent.title or call.name),
            detail,
            tuple(_notes(call, intent, detail)),
            call.id,
            self._block_of(call.id),
            intent.writes,
            tuple(choices),
            edits=_editable(call, written) if any(each.meaning == "edit" for each in choices) else "",
        )

    def _check_edit(self, answer: QuestionAnswer, call: ToolCall, tool: Tool | None) -> None:
        """Raises InputError for an edit that cannot be carried out."""
        if answer.choice != "e" or tool is None:
            return
        changed = jsontext.decode_object(self._edited(answer.text, call))
        if changed is None:
            raise InputError(say("edit_not_json"))
        if found := problems(tool.spec.schema, changed):
            raise InputError(say("edit_misfit", problems="; ".join(found)))

    def _edited(self, text: str, call: ToolCall) -> str:
        """The arguments as JSON text, with a command as a person has edited it, or all of them."""
        args = jsontext.decode_object(call.arguments or "{}") or {}
        if call.name == "run_shell" and isinstance(args.get("command"), str):
            return jsontext.dumps({**args, "command": text})
        return text


class _Open:
    """A question, and who waits for its answer."""

    def __init__(
        self, question: AskedQuestion, answered: asyncio.Future[QuestionAnswer | None], check: Callable[[QuestionAnswer], None] | None
    ) -> None:
        self.question = question
        self.answered = answered
        self._check = check

    def check(self, answer: QuestionAnswer) -> None:
        """Raises InputError for what is no answer."""
        asked = self.question
        known: Collection[str] = [each.key for each in asked.choices]
        if answer.choice not in known and (answer.choice or not asked.takes_text):
            raise InputError(say("conversation.no_such_choice", key=answer.choice[:40] or "-", known=", ".join(known)))
        meaning = next((each.meaning for each in asked.choices if each.key == answer.choice), "pick")
        if meaning == "edit" and not answer.text.strip():
            raise InputError(say("conversation.answer_needs_text"))
        if self._check is not None:
            self._check(answer)


def question_event(question: AskedQuestion) -> ViewEvent:
    # A sentence remembers its key, which JSON would not take.
    data = {"question": msgspec.to_builtins(question, enc_hook=str), "call": question.call, "call_id": question.call_id}
    return ViewEvent(0, "question", block_of(question), question.title, state="waiting", data=data, passing=True)


def block_of(question: AskedQuestion) -> str:
    """The block of a question: that of its call, if it has one that is shown."""
    return f"{question.call}.question" if question.call else question.id


def _editable(call: ToolCall, written: str) -> str:
    args = jsontext.decode_object(written or "{}") or {}
    command = args.get("command")
    if call.name == "run_shell" and isinstance(command, str):
        return command
    return msgspec.json.format(jsontext.dumps(args))


def _file_of(arguments: str) -> str:
    named = (jsontext.decode_object(arguments or "{}") or {}).get("file_path")
    return named if isinstance(named, str) else ""


def _notes(call: ToolCall, intent: Intent, detail: str) -> list[str]:
    """What a person should know before answering, in the order in which the terminal says it."""
    from dragoman.conversation.questions import is_about_host, told_why

    notes = [say("subagents.asks", agent=shown_name(intent.asker))] if intent.asker else []
    if intent.outside:
        notes += [say("outside_means"), say("outside_reason", reason=escape_hidden(intent.outside, one_line=True))]
    if not is_about_host(call):
        if (blanks := longest_blank(detail)) > MAX_BLANKS:
            notes.append(say("padded", count=blanks))
        notes += _reading_notes(call)
    if why := told_why(call, intent):
        notes.append(say("asked_because", why=escape_hidden(why, one_line=True)))
    if intent.guarded and not intent.outside:
        notes.append(say(f"guarded_{intent.guarded}"))
    if intent.problem:
        notes.append(say("will_fail", problem=intent.problem))
    return [str(note) for note in notes]


def _reading_notes(call: ToolCall) -> list[str]:
    """Of a call parsed from text: what was repaired in it, and which tool result it repeats."""
    if call.opaque is None:
        return []
    from dragoman.text_tools.call_note import read_note

    note = read_note(call)
    if note is None:
        return []
    notes = [say("repaired", repairs=escape_hidden("; ".join(note.repairs), one_line=True))] if note.repairs else []
    return [*notes, *([say("echoes", tool=escape_hidden(note.echo_of, one_line=True))] if note.echo_of else [])]
