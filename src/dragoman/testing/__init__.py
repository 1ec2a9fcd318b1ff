"""ANNEX. Test doubles that ship: scripts, a scripted provider, loopback services with validators, cassettes, in-memory stores; and what
asserts on them. `dragoman.testing.fixtures` has them as pytest fixtures."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dragoman.testing.called import Called as Called
    from dragoman.testing.called import calls as calls
    from dragoman.testing.cassette import Cassette as Cassette
    from dragoman.testing.journal import MemoryJournal as MemoryJournal
    from dragoman.testing.loopback import Loopback as Loopback
    from dragoman.testing.mock.server import MockServer as MockServer
    from dragoman.testing.network import NetworkBlocked as NetworkBlocked
    from dragoman.testing.network import no_network as no_network
    from dragoman.testing.recorded import RecordedService as RecordedService
    from dragoman.testing.script import Script as Script
    from dragoman.testing.scripted import ScriptedProvider as ScriptedProvider
    from dragoman.testing.validity import Validated as Validated
    from dragoman.testing.validity import assert_valid as assert_valid
    from dragoman.values.blobs import MemoryBlobs as MemoryBlobs

_EXPORTS = {
    "Called": "dragoman.testing.called",
    "Cassette": "dragoman.testing.cassette",
    "Loopback": "dragoman.testing.loopback",
    "MemoryBlobs": "dragoman.values.blobs",
    "MemoryJournal": "dragoman.testing.journal",
    "MockServer": "dragoman.testing.mock.server",
    "NetworkBlocked": "dragoman.testing.network",
    "RecordedService": "dragoman.testing.recorded",
    "Script": "dragoman.testing.script",
    "ScriptedProvider": "dragoman.testing.scripted",
    "Validated": "dragoman.testing.validity",
    "assert_valid": "dragoman.testing.validity",
    "calls": "dragoman.testing.called",
    "no_network": "dragoman.testing.network",
}

__all__ = [*_EXPORTS]  # pyrefly: ignore[unresolvable-dunder-all]

if not TYPE_CHECKING:

    def __getattr__(name):
        module = _EXPORTS.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(module), name)
