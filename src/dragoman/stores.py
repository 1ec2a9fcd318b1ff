"""Where sessions are kept: in files, in one SQLite file, or in a store of your own with the same methods."""

from dragoman.loop.session_forms import sent_history as sent_history
from dragoman.loop.session_forms import shown_history as shown_history
from dragoman.sessions.blobs import SavedBlobs as SavedBlobs
from dragoman.sessions.journal import SavedJournal as SavedJournal
from dragoman.sessions.log import LoadedLog as LoadedLog
from dragoman.sessions.removal import Removal as Removal
from dragoman.sessions.search_table import Hit as Hit
from dragoman.sessions.sqlite.store import SqliteStore as SqliteStore
from dragoman.sessions.store import FileStore as FileStore
from dragoman.sessions.store import StoredSession as StoredSession
from dragoman.sessions.stores import Store as Store
from dragoman.sessions.summary import Summary as Summary
