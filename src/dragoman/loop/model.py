"""The model a conversation is held with, and how models are connected by name."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

import msgspec

from dragoman.loop.options import Connector, ToolCalling
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.providers.connect import connect
from dragoman.values.contracts import BlobStore, Provider
from dragoman.values.errors import InputError, shown
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Request, ToolCall, ToolSpec
from dragoman.values.profile import Profile
from dragoman.values.tracing import traced
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.text_tools.align import NameMapping
    from dragoman.text_tools.options import TextOptions


class Model(msgspec.Struct, frozen=True):
    """A model, and who serves it."""

    provider: Provider
    name: str

    @classmethod
    def of(cls, provider: Provider) -> Model:
        return cls(provider, provider.model or provider.name)

    @property
    def full_name(self) -> str:
        """`deployment/model`."""
        return f"{self.provider.name}/{self.name}"

    @property
    def profile(self) -> Profile:
        return self.provider.profile(self.name)

    def profile_within(self, windows: Mapping[tuple[str, str], int]) -> Profile:
        """The profile. A window that is only a guess is no larger than the one recorded, which its service may have told."""
        profile = self.profile
        told = 0 if profile.known else windows.get((self.provider.name, self.name), 0)
        return msgspec.structs.replace(profile, context_window=told, input_window=0) if 0 < told < profile.prompt_window else profile

    @property
    def cache_kind(self) -> str:
        """How the service's prompt cache is addressed."""
        deployment = self.provider.deployment
        return self.profile.cache or (deployment.cache if deployment is not None else "none")

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """The provider's stream, traced where traces are on."""
        return traced(self.provider).stream(request)


