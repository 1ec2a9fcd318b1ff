"""The first start without a key: the ways to a model on one screen, of which none ends the program. Line by line, in any terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.app.asking import Ask, FirstQuestion, question_terminal
from dragoman.app.choice import LOCAL, local_choice, no_model_error, running_servers
from dragoman.app.console import raising_ctrl_c
from dragoman.app.keys import key_source, stored_keys
from dragoman.app.setup import Choice, Setup
from dragoman.base.places import shorten_home
from dragoman.base.text import size
from dragoman.base.wrapping import columns_of, wrap_line
from dragoman.providers.auth import checked_key
from dragoman.providers.catalog import Catalog, needs_only_a_key
from dragoman.values.errors import DragomanError, InputError
from dragoman.values.profile import Deployment
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.probe import RunningServer

KEY_PAGES = {
    "anthropic": "https://console.anthropic.com/settings/keys",
    "openai": "https://platform.openai.com/api-keys",
    "responses": "https://platform.openai.com/api-keys",
    "gemini": "https://aistudio.google.com/apikey",
    "openrouter": "https://openrouter.ai/settings/keys",
    "deepseek": "https://platform.deepseek.com/api_keys",
    "mistral": "https://console.mistral.ai/api-keys",
    "groq": "https://console.groq.com/keys",
    "xai": "https://console.x.ai",
    "kimi": "https://platform.moonshot.ai/console/api-keys",
    "qwen": "https://modelstudio.console.alibabacloud.com",
    "glm": "https://z.ai/manage-apikey/apikey-list",
    "together": "https://api.together.ai/settings/api-keys",
}
"""Where a service hands out keys."""
_BEGINNINGS = {
    "sk-ant-": "anthropic",
    "sk-or-": "openrouter",
    "sk-proj-": "openai",
    "sk-svcacct-": "openai",
    "AIza": "gemini",
    "gsk_": "groq",
    "xai-": "xai",
}
"""How the keys of a service begin, where no other's do."""
_SHARED = ("sk-",)
"""How the keys of several begin."""
_LEAST_KEY = 20


