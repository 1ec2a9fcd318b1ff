"""Where sessions are kept: in files, in one SQLite file, or in a store of your own with the same methods."""

from dragoman.loop.session_forms import sent_history, shown_history
from dragoman.sessions.blobs import SavedBlobs
from dragoman.sessions.journal import SavedJournal
from dragoman.sessions.log import LoadedLog
from dragoman.sessions.removal import Removal
from dragoman.sessions.search_table import Hit
from dragoman.sessions.sqlite.store import SqliteStore
from dragoman.sessions.store import FileStore, StoredSession
from dragoman.sessions.stores import Store
from dragoman.sessions.summary import Summary

__all__ = [
    "FileStore",
    "Hit",
    "LoadedLog",
    "Removal",
    "SavedBlobs",
    "SavedJournal",
    "SqliteStore",
    "Store",
    "StoredSession",
    "Summary",
    "sent_history",
    "shown_history",
]
