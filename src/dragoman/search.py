"""The web, searched: google_web_search without an agent, and the citations that answers carry."""

from dragoman.loop.searching import WebSearchResult, google_web_search, google_web_search_sync
from dragoman.tools.web.citations import CitedText, Support, cite
from dragoman.tools.web.grounding import cite_message, sources_of, supports_of
from dragoman.values.messages import Source

__all__ = [
    "CitedText",
    "Source",
    "Support",
    "WebSearchResult",
    "cite",
    "cite_message",
    "google_web_search",
    "google_web_search_sync",
    "sources_of",
    "supports_of",
]
