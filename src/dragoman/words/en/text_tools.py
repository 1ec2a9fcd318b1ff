"""The library: tools described in text."""

TEXTS = {
    "text_tools.unknown_dialect": "no dialect is called {name!r}{hint}",
    "text_tools.did_you_mean": "; did you mean {names}?",
}
