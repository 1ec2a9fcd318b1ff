"""Removes our own keys from tool results: a file or a command may show one, and it must reach neither the model nor the log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from dragoman.loop.model import Models
from dragoman.providers.catalog import secret_variables
from dragoman.providers.http_provider import HttpProvider
from dragoman.providers.repeated_keys import HiddenKeys, keys_to_hide
from dragoman.values.contracts import Provider
from dragoman.values.wrapping import WrappingProvider


class OwnKeys:
    """The keys of every service that the agent knows: those in the environment, those its providers send, and `further` ones, such as
    the tokens of MCP servers."""

    def __init__(self, models: Models, further: Sequence[Callable[[], Iterable[str]]] = ()) -> None:
        self._models = models
        self._further = further
        self._variables = secret_variables(models.catalog)
        self._set: tuple[str, ...] = ()
        """The variables that are set."""
        self._variable_count = -1
        self._secrets: tuple[str, ...] = ()
        self._hidden: HiddenKeys | None = None

    def hidden(self) -> HiddenKeys | None:
        """What hides our keys, as they are now: a token may have been fetched anew. None if there are none."""
        if len(os.environ) != self._variable_count:  # else none was added: looking all of them up takes longer than a small tool
            self._set, self._variable_count = tuple(name for name in self._variables if name in os.environ), len(os.environ)
        further = (secret for secrets in self._further for secret in secrets())
        secrets = (*filter(None, map(os.environ.get, self._set)), *self._sent(), *further)
        if secrets != self._secrets:
            keys = keys_to_hide(secrets)
            self._secrets, self._hidden = secrets, HiddenKeys(keys) if keys else None
        return self._hidden

    def _sent(self) -> list[str]:
        senders = filter(None, map(_sender_of, self._models.providers))
        return [secret for sender in senders for secret in sender.secrets()]


def _sender_of(provider: Provider) -> HttpProvider | None:
    while isinstance(provider, WrappingProvider):
        provider = provider.provider
    return provider if isinstance(provider, HttpProvider) else None
