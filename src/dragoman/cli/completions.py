"""`dragoman completions`: prints the script with which a shell completes our commands, and the names that the script asks for."""

from __future__ import annotations

from dragoman.app.options import Options
from dragoman.app.setup import catalog_of, set_up
from dragoman.base.text import did_you_mean, either, printable_input
from dragoman.cli.completion_table import SHELLS, completed_commands
from dragoman.conversation.actions import Action, Output, refuse_options
from dragoman.values.errors import InputError
from dragoman.words import say


def run_completions(options: Options) -> Output:
    """Run the action that the words name, and return what is printed."""
    if not options.words:
        raise InputError(say("completions_needs", shells=either(SHELLS)))
    name = options.words[0]
    if name not in ACTIONS:
        hint = did_you_mean(name, SHELLS)
        raise InputError(say("completions_unknown", name=printable_input(name), hint=hint, shells=either(SHELLS)))
    if len(options.words) > 1:
        raise InputError(say("too_many_words", command=f"completions {name}", word=printable_input(options.words[1])))
    refuse_options(options, ACTIONS[name], f"completions {name}")
    return ACTIONS[name].run(options)


def _bash(options: Options) -> str:
    from dragoman.cli.completion_scripts import bash_script

    return bash_script(completed_commands())


def _zsh(options: Options) -> str:
    from dragoman.cli.completion_scripts import zsh_script

    return zsh_script(completed_commands())


def _fish(options: Options) -> str:
    from dragoman.cli.completion_fish import fish_script

    return fish_script(completed_commands())


# --- what the scripts ask for, one name per line


def _models(options: Options) -> str:
    deployments = catalog_of(set_up(options)).deployments.values()
    return _lines([f"{deployment.name}/{name}" for deployment in deployments for name in deployment.models])


def _sessions(options: Options) -> str:
    from dragoman.sessions.store import FileStore

    setup = set_up(options)
    return _lines(["latest", *(found.session_id for found in FileStore(setup.places.sessions).list(setup.workspace))])


def _weights(options: Options) -> str:
    from dragoman.local.weights.models import MODELS

    return _lines(list(MODELS))


def _lines(names: list[str]) -> str:
    return "".join(f"{name}\n" for name in names if name.isprintable())


ACTIONS: dict[str, Action[Options]] = {
    "bash": Action(_bash, json=False),
    "zsh": Action(_zsh, json=False),
    "fish": Action(_fish, json=False),
    "models": Action(_models, json=False),
    "sessions": Action(_sessions, json=False),
    "weights": Action(_weights, json=False),
}