class WaysIn:
    """Asks until there is a model. `ask` reads letters and lines from a terminal in its usual mode; `ask_about` asks about servers that
    were found, and `require` has the weights of a model pulled."""

    def __init__(
        self,
        setup: Setup,
        catalog: Catalog,
        ask: Ask,
        *,
        ask_about: Callable[[Setup, tuple[RunningServer, ...], Ask], tuple[Choice, tuple[str, ...]] | None],
        require: Callable[[Setup, str, Ask], None],
    ) -> None:
        self._ask_about = ask_about
        self._require = require
        self._setup = setup
        self._catalog = catalog
        self._ask = ask
        self._services = [row for row in catalog.deployments.values() if needs_only_a_key(row)]

    def choose(self) -> tuple[Choice, tuple[str, ...]]:
        """The model and notices about the choice. Raises EOFError where the user leaves, Unauthorized where nobody can be asked."""
        ways: dict[str, Callable[[], tuple[Choice, tuple[str, ...]] | None]] = {
            "k": self._paste_key,
            "s": self._choose_service,
            "o": self._find_server,
            "m": self._use_small_model,
        }
        for line in self._page():
            self._tell(line)
        while True:
            question = FirstQuestion((), say("ways_question"), dict.fromkeys((*ways, "q"), ""), say("ways_why"), "?", takes=_looks_like_key)
            said = self._ask(question)
            if not said:
                raise no_model_error(self._catalog)
            if said == "q":
                raise EOFError
            try:
                found = self._take_key(said) if said not in ways else ways[said]()
            except EOFError:
                found = None  # Ctrl-D at a question of one way leads back to them all
            except DragomanError as error:
                self._tell(str(error))
                found = None
            if found is not None:
                return found
            self._tell("")

    def _page(self) -> tuple[str, ...]:
        where = shorten_home(os.path.dirname(self._setup.places.keys_file))
        rows = (
            ("k", say("ways_key"), say("ways_key_about", folder=where)),
            ("s", say("ways_service"), say("ways_service_about", count=len(self._services))),
            ("o", say("ways_server"), say("ways_server_about")),
            ("m", say("ways_model"), self._about_small_model()),
            ("q", say("ways_leave"), ""),
        )
        titles = _padded([title for _, title, _ in rows])
        lines = [f"  {key}  {title}  {about}".rstrip() for title, (key, _, about) in zip(titles, rows, strict=True)]
        return (say("ways_intro"), "", *lines, "")

    def _about_small_model(self) -> str:
        from dragoman.local.engine import unusable_reason
        from dragoman.local.weights.models import get_model

        model = get_model(self._catalog[LOCAL].default_model)
        about = say("ways_model_about", title=model.title.partition(",")[0], size=size(model.bytes), licence=model.licence)
        return about + say("ways_model_engine") if unusable_reason() else about

    # --- the ways

    def _paste_key(self) -> tuple[Choice, tuple[str, ...]] | None:
        return self._take_key(_read_hidden(say("ways_paste")))

    def _choose_service(self) -> tuple[Choice, tuple[str, ...]] | None:
        titles = _padded([row.title or row.name for row in self._services])
        pages = [KEY_PAGES.get(row.name, "") for row in self._services]
        rows = [f"  {number:>2}  {title}  {page}".rstrip() for number, (title, page) in enumerate(zip(titles, pages, strict=True), 1)]
        return self._ask_key_of(self._pick(self._services, (*rows, "")))

    def _find_server(self) -> tuple[Choice, tuple[str, ...]] | None:
        servers = running_servers(self._setup, self._catalog)
        if not servers:
            self._tell(say("ways_no_server"))
            return None
        return self._ask_about(self._setup, servers, self._ask)

    def _use_small_model(self) -> tuple[Choice, tuple[str, ...]] | None:
        choice = local_choice(self._setup, self._catalog)
        model = choice.model if choice is not None else f"{LOCAL}/{self._catalog[LOCAL].default_model}"
        self._require(self._setup, model, self._ask)
        choice = choice or local_choice(self._setup, self._catalog)
        if choice is None:  # the weights are here; the engine is not
            from dragoman.local.engine import unusable_reason

            raise InputError(unusable_reason())
        return choice, ()

    # --- keys

    def _take_key(self, typed: str) -> tuple[Choice, tuple[str, ...]] | None:
        """Of which service the key is, it says itself; else the user does. Nothing typed leads back."""
        if not typed.strip():
            return None
        named = service_of_key(typed, [row.name for row in self._services])
        if len(named) == 1:
            return self._store(self._catalog[named[0]], typed)
        rows = [self._catalog[name] for name in named] or self._services
        listed = [f"  {number:>2}  {row.title or row.name}" for number, row in enumerate(rows, 1)]
        row = self._pick(rows, (say("ways_whose_key"), *listed, ""))
        return self._store(row, typed) if row is not None else None

    def _ask_key_of(self, row: Deployment | None) -> tuple[Choice, tuple[str, ...]] | None:
        if row is None:
            return None
        typed = _read_hidden(say("auth_prompt", title=row.title or row.name))
        return self._store(row, typed) if typed.strip() else None

    def _store(self, row: Deployment, typed: str) -> tuple[Choice, tuple[str, ...]]:
        key = checked_key(typed, lambda: say("auth_this_key"))
        keys = stored_keys(self._setup)
        try:
            stored = keys.add(row.name, key)
        except OSError as error:
            raise InputError(say("auth_not_stored", path=keys.file, reason=error.strerror or error)) from error
        words = say(f"auth_added_{stored.stored_in}", service=row.name, path=shorten_home(keys.file), reason=stored.reason)
        source = key_source(row, self._setup)
        return Choice(f"{row.name}/{row.default_model}", source.words if source else "", "stored"), (words,)

    def _pick(self, rows: Sequence[Deployment], intro: tuple[str, ...]) -> Deployment | None:
        """One of them by its number or the beginning of its name; Enter alone leads back."""

        def found(said: str) -> Deployment | None:
            if said.isdecimal():
                return rows[int(said) - 1] if 0 < int(said) <= len(rows) else None
            wanted = said.lower()
            begins = [row for row in rows if wanted in (row.name, row.title.lower())]
            begins = begins or [row for row in rows if len(wanted) > 1 and wanted in f"{row.name} {row.title}".lower()]
            return begins[0] if begins else None

        question = FirstQuestion(intro, say("ways_which_service"), {"b": ""}, "", "b", takes=_is_one_word)
        while (said := self._ask(question)) not in ("", "b"):
            if (row := found(said)) is not None:
                return row
            self._tell(say("ways_no_such_service", said=said, count=len(rows)))
            question = question._replace(intro=())
        return None

    def _tell(self, text: str) -> None:
        screen = question_terminal()
        for line in wrap_line(text, columns_of(screen)) if screen is not None else ():
            print(line, file=screen, flush=True)


def service_of_key(typed: str, known: Sequence[str]) -> list[str]:
    """The services whose keys begin so; empty: it could be any."""
    key = typed.strip()
    for beginning, name in _BEGINNINGS.items():
        if key.startswith(beginning):
            return [name] if name in known else []
    if key.startswith(_SHARED):
        return [name for name in ("openai", "deepseek", "kimi", "qwen") if name in known]
    return []


def _looks_like_key(said: str) -> bool:
    """Whether a line typed where a letter was asked for is a key: it must not become part of a prompt."""
    begins = said.startswith((*_BEGINNINGS, *_SHARED))
    return len(said) >= _LEAST_KEY and not any(map(str.isspace, said)) and (begins or (said.isascii() and any(map(str.isdigit, said))))


def _read_hidden(prompt: str) -> str:
    """Nothing that is typed is shown. Raises EOFError, also for Ctrl-C, which leads back."""
    from getpass import getpass

    if sys.stdin is None or not sys.stdin.isatty():
        raise EOFError
    try:
        with raising_ctrl_c():
            return getpass(prompt)
    except KeyboardInterrupt:
        raise EOFError from None


def _is_one_word(said: str) -> bool:
    """A number or a name; a sentence is kept for the prompt."""
    return len(said.split()) == 1


def _padded(titles: Sequence[str]) -> list[str]:
    from dragoman.base.graphemes import width

    most = max(map(width, titles))
    return [title + " " * (most - width(title)) for title in titles]
