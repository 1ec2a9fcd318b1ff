"""The facts of the status line. Those that cost something to know are looked at when they may have changed, not for every frame."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Literal

from dragoman.base.clock import now_ms
from dragoman.base.found_files import read_found_text
from dragoman.base.places import shorten_home
from dragoman.tui.line import EMPTY, Line
from dragoman.tui.status import WIDE, Facts, status_line
from dragoman.words import chosen_language

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.loop.agent import Agent
    from dragoman.tui.talk import LiveTalk

_HEAD_BYTES = 200
COUNT_S = 1.0
"""How often the line is drawn while it counts."""


class StatusFacts:
    """Keeps the facts of the status line up to date."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._window = 0
        self._branch: tuple[str, float] = ("", 0.0)
        self._made_of: tuple[Facts, int, str] | None = None
        self._line: Line = EMPTY
        self._is_counting = False

    def look(self, agent: Agent) -> None:
        """What the next request holds: a plan of an empty conversation is not made, so that the first frame does not wait for it."""
        self._window = agent.provider.profile(agent.model).prompt_window
        self._plan = agent.plan() if any(message.role == "assistant" for message in agent.history.view.messages) else None

    def line(self, talk: LiveTalk, columns: int) -> Line:
        """The status line. While an answer is written hardly anything in it changes, and it is not made anew."""
        facts = self.now(talk)
        made_of = (facts, columns, chosen_language())
        if made_of != self._made_of:
            self._made_of, self._line = made_of, status_line(facts, columns)
        self._count_down(talk, facts, columns)
        return self._line

    def now(self, talk: LiveTalk) -> Facts:
        plan = self._plan
        workspace = talk.setup.workspace
        sandbox = talk.agent.approvals.known_sandbox
        cache, cache_s = warmth(plan, now_ms(), is_running=talk.is_busy) if plan else ("", 0)
        return Facts(
            mode=talk.agent.approvals.mode,
            sandbox=sandbox.level if sandbox is not None else None,
            has_gate=sandbox is None or sandbox.can_have_gate,
            model=talk.model,
            used_tokens=plan.tokens if plan else 0,
            window_tokens=self._window,
            cost_usd=talk.cost_usd,
            next_usd=plan.costs.next_input_usd if plan else None,
            cache=cache,
            cache_s=cache_s,
            folder=shorten_home(workspace),
            branch=self._branch_of(workspace),
            is_running=talk.is_busy,
        )

    def _count_down(self, talk: LiveTalk, facts: Facts, columns: int) -> None:
        """A cache that is warm grows cold by itself: the line is drawn again while it says for how long, and when it does."""
        if not facts.cache_s or self._is_counting:
            return

        def go_on() -> None:
            self._is_counting = False
            if self._plan is not None and self._plan.cache.until_ms < now_ms() and not talk.is_busy:
                self.look(talk.agent)  # the next request costs more now
            talk.canvas.request()

        self._is_counting = talk.canvas.call_later(COUNT_S if columns >= WIDE else facts.cache_s, go_on)

    def _branch_of(self, folder: str) -> str:
        """The branch that is checked out, read from git's own file at most every other second."""
        name, read_s = self._branch
        now = time.monotonic()
        if not read_s or now - read_s > 2:
            name = _read_branch(folder)
            self._branch = (name, now)
        return name


def warmth(plan: Plan, now_ms: int, *, is_running: bool) -> tuple[Literal["", "warm", "cold"], int]:
    """Whether the cache is warm, and for how many seconds more. A request that is under way keeps it warm."""
    if not plan.cache.last_ms:
        return "", 0
    if not plan.cache.warm:
        return "cold", 0
    if is_running:
        return "warm", 0
    left_s = (plan.cache.until_ms - now_ms + 999) // 1000
    return ("warm", left_s) if left_s > 0 else ("cold", 0)


def _read_branch(folder: str) -> str:
    try:
        head = read_found_text(os.path.join(folder, ".git", "HEAD"), _HEAD_BYTES, cut=True, errors="replace").strip()
    except OSError:
        return ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:8]
