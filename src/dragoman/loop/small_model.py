"""What is done for a model too small to follow long instructions: a short prompt, few tools, and a reminder to answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import msgspec

from dragoman.base import jsontext
from dragoman.loop.guard import LoopGuard
from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.values.events import NoticeGiven, TurnEvent
from dragoman.values.messages import Message, ToolSpec, user
from dragoman.values.notes import ANSWER_NOTE, ASKED_AGAIN
from dragoman.values.record import AnswerUnchecked, Said
from dragoman.words import say

MAX_QUESTION_CHARS = 1_000
"""A longer question costs more to read again than it helps."""

_ANSWER = user(ANSWER_NOTE)


def wants_short_prompt(model: Model) -> bool:
    """Whether to leave out long instructions, surroundings and memory: it takes the files it is told of for those it is asked about."""
    small = model.profile.small
    return small is not None and small.short_prompt


def choose_tools(model: Model, tools: tuple[ToolSpec, ...], unchosen: Collection[str]) -> tuple[ToolSpec, ...]:
    """The tools a model can keep apart. `unchosen` are those that are there by default; what somebody chose is always offered whole."""
    small = model.profile.small
    if small is None or not (few := small.few_tools):
        return tools
    kept = (spec for spec in tools if spec.name in few or spec.name not in unchosen)
    return tuple(spec if spec.name not in unchosen else shorten(spec, few[spec.name]) for spec in kept)


def shorten(spec: ToolSpec, parameters: Collection[str]) -> ToolSpec:
    """A tool in one sentence, with some of its parameters: a small model fills in whatever it is told of."""
    schema = spec.schema
    kept = {name: each for name, each in schema.get("properties", {}).items() if name in parameters}
    schema |= {"properties": kept, "required": list(kept)}
    schema.pop("additionalProperties", None)  # it is checked all the same; the grammar allows no other names
    return msgspec.structs.replace(spec, description=spec.description.partition(". ")[0], parameters=jsontext.dumps(schema))


def note_doubt(model: Model, asked: str, answer: str, history: History, emit: Callable[[TurnEvent], None]) -> str:
    """Mark the answer of a model too small to be trusted that says of files what no call has returned: on the record and for the user.
    Returns what they are told; empty where there is nothing to doubt."""
    if model.profile.small is None or not history.view.tools:
        return ""
    from dragoman.loop.unsupported import find_doubt

    doubt = find_doubt(asked, answer, history.view.messages)
    if doubt is None:
        return ""
    told = say(f"loop.doubt_{doubt.why}", model=model.name, names=", ".join(doubt.names))
    said = next(entry for entry in reversed(history.entries) if isinstance(entry, Said) and entry.by == "model")
    history.append(AnswerUnchecked(*history.stamp(), said.seq, told))
    emit(NoticeGiven("answer", told))
    return told


def advise_only(text: str, offered: Collection[str], tools: Collection[str]) -> str:
    """A refusal without the advice to use tools that the model is not told of: `tools` are all there are, `offered` those it knows."""
    missing = "|".join(re.escape(name) for name in tools if name not in offered)
    if not missing or re.search(rf"\b(?:{missing})\b", text) is None:
        return text
    text = re.sub(rf"\b(?:{missing})\b(?:, | or | and )(?=\w)", "", text)
    text = re.sub(rf"(?:, | or | and )(?:{missing})\b", "", text)
    head, *clauses = re.split(r"([;:.] (?=\w))", text)
    for mark, clause in zip(clauses[::2], clauses[1::2], strict=True):
        head += "" if re.search(rf"\b(?:{missing})\b", clause) else mark + clause
    return head


def reminder_to_answer(model: Model, guard: LoopGuard, question: str) -> Message | None:
    """What to tell a model that has called often enough and has to answer in words; None where it may go on calling.

    Where a grammar keeps it from writing calls, the question is repeated: a small model answers what it has read last, and repeats what it
    is told of tools.
    """
    small = model.profile.small
    if small is None or not (enough := small.answer_after_calls) or not (guard.has_repeated or guard.successes >= enough):
        return None
    is_bound = bool(model.provider.dialect) and small.bound_calls
    return user(ASKED_AGAIN + question) if is_bound and 0 < len(question) <= MAX_QUESTION_CHARS else _ANSWER
