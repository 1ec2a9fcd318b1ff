"""`dragoman models pull`, `remove`, and which weights there are: models that run on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.app.options import Options
from dragoman.app.pulling import agree, fetch, state_of
from dragoman.app.setup import Setup, set_up
from dragoman.base import jsontext
from dragoman.base.text import one_line, size
from dragoman.base.words import say
from dragoman.values.errors import InputError

if TYPE_CHECKING:
    from dragoman.local.weights.models import Model

ACTIONS = ("pull", "remove")
_NAME_COLUMNS = 20


def do(options: Options) -> str:
    """Pull or remove, as the words say, and return what is to be printed."""
    from dragoman.local.weights.models import MODELS

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
    from dragoman.local.weights.models import MODELS

    return [model for model in MODELS.values() if wanted.lower() in f"local/{model.name}"]


def weights_lines(models: list[Model], setup: Setup) -> list[str]:
    lines = [say("weights_heading")]
    for model in models:
        state = say(f"weights_{state_of(model, setup)}", name=model.name)
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
            "path": str(folder / model.file_name) if state_of(model, setup) == "here" else None,
        }
        for model in models
    ]


# --- pulling, removing ----------------------------------------------------------------------------------------------------------


def _pull(options: Options, name: str) -> str:
    from dragoman.local.weights.models import named
    from dragoman.local.weights.places import find, own_file

    setup = set_up(options)
    if path := own_file(name):
        raise InputError(say("weights_own_file", path=one_line(str(path))))
    model, folder = named(name), Path(setup.places.weights)
    if path := find(model.name, folder):
        return _ended(options, model, path, say("weights_are_here", name=model.name, path=path))
    if not options.yes and not options.source:
        agree(model, setup, may_ask=True)
    path = fetch(model, setup)
    return _ended(options, model, path, say("weights_pulled", name=model.name, path=path, size=size(model.bytes)))


def _ended(options: Options, model: Model, path: Path, text: str) -> str:
    if options.output_format == "json":
        return jsontext.dumps({"name": model.name, "path": str(path), "bytes": model.bytes, "sha256": model.sha256}) + "\n"
    return text + "\n"


def _remove(options: Options, name: str) -> str:
    from dragoman.local.weights.models import named
    from dragoman.local.weights.places import own_file, remove

    setup = set_up(options)
    if path := own_file(name):
        raise InputError(say("weights_own_file", path=one_line(str(path))))
    model, folder = named(name), Path(setup.places.weights)
    if state_of(model, setup) == "absent":
        raise InputError(say("weights_not_here", name=model.name))
    freed = remove(model.name, folder)
    if options.output_format == "json":
        return jsontext.dumps({"name": model.name, "freed_bytes": freed}) + "\n"
    return say("weights_removed", name=model.name, size=size(freed)) + "\n"