class Models:
    """Connects models by name, tells them of tools natively or as text, and closes what it opened."""

    def __init__(
        self, connector: Connector | None, blobs: BlobStore, calling: ToolCalling = "auto", text: TextOptions | None = None
    ) -> None:
        """Without a connector, names are those of the built-in catalog, and keys are in the environment."""
        self._connect = connector.connect if connector is not None else connect_by_name
        self.catalog = (connector.catalog if connector is not None else None) or builtin_catalog()
        self.env = connector.env if connector is not None else os.environ
        """Where keys of other services may be looked for; None: nowhere."""
        self._blobs = blobs
        self._calling: ToolCalling = calling
        self._text = text
        self._used: dict[tuple[str, str], Provider] = {}
        """By deployment and model, the last one last: an embedder's providers may share a name."""
        self._named: dict[str, Model] = {}
        self._beside: dict[str, Model] = {}
        self._known: dict[tuple[str, str], Provider] = {}
        """Those of agents that were called as tools, or that had the conversation."""
        self._opened: list[Provider] = []
        """A provider that was given may serve other agents too, so only these are closed."""
        self.found_dialect = ""
        """The dialect of a call that was found written as text where a native one was expected."""

    @property
    def providers(self) -> list[Provider]:
        """All providers that were used or opened."""
        return [*self._used.values(), *self._opened]

    def use(self, model: str | Provider) -> Model:
        """The model as the conversation uses it. A model nobody knows is watched, in case its server does not read its calls."""
        if isinstance(model, type) or not isinstance(model, str | Provider):
            raise InputError(say("loop.not_a_provider", kind=shown(model)))
        used = self.connect(model) if isinstance(model, str) else Model.of(model)
        used.provider.look_in(self._blobs)  # one that was given knows only its own store
        self._used.pop((used.provider.name, used.name), None)
        self._used[used.provider.name, used.name] = used.provider
        if used.provider.dialect:
            return used  # an embedder has wrapped it
        profile = used.profile
        if self._calling == "text" or (self._calling == "auto" and profile.tools == "text"):
            return self.in_text(used)
        used = self._without_thinking(used)
        if self._calling == "native" or profile.known:
            return used
        from dragoman.text_tools.detector import Detector

        return Model(Detector(used.provider, self._notice), used.name)

    def reuse(self, model: str | Provider) -> Model:
        """`use`, with one connection for all times a name is asked for."""
        if not isinstance(model, str):
            return self.use(model)
        if model not in self._named:
            self._named[model] = self.use(model)
        return self._named[model]

    def connect_once(self, name: str) -> Model:
        """`connect`, with one connection for all times a name is asked for."""
        if name not in self._beside:
            self._beside[name] = self.connect(name)
        return self._beside[name]

    def profile_of(self, deployment: str, model: str) -> Profile:
        """The profile of a model that was used before, maybe in another process. An empty deployment is the one used last."""
        if (provider := self._used.get((deployment, model))) is not None:
            return provider.profile(model)
        if (provider := self._known.get((deployment, model))) is not None:
            return provider.profile(model)
        for (name, _), provider in reversed(self._used.items()):
            if name == deployment or not deployment:
                return provider.profile(model)
        row = self.catalog.deployments.get(deployment)
        return profile_for(row, model) if row is not None else Profile(known=False)

    def like(self, blobs: BlobStore) -> Models:
        """For another conversation: the same services, nothing opened yet."""
        other = Models(None, blobs, self._calling, self._text)
        other._connect, other.catalog, other.env = self._connect, self.catalog, self.env
        return other

    def adopt(self, model: Model) -> Model:
        """A model that another agent has connected, and closes."""
        return Model(self.use(_native(model.provider)).provider, model.name)

    def learn_from(self, others: Models) -> None:
        """Take over the profiles of another conversation's models, so that what they cost is known here."""
        self._known |= others._known | others._used

    def connect(self, name: str) -> Model:
        """A model by its name, as it is: for a tool that asks another than the conversation's."""
        provider = self._connect(name, self._blobs)
        self._opened.append(provider)
        return Model.of(provider)

    def in_text(self, model: Model, dialect: str = "") -> Model:
        """With tools as text, whatever was wrapped around it before. The dialect: named, configured, the profile's, the default."""
        from dragoman.text_tools.dialect import DEFAULT
        from dragoman.text_tools.options import TextOptions
        from dragoman.text_tools.wrapper import TextTools

        self.found_dialect = ""
        provider = model.provider.provider if isinstance(model.provider, TextTools) else _native(model.provider)
        options, profile = self._text or TextOptions(), model.profile
        chosen = dialect or (options.dialect if options.dialect != DEFAULT else profile.dialect or DEFAULT)
        is_thinking = options.is_thinking or (profile.opens_thinking and profile.tools == "text")  # else the provider has read it
        wrapped = msgspec.structs.replace(options, dialect=chosen, is_thinking=is_thinking)
        return Model(TextTools(provider, wrapped), model.name)

    def mapping_for(self, model: Model) -> NameMapping:
        """The user's own names for tools and parameters, as this model writes them."""
        return self._text.mapping_for(model.provider.name, model.name) if self._text is not None else {}

    @property
    def no_think(self) -> str:
        """The words of `TextOptions.no_think`, if the user has set them."""
        return (self._text.no_think if self._text is not None else None) or ""

    def _without_thinking(self, model: Model) -> Model:
        """With the words that turn thinking off, where the user or the profile wants them; else as it is."""
        words, profile = self._text.no_think if self._text is not None else None, model.profile
        if words == "" or (words is None and (profile.thinking != "switch" or profile.thinking_switch)):
            return model
        from dragoman.text_tools.no_think import NoThink

        return Model(NoThink(model.provider, words), model.name)

    async def aclose(self) -> None:
        for provider in self._opened:
            await provider.aclose()

    def _notice(self, dialect: str) -> None:
        self.found_dialect = dialect


def _native(provider: Provider) -> Provider:
    """The provider without what was put around one with native tools."""
    from dragoman.text_tools.detector import Detector
    from dragoman.text_tools.no_think import NoThink

    if isinstance(provider, Detector):
        provider = provider.provider
    return provider.provider if isinstance(provider, NoThink) else provider


def connect_by_name(model: str, blobs: BlobStore) -> Provider:
    """Connect a model by its name, with the built-in catalog and the keys in the environment."""
    return connect(model, blobs=blobs)


def is_doubtful(call: ToolCall, spec: ToolSpec) -> bool:
    """Whether a call that was read out of text needs a person's word: it stands in what a tool returned, so that somebody else may have
    written it; or it stands in a code fence beside other text, so that it may be an example, and does more than read."""
    if call.opaque is None:
        return False
    from dragoman.text_tools.call_note import read_note

    note = read_note(call)
    return note is not None and (bool(note.echo_of) or (note.trust == "fenced" and not spec.read_only))
