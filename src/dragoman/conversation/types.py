"""What every front end is given to show. Frozen and ready for JSON: no styles, no widths, no terminal."""

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
