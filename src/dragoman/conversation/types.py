"""What every front end is given to show, and how it answers. Frozen and ready for JSON: no styles, no widths, no terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

ViewKind = Literal["prompt", "text", "thought", "call", "notice", "question", "answered", "plan", "usage", "status", "ended"]
ViewState = Literal["", "waiting", "running", "done", "failed", "refused", "cancelled", "not_run", "unknown", "rejected", "allowed", "gone"]
"""Of a call: how it stands; `unknown` is one that had begun when the session was interrupted. Of an answer: `running`, `done`, `rejected`
(it does not count), `cancelled`. Of a question: `waiting`, then how it was decided. `gone`, of any: the block is taken away."""


class ViewEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of what is shown. Of one kind and id is a block: its first event puts it behind the others, a later one changes it where
    it stands."""

    seq: int
    """Counted by whoever tells the events, from 1: what a browser that reconnects has seen."""
    kind: ViewKind
    id: str
    text: str = ""
    append: bool = False
    """The text is added to the block's, the data is what has changed of it, and the state stays if none is given. Otherwise all of the
    block is replaced."""
    state: ViewState = ""
    data: Mapping[str, Any] = msgspec.field(default_factory=dict)
    inside: str = ""
    """The id of the call whose subagent it comes from."""
    passing: bool = False
    """Only to be seen while it happens: the record does not say it."""


Meaning = Literal["allow", "allow_session", "allow_folder", "deny", "deny_because", "edit", "stop", "pick"]
"""What choosing an answer does: the call may run; so may similar ones, in this session or in this folder for good; it may not, without or
with a reason (the answer's `text`); the call is changed first (`text`: what it becomes); the run is stopped. `pick`: one of what is asked
about."""
QuestionKind = Literal["approval", "ask_user", "trust", "offer"]


class AnswerChoice(msgspec.Struct, frozen=True):
    """One of the answers to a question."""

    key: str
    """Names it in an `QuestionAnswer`; a key in a terminal."""
    label: str
    meaning: Meaning = "pick"


class AskedQuestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something a person is asked: about a call, by the model or a server, or before anything begins. Answered by its id."""

    id: str
    kind: QuestionKind
    title: str
    """The question, in a sentence."""
    about: str = ""
    """What it is about, in a line: `$ make test`, `edit src/a.py`."""
    detail: str = ""
    """The command in full, the diff, what would be read: every character of it visible."""
    notes: tuple[str, ...] = ()
    """What a person should know before answering: why it is asked, what is dangerous in it."""
    call_id: str = ""
    call: str = ""
    """The block of the call."""
    paths: tuple[str, ...] = ()
    """Files it would change: absolute."""
    choices: tuple[AnswerChoice, ...] = ()
    takes_text: bool = False
    """Whether words of one's own are an answer too."""
    edits: str = ""
    """What `edit` changes, as it stands: the command, or the arguments as JSON."""


class QuestionAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person says to a question."""

    question: str
    choice: str = ""
    text: str = ""


class CommandPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a slash command has to show."""

    title: str
    """The line that was run."""
    text: str = ""
    notices: tuple[str, ...] = ()
    failed: bool = False
    """The text says why it could not be carried out."""

    @property
    def data(self) -> dict[str, Any]:
        """What the event says that shows it."""
        return {"about": "command", "line": self.title, "notices": list(self.notices), "failed": self.failed}
