"""`/bug`: what a report of a fault should say about this program and this machine. Nothing is sent, and nothing private is in it."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

from dragoman import __version__
from dragoman.app.config_tables import keys
from dragoman.base.text import one_line
from dragoman.words import chosen_language, say

if TYPE_CHECKING:
    from dragoman.conversation.talk import Talk

_SHOWN = ("TERM", "TERM_PROGRAM", "COLORTERM", "LANG", "LC_ALL", "NO_COLOR")
"""Variables that say how a terminal shows things; no other is looked at."""


def bug(talk: Talk, rest: str) -> None:
    for line in _report_lines(talk):
        talk.screen.line(line)


def _report_lines(talk: Talk) -> list[str]:
    agent, setup = talk.agent, talk.setup
    variables = [f"{name}={one_line(os.environ[name], 40)}" for name in _SHOWN if os.environ.get(name)]
    inside = [name for name in ("TMUX", "STY", "SSH_CONNECTION") if os.environ.get(name)]
    changed = [key for key in keys() if setup.loaded.source(key).kind != "default"]
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    facts = {
        "dragoman": f"{__version__}, {chosen_language()}",
        "python": f"{platform.python_version()} ({sys.implementation.name}), {system}",
        "terminal": " ".join((say("stats.columns", count=talk.screen.columns), *variables, *inside)),
        "model": f"{talk.model}",
        "approval": agent.approvals.mode,
        "settings": ", ".join(changed) or "-",
        "session": f"{agent.session_id}, {say('stats.entries', count=len(agent.history.entries))}",
    }
    width = max(map(len, facts))
    return [say("stats.bug_head"), *(f"  {name:<{width}}  {text}" for name, text in facts.items()), say("stats.bug_foot")]
