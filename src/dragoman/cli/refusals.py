"""What a run with `-p` reports at its end: calls that were refused, and calls that a saved approval allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dragoman.conversation.call_lines import title
from dragoman.policy.approvals import Ruling
from dragoman.policy.judge import WEB_SEARCH, Mode
from dragoman.values.calls import Intent
from dragoman.values.messages import ToolCall
from dragoman.words import say

SHOWN = 5


class Refusals:
    """The titles of such calls, by why."""

    def __init__(self) -> None:
        self._titles: dict[Literal["nobody", "outside", "guarded", "mode", "rule", "granted"], list[str]] = {
            "nobody": [],
            "outside": [],
            "guarded": [],
            "mode": [],
            "rule": [],
            "granted": [],
        }
        self._has_edits = self._has_commands = self._has_searches = False
        self._server_tool = ""
        """The first tool of a server that nobody could be asked about."""

    @property
    def count(self) -> int:
        """How many calls were refused."""
        return sum(len(titles) for why, titles in self._titles.items() if why != "granted")

    def take(self, call: ToolCall, intent: Intent) -> None:
        """A call that somebody would have to be asked about."""
        if intent.outside:
            return self._titles["outside"].append(intent.title or title(call))
        is_guarded = intent.guarded in ("own", "trusted")
        self._titles["guarded" if is_guarded else "nobody"].append(intent.title or title(call))
        self._has_edits = self._has_edits or (not is_guarded and bool(intent.writes))
        self._has_commands = self._has_commands or bool(intent.command)
        self._has_searches = self._has_searches or call.name == WEB_SEARCH
        self._server_tool = self._server_tool or (call.name if call.name.startswith("mcp__") else "")

    def take_ruling(self, ruling: Ruling, call: ToolCall, intent: Intent, reason: str) -> None:
        """Implements approvals.OnRuling."""
        if ruling == "refused":
            self._titles["mode" if reason.startswith("plan mode") else "rule"].append(intent.title or title(call))
        elif ruling == "granted":
            self._titles["granted"].append(intent.title or title(call))

    def lines(self, mode: Mode) -> list[str]:
        lines: list[str] = []
        for why, titles in self._titles.items():
            if titles:
                hint = self._hint(mode) if why == "nobody" else ""
                lines.append(say(f"refused_{why}", count=len(titles), names=_names(titles), hint=hint, mode=mode))
        return lines

    def _hint(self, mode: Mode) -> str:
        edits = say("refused_edits_hint") if mode == "default" and self._has_edits else ""
        commands = say("refused_commands_hint") if self._has_commands else ""
        searches = say("refused_search_hint") if self._has_searches else ""
        return edits + commands + searches + (say("refused_server_tools_hint", name=self._server_tool) if self._server_tool else "")


def _names(titles: Sequence[str]) -> str:
    names = list(dict.fromkeys(titles))
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
