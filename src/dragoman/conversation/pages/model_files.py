"""`dragoman models pull` and `remove`, and the list of weights: models that run on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.app.asking import LineQuestions
from dragoman.app.options import Options
from dragoman.app.pulling import confirm_pull, fetch_weights, state_of
from dragoman.app.setup import Setup, set_up
from dragoman.app.surface import surface
from dragoman.base import jsontext
from dragoman.base.text import one_line, size
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.local.weights.models import LocalModel

_NAME_COLUMNS = 20


# --- listing --------------------------------------------------------------------------------------------------------------------


def matching_weights(wanted: str) -> list[LocalModel]:
    from dragoman.local.weights.models import MODELS

    return [model for model in MODELS.values() if wanted.lower() in f"local/{model.name}"]


def weights_lines(models: list[LocalModel], setup: Setup) -> list[str]:
    lines = [say("weights_heading")]
    for model in models:
        state = say(f"weights_{state_of(model, setup)}", name=model.name)
        lines.append(f"   {model.name:<{_NAME_COLUMNS}} {size(model.bytes):>7}  {model.licence:<11} {state}")
    return lines


def weights_json(models: list[LocalModel], setup: Setup) -> list[dict[str, Any]]:
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


def pull_weights(options: Options, name: str) -> str:
    from dragoman.local.weights.models import get_model
    from dragoman.local.weights.places import find, own_file

    setup = set_up(options)
    if path := own_file(name):
        raise InputError(say("weights_own_file", path=one_line(str(path))))
    model, folder = get_model(name), Path(setup.places.weights)
    if path := find(model.name, folder):
        return _pull_output(options, model, path, say("weights_are_here", name=model.name, path=path))
    if not options.yes and not options.source:
        confirm_pull(model, setup, LineQuestions() if surface().can_ask else None)
    path = fetch_weights(model, setup)
    return _pull_output(options, model, path, say("weights_pulled", name=model.name, path=path, size=size(model.bytes)))


def _pull_output(options: Options, model: LocalModel, path: Path, text: str) -> str:
    if options.output_format == "json":
        return jsontext.dumps({"name": model.name, "path": str(path), "bytes": model.bytes, "sha256": model.sha256}) + "\n"
    return text + "\n"


def remove_weights(options: Options, name: str) -> str:
    from dragoman.local.weights.models import get_model
    from dragoman.local.weights.places import own_file, remove

    setup = set_up(options)
    if path := own_file(name):
        raise InputError(say("weights_own_file", path=one_line(str(path))))
    model, folder = get_model(name), Path(setup.places.weights)
    if state_of(model, setup) == "absent":
        raise InputError(say("weights_not_here", name=model.name))
    freed = remove(model.name, folder)
    if options.output_format == "json":
        return jsontext.dumps({"name": model.name, "freed_bytes": freed}) + "\n"
    return say("weights_removed", name=model.name, size=size(freed)) + "\n"
