"""`dragoman serve-local`: serves a local model to other programs through llama.cpp's own server, on loopback only."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

from dragoman.app.asking import LineQuestions
from dragoman.app.options import Options
from dragoman.app.printing import print_out
from dragoman.app.setup import catalog_of, set_up
from dragoman.providers.catalog import profile_for
from dragoman.values.errors import InputError
from dragoman.words import say

PORT = 8080
"""The port of the deployment `llamacpp`."""
LOOPBACK = "127.0.0.1"
BASES = {"openai_chat": "/v1", "openai_responses": "/v1", "anthropic": ""}
"""The path of each protocol's base URL."""


def serve(options: Options) -> int:
    """Returns when Ctrl-C ends it."""
    server, name = start(options)
    lines = [say("serving", model=name, url=server.listening_address)]
    lines += [say("serving_url", protocol=protocol, url=server.listening_address + path) for protocol, path in BASES.items()]
    print_out("\n".join([*lines, say("serving_ends"), ""]))
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    return 0


def start(options: Options) -> tuple[Any, str]:
    """The running server and the model's name. Raises InputError or Unsupported, saying what to do."""
    from dragoman.app.first_use import require_weights
    from dragoman.local.engine import EngineSettings, check_weights, serve_on
    from dragoman.local.provider import weights_of

    if len(options.words) > 1:
        raise InputError(say("too_many_words", command=options.command, word=options.words[1]))
    setup = set_up(options)
    local = catalog_of(setup)["local"]
    name = (options.words[0].removeprefix("local/") if options.words else "") or local.default_model
    require_weights(setup, f"local/{name}", LineQuestions())
    path = weights_of(name, setup.env)
    check_weights(path)
    profile = profile_for(local, name)
    settings = EngineSettings.of(path, profile.context_window, profile.max_output_tokens, setup.env)
    port = options.port or PORT
    _require_free(port)
    listed = os.path.basename(name).removesuffix(".gguf")
    return serve_on(settings, LOOPBACK, port, listed), listed


def _require_free(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((LOOPBACK, port))
        except OSError as error:
            raise InputError(say("port_taken", port=port, reason=error.strerror or error)) from error
