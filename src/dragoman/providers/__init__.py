"""ROOM. Providers: a Request becomes a stream of events. A service is a row of the catalog, a protocol is a module."""
