"""What is done for a model too small to follow long instructions: a short prompt, few tools, and a reminder to answer."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from dragoman.base import jsontext
from dragoman.context.view import View
from dragoman.loop.guard import LoopGuard
from dragoman.loop.model import Model
from dragoman.values.messages import Message, ToolSpec, user
from dragoman.values.notes import ANSWER_NOTE, ASKED_AGAIN
from dragoman.words import say

MAX_QUESTION_CHARS = 1_000
"""A longer question costs more to read again than it helps."""

_ANSWER = user(ANSWER_NOTE)

MAX_ASKED_CHARS = 400
"""A longer prompt, or one with a fence, brings along what it is about."""
_THINGS = (
    "files? folders? director(?:y|ies) tests? code codebase repo repository project functions? class(?:es)? modules? packages? scripts? "
    "readme config configuration makefile commits? branch branches diff changes build errors?"
).replace(" ", "|")
_POINTING = "the|this|my|our|these|those|all|each|every|which|any|how many|run|read|list|open|show|find|count|fix|check"
_ABOUT_FILES = (
    rf"\b(?:{_POINTING})\b(?:\s+[\w.-]+){{0,2}}?\s+(?:{_THINGS})\b"  # do the tests pass, list all files
    r"|(?:^|[\s'\"`(])(?:[\w.-]+/)*(?:[\w-]{2,}\.[A-Za-z]\w{0,4}|[\w-]\.[A-Za-z]\w{1,4})(?=$|[\s'\"`),:;?!]|\.(?:\s|$))"  # src/main.py
    r"|文件|目录|文件夹|测试|代码|项目|仓库|函数|脚本|运行"
)


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


def unread_notice(model: Model, asked: str, view: View) -> str:
    """What the user is told where a model too small to be trusted answered a question about their files without looking; else empty.

    It is a fact and not a judgement: nothing was read or run. Where anything was read earlier in the conversation, nothing is said.
    """
    if model.profile.small is None or not view.tools or any(message.results for message in view.messages):
        return ""
    return say("loop.nothing_was_read", model=model.name) if is_about_files(asked) else ""


def is_about_files(asked: str) -> bool:
    """Whether a prompt asks about what is in the workspace: its files, tests and commands, or a file by its name."""
    if len(asked) > MAX_ASKED_CHARS or "```" in asked or asked.count("\n") > 3:
        return False
    return re.search(_ABOUT_FILES, asked, re.IGNORECASE) is not None


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
