"""`dragoman context`: what the model sees of a session, what was left out and why, and what it costs; and making it shorter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dragoman.app.options import Options
from dragoman.app.setup import Setup, catalog_of, context_of, set_up
from dragoman.base import jsontext
from dragoman.base.clock import now_ms
from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.cli.sessions import tell
from dragoman.loop.history import History
from dragoman.values.errors import ConfigError, InputError
from dragoman.values.profile import Deployment, Profile
from dragoman.values.usage import Prices

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.providers.catalog import Catalog
    from dragoman.sessions.store import Store
    from dragoman.sessions.summary import Summary
    from dragoman.values.record import Entry


class Desk(NamedTuple):
    """What every action needs: the session that was named, and what to look things up in."""

    setup: Setup
    store: Store
    found: Summary
    catalog: Catalog

    @property
    def options(self) -> Options:
        return self.setup.options

    @property
    def as_json(self) -> bool:
        return self.options.output_format == "json"

    def entries(self) -> tuple[Entry, ...]:
        """The record, up to `--at` where that is given. What is wrong with its file is told, and the rest is shown."""
        loaded = self.store.read(self.found.path)
        tell(loaded.notices())
        entries, at = loaded.entries, self.options.at
        if at is None:
            return entries
        if not any(entry.seq == at for entry in entries):
            first, last = (entries[0].seq, entries[-1].seq) if entries else (0, 0)
            raise InputError(say("context_no_seq", seq=at, first=first, last=last, id=self.found.session_id))
        return tuple(entry for entry in entries if entry.seq <= at)

    def served(self, deployment: str, model: str) -> tuple[Deployment | None, Profile]:
        """Who serves a model and what it is, as far as the catalog knows."""
        from dragoman.providers.catalog import profile_for

        if deployment in self.catalog.deployments:
            row = self.catalog[deployment]
            return row, profile_for(row, model)
        try:
            row, name = self.catalog.find(model) if model else (None, "")
        except ConfigError:
            row, name = None, ""
        return (row, profile_for(row, name)) if row else (None, Profile(known=False))

    def prices(self, deployment: str, model: str) -> Prices | None:
        return self.served(deployment, model)[1].prices


class Action(NamedTuple):
    does: Callable[[Desk], str | tuple[str, int]]
    """What is to be printed; with it an exit code, where that may be another than 0."""
    options: tuple[str, ...] = ()


def do(options: Options) -> tuple[str, int]:
    """Do what the words say, and return what is to be printed and the exit code."""
    name, which = _words(options)
    action = ACTIONS[name]
    for key, flag in _FLAGS.items():
        if getattr(options, key) != getattr(Options(), key) and key not in action.options:
            raise InputError(say("context_not_with", name=flag, command=_command(name)))
    from dragoman.sessions.store import Store

    setup = set_up(options)
    store = Store(setup.places.sessions)
    if which in ("", "latest") and not store.list(setup.workspace):
        raise InputError(say("context_no_session"))
    done = action.does(Desk(setup, store, store.find(which, setup.workspace), catalog_of(setup)))
    return (done, 0) if isinstance(done, str) else done


def _words(options: Options) -> tuple[str, str]:
    """The action, and the session. No session is called like an action: ids are hexadecimal."""
    words = list(options.words)
    name = words.pop(0) if words and words[0] in ACTIONS else "show"
    if len(words) > 1:
        raise InputError(say("context_too_many", command=_command(name), word=one_line(words[1], 60)))
    return name, words[0] if words else "latest"


def _command(action: str) -> str:
    return "context" if action == "show" else f"context {action}"


# --- looking


def _show(desk: Desk) -> str:
    entries = desk.entries()
    if desk.options.request is not None:
        from dragoman.cli.context_request import write_request

        return write_request(desk, entries)
    plan = plan_now(desk, entries)
    if desk.as_json:
        import msgspec

        return jsontext.dumps(msgspec.to_builtins(plan)) + "\n"
    from dragoman.cli.context_page import page_of
    from dragoman.cli.page import look_of

    known = desk.served(plan.deployment, plan.model)[1].known
    return page_of(
        plan,
        look_of(desk.setup.config.color),
        title=desk.found.title,
        session_id=desk.found.session_id,
        now_ms=_moment(desk, entries),
        everything=desk.options.all,
        window_is_known=known,
    )


def plan_now(desk: Desk, entries: Sequence[Entry]) -> Plan:
    """As it stands, or as it stood when the entry of `--at` was made."""
    from dragoman.context.decide import Decider
    from dragoman.context.plan import plan_of

    history = History(entries=entries)
    view, cache, at_ms = history.view, history.cache, _moment(desk, entries)
    deployment, profile = desk.served(view.deployment, view.model)
    kind = deployment.cache if deployment else "none"
    decider = Decider(context_of(desk.setup.config))
    return plan_of(
        view,
        entries,
        cache,
        prior=profile.token_scale,
        window=profile.context_window,
        decision=decider.decide(view, at_ms, cache, profile, cache_kind=kind),
        now_ms=at_ms,
        falls_back=kind == "breakpoints",
        prices_of=desk.prices,
    )


def _moment(desk: Desk, entries: Sequence[Entry]) -> int:
    return now_ms() if desk.options.at is None or not entries else entries[-1].timestamp_ms


def _simulate(desk: Desk) -> str:
    from dragoman.cli.context_simulate import simulate

    return simulate(desk, desk.entries())


# --- changing


def _compress(desk: Desk) -> tuple[str, int]:
    from dragoman.cli.context_change import compress

    return compress(desk)


def _prune(desk: Desk) -> str:
    from dragoman.cli.context_change import prune

    return prune(desk)


ACTIONS = {
    "show": Action(_show, ("all", "at", "request")),
    "simulate": Action(_simulate, ("at", "all")),
    "compress": Action(_compress, ("focus",)),
    "prune": Action(_prune),
}
_FLAGS = {"all": "--all", "at": "--at", "request": "--request", "focus": "--focus"}
