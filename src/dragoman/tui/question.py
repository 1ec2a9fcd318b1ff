"""A question before a call runs: what it would do, in words that name it, and the keys that answer. Enter alone answers nothing.

Two parts: what it is about (`subject`), and the question with its keys (`choices`), which stays on the screen as long as it is open.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.base.text import one_line
from dragoman.base.visible import escape_hidden
from dragoman.conversation.deciding import CallKind, choices_for, question_words
from dragoman.conversation.preview import MAX_BLANKS, longest_blank
from dragoman.conversation.questions import told_why
from dragoman.conversation.types import AnswerChoice
from dragoman.tui import diff
from dragoman.tui.highlight import highlight
from dragoman.tui.line import INDENT, Line, Span, columns_of, line, visible
from dragoman.tui.wrap import CODE_MARK, wrap, wrap_code
from dragoman.values.calls import Intent
from dragoman.values.messages import ToolCall
from dragoman.words import say

BETWEEN = 3
"""Blanks between two choices."""
_TITLE_CHARS = 200


class Question(msgspec.Struct, frozen=True):
    """A call that waits for an answer."""

    call: ToolCall
    intent: Intent
    kind: CallKind = "other"
    number: int = 1
    """Which of the questions of this answer it is,"""
    count: int = 1
    """and how many there are."""
    harm: str = ""
    """What it may do that cannot be undone, in words."""
    may_always: bool = True
    """Whether `always` is offered."""
    can_take_all: bool = False
    """Whether one key can answer for all edits of this answer,"""
    can_open: bool = False
    """and one open the whole file: as far as the screen that asks can do it."""


def offered(question: Question) -> list[AnswerChoice]:
    """The answers, in the order in which they are shown."""
    choices = choices_for(question.call.name, question.intent, question.kind, may_always=question.may_always)
    if question.intent.writing == "refused":
        return choices
    if question.can_take_all and question.count > 1:
        choices.insert(1, AnswerChoice("Y", say("tui.choice_yes_all", count=question.count)))
    if question.can_open:
        choices.insert(-1, AnswerChoice("v", say("tui.choice_whole")))
    return choices


def subject(question: Question, columns: int, most_rows: int = 0) -> list[Line]:
    """What is asked about: the whole command, or the diff. `most_rows`: of a long diff no more than these."""
    intent = question.intent
    changes = _changes(question)
    if changes is not None:
        rows = [*_heading(question, changes.name, changes.size, columns), *diff.lay_out(changes, columns, most_rows)]
    else:
        rows = [*_heading(question, _object(question), "", columns), *_reason(question, columns), *_preview(question, columns)]
        if (blanks := longest_blank(question.intent.preview or question.call.arguments)) > MAX_BLANKS:
            rows += wrap(line(say("padded", count=blanks), "warn"), columns, INDENT)
    if intent.asker:
        rows += wrap(line(visible(one_line(say("subagents.asks", agent=intent.asker))), "accent"), columns, INDENT)
    if question.harm:
        rows += wrap(line(visible(one_line(question.harm)), "warn"), columns, (Span("  └ ", "warn"),))
    if why := told_why(question.call, intent):
        rows += wrap(line(visible(one_line(say("tui.asked_because", why=why))), "warn"), columns, INDENT)
    if intent.guarded and not intent.outside:
        rows += wrap(line(say(f"guarded_{intent.guarded}"), "warn"), columns, INDENT)
    if intent.problem:
        rows += wrap(line(visible(one_line(say("tui.will_fail", problem=intent.problem))), "bad"), columns, INDENT)
    return rows


def choices(question: Question, columns: int) -> list[Line]:
    """The question in words, and its keys in as few rows as they take."""
    rows = wrap(line(_words(question), "question"), columns)
    offers = offered(question)
    all_of_them = lay_out_choices(offers, columns)
    if len(all_of_them) > 1:  # what says yes stands above what says no
        at = next(number for number, choice in enumerate(offers) if choice.key == "n")
        all_of_them = [*lay_out_choices(offers[:at], columns), *lay_out_choices(offers[at:], columns)]
    rows += all_of_them
    if question.kind == "command" and not question.may_always:
        rows += wrap(line(say("tui.no_always"), "dim"), columns)
    return rows


def few_words(question: Question, columns: int) -> list[Line]:
    """The same in as few rows as can be, for a window in which the words of all keys have no room: `?` explains them."""
    offers = {choice.key: choice for choice in offered(question)}
    named = [offers.pop(key) for key in ("y", "n") if key in offers]
    keys = " ".join(key for key in offers if len(key) == 1)
    rest = [AnswerChoice(keys, ""), AnswerChoice("?", "")] if keys else [AnswerChoice("?", "")]
    rows = wrap(line(_words(question), "question"), columns)
    short = [AnswerChoice(each.key, each.label.partition(",")[0].partition("，")[0]) for each in named]
    return [*rows[:2], *lay_out_choices([*short, *rest], columns)]


def lay_out_choices(offers: Sequence[AnswerChoice], columns: int) -> list[Line]:
    """Choices are not broken, where they fit a row."""
    rows: list[Line] = []
    row: list[Span] = []
    for choice in offers:
        cell = (Span(choice.key, "key"), Span(f" {visible(choice.label)}"))
        if columns_of(cell) > columns:
            rows += [tuple(row)] if row else []
            rows += wrap(cell, columns)
            row = []
            continue
        if row and columns_of(row) + BETWEEN + columns_of(cell) > columns:
            rows.append(tuple(row))
            row = []
        row += [Span(" " * BETWEEN)] if row else []
        row += cell
    return [*rows, tuple(row)] if row else rows


def _changes(question: Question) -> diff.FileDiff | None:
    return diff.find_diff(question.intent.preview) if question.kind == "edit" else None


def _heading(question: Question, name: str, size: str, columns: int) -> list[Line]:
    key = {"edit": "tui.asks_edit", "command": "tui.asks_command", "host": "tui.asks_other", "other": "tui.asks_other"}[question.kind]
    if question.intent.writing == "refused":
        key = "tui.asks_again"
    if question.intent.outside:
        key = "tui.asks_outside"
    title = say(key, what=_titled(name))
    spans = [Span("▸ ", "accent"), Span(title.strip(), "title")]
    if size:
        spans.append(Span(f"  {size}", "dim"))
    if question.count > 1:
        spans.append(Span(f"   {say('tui.of_answer', number=question.number, all=question.count)}", "dim"))
    return wrap(tuple(spans), columns, rest=INDENT)


def _reason(question: Question, columns: int) -> list[Line]:
    """Of a command that is to run outside the sandbox: what that means, and what the model says."""
    if not question.intent.outside:
        return []
    said = visible(one_line(escape_hidden(say("outside_reason", reason=question.intent.outside), one_line=True)))
    return [*wrap(line(say("outside_means"), "warn"), columns, INDENT), *wrap(line(said), columns, INDENT)]


def _preview(question: Question, columns: int) -> list[Line]:
    """Any text may come: the bar marks it, so that no part of it can look like our own."""
    text = escape_hidden(question.intent.preview or question.call.arguments).removesuffix("\n")
    language, inside = "shell" if question.kind == "command" else "", ""
    rows: list[Line] = []
    for each in text.split("\n"):
        spans, inside = highlight(visible(each), language, inside)
        rows += wrap_code(spans, columns, (Span("  │ ", "border"),), (Span("  │", "border"), Span(CODE_MARK.strip(), "dim")))
    return rows


def _titled(name: str) -> str:
    """Escaped before anything else is done with it: what is hidden is shown, not left out."""
    return visible(one_line(escape_hidden(name, one_line=True), _TITLE_CHARS))


def _object(question: Question) -> str:
    title = question.intent.title or question.call.name
    return "" if question.kind == "command" else title


def _words(question: Question) -> str:
    changes = _changes(question)
    return visible(question_words(question.call.name, question.intent, question.kind, changes.name if changes else ""))
