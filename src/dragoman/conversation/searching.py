"""`/search QUERY` in a conversation: one web search that no model asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.base.text import one_line
from dragoman.conversation.spent_words import spent_words
from dragoman.loop.searching import WebSearchResult
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.talk import Talk


async def search_in(talk: Talk, query: str, show: Callable[[str], None]) -> None:
    """Have what is found shown. The model reads it with the next prompt."""
    talk.show_progress(say("conversation.searching", query=one_line(query, 100)))
    found = await talk.agent.search(query)
    show(found.display)
    talk.screen.line("")
    talk.screen.message(_spent(found), "dim")


def _spent(found: WebSearchResult) -> str:
    spent = (spent_words(found.usage, found.cost_usd, estimated=False),) if found.requests else ()
    return " · ".join((say("conversation.searched_by", who=found.searched_by), *spent, say("conversation.search_is_told")))
