"""ANNEX. Test doubles that ship: scripts, a scripted provider, loopback services with validators, cassettes, in-memory stores."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dragoman.testing.cassette import Cassette as Cassette
    from dragoman.testing.journal import MemoryJournal as MemoryJournal
    from dragoman.testing.mock.server import MockServer as MockServer
    from dragoman.testing.script import Script as Script
    from dragoman.testing.scripted import ScriptedProvider as ScriptedProvider
    from dragoman.values.blobs import MemoryBlobs as MemoryBlobs

_EXPORTS = {
    "Cassette": "dragoman.testing.cassette",
    "MemoryBlobs": "dragoman.values.blobs",
    "MemoryJournal": "dragoman.testing.journal",
    "MockServer": "dragoman.testing.mock.server",
    "Script": "dragoman.testing.script",
    "ScriptedProvider": "dragoman.testing.scripted",
}

__all__ = [*_EXPORTS]  # pyrefly: ignore[unresolvable-dunder-all]

if not TYPE_CHECKING:

    def __getattr__(name):
        module = _EXPORTS.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(module), name)
