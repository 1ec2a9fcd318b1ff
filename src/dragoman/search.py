"""The web, searched: google_web_search without an agent, and the citations that answers carry."""

from dragoman.loop.searching import WebSearchResult as WebSearchResult
from dragoman.loop.searching import google_web_search as google_web_search
from dragoman.loop.searching import google_web_search_sync as google_web_search_sync
from dragoman.tools.web.citations import CitedText as CitedText
from dragoman.tools.web.citations import Support as Support
from dragoman.tools.web.citations import cite as cite
from dragoman.tools.web.grounding import cite_message as cite_message
from dragoman.tools.web.grounding import sources_of as sources_of
from dragoman.tools.web.grounding import supports_of as supports_of
from dragoman.values.messages import Source as Source
